// SPDX-License-Identifier: BSD-3-Clause
//
// What the calls answer, and what is wrong gets a sentence that names it, on all ranks. On two ranks.
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

namespace halo = mpix::halo;
using halo::box;
using halo::radius;

namespace {

int rank = 0, failures = 0;

void refused(const char *what, int error_class, const std::string &sentence, const std::function<void()> &call) {
    std::string got = "nothing";
    int got_class = MPI_SUCCESS;
    try {
        call();
    } catch (const halo::error &e) {
        got = e.what();
        got_class = e.error_class();
    }
    if (got_class == error_class && got == sentence) return;
    std::printf("rank %d: %s: class %d, \"%s\"\n    expected class %d, \"%s\"\n", rank, what, got_class, got.c_str(),
                error_class, sentence.c_str());
    ++failures;
}

void grid_refused(const char *what, int error_class, const std::string &sentence,
                  const std::vector<std::int64_t> &extent, const halo::grid_options &options = {}) {
    refused(what, error_class, "mpix::halo::grid, " + sentence, [&] { halo::grid(MPI_COMM_WORLD, extent, options); });
}

void grids() {
    refused("comm", MPI_ERR_COMM, "mpix::halo::grid: comm is MPI_COMM_NULL", [] { halo::grid(MPI_COMM_NULL, {4, 4}); });
    grid_refused("no extent", MPI_ERR_DIMS, "rank 0: extent has 0 axes; it has 1 to 3", {});
    grid_refused("4-D", MPI_ERR_DIMS, "rank 0: extent has 4 axes; it has 1 to 3", {4, 4, 4, 4});
    grid_refused("empty", MPI_ERR_DIMS, "rank 0: extent[1] is 0; it is at least 1", {4, 0});
    grid_refused("large", MPI_ERR_DIMS, "rank 0: extent: more than 2^60 cells", {1 << 30, 1 << 30, 2});
    grid_refused("axis", MPI_ERR_ARG, "rank 0: options.periodic[1]: the domain has 1 axes", {4},
                 {.periodic = {false, true, false}});
    grid_refused("shortest", MPI_ERR_ARG, "rank 0: options.shortest[0] is 0; it is at least 1", {4},
                 {.shortest = {0, 1, 1}});
    grid_refused(
        "too few cells", MPI_ERR_ARG,
        "rank 0: 1 x 1 x 1 cells cannot be cut into 2 boxes (options.shortest: 1 x 1 x 1); use fewer ranks, or give "
        "options.boxes",
        {1, 1, 1});
    grid_refused("boxes", MPI_ERR_ARG, "rank 0: options.boxes has 1 boxes; there are 2 ranks, and no options.owners",
                 {4}, {.boxes = {{{}, {4, 1, 1}}}});
    grid_refused(
        "overlap", MPI_ERR_ARG,
        "rank 0: options.boxes do not cover the domain once: boxes[0] and boxes[1] overlap, in [0, 0, 0] to [4, 1, 1]",
        {4}, {.boxes = {{{}, {4, 1, 1}}, {{}, {4, 1, 1}}}});
    grid_refused("links", MPI_ERR_ARG, "rank 0: options.links.within_node has 3 entries; 2 ranks of a node need 4", {4},
                 {.links = {.within_node = {1, 1, 1}}});
    grid_refused("hi below lo", MPI_ERR_ARG,
                 "rank 0: options.boxes[1] is [4, 0, 0] to [0, 4, 1]: hi is below lo; an empty box has hi equal to lo",
                 {4, 4}, {.boxes = {{{}, {4, 4, 1}}, {{4, 0, 0}, {0, 4, 1}}}});
    const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const auto bandwidths = [](double last) { return halo::measured_links{.within_node = {1, 1, 1, last}}; };
    grid_refused("infinity", MPI_ERR_ARG, "rank 0: options.links.within_node[3] is inf; it is above 0 and finite", {4},
                 {.links = bandwidths(inf)});
    grid_refused("nan", MPI_ERR_ARG, "rank 0: options.links.within_node[3] is nan; it is above 0 and finite", {4},
                 {.links = bandwidths(nan)});
    grid_refused("network", MPI_ERR_ARG, "rank 0: options.links.network is inf; it is at least 0 and finite", {4},
                 {.links = {.network = inf}});
    grid_refused("network", MPI_ERR_ARG, "rank 0: options.links.network is -1; it is at least 0 and finite", {4},
                 {.links = {.network = -1}});
    grid_refused("typical bytes", MPI_ERR_ARG, "rank 0: options.typical_bytes_per_cell is 0; it is above 0 and finite",
                 {4}, {.typical_bytes_per_cell = 0});
    // One rank alone is wrong, or of another mind.
    grid_refused("one rank", MPI_ERR_DIMS, "rank 1: extent[0] is -3; it is at least 1", {rank == 1 ? -3 : 4});
    grid_refused("disagree", MPI_ERR_ARG, "rank 1: extent is 4, 5 here, and 4, 4 on rank 0; all ranks give the same",
                 {4, 4 + rank});
    grid_refused("disagree on the number of axes", MPI_ERR_ARG,
                 "rank 1: extent is 4 here, and 4, 4 on rank 0; all ranks give the same",
                 rank == 0 ? std::vector<std::int64_t>{4, 4} : std::vector<std::int64_t>{4});
    grid_refused("disagree on periods", MPI_ERR_ARG,
                 "rank 1: options.periodic is 1, 0, 0 here, and 0, 0, 0 on rank 0; all ranks give the same", {4, 4},
                 {.periodic = {rank == 1, false, false}});
    const auto halves = [](std::int64_t at) { return std::vector<box>{{{}, {at, 4, 1}}, {{at, 0, 0}, {4, 4, 1}}}; };
    grid_refused("boxes on one rank", MPI_ERR_ARG,
                 "rank 1: options.boxes has 2 boxes here, and 0 on rank 0; all ranks give the same", {4, 4},
                 {.boxes = rank == 1 ? halves(2) : std::vector<box>{}});
    grid_refused("other boxes", MPI_ERR_ARG,
                 "rank 1: options.boxes[0].hi is 2, 4, 1 here, and 1, 4, 1 on rank 0; all ranks give the same", {4, 4},
                 {.boxes = halves(1 + rank)});
    grid_refused("bandwidths on one rank", MPI_ERR_ARG,
                 "rank 1: options.links.within_node has 4 entries here, and 0 on rank 0; all ranks give the same", {4},
                 {.links = rank == 1 ? bandwidths(1) : halo::measured_links{}});
    // Which are equal as integers.
    grid_refused("bandwidths", MPI_ERR_ARG,
                 "rank 1: options.links.within_node[3] is 1.75 here, and 1.5 on rank 0; all ranks give the same", {4},
                 {.links = bandwidths(rank == 1 ? 1.75 : 1.5)});
    grid_refused("typical bytes", MPI_ERR_ARG,
                 "rank 1: options.typical_bytes_per_cell is 0.75 here, and 0.5 on rank 0; all ranks give the same", {4},
                 {.typical_bytes_per_cell = rank == 1 ? 0.75 : 0.5});
    grid_refused(
        "typical radius", MPI_ERR_ARG,
        "rank 1: options.typical_radius in direction +x+y+z is 2 here, and 0 on rank 0; all ranks give the same", {4},
        {.typical_radius = radius::faces(1).set(1, 1, 1, 2 * rank)});
    grid_refused("no boxes per rank", MPI_ERR_ARG, "rank 0: options.boxes_per_rank is 0; it is at least 1", {4},
                 {.boxes_per_rank = 0});
    grid_refused("many boxes per rank", MPI_ERR_ARG,
                 "rank 0: options.boxes_per_rank is 2000000000; 2 ranks can have 357913941 boxes together", {4},
                 {.boxes_per_rank = 2000000000});
    grid_refused("too few cells for all boxes", MPI_ERR_ARG,
                 "rank 0: 5 x 1 x 1 cells cannot be cut into 6 boxes (options.shortest: 1 x 1 x 1); use fewer ranks or "
                 "options.boxes_per_rank, or give options.boxes",
                 {5}, {.boxes_per_rank = 3});
    grid_refused("boxes and boxes per rank", MPI_ERR_ARG,
                 "rank 0: options.boxes_per_rank is 2, and options.boxes are given; leave it 1", {4},
                 {.boxes = {{{}, {4, 1, 1}}}, .boxes_per_rank = 2});
    grid_refused("other boxes per rank", MPI_ERR_ARG,
                 "rank 1: options.boxes_per_rank is 2 here, and 1 on rank 0; all ranks give the same", {4},
                 {.boxes_per_rank = 1 + rank});
    grid_refused("owners without boxes", MPI_ERR_ARG,
                 "rank 0: options.owners are those of options.boxes, of which there are none", {4}, {.owners = {0, 1}});
    grid_refused("number of owners", MPI_ERR_ARG, "rank 0: options.owners has 2 entries; options.boxes has 1 boxes",
                 {4}, {.boxes = {{{}, {4, 1, 1}}}, .owners = {0, 1}});
    grid_refused("no such owner", MPI_ERR_ARG, "rank 0: options.owners[0] is 2; there are 2 ranks", {4},
                 {.boxes = {{{}, {4, 1, 1}}}, .owners = {2}});
    grid_refused("other owner", MPI_ERR_ARG,
                 "rank 1: options.owners[0] is 1 here, and 0 on rank 0; all ranks give the same", {4},
                 {.boxes = {{{}, {4, 1, 1}}}, .owners = {rank}});
    refused("no direction", MPI_ERR_ARG,
            "mpix::halo::radius::set: there is no direction (2, 0, 0); each of x, y, z is -1, 0 or 1",
            [] { radius().set(2, 0, 0, 1); });
}

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
    exchange_refused("no memory", MPI_ERR_BUFFER,
                     "rank 0: fields[0].data: the CPU cannot write there; kernel_exchange takes memory of a GPU",
                     {{reinterpret_cast<double *>(std::uintptr_t{64}), radius::all(1)}});
    const halo::grid large(MPI_COMM_WORLD, {400, 400});
    halo::array<double> small(g, radius::all(1));
    refused("array of another grid", MPI_ERR_BUFFER,
            "mpix::halo::exchange, rank 0: fields[0].allocated is 192 bytes; the box and its ghost cells take 649632",
            [&] { halo::exchange(large, {small}); });
    exchange_refused("no ghost cells on one rank", MPI_ERR_BUFFER,
                     "rank 1: fields[1].allocated is 184 bytes; the box and its ghost cells take 192",
                     {{u.data(), radius::all(1)}, {std::span(v).first(rank == 1 ? 23 : 24), radius::all(1)}});
    const halo::field unknown(static_cast<double *>(nullptr), radius::all(1));
    if (halo::field_bytes(g, unknown) != 192 || halo::field_bytes(large, small) != 649632) {
        std::printf("rank %d: field_bytes\n", rank);
        ++failures;
    }
    refused("field_bytes", MPI_ERR_ARG, "mpix::halo::field_bytes: field.layout.components is 0; it is at least 1", [&] {
        static_cast<void>(halo::field_bytes(g, {u.data(), radius::all(1), {.components = 0}}));
    });
    exchange_refused("no transfer", MPI_ERR_ARG, "rank 0: transfer is 3; it is 0 (packed), 1 (datatype) or 2 (plain)",
                     {{u.data(), radius::all(1)}}, {static_cast<halo::transfer>(3)});
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
                   "rank 0: global, as a field without gaps: data: the CPU cannot write there; kernel_exchange takes "
                   "memory of a GPU",
                   plain, reinterpret_cast<void *>(std::uintptr_t{64}), 0);

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
        if (alternating.data(0) != present->data()) {
            std::printf("rank %d: data() after a swap\n", rank);
            ++failures;
        }
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
    const auto expect = [](bool right, const char *what) {
        if (right) return;
        std::printf("rank %d: %s\n", rank, what);
        ++failures;
    };
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

