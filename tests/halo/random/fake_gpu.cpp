// SPDX-License-Identifier: BSD-3-Clause
//
// Host memory of all fields plays GPU memory: exchanges move it by MPI_Pack and MPI_Unpack, and have no datatypes. Linked
// with the library's own parts.
#include "host/halo_cells/gpu_cells.h"
#include "tests/halo/random/program.hpp"

namespace {

const bool plays = [] {
    mpix::halo::play_gpu_cells = true;
    random_halo::has_datatypes = false;
    return true;
}();

}  // namespace
