// SPDX-License-Identifier: BSD-3-Clause
//
// Heat on a periodic plane, as heat2d, but one kernel does all steps: its blocks send a tile's cells as soon as they have
// computed it, and wait for the ghost cells of each tile. The result is compared with the exact solution of the scheme.
//
//   mpirun -n 4 heat2d_kernel
#include <cmath>
#include <numbers>

#include "field.cuh"

using namespace example;

namespace {

struct heat {
    halo::device_exchange x;
    shape at;
    double k;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int index) const {
        for (int t = index; t < x.tiles(); t += blocks) halo::send(block, x, t, 0);
        for (std::int64_t step = 0; step < x.steps(); ++step) {
            halo::sync_blocks(block, x, blocks);
            if (index == 0 && step > 0) halo::next(block, x, step - 1);
            const double *const now = x.data<double>(0, step);
            double *const later = x.data<double>(0, step + 1);
            for (int t = index; t < x.tiles(); t += blocks) {
                halo::wait(block, x, t, step);
                for_each_cell(block, x.tile(t), [&](auto i, auto j, auto) {
                    const std::int64_t c = at(i, j), row = at.stride(1);
                    later[c] = now[c] + k * (now[c - 1] + now[c + 1] + now[c - row] + now[c + row] - 4 * now[c]);
                });
                halo::send(block, x, t, step + 1);
            }
        }
    }
};

int run() {
    const int nx = 240, ny = 180, steps = 100;
    const double a = 2 * std::numbers::pi / nx, b = 2 * std::numbers::pi / ny, k = 0.2;
    const halo::grid g(MPI_COMM_WORLD, {nx, ny}, {.periodic = {true, true, false}});
    // Two arrays, written in turn.
    values u(g, 1), other(g, 1);
    u.set([&](auto x, auto y, auto) { return std::sin(a * x) * std::sin(b * y); });
    const halo::radius faces = halo::radius::faces(1);
    halo::kernel_exchange h(g, {halo::double_buffered(u.field(faces), other.field(faces))}, {.tile = {32, 16}});

    launch(blocks, heat{h.start(steps), shape(g, 1), k});
    h.finish();  // throws what a call in the kernel has returned

    // Each step multiplies this wave by the same number.
    const double factor = std::pow(1 - k * (4 - 2 * std::cos(a) - 2 * std::cos(b)), steps);
    double error = 0;
    (steps % 2 == 0 ? u : other).get([&](auto x, auto y, auto, double value) {
        error = std::max(error, std::abs(value - factor * std::sin(a * x) * std::sin(b * y)));
    });
    const bool right = all_say(error < 1e-12);
    if (g.rank() == 0) std::printf("%d steps on %d ranks: %s\n", steps, g.ranks(), right ? "right" : "wrong");
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) { return with_mpi(argc, argv, run); }
