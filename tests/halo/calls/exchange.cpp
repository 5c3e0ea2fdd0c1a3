// SPDX-License-Identifier: BSD-3-Clause
//
// What exchanges and gather() answer, and refuse.
#include <cstdint>
#include <limits>
#include <span>
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

void exchanges() {
    const halo::grid g(MPI_COMM_WORLD, {4, 4});
    std::vector<double> u(100), v(100);
    const auto exchange_refused = [&](const char *what, int error_class, const std::string &sentence,
                                      const std::vector<halo::field> &fields,
                                      const halo::exchange_options &options = {}) {
        refused(what, error_class, "mpix::halo::exchange, " + sentence, [&] { halo::exchange(g, fields, options); });
    };
    exchange_refused("null", MPI_ERR_BUFFER, "rank 0: fields[1].data is null",
                     {{u.data(), radius::all(1)}, {static_cast<double *>(nullptr), radius::all(1)}});
    exchange_refused("no memory", MPI_ERR_BUFFER, "rank 0: fields[0].data: the CPU cannot write there",
                     {{reinterpret_cast<double *>(std::uintptr_t{64}), radius::all(1)}});
    const halo::grid large(MPI_COMM_WORLD, {400, 400});
    halo::array<double> small(g, radius::all(1));
    refused("array of another grid", MPI_ERR_BUFFER,
            "mpix::halo::exchange, rank 0: fields[0].allocated is 192 bytes; the box and its ghost cells take 649632",
            [&] { halo::exchange(large, {small}); });
    // Which would fit.
    halo::array<double> wide(large, radius::all(1));
    exchange_refused("array of a larger grid", MPI_ERR_BUFFER,
                     "rank 0: fields[1].made_for is [0, 0, 0] to [400, 200, 1]; the box is [0, 0, 0] to [4, 2, 1]",
                     {{u.data(), radius::all(1)}, wide});
    const halo::grid across(MPI_COMM_WORLD, {4, 4}, {.boxes = {{{}, {2, 4, 1}}, {{2, 0, 0}, {4, 4, 1}}}});
    halo::array<double> tall(across, radius::all(1));
    exchange_refused("array of another decomposition", MPI_ERR_BUFFER,
                     "rank 0: fields[0].made_for is [0, 0, 0] to [2, 4, 1]; the box is [0, 0, 0] to [4, 2, 1]", {tall});
    refused("arrays of two decompositions", MPI_ERR_ARG,
            "mpix::halo::double_buffered: now and other are arrays for different boxes",
            [&] { static_cast<void>(halo::double_buffered(small, tall)); });
    exchange_refused("memory beside an array", MPI_ERR_BUFFER,
                     "rank 0: fields[0].made_for is [0, 0, 0] to [2, 4, 1]; the box is [0, 0, 0] to [4, 2, 1]",
                     {halo::double_buffered({u.data(), radius::all(1)}, tall)});
    refused("arrays of other boxes", MPI_ERR_BUFFER,
            "mpix::halo::exchange, rank 0: fields[0].allocations[0].made_for is [0, 0, 0] to [2, 4, 1]; the box is [0, "
            "0, 0] to [4, 2, 1]",
            [&] {
                halo::arrays<double> each(across, radius::all(1));
                halo::exchange(g, {each});
            });
    exchange_refused("no ghost cells on one rank", MPI_ERR_BUFFER,
                     "rank 1: fields[1].allocated is 184 bytes; the box and its ghost cells take 192",
                     {{u.data(), radius::all(1)}, {std::span(v).first(rank == 1 ? 23 : 24), radius::all(1)}});
    const halo::field unknown(static_cast<double *>(nullptr), radius::all(1));
    expect(halo::field_bytes(g, unknown) == 192 && halo::field_bytes(large, small) == 649632, "field_bytes");
    refused("field_bytes", MPI_ERR_ARG, "mpix::halo::field_bytes: field.layout.components is 0; it is at least 1", [&] {
        static_cast<void>(halo::field_bytes(g, {u.data(), radius::all(1), {.components = 0}}));
    });
    exchange_refused("no transfer", MPI_ERR_ARG,
                     "rank 0: transfer is 4; it is 0 (packed), 1 (datatype), 2 (plain) or 3 (automatic)",
                     {{u.data(), radius::all(1)}}, {static_cast<halo::transfer>(4)});
    exchange_refused("padding on one rank", MPI_ERR_ARG,
                     "rank 1: fields[0].layout.below[1] is 1; the radius needs 2 cells there",
                     {{u.data(), radius::all(2), {.below = {-1, rank == 1 ? 1 : 2, -1}}}});
    exchange_refused("number of fields", MPI_ERR_ARG,
                     "rank 1: the number of fields is 2 here, and 1 on rank 0; all ranks give the same",
                     rank == 0 ? std::vector<halo::field>{{u.data(), radius::all(1)}}
                               : std::vector<halo::field>{{u.data(), radius::all(1)}, {v.data(), radius::all(1)}});
    exchange_refused("twice", MPI_ERR_ARG, "rank 0: fields[1].data overlaps fields[0].data",
                     {{u.data(), radius::all(1)}, {u.data(), radius::faces(1)}});
    // Of 24 and of 16 cells.
    exchange_refused("shifted", MPI_ERR_ARG, "rank 0: fields[1].data overlaps fields[0].data",
                     {{u.data(), radius::all(1)}, {u.data() + 23, radius::faces(1)}});
    exchange_refused(
        "before", MPI_ERR_ARG, "rank 1: fields[2].data overlaps fields[0].data",
        {{u.data() + 24, radius::all(1)}, {u.data() + 48, radius::all(1)}, {u.data() + rank, radius::all(1)}});
    exchange_refused("long", MPI_ERR_COUNT, "rank 0: fields[0]: more than 2^60 bytes, ghost cells included",
                     {{u.data(), radius::faces(std::numeric_limits<int>::max())}});
    // Nothing is written to it: it is refused before.
    const halo::grid line(MPI_COMM_WORLD, {2});
    refused(
        "long value", MPI_ERR_COUNT,
        "mpix::halo::exchange, rank 0: more than 2^31 - 1 bytes or rows of a field in one message; a transfer that is "
        "packed can be longer",
        [&] {
            halo::exchange(line, {{u.data(), std::size_t{1} << 31, radius::faces(1)}}, {halo::transfer::datatype});
        });
    exchange_refused("value size", MPI_ERR_ARG,
                     "rank 1: fields[0]: values have 4 bytes here, and 8 on rank 0; all ranks give the same",
                     {{u.data(), rank == 0 ? 8U : 4U, radius::all(1)}});
    exchange_refused("components", MPI_ERR_ARG,
                     "rank 1: fields[0].layout.components is 2 here, and 1 on rank 0; all ranks give the same",
                     {{u.data(), radius::all(1), {.components = 1 + rank}}});
    exchange_refused("interleaved", MPI_ERR_ARG,
                     "rank 1: fields[0].layout.interleaved is 1 here, and 0 on rank 0; all ranks give the same",
                     {{u.data(), radius::all(1), {.components = 2, .interleaved = rank == 1}}});
    exchange_refused(
        "staggered", MPI_ERR_ARG,
        "rank 1: fields[0].layout.staggered is 1, 1, 0 here, and 1, 0, 0 on rank 0; all ranks give the same",
        {{u.data(), radius::all(1), {.staggered = {true, rank == 1, false}}}});
    exchange_refused("staggered along no axis", MPI_ERR_ARG,
                     "rank 0: fields[0].layout.staggered[2]: the domain has 2 axes",
                     {{u.data(), radius::all(1), {.staggered = {false, false, true}}}});
    refused("points", MPI_ERR_ARG, "mpix::halo::grid::points: staggered[2]: the domain has 2 axes", [&] {
        static_cast<void>(g.points(g.local(), {false, false, true}));
    });
    exchange_refused("radius", MPI_ERR_ARG,
                     "rank 1: fields[0].radius in direction +x+y is 2 here, and 1 on rank 0; all ranks give the same",
                     {{u.data(), radius::all(1).set(1, 1, 0, 1 + rank)}});
    exchange_refused("transfer", MPI_ERR_ARG,
                     "rank 1: transfer is datatype here, and packed on rank 0; all ranks give the same",
                     {{u.data(), radius::all(1)}}, {static_cast<halo::transfer>(rank)});

    // Reverse exchanges.
    std::vector<std::int32_t> whole(100);
    std::vector<float> real(100);
    exchange_refused("no reduction", MPI_ERR_ARG, "rank 0: options.reduce is 4; it is none, sum, min or max (0 to 3)",
                     {{u.data(), radius::all(1)}}, {.reduce = static_cast<halo::reduction>(4)});
    exchange_refused("no arithmetic", MPI_ERR_TYPE,
                     "rank 0: fields[1].type has no arithmetic; a reverse exchange needs integers or real numbers",
                     {{u.data(), radius::all(1)}, {v.data(), 8U, radius::all(1)}}, {.reduce = halo::reduction::sum});
    exchange_refused("derived datatypes", MPI_ERR_ARG, "rank 0: transfer is datatype; a reverse exchange is packed",
                     {{u.data(), radius::all(1)}}, {halo::transfer::datatype, halo::reduction::sum});
    exchange_refused("other reduction", MPI_ERR_ARG,
                     "rank 1: the reduction is min here, and sum on rank 0; all ranks give the same",
                     {{u.data(), radius::all(1)}}, {.reduce = static_cast<halo::reduction>(1 + rank)});
    exchange_refused("other type", MPI_ERR_ARG,
                     "rank 1: fields[0].type is float32 here, and int32 on rank 0; all ranks give the same",
                     {rank == 0 ? halo::field(whole.data(), radius::all(1)) : halo::field(real.data(), radius::all(1))},
                     {.reduce = halo::reduction::max});
    halo::field mistaken(u.data(), radius::all(1));
    mistaken.type = halo::value_type::int8;
    exchange_refused("size of the type", MPI_ERR_TYPE,
                     "rank 0: fields[0].type is int8, and value_bytes is 8; one of them is wrong", {mistaken});

    // A whole field on one rank.
    std::vector<double> all(16);
    const auto gather_refused = [&](const char *what, int error_class, const std::string &sentence,
                                    const halo::field &from, void *global, int root) {
        refused(what, error_class, "mpix::halo::gather, " + sentence, [&] { halo::gather(g, from, global, root); });
    };
    const halo::field plain(u.data(), radius::all(1));
    gather_refused("root", MPI_ERR_ROOT, "rank 0: root is 2; there are 2 ranks", plain, all.data(), 2);
    gather_refused("other root", MPI_ERR_ARG, "rank 1: root is 1 here, and 0 on rank 0; all ranks give the same", plain,
                   all.data(), rank);
    gather_refused("null", MPI_ERR_BUFFER, "rank 1: global is null", plain, nullptr, 1);
    gather_refused("null field", MPI_ERR_BUFFER, "rank 0: from.data is null",
                   {static_cast<double *>(nullptr), radius::all(1)}, all.data(), 1);
    gather_refused("short field", MPI_ERR_BUFFER,
                   "rank 0: from.allocated is 8 bytes; the box and its ghost cells take 192",
                   {std::span(u).first(1), radius::all(1)}, all.data(), 0);
    gather_refused("other values", MPI_ERR_ARG,
                   "rank 1: from: values have 4 bytes here, and 8 on rank 0; all ranks give the same",
                   {u.data(), rank == 0 ? 8U : 4U, radius::all(1)}, all.data(), 0);
    gather_refused("other components", MPI_ERR_ARG,
                   "rank 1: from.layout.components is 2 here, and 1 on rank 0; all ranks give the same",
                   {u.data(), radius::all(1), {.components = 1 + rank}}, all.data(), 0);
    gather_refused("staggered", MPI_ERR_ARG,
                   "rank 1: from.layout.staggered is 1, 0, 0 here, and 0, 0, 0 on rank 0; all ranks give the same",
                   {u.data(), radius::all(1), {.staggered = {rank == 1, false, false}}}, all.data(), 0);
    gather_refused("no memory", MPI_ERR_BUFFER,
                   "rank 0: global, as a field without gaps: data: the CPU cannot write there", plain,
                   reinterpret_cast<void *>(std::uintptr_t{64}), 0);

    halo::exchange x(g, {{u.data(), radius::all(1)}, {v.data(), radius::all(1)}});
    const std::string at = "mpix::halo::exchange::";
    refused("finish", MPI_ERR_REQUEST, at + "finish: the exchange is not active; start it first", [&] { x.finish(); });
    refused("ready", MPI_ERR_REQUEST, at + "ready: the exchange is not active; begin it first", [&] { x.ready(0); });
    x.begin();
    refused("begin", MPI_ERR_REQUEST, at + "begin: the exchange is active; finish it first", [&] { x.begin(); });
    refused("no field", MPI_ERR_ARG, at + "ready: field is 2; there are 2", [&] { x.ready(2); });
    refused("no field", MPI_ERR_ARG, at + "ready: field is -1; there are 2", [&] { x.ready(-1); });
    x.ready(0);
    refused("twice", MPI_ERR_REQUEST, at + "ready: field 0 is ready already", [&] { x.ready(0); });
    refused("unready", MPI_ERR_REQUEST, at + "finish: field 1 is not ready", [&] { x.finish(); });
    x.ready(1);
    x.finish();
    x.start();
    refused("start", MPI_ERR_REQUEST, at + "start: the exchange is active; finish it first", [&] { x.start(); });
    x.finish();
    // Fields of two allocations.
    refused("swap", MPI_ERR_ARG, at + "swap: field 1 has no second allocation; give its `other`", [&] { x.swap(1); });
    refused("swap", MPI_ERR_ARG, at + "swap: field is 2; there are 2", [&] { x.swap(2); });
    refused("data", MPI_ERR_ARG, at + "data: field is -1; there are 2", [&] { static_cast<void>(x.data(-1)); });
    const halo::field both = halo::double_buffered(plain, {v.data(), radius::all(1)});
    refused("differ", MPI_ERR_ARG,
            "mpix::halo::double_buffered: now and other differ in the size or type of values, radius, layout, or "
            "number of allocations",
            [&] {
                static_cast<void>(halo::double_buffered(plain, {v.data(), radius::all(2)}));
            });
    exchange_refused("one address twice", MPI_ERR_ARG, "rank 0: fields[0].other overlaps fields[0].data",
                     {halo::double_buffered(plain, plain)});
    exchange_refused("swap of datatypes", MPI_ERR_ARG,
                     "rank 0: transfer is datatype, and fields[0].other is given; a field of two allocations is packed",
                     {both}, {halo::transfer::datatype});
    exchange_refused("other twice", MPI_ERR_ARG, "rank 0: fields[1].data overlaps fields[0].other",
                     {both, {v.data(), radius::all(1)}});
    exchange_refused("other in data", MPI_ERR_ARG, "rank 0: fields[0].other overlaps fields[0].data",
                     {halo::double_buffered(plain, {u.data() + 1, radius::all(1)})});
    halo::exchange alternating(g, {both});
    alternating.start();
    refused("active", MPI_ERR_REQUEST, at + "swap: the exchange is active; finish it first",
            [&] { alternating.swap(0); });
    alternating.finish();
    for (const std::vector<double> *const present : {&u, &v, &u}) {
        expect(alternating.data(0) == present->data(), "data() after a swap");
        alternating.swap(0);
    }
    refused("owner", MPI_ERR_ARG, "mpix::halo::grid::owner: [4, 0, 0] is not in the domain", [&] {
        static_cast<void>(g.owner({4, 0, 0}));
    });
    refused("box_of", MPI_ERR_ARG, "mpix::halo::grid::box_of: number is 2; there are 2 boxes",
            [&] { static_cast<void>(g.box_of(2)); });
    refused("rank_of", MPI_ERR_ARG, "mpix::halo::grid::rank_of: number is -1; there are 2 boxes",
            [&] { static_cast<void>(g.rank_of(-1)); });
}