// Three components in arrays of their own, rows that begin at multiples of 64 bytes, two cells on each side of the box.
struct velocity {
    explicit velocity(const halo::grid &g) : local(g.local()) {
        const auto n = local.size();
        layout = {.components = 3, .below = {2, 2, 2}, .above = {2, 2, 2}};
        layout.row_bytes = (static_cast<std::size_t>(n[0] + 4) * sizeof(float) + 63) / 64 * 64;
        layout.plane_bytes = static_cast<std::size_t>(n[1] + 4) * layout.row_bytes;
        layout.component_bytes = static_cast<std::size_t>(n[2] + 4) * layout.plane_bytes;
        memory.resize(3 * layout.component_bytes / sizeof(float));
    }

    halo::field field() { return {memory.data(), halo::radius::all(2), layout}; }

    float &operator()(std::int64_t x, std::int64_t y, std::int64_t z, int c) {
        const std::size_t bytes = static_cast<std::size_t>(z - local.lo[2] + 2) * layout.plane_bytes +
                                  static_cast<std::size_t>(y - local.lo[1] + 2) * layout.row_bytes +
                                  static_cast<std::size_t>(x - local.lo[0] + 2) * sizeof(float) +
                                  static_cast<std::size_t>(c) * layout.component_bytes;
        return memory[bytes / sizeof(float)];
    }

