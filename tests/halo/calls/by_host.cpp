// SPDX-License-Identifier: BSD-3-Clause
//
// With MPIX_HALO_STREAM=packed: exchanges in the order of a stream that the host makes.
#include <optional>
#include <string>
#include <utility>

#include <mpix/halo.hpp>

#include "tests/halo/calls/calls.hpp"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo_test::expect;
using halo_test::rank;
using halo_test::refused;

namespace {

// A rank without cells takes any stream: that of the others' GPUs, too.
void without_cells() {
    const halo::grid g(MPI_COMM_WORLD, {4, 8}, {.periodic = {true, true, false}, .boxes = {{{}, {4, 8, 1}}, {}}});
    halo::array<int> u(g, halo::radius::faces(1));
    halo::stream_exchange x(g, {u});
    CUstream_st *const stream = rank == 0 ? nullptr : reinterpret_cast<CUstream_st *>(&u);
    if (rank == 0) u(3, 2) = 7;
    x.run(stream);
    x.start(stream);
    x.finish(stream);
    expect(rank == 1 || u(-1, 2) == 7, "the ghost cells");
    if (rank == 0)
        refused("a stream of a GPU", MPI_ERR_ARG,
                "mpix::halo::stream_exchange::start: stream is not null, and the fields are in host memory",
                [&] { x.start(reinterpret_cast<CUstream_st *>(&u)); });
}

// finish() throws, and the exchange is finished.
void finished_with_an_error() {
    const halo::grid g(MPI_COMM_WORLD, {4, 8});
    std::optional<halo::array<int>> u(std::in_place, g, halo::radius::faces(1));
    halo::stream_exchange x(g, {*u});
    x.start();
    u.reset();
    const std::string at = ": rank " + std::to_string(rank) + ": the array of fields[0] was destroyed*";
    refused("finish", MPI_ERR_BUFFER, "mpix::halo::exchange::finish" + at, [&] { x.finish(); });
    expect(x.report().exchanges == 1, "an exchange that is finished");
    refused("start", MPI_ERR_BUFFER, "mpix::halo::exchange::start" + at, [&] { x.start(); });
}

}  // namespace

void by_host() {
    without_cells();
    finished_with_an_error();
}
