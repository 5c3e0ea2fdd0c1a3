// SPDX-License-Identifier: BSD-3-Clause
//
// All steps of heat on a plane, for halo_kernel.py: by CuPy on a GPU, or by host threads (heat_host.cpp).
#include <mpix/halo.cuh>

#ifdef __CUDACC__
#include <cooperative_groups.h>
#define KERNEL_FN __device__
#else
#define KERNEL_FN
#endif

namespace halo = mpix::halo;

// Each block has one tile, and waits for it, or for its cells as a box. An array has a ghost cell on each side of the
// rank's box, whose lowest cell is (x0, y0); `row` is the length of its rows.
template <class Block>
KERNEL_FN void heat(const Block &block, int tile, int blocks, const halo::device_exchange &x, long long x0,
                    long long y0, long long row, double k, int by_boxes) {
    if (blocks != x.tiles()) return;  // nothing would be right
    const halo::box cells = x.tile(tile);
    const long long nx = cells.size()[0];
    halo::send(block, x, tile, 0);
    for (long long step = 0; step < x.steps(); ++step) {
        halo::sync_blocks(block, x, blocks);
        if (tile == 0 && step > 0) halo::next(block, x, step - 1);
        by_boxes ? halo::wait(block, x, cells, step) : halo::wait(block, x, tile, step);
        const double *const u = x.data<double>(0, step);
        double *const later = x.data<double>(0, step + 1);
        for (long long i = block.thread_rank(); i < cells.cells(); i += block.num_threads()) {
            const long long c = (cells.lo[1] + i / nx - y0 + 1) * row + cells.lo[0] + i % nx - x0 + 1;
            later[c] = u[c] + k * (u[c - 1] + u[c + 1] + u[c - row] + u[c + row] - 4 * u[c]);
        }
        halo::send(block, x, tile, step + 1);
    }
}

#ifdef __CUDACC__
extern "C" __global__ void heat_steps(halo::device_exchange x, long long x0, long long y0, long long row, double k,
                                      int by_boxes) {
    heat(cooperative_groups::this_thread_block(), blockIdx.x, gridDim.x, x, x0, y0, row, k, by_boxes);
}
#endif