    halo::box local;
    halo::field_layout layout;
    std::vector<float> memory;
};

// Memory of the program's own, as docs/halo.md describes it.
void own_memory() {
    const halo::grid g(MPI_COMM_WORLD, {5, 6, 7}, {.periodic = {true, true, true}});
    velocity u(g);
    halo::exchange x(g, {u.field()});
    box all = g.local();
    for (int a = 0; a < 3; ++a) all.lo[a] -= 2, all.hi[a] += 2;
    int wrong = 0;
    for (const bool fill : {true, false}) {
        const box &b = fill ? g.local() : all;
        for (auto k = b.lo[2]; k < b.hi[2]; ++k)
            for (auto j = b.lo[1]; j < b.hi[1]; ++j)
                for (auto i = b.lo[0]; i < b.hi[0]; ++i)
                    for (int c = 0; c < 3; ++c) {
                        const auto value =
                            static_cast<float>(1 + c + 3 * ((i + 5) % 5 + 5 * ((j + 6) % 6 + 6 * ((k + 7) % 7))));
                        if (fill) u(i, j, k, c) = value;
                        wrong += u(i, j, k, c) != value;
                    }
        if (!fill) break;
        x.start();
        x.finish();
    }
    if (wrong > 0) std::printf("rank %d: %d values of the program's own memory are wrong\n", rank, wrong);
    failures += wrong > 0;
}

