// SPDX-License-Identifier: BSD-3-Clause
//
// Several boxes on a rank, or none.
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/calls/calls.hpp"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::box;
using halo::radius;
using halo_test::expect;
using halo_test::rank;
using halo_test::refused;

// Rank 1 has the first and the last of three boxes. The library's arrays, and what the grid and the exchange say.
void several_boxes() {
    const std::vector<box> boxes{{{0, 0, 0}, {3, 1, 1}}, {{3, 0, 0}, {5, 1, 1}}, {{5, 0, 0}, {9, 1, 1}}};
    const halo::grid g(MPI_COMM_WORLD, {9}, {.periodic = {true}, .boxes = boxes, .owners = {1, 0, 1}});
    expect(g.boxes() == (rank == 0 ? std::vector<int>{1} : std::vector<int>{0, 2}) && g.total_boxes() == 3, "numbers");
    expect(g.box_of(2) == boxes[2] && g.rank_of(2) == 1 && g.rank_of(1) == 0 && g.owner({8, 0, 0}) == 1, "owners");
    expect(g.neighbours(halo::direction_number(1, 0, 0)) == (rank == 0 ? std::vector<int>{1} : std::vector<int>{0, 1}),
           "neighbours");
    halo::arrays<int> u(g, radius::all(1));
    halo::exchange x(g, {u});
    expect(u.size() == g.boxes().size() && x.messages_sent() == 1 && x.bytes_sent() == 2 * 4, "one message");
    const halo::deep_halo deep(g, radius::all(1), 2);
    for (std::size_t i = 0; i < u.size(); ++i) {
        const int n = static_cast<int>(i);
        const box &local = g.local(n);
        expect(local == boxes[static_cast<std::size_t>(g.boxes()[i])] &&
                   g.global_index({-1, 0, 0}, n)[0] == (local.lo[0] + 8) % 9,
               "the boxes");
        expect(x.data(0, n) == &u[i](local.lo[0] - 1) &&
                   halo::field_bytes(g, u, n) == 4U * (static_cast<unsigned>(local.cells()) + 2),
               "memory");
        expect(x.interior(n) == box{{local.lo[0] + 1, 0, 0}, {local.hi[0] - 1, 1, 1}} ||
                   (local.cells() < 3 && x.interior(n).empty()),
               "the interior");
        expect(deep.valid(1, n) == box{{local.lo[0] - 1, 0, 0}, {local.hi[0] + 1, 1, 1}}, "what is valid");
        for (auto c = local.lo[0]; c < local.hi[0]; ++c) u[i](c) = static_cast<int>(c) + 10;
    }
    x.start();
    x.finish();
    for (std::size_t i = 0; i < u.size(); ++i) {
        const box &local = g.local(static_cast<int>(i));
        for (auto c = local.lo[0] - 1; c <= local.hi[0]; ++c)
            expect(u[i](c) == static_cast<int>((c + 9) % 9) + 10, "a cell");
    }
    if (rank == 1) {
        const auto all_refuse = [&](const std::string &sentence,
                                    const std::vector<std::pair<const char *, std::function<void()>>> &calls) {
            for (const auto &[name, call] : calls)
                refused(name, MPI_ERR_ARG, std::string("mpix::halo::") + name + sentence, call);
        };
        all_refuse(": this rank has 2 boxes; say which is meant",
                   {{"grid::local", [&] { static_cast<void>(g.local()); }},
                    {"grid::global_index", [&] { static_cast<void>(g.global_index({})); }},
                    {"exchange::interior", [&] { static_cast<void>(x.interior()); }},
                    {"exchange::boundary", [&] { static_cast<void>(x.boundary()); }},
                    {"exchange::data", [&] { static_cast<void>(x.data(0)); }},
                    {"deep_halo::valid", [&] { static_cast<void>(deep.valid(1)); }},
                    {"field_bytes", [&] { static_cast<void>(halo::field_bytes(g, u)); }}});
        all_refuse(": i is 2; this rank has 2 boxes",
                   {{"grid::local", [&] { static_cast<void>(g.local(2)); }},
                    {"grid::global_index", [&] { static_cast<void>(g.global_index({}, 2)); }},
                    {"exchange::interior", [&] { static_cast<void>(x.interior(2)); }},
                    {"exchange::boundary", [&] { static_cast<void>(x.boundary(2)); }},
                    {"exchange::data", [&] { static_cast<void>(x.data(0, 2)); }},
                    {"deep_halo::valid", [&] { static_cast<void>(deep.valid(1, 2)); }},
                    {"field_bytes", [&] { static_cast<void>(halo::field_bytes(g, u, 2)); }}});
    }
    std::vector<int> v(30);
    refused("one allocation", MPI_ERR_ARG,
            "mpix::halo::exchange, rank 1: fields[0].allocations has 0 entries; this rank has 2 boxes", [&] {
                halo::exchange(g, {{v.data(), radius::all(1)}});
            });
    // Two boxes of rank 1 in the same memory.
    std::vector<int *> each{v.data()};
    if (rank == 1) each.push_back(v.data() + 4);
    refused("boxes overlap", MPI_ERR_ARG,
            "mpix::halo::exchange, rank 1: fields[0].allocations[1].data overlaps fields[0].allocations[0].data", [&] {
                halo::exchange(g, {{each, radius::all(1)}});
            });

    // All on rank 1.
    const halo::grid lonely(MPI_COMM_WORLD, {9}, {.periodic = {true}, .boxes = boxes, .owners = {1, 1, 1}});
    halo::arrays<int> w(lonely, radius::all(1));
    halo::exchange none(lonely, {w});
    expect(none.messages_sent() == 0 && w.size() == (rank == 0 ? 0U : 3U), "all on one rank");
    none.start();
    none.finish();
    none.begin();
    none.ready(0);
    none.finish();
    if (rank == 0)
        refused("no box", MPI_ERR_ARG, "mpix::halo::grid::local: this rank has 0 boxes; say which is meant",
                [&] { static_cast<void>(lonely.local()); });

    // Each rank's part is cut across its longest axis; rank r owns the boxes 2 r and 2 r + 1.
    const halo::grid cut(MPI_COMM_WORLD, {4, 12}, {.boxes_per_rank = 2});
    expect(cut.boxes() == std::vector<int>{2 * rank, 2 * rank + 1}, "the numbers of computed boxes");
    for (int i = 0; i < 2; ++i)
        expect(cut.local(i) == box{{0, 6 * rank + 3 * i, 0}, {4, 6 * rank + 3 * i + 3, 1}}, "computed boxes");
}

