// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges that a neighbour starts late, or makes late.
#include <mpi.h>

#include <string>

#include <mpix/halo.hpp>

#include "tests/halo/calls/calls.hpp"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::box;
using halo::radius;
using halo_test::expect;
using halo_test::rank;
using halo_test::refused;

namespace {

int reductions = 0;   // that this rank has called
int held_behind = 0;  // if not 0: rank 1 does not return from this one before rank 0 calls the next one

}  // namespace

// The library's calls come here, too.
extern "C" int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    ++reductions;
    char token = 0;
    if (rank == 0 && held_behind != 0 && reductions == held_behind + 1)
        PMPI_Send(&token, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    const int code = PMPI_Allreduce(from, to, count, type, op, comm);
    if (rank == 1 && held_behind != 0 && reductions == held_behind)
        PMPI_Recv(&token, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return code;
}

// Rank 1 makes its part of a stream exchange when rank 0 has given up waiting for it: then neither rank gets one.
void made_late() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8});
    halo::array<int> u(g, radius::all(1));
    const auto make = [&] { halo::stream_exchange(g, {u}); };
    const int before = reductions;
    make();
    // The last one says whether the neighbours have come.
    held_behind = 2 * reductions - before - 1;
    std::string got = "nothing";
    int error_class = MPI_SUCCESS;
    try {
        make();
    } catch (const halo::error &e) {
        got = e.what();
        error_class = e.error_class();
    }
    held_behind = 0;
    expect(error_class == MPI_ERR_PENDING &&
               got.starts_with("mpix::halo::stream_exchange, rank 0: MPIX_Pbuf_prepare_all: no completion after "),
           "stream_exchange() says \"" + got + "\"");
}

// Rank 1 makes a stream exchange, and starts it never.
void never_started() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8});
    halo::array<int> u(g, radius::all(1));
    halo::stream_exchange x(g, {u});
    if (rank == 1) {
        MPI_Barrier(MPI_COMM_WORLD);  // its destructor would send
        return;
    }
    x.start();
    std::string got = "nothing";
    int error_class = MPI_SUCCESS;
    try {
        x.finish();
    } catch (const halo::error &e) {
        got = e.what();
        error_class = e.error_class();
    }
    expect(error_class == MPI_ERR_PENDING &&
               got.starts_with(
                   "mpix::halo::stream_exchange::finish: rank 0: exchange 0: finish() waits for the ghost cells "),
           "finish() says \"" + got + "\"");
    refused("check after a failure", MPI_ERR_REQUEST,
            "mpix::halo::stream_exchange::check: an earlier call has failed; the exchange can only be destroyed",
            [&] { x.check(); });
    MPI_Barrier(MPI_COMM_WORLD);
}

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
