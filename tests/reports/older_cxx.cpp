// SPDX-License-Identifier: BSD-3-Clause
//
// Compiled as C++17, this gives the reason and no other error.
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

int mark(MPIX_Prequest preq) { return mpix::pready(mpix::this_thread(), 0, preq); }