// Sums in the order of the boxes that hold the ghost cells, whichever rank owns them: cell 5, of rank 1, gets one of each
// box, the second from rank 0.
void order_of_sums() {
    const std::vector<box> boxes{{{0, 0, 0}, {3, 1, 1}}, {{3, 0, 0}, {5, 1, 1}}, {{5, 0, 0}, {9, 1, 1}}};
    const halo::grid g(MPI_COMM_WORLD, {9}, {.periodic = {true}, .boxes = boxes, .owners = {1, 0, 1}});
    halo::arrays<double> u(g, radius::faces(0).set(1, 0, 0, 6));
    halo::exchange x(g, {u}, {.reduce = halo::reduction::sum});
    struct sum {
        double own, ghosts[3], result;
    };
    // What is right in one order of the three is wrong in another: 1e16 + 1 is 1e16.
    for (const sum &one : {sum{0, {1e16, 1, -1e16}, 0}, sum{1, {1, 1e16, -1e16}, 2}}) {
        for (std::size_t i = 0; i < u.size(); ++i) {
            const int number = g.boxes()[i];
            const box &local = g.local(static_cast<int>(i));
            for (auto c = local.lo[0]; c < local.hi[0]; ++c) u[i](c) = one.own;
            for (auto c = local.hi[0]; c < local.hi[0] + 6; ++c) u[i](c) = one.ghosts[number];
        }
        x.start();
        x.finish();
        if (rank == 1)
            expect(u[1](5) == one.result,
                   "a sum in another order is " + std::to_string(u[1](5)) + ", not " + std::to_string(one.result));
    }
}