// What the grid and the exchange say of themselves.
void answers() {
    const halo::grid g(MPI_COMM_WORLD, {6, 8}, {.periodic = {true, false, false}});
    expect(g.dimensions() == 2 && g.extent() == halo::index3{6, 8, 1} && g.ranks() == 2 && g.rank() == rank,
           "the grid");
    expect(g.local() == box{{0, 4 * rank, 0}, {6, 4 * rank + 4, 1}}, "the box");
    expect(g.owner({3, 5, 0}) == 1 && g.box_of(1).lo[1] == 4 && g.periodic()[0], "the owner");
    expect(g.global_index({0, 0, 0}) == g.local().lo &&
               g.global_index({-1, 5, 0}) == halo::index3{5, 4 * rank + 5, 0} &&
               g.global_index({13, -9, 0}) == halo::index3{1, 4 * rank - 9, 0},
           "the global index");
    std::vector<float> u(8 * 6);
    halo::exchange x(g, {{u.data(), radius::all(1)}});
    // Rows of eight, since corners are of the neighbour too.
    expect(x.messages_sent() == 1 && x.bytes_sent() == 8 * 4, "one message to the only neighbour");
    const box inner = rank == 0 ? box{{1, 0, 0}, {5, 3, 1}} : box{{1, 5, 0}, {5, 8, 1}};
    expect(x.interior() == inner && x.boundary().size() == 3, "the interior");
    // A stencil that reads (x + 2, y + 2) reads ghost cells of the upper face in x from two cells off, also where the
    // corner is outside of the domain.
    const halo::exchange skewed(g, {{u.data(), radius::faces(0).set(1, 0, 0, 2).set(1, 1, 0, 2)}});
    const halo::exchange shallow(g, {{u.data(), radius::faces(0).set(1, 0, 0, 1).set(1, 1, 0, 2)}});
    for (const halo::exchange *h : {&skewed, &shallow})
        expect(h->interior().hi[0] == 4, "the interior of a skewed one");
    halo::exchange moved(std::move(x));  // the memory stays where it is
    moved.start();
    expect(moved.active() && !x.active(), "active");  // NOLINT: what has been moved from answers this
    moved.finish();
    expect(!moved.active(), "not active");
    x = std::move(moved);
    x.start();
    expect(x.active() && !moved.active(), "active after an assignment");  // NOLINT: as above
    x.finish();
}