// Arrays of the library's own, in each number of dimensions.
void arrays() {
    for (const std::vector<std::int64_t> &extent : std::vector<std::vector<std::int64_t>>{{9}, {5, 6}, {4, 3, 5}}) {
        const halo::grid g(MPI_COMM_WORLD, extent, {.periodic = {true, extent.size() > 1, extent.size() > 2}});
        halo::array<int> u(g, radius::all(2));
        halo::exchange x(g, {u});
        const auto value = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
            const auto inside = [&](std::int64_t c, int a) { return (c + g.extent()[a]) % g.extent()[a]; };
            return static_cast<int>(inside(i, 0) + 10 * inside(j, 1) + 100 * inside(k, 2) + 1);
        };
        const auto over = [&](const box &b, const auto &each) {
            for (auto k = b.lo[2]; k < b.hi[2]; ++k)
                for (auto j = b.lo[1]; j < b.hi[1]; ++j)
                    for (auto i = b.lo[0]; i < b.hi[0]; ++i) each(i, j, k);
        };
        over(g.local(), [&](auto i, auto j, auto k) { u(i, j, k) = value(i, j, k); });
        x.start();
        x.finish();
        box all = g.local();
        for (std::size_t a = 0; a < extent.size(); ++a) all.lo[a] -= 2, all.hi[a] += 2;
        int wrong = 0;
        over(all, [&](auto i, auto j, auto k) { wrong += u(i, j, k) != value(i, j, k); });
        if (wrong > 0) std::printf("rank %d: %zu-D: %d cells of the array are wrong\n", rank, extent.size(), wrong);
        failures += wrong > 0;
    }
}

