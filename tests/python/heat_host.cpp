// SPDX-License-Identifier: BSD-3-Clause
//
// Host threads play the blocks of the kernel of halo_kernel.py.
#include <mpix/host_group.hpp>

#include "tests/python/heat_kernel.cuh"

extern "C" void heat_on_host(halo::device_exchange x, long long x0, long long y0, long long row, double k, int by_boxes,
                             int blocks) {
    mpix::host_launch(blocks, 1, [&](const mpix::host_group &block) {
        heat(block, block.group_rank(), blocks, x, x0, y0, row, k, by_boxes);
    });
}
