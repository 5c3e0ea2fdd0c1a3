// SPDX-License-Identifier: BSD-3-Clause
//
// After (docs/migration.md): the halo by mpix::halo, which also cuts the square.
#include <mpix/halo.hpp>

#include "heat.h"

namespace halo = mpix::halo;

template <class Each>
void for_each_cell(const halo::box &b, Each each) {
    for (auto y = b.lo[1]; y < b.hi[1]; ++y)
        for (auto x = b.lo[0]; x < b.hi[0]; ++x) each(x, y);
}

void run() {
    const halo::grid g(MPI_COMM_WORLD, {COLUMNS, COLUMNS}, {.periodic = {true, true, false}});
    const halo::radius faces = halo::radius::faces(1);
    halo::array<double> u[2] = {{g, faces}, {g, faces}};
    halo::exchange h(g, {halo::double_buffered(u[0], u[1])});
    for_each_cell(g.local(),
                  [&](auto x, auto y) { u[0](x, y) = first_value(static_cast<int>(y), static_cast<int>(x)); });

    for (int step = 0; step < STEPS; ++step) {
        halo::array<double> &now = u[step % 2], &next = u[1 - step % 2];
        halo::overlap(h, [&](const halo::box &cells) {  // the cells without neighbours elsewhere, and then the others
            for_each_cell(cells, [&](auto x, auto y) {
                next(x, y) = 0.25 * (now(x, y - 1) + now(x, y + 1) + now(x - 1, y) + now(x + 1, y));
            });
        });
        h.swap(0);
    }

    std::uint64_t sum = 0;
    for_each_cell(g.local(),
                  [&](auto x, auto y) { sum += digest(static_cast<int>(y), static_cast<int>(x), u[STEPS % 2](x, y)); });
    print_sum(sum);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    run();
    MPI_Finalize();
}
