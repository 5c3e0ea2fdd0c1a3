// SPDX-License-Identifier: BSD-3-Clause
//
// Heat on a periodic plane, as heat2d, on GPUs in the order of a stream: the host enqueues all steps, and waits once. The result is
// compared with the exact solution of the scheme.
//
//   mpirun -n 4 heat2d_stream
#include <cmath>
#include <numbers>

#include "field.cuh"

using namespace example;

namespace {

/** One step, of some cells. */
struct relax {
    const double *now;
    double *later;
    shape at;
    halo::box cells;
    double k;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int index) const {
        halo::box mine = cells;  // rows are shared out to the blocks
        const std::int64_t rows = cells.hi[1] - cells.lo[1];
        mine.lo[1] = cells.lo[1] + rows * index / blocks;
        mine.hi[1] = cells.lo[1] + rows * (index + 1) / blocks;
        for_each_cell(block, mine, [&](auto i, auto j, auto) {
            const std::int64_t c = at(i, j), row = at.stride(1);
            later[c] = now[c] + k * (now[c - 1] + now[c + 1] + now[c - row] + now[c + row] - 4 * now[c]);
        });
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
    halo::stream_exchange h(g, {halo::double_buffered(u.field(faces), other.field(faces))});

    for (int step = 0; step < steps; ++step) {
        const double *const now = static_cast<double *>(h.data(0));
        double *const later = now == u.data() ? other.data() : u.data();
        halo::overlap(h, nullptr, [&](const halo::box &cells) {
            enqueue(blocks, relax{now, later, shape(g, 1), cells, k});
        });
        h.swap();
    }
    synchronise();
    h.check();  // throws what the exchange's kernels have found

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