// Flow through the faces of cells: what a cell reads above itself is there, and nothing else in the interior.
void staggered() {
    const halo::grid g(MPI_COMM_WORLD, {5, 6}, {.periodic = {true, false, false}});
    const std::array<bool, 3> in_x{true, false, false}, in_y{false, true, false};
    halo::array<int> u(g, radius::of({{1, 0, 0}}), in_x), v(g, radius::of({{0, 1, 0}}), in_y);
    halo::exchange x(g, {u, v});
    const auto over = [](const box &b, const auto &each) {
        for (auto j = b.lo[1]; j < b.hi[1]; ++j)
            for (auto i = b.lo[0]; i < b.hi[0]; ++i) each(i, j);
    };
    const auto value = [](std::int64_t i, std::int64_t j) { return static_cast<int>(1 + i % 5 + 10 * j); };
    const auto expect = [](bool right, const char *what) {
        if (!right) std::printf("rank %d: staggered: %s\n", rank, what);
        failures += !right;
    };
    const box &local = g.local();
    box with_ends = local;
    with_ends.hi[1] += rank == 1;
    expect(g.points(local, in_x) == local && g.points(local, in_y) == with_ends, "the points");
    expect(g.points({local.hi, local.hi}, in_y).empty(), "points of no cells");
    over(g.points(local, in_x), [&](auto i, auto j) { u(i, j) = value(i, j); });
    over(g.points(local, in_y), [&](auto i, auto j) { v(i, j) = value(i, j); });
    int wrong = 0;
    const auto check = [&](auto i, auto j) {
        wrong += u(i + 1, j) != value(i + 1, j) || v(i, j + 1) != value(i, j + 1);
    };
    x.start();
    over(x.interior(), check);
    x.finish();
    for (const box &b : x.boundary()) over(b, check);
    expect(wrong == 0, "values on the faces");
    // Rank 1 fills nothing above: what its last cells read there is the domain's end.
    expect(x.interior() == box{local.lo, {4, local.hi[1] - (rank == 0), 1}}, "the interior");
    std::vector<int> all(5 * 7), expected;
    over({{}, {5, 7, 1}}, [&](auto i, auto j) { expected.push_back(value(i, j)); });
    halo::gather(g, v, all.data(), 1);
    expect(rank == 0 || all == expected, "gathered");
    expect(halo::field_bytes(g, v) == 4U * 5 * (rank == 0 ? 4 : 5), "field_bytes");
}

// Rank 1 has the first and the last of three boxes. The library's arrays, and what the grid and the exchange say.
void several_boxes() {
    const auto expect = [](bool right, const char *what) {
        if (!right) std::printf("rank %d: several boxes: %s\n", rank, what);
        failures += !right;
    };
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
        if (rank == 0 || u[1](5) == one.result) continue;
        std::printf("rank %d: a sum in another order is %g, not %g\n", rank, u[1](5), one.result);
        ++failures;
    }
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
            if (!got.starts_with("mpix::halo::exchange::finish: no completion after ") || !x.active()) {
                std::printf("finish() says \"%s\", active %d\n", got.c_str(), x.active());
                ++failures;
            }
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
            if (u(i, row) != (kind.reduce == halo::reduction::sum ? 2 : 1)) {
                std::printf("rank %d: %d after a wait that has failed\n", rank, u(i, row));
                ++failures;
            }
    }
}

}  // namespace

// calls [stall]
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1) {
        stalls();
        MPI_Finalize();
        return failures > 0;
    }
    grids();
    exchanges();
    answers();
    own_memory();
    arrays();
    staggered();
    several_boxes();
    order_of_sums();
    int all = 0;
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all > 0;
}
