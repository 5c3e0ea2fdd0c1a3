// SPDX-License-Identifier: BSD-3-Clause
//
// Heat on a periodic plane. Each step exchanges a row or column of cells with each neighbour, and meanwhile computes
// the cells that read no ghost cells. The result is compared with the exact solution of the scheme.
//
//   mpirun -n 2 heat2d
#include <cmath>
#include <cstdio>
#include <numbers>

#include <mpix/halo.hpp>

namespace halo = mpix::halo;

void for_each_cell(const halo::box &b, auto each) {
    for (auto y = b.lo[1]; y < b.hi[1]; ++y)
        for (auto x = b.lo[0]; x < b.hi[0]; ++x) each(x, y);
}

int run() {
    const int nx = 240, ny = 180, steps = 200;
    const double a = 2 * std::numbers::pi / nx, b = 2 * std::numbers::pi / ny, k = 0.2;
    const halo::grid g(MPI_COMM_WORLD, {nx, ny}, {.periodic = {true, true, false}});
    // Two arrays, written in turn.
    halo::array<double> u[2] = {{g, halo::radius::faces(1)}, {g, halo::radius::faces(1)}};
    halo::exchange h(g, {halo::double_buffered(u[0], u[1])});
    for_each_cell(g.local(), [&](auto x, auto y) { u[0](x, y) = std::sin(a * x) * std::sin(b * y); });

    for (int step = 0; step < steps; ++step) {
        halo::array<double> &now = u[step % 2], &next = u[1 - step % 2];
        const auto cell = [&](auto x, auto y) {
            next(x, y) =
                now(x, y) + k * (now(x - 1, y) + now(x + 1, y) + now(x, y - 1) + now(x, y + 1) - 4 * now(x, y));
        };
        halo::overlap(h, [&](const halo::box &cells) { for_each_cell(cells, cell); });
        h.swap(0);
    }

    // Each step multiplies this wave by the same number.
    const double factor = std::pow(1 - k * (4 - 2 * std::cos(a) - 2 * std::cos(b)), steps);
    double error = 0, largest = 0;
    for_each_cell(g.local(), [&](auto x, auto y) {
        error = std::fmax(error, std::abs(u[steps % 2](x, y) - factor * std::sin(a * x) * std::sin(b * y)));
    });
    MPI_Allreduce(&error, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (g.rank() == 0) std::printf("%d steps on %d ranks: %s\n", steps, g.ranks(), largest < 1e-12 ? "right" : "wrong");
    return largest < 1e-12 ? 0 : 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int status = run();
    MPI_Finalize();
    return status;
}
