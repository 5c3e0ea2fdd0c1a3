// SPDX-License-Identifier: BSD-3-Clause
//
// Random programs whose exchanges treat host memory as GPU memory: they move it by MPI_Pack and MPI_Unpack, and use no
// datatypes. Linked with the library's own objects.
#include "host/halo_packing/cell_packer.h"
#include "tests/halo/random/program.hpp"

namespace {

const bool is_set = [] {
    mpix::halo::fake_gpu_memory = mpix::halo::fake_memory::device;
    random_halo::uses_datatypes = false;
    return true;
}();

}  // namespace
