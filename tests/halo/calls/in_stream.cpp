// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges in the order of a stream, of fields in host memory.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/calls/calls.hpp"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo_test::expect;
using halo_test::rank;
using halo_test::refused;

void in_stream() {
    const std::string call = "mpix::halo::stream_exchange";
    const halo::radius faces = halo::radius::faces(1);
    const halo::grid g(MPI_COMM_WORLD, {8, 6}, {.periodic = {true, true, false}});
    halo::array<int> u(g, faces), v(g, faces);
    refused("tile", MPI_ERR_ARG, call + ", rank 0: options.tile[0] is -1; it is at least 0", [&] {
        halo::stream_exchange(g, {u}, {.tile = {-1, 0, 0}});
    });
    refused("tiles differ", MPI_ERR_ARG,
            call + ", rank 1: options.tile is 5, 8, 0 here, and 4, 8, 0 on rank 0; all ranks give the same", [&] {
                halo::stream_exchange(g, {u}, {.tile = {4 + rank, 0, 0}});
            });

    refused("another call on rank 0", MPI_ERR_ARG,
            std::string(rank == 0 ? "mpix::halo::exchange" : "mpix::halo::stream_exchange") +
                ", rank 1: the call is mpix::halo::stream_exchange here, and mpix::halo::exchange on rank 0; all ranks "
                "give "
                "the same",
            [&] {
                if (rank == 0)
                    halo::exchange(g, {u});
                else
                    halo::stream_exchange(g, {u});
            });

    std::optional<halo::stream_exchange> x;
    x.emplace(g, std::vector<halo::field>{halo::double_buffered(u, v)});
    expect(x->data(0) == static_cast<halo::field>(u).data && x->boxes() == 1, "data() is the first allocation");
    expect(x->messages_sent() == 1 && x->bytes_sent() > 0, "one message to the other rank");
    const halo::exchange same(g, {u});
    expect(x->interior() == same.interior() && x->boundary() == same.boundary(), "the regions of an exchange");
    refused("finish before start", MPI_ERR_REQUEST, call + "::finish: the exchange is not started",
            [&] { x->finish(); });
    refused("a stream of a GPU", MPI_ERR_ARG, call + "::start: stream is not null, and the fields are in host memory",
            [&] { x->start(reinterpret_cast<CUstream_st *>(&u)); });
    refused("no such field", MPI_ERR_ARG, call + "::data: field is 1; there are 1", [&] { x->data(1); });
    refused("no such box", MPI_ERR_ARG, call + "::data: i is 1; this rank has 1 boxes*", [&] { x->data(0, 1); });

    for (int step = 0; step < 5; ++step) {
        halo::array<int> &now = step % 2 == 0 ? u : v;
        const auto value = [&](auto a, auto b) {
            return static_cast<int>(1000 * step + 10 * ((a + 8) % 8) + (b + 6) % 6);
        };
        const halo::box &mine = g.local();
        for (auto b = mine.lo[1]; b < mine.hi[1]; ++b)
            for (auto a = mine.lo[0]; a < mine.hi[0]; ++a) now(a, b) = value(a, b);
        x->start();
        if (step == 0) {
            refused("start twice", MPI_ERR_REQUEST, call + "::start: the exchange is started; finish it first",
                    [&] { x->start(); });
            refused("run while started", MPI_ERR_REQUEST, call + "::run: the exchange is started; finish it first",
                    [&] { x->run(); });
            refused("swap while started", MPI_ERR_REQUEST, call + "::swap: the exchange is started; finish it first",
                    [&] { x->swap(); });
        }
        x->finish();
        x->check();
        int wrong = 0;
        for (auto b = mine.lo[1]; b < mine.hi[1]; ++b)
            for (const auto a : {mine.lo[0] - 1, mine.hi[0]}) wrong += now(a, b) != value(a, b);
        for (auto a = mine.lo[0]; a < mine.hi[0]; ++a)
            for (const auto b : {mine.lo[1] - 1, mine.hi[1]}) wrong += now(a, b) != value(a, b);
        expect(wrong == 0, "the ghost cells of step " + std::to_string(step));
        x->swap();
    }
    halo::stream_exchange moved = std::move(*x);
    refused("moved from", MPI_ERR_REQUEST, call + "::start: the exchange has been moved from", [&] { x->start(); });
    int computed = 0;
    halo::overlap(moved, nullptr, [&](const halo::box &cells) { computed += static_cast<int>(cells.cells()); });
    expect(computed == static_cast<int>(g.local().cells()), "overlap computes each cell once");
}
