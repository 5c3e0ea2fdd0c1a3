// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges that a neighbour starts late.
#include <string>

#include <mpix/halo.hpp>

#include "tests/halo/calls/calls.hpp"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::box;
using halo::radius;
using halo_test::expect;
using halo_test::rank;

// Rank 1 starts late, when rank 0 has given up once. What a reverse exchange gives is added once all the same.
void stalls() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8});
    const halo::exchange_options kinds[] = {
        {}, {.transfer = halo::transfer::datatype}, {.reduce = halo::reduction::sum}};
    for (const halo::exchange_options &kind : kinds) {
        halo::array<int> u(g, radius::all(1));
        const box &local = g.local();
        for (auto y = local.lo[1] - 1; y <= local.hi[1]; ++y)
            for (auto x = local.lo[0] - 1; x <= local.hi[0]; ++x) u(x, y) = 1;
        halo::exchange x(g, {u}, kind);
        if (rank == 0) {
            x.start();
            std::string got = "nothing";
            try {
                x.finish();
            } catch (const halo::error &e) {
                if (e.error_class() == MPI_ERR_PENDING) got = e.what();
            }
            expect(got.starts_with("mpix::halo::exchange::finish: no completion after ") && x.active(),
                   "finish() says \"" + got + "\"" + (x.active() ? "" : ", and is not active"));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) x.start();
        while (x.active()) try {
                x.finish();
            } catch (const halo::error &e) {
                if (e.error_class() != MPI_ERR_PENDING) throw;
            }
        // The row next to the other rank's box.
        const auto row = rank == 0 ? local.hi[1] - 1 : local.lo[1];
        for (auto i = local.lo[0]; i < local.hi[0]; ++i)
            expect(u(i, row) == (kind.reduce == halo::reduction::sum ? 2 : 1),
                   std::to_string(u(i, row)) + " after a wait that has failed");
    }
}
