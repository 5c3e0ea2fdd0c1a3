// SPDX-License-Identifier: BSD-3-Clause
//
// The pack kernels' arithmetic, on the host: the functions that a GPU's threads run, one thread after another, over the
// same tiles; against the offsets that the standard gives the types. Every byte of both sides is checked.
#include <cstddef>
#include <cstdint>

// A GPU takes no word that is not aligned to its size, and no memory may be read behind a message's last byte. A CPU
// does not mind, so the accesses are watched.
namespace {
int bad_accesses = 0;
std::uintptr_t forbidden_begin = 0, forbidden_end = 0;
void on_word(const void *at, std::size_t bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(at);
    if (first % bytes != 0) ++bad_accesses;
    if (first + bytes > forbidden_begin && first < forbidden_end) ++bad_accesses;
}
}  // namespace
#define MPIX_ON_WORD(at, bytes) on_word(at, bytes)

#include "host/datatype/decode.h"
#include "host/datatype/typemap.h"

#include <mpix/impl/pack/staged.cuh>
#include <mpix/impl/pack/tiles.cuh>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/arena.hpp"
#include "tests/unit/random_type.hpp"

namespace {

using namespace mpix::detail;

// How often each kernel was run, by kind of map, word size and direction.
std::map<std::string, int> runs;

// Few threads, and as many as short rows have lanes, in turn.
template <int W, int U, bool Unpack, class Map>
void run_grid(const packing_job<Map> &job) {
    static unsigned turn = 0;
    const std::int64_t threads = ++turn % 2 != 0 ? 4 : 64;
    const std::int64_t tiles = number_of_tiles<W, U, Unpack>(job, threads);
    for (std::int64_t tile = 0; tile < tiles; ++tile)
        for (std::int64_t thread = 0; thread < threads; ++thread) do_tile<W, U, Unpack>(job, tile, thread, threads);
}

template <int W, bool Unpack, class Map>
void run_units(const packing_job<Map> &job, bool many) {
    if (many)
        run_grid<W, 4, Unpack>(job);
    else
        run_grid<W, 1, Unpack>(job);
}

template <bool Unpack, class Map>
void run_map(const mpix_typemap &type, char *memory, char *packed, std::int64_t begin, std::int64_t bytes, int most,
             bool many) {
    const char *const end = Unpack ? packed + bytes : memory + memory_end(type, begin, bytes);
    const packing_job<Map> job{Map(type), memory, packed, begin, bytes, end};
    const int word = std::min(kernel_word<Unpack>(type, memory, packed, begin, bytes), most);
    ++runs[std::to_string(type.kind) + (Unpack ? " unpack " : " pack ") + std::to_string(word)];
    if constexpr (is_grid<Map> && Unpack)
        if (word == 1)
            ++runs[goes_by_cells(job.map) ? "cells" : goes_by_row_lanes(job.map.grid) ? "row lanes" : "bytes"];
    if constexpr (is_grid<Map> && !Unpack)
        if (word == 1)
            ++runs[job.map.tiny_runs() ? "tiny" : with_packed_word(job.map, [](auto piece) {
                return std::to_string(decltype(piece)::bytes) + " joined";
            })];
    if (word == 16) run_units<16, Unpack>(job, many);
    if (word == 8) run_units<8, Unpack>(job, many);
    if (word == 4) run_units<4, Unpack>(job, many);
    if (word == 1) run_units<1, Unpack>(job, many);
}

template <bool Unpack>
void run_emulated(const mpix_typemap &type, char *memory, char *packed, std::int64_t begin, std::int64_t bytes,
                  int most, bool many) {
    if (type.kind == MPIX_TYPEMAP_GRID) run_map<Unpack, grid_map>(type, memory, packed, begin, bytes, most, many);
    if (type.kind == MPIX_TYPEMAP_RUNS)
        run_map<Unpack, mpix::detail::run_map>(type, memory, packed, begin, bytes, most, many);
    if (type.kind == MPIX_TYPEMAP_BOXES) run_map<Unpack, box_map>(type, memory, packed, begin, bytes, most, many);
}

// ---- through a stage; a block's threads one after another, up to the barrier and on from there ------------------

// Shared memory, poisoned.
struct stage_memory {
    std::vector<block16> words;
    int bytes;
    explicit stage_memory(int size)
        : words(static_cast<std::size_t>((size + 2 * stage_margin) / 16 + 2), block16{~0ull, ~0ull}), bytes(size) {}
    char *at() { return reinterpret_cast<char *>(words.data()) + stage_margin; }
    bool kept_within() const {
        const char *const all = reinterpret_cast<const char *>(words.data());
        const char *const end = all + words.size() * sizeof(block16);
        const auto poison = [](char c) { return c == '\xff'; };
        return std::all_of(all, all + stage_margin, poison) &&
               std::all_of(std::min(end, all + stage_margin + (bytes + 15) / 16 * 16), end, poison);
    }
};
constexpr int stage_threads = 4;

template <staging How, int N, int Tile>
void pack_by_stage(const packing_job<grid_map> &job) {
    for (std::int64_t tile = job.word_begin(16, 0); tile < job.bytes; tile += Tile) {
        const std::int64_t end = std::min(tile + Tile, job.bytes);
        for (std::int64_t from = std::max<std::int64_t>(tile, 0); from < end;) {
            const std::int64_t to = staged_pack<How>::end_of_part(job, from, end);
            stage_memory stage(staged_pack<How>::stage_bytes(job.map.grid, Tile));
            const staged_pack<How> part(job, {from, to});
            for (int thread = 0; thread < stage_threads; ++thread) part.load(stage.at(), thread, stage_threads);
            REQUIRE(stage.kept_within());
            for (int thread = 0; thread < stage_threads; ++thread)
                part.template store<N, Tile, stage_threads>(stage.at(), thread);
            from = to;
        }
    }
}
template <int N, int Tile>
void unpack_by_stage(const packing_job<grid_map> &job, bool whole) {
    const mpix_divisor by = make_divisor(staged_unpack<N>::cells_of_row(job.map.run(), whole));
    for (std::int64_t index = 0; index * Tile < staged_unpack<N>::cells(job, by); ++index) {
        stage_memory stage(staged_unpack<N>::stage_bytes(Tile));
        const staged_unpack<N> tile(job, by, index, Tile);
        for (int thread = 0; thread < stage_threads; ++thread) tile.load(stage.at(), true, thread, stage_threads);
        REQUIRE(stage.kept_within());
        for (int thread = 0; thread < stage_threads; ++thread)
            tile.template store<Tile, stage_threads>(stage.at(), thread);
    }
}

// All that can do it, whether they win or not.
template <class Each>
void pack_by_all_stages(const mpix_typemap &type, char *memory, char *packed, std::int64_t begin, std::int64_t bytes,
                        const Each &each) {
    if (type.kind != MPIX_TYPEMAP_GRID || type.grid.dimensions == 0 || type.grid.run >= longest_staged_row) return;
    const packing_job<grid_map> job{grid_map(type), memory, packed,
                                    begin,          bytes,  memory + memory_end(type, begin, bytes)};
    const auto run = [&](const char *name, auto &&move) {
        CAPTURE(name);
        ++runs[name];
        move();
        each();
    };
    if (job.map.run() >= 16) run("staged rows", [&] { pack_by_stage<staging::rows, 16, 128>(job); });
    if (job.map.distance() > job.map.run() && job.map.distance() < 4096)
        run("staged span", [&] { pack_by_stage<staging::span, 4, 64>(job); });
    run("staged bytes", [&] { pack_by_stage<staging::bytes, 4, 64>(job); });
}
template <class Each>
void unpack_by_all_stages(const mpix_typemap &type, char *memory, char *packed, std::int64_t begin, std::int64_t bytes,
                          const Each &each) {
    if (type.kind != MPIX_TYPEMAP_GRID || type.grid.dimensions == 0 || type.grid.run >= longest_staged_row) return;
    const packing_job<grid_map> job{grid_map(type), memory, packed, begin, bytes, packed + bytes};
    const int word = word_size(type, memory, packed, begin, bytes);
    const auto run = [&](const char *name, auto &&move) {
        CAPTURE(name, word);
        ++runs[name];
        move();
        each();
    };
    run("staged words", [&] { unpack_by_stage<4, 16>(job, false); });
    if (word >= 4) run("staged whole words", [&] { unpack_by_stage<4, 16>(job, true); });
    run("staged cells", [&] { unpack_by_stage<16, 8>(job, false); });
    // What only asks for memory ahead of time: its places are computed, and nothing is touched.
    for (std::int64_t index = 0; index * 64 < bytes + 64; ++index) {
        if (job.word_begin(16, 0) + index * 64 >= bytes) break;
        for (int thread = 0; thread < stage_threads; ++thread) expect_tile(job, 16, index, 64, thread, stage_threads);
    }
}

// Packed bytes with poison on both sides, `skew` bytes off a 16-byte boundary.
struct packed_buffer {
    std::vector<char> bytes;
    std::size_t origin;
    packed_buffer(std::int64_t size, int skew) : bytes(static_cast<std::size_t>(size) + 96, 'x'), origin(0) {
        origin = 32 + (0 - reinterpret_cast<std::uintptr_t>(bytes.data()) & 15) + static_cast<std::size_t>(skew);
    }
    char *at() { return bytes.data() + origin; }
};

// Pack and unpack `attempts` intervals, the first of them all.
void check(const sample &type, const mpix_typemap &map, int count, int attempts, type_maker &maker,
           std::mt19937_64 &random) {
    const auto at = offsets(type, count);
    const int size = static_cast<int>(at.size());
    const bool may_unpack = !overlaps(at);
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const int unit = 1 << maker.below(5);
        const int begin = attempt == 0 ? 0 : maker.below(size) / unit * unit;
        const int bytes = attempt == 0 ? size : maker.between(1, size - begin);
        const int skew = maker.below(16) / unit * unit;
        const int most = std::max(1 << maker.below(5), maker.below(2) * 16);
        const bool many = maker.below(2) != 0;
        CAPTURE(begin, bytes, skew, most, many);
        arena memory(type, count);
        memory.origin += maker.below(4) == 0 ? maker.below(16) : 0;
        memory.bytes.resize(memory.bytes.size() + 16);
        fill(memory.bytes, random);
        const auto before = memory.bytes;
        bad_accesses = 0;
        const char *const behind = memory.buffer() + *std::max_element(at.begin(), at.end()) + 1;
        forbidden_begin = reinterpret_cast<std::uintptr_t>(behind);
        forbidden_end = reinterpret_cast<std::uintptr_t>(memory.bytes.data() + memory.bytes.size());

        packed_buffer packed(bytes, skew), wanted(bytes, skew);
        for (int n = 0; n < bytes; ++n) wanted.at()[n] = memory.buffer()[at[static_cast<std::size_t>(begin + n)]];
        const int word = most == 2 ? 1 : most;
        run_emulated<false>(map, memory.buffer(), packed.at(), begin, bytes, word, many);
        REQUIRE(packed.bytes == wanted.bytes);
        REQUIRE(memory.bytes == before);
        REQUIRE(bad_accesses == 0);
        packed_buffer again(bytes, skew);
        const auto poisoned = again.bytes;
        pack_by_all_stages(map, memory.buffer(), again.at(), begin, bytes, [&] {
            REQUIRE(again.bytes == wanted.bytes);
            REQUIRE(memory.bytes == before);
            REQUIRE(bad_accesses == 0);
            again.bytes = poisoned;
        });

        if (!may_unpack) continue;
        fill(packed.bytes, random);
        const auto source = packed.bytes;
        auto expected = memory;
        for (int n = 0; n < bytes; ++n) expected.buffer()[at[static_cast<std::size_t>(begin + n)]] = packed.at()[n];
        forbidden_begin = reinterpret_cast<std::uintptr_t>(packed.at() + bytes);
        forbidden_end = reinterpret_cast<std::uintptr_t>(packed.bytes.data() + packed.bytes.size());
        const auto unpacked_on = memory.bytes;
        unpack_by_all_stages(map, memory.buffer(), packed.at(), begin, bytes, [&] {
            REQUIRE(memory.bytes == expected.bytes);
            REQUIRE(bad_accesses == 0);
            REQUIRE(packed.bytes == source);
            std::copy(unpacked_on.begin(), unpacked_on.end(), memory.bytes.begin());
        });
        run_emulated<true>(map, memory.buffer(), packed.at(), begin, bytes, word, many);
        REQUIRE(memory.bytes == expected.bytes);
        REQUIRE(bad_accesses == 0);
        REQUIRE(packed.bytes == source);
    }
}

std::shared_ptr<const mpix::plan> read(MPI_Datatype type) {
    mpix::status problem;
    const auto plan = mpix::plan_of(type, problem);
    CAPTURE(problem.message());
    REQUIRE(plan != nullptr);
    return plan;
}

// Rows of `run` bytes at a pitch, described by hand.
sample rows(int count, int run, int pitch) {
    sample out;
    out.named = false;
    out.text = std::to_string(count) + " rows of " + std::to_string(run) + " at " + std::to_string(pitch);
    PMPI_Type_create_hvector(count, run, pitch, MPI_BYTE, &out.type);
    for (int r = 0; r < count; ++r)
        for (int n = 0; n < run; ++n) out.map.push_back(std::int64_t{r} * pitch + n);
    return out;
}

std::uint64_t given_seed() {
    const char *const given = std::getenv("MPIX_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

}  // namespace

TEST_CASE("division by multiplication") {
    std::mt19937_64 random(11);
    std::vector<std::int64_t> numbers = {1, 2, 3, 5, 7, 16, 17, 641, 4096, INT64_MAX, INT64_MAX - 1};
    for (int bit = 1; bit < 63; ++bit)
        for (const std::int64_t off : {-1, 0, 1}) numbers.push_back((std::int64_t{1} << bit) + off);
    for (int n = 0; n < 200; ++n) numbers.push_back(static_cast<std::int64_t>(random() >> (1 + random() % 62)));
    for (const std::int64_t d : numbers) {
        if (d < 1) continue;
        const mpix_divisor by = make_divisor(d);
        const auto check_one = [&](std::int64_t x) {
            CAPTURE(x, d);
            REQUIRE(divide(x, by) == x / d);
            if (is_narrow(x)) REQUIRE(divide_narrow(static_cast<std::uint32_t>(x), by) == x / d);
        };
        check_one(0);
        for (const std::int64_t x : numbers) {
            check_one(x);
            const std::int64_t multiple = x / d * d;
            check_one(multiple);
            check_one(x & 0x7fffffff);
            if (multiple > 0) check_one(multiple - 1);
        }
    }
}

TEST_CASE("emulated kernels on random nested types") {
    const std::uint64_t seed = given_seed();
    CAPTURE(seed);
    type_maker maker(seed);
    std::mt19937_64 random(seed + 1);
    for (int n = 0; n < 3000; ++n) {
        CAPTURE(n);
        const sample type = maker.make(n % 4);
        CAPTURE(type.text);
        const auto plan = read(type.type);
        if (plan->size == 0) continue;
        check(type, mpix::typemap_of(*plan)->map, maker.between(1, 3), 4, maker, random);
    }
}

TEST_CASE("emulated kernels on rows of all lengths") {
    const std::uint64_t seed = given_seed();
    CAPTURE(seed);
    type_maker maker(seed);
    std::mt19937_64 random(seed + 1);
    runs.clear();
    for (const int unit : {1, 4, 8, 16})
        for (int run = unit; run <= 160; run += unit)
            for (const int pitch : {run + unit, run + 3 * unit, 4 * run, 128 + 2 * run}) {
                const sample type = rows(maker.between(2, 9), run, pitch);
                CAPTURE(type.text);
                check(type, mpix::typemap_of(*read(type.type))->map, maker.between(1, 2), 3, maker, random);
            }
    for (const int run : {200, 333, 1000})  // several units of a thread in one run
        for (const int pitch : {run + 1, run + 16}) {
            const sample type = rows(maker.between(2, 9), run, pitch);
            CAPTURE(type.text);
            check(type, mpix::typemap_of(*read(type.type))->map, 1, 12, maker, random);
        }
    for (const int bytes : {1, 100, 1001}) {  // one row without an end
        const sample type = rows(1, bytes, bytes);
        CAPTURE(type.text);
        check(type, mpix::typemap_of(*read(type.type))->map, maker.between(1, 3), 12, maker, random);
    }
    for (const char *const way :
         {"cells", "bytes", "row lanes", "tiny", "4 joined", "8 joined", "16 joined", "staged rows", "staged span",
          "staged bytes", "staged words", "staged whole words", "staged cells"}) {
        CAPTURE(way);
        CHECK(runs[way] > 20);
    }
    for (const char *const way : {" pack ", " unpack "})
        for (const char *const word : {"1", "4", "8", "16"}) {
            CAPTURE(way, word);
            CHECK(runs[std::string("0") + way + word] > 20);
        }
}

TEST_CASE("emulated kernels on tables and on interleaved boxes") {
    const std::uint64_t seed = given_seed();
    CAPTURE(seed);
    type_maker maker(seed);
    std::mt19937_64 random(seed + 1);
    runs.clear();
    for (int n = 0; n < 60; ++n) {
        // An irregular list of blocks of multiples of a unit; and structs, more than go into a table.
        const int unit = 1 << maker.below(5);
        sample list, structs;
        list.named = false;
        std::vector<int> lengths;
        std::vector<MPI_Aint> at;
        const bool same = maker.below(2) != 0;
        MPI_Aint next = 0;
        for (int b = maker.between(5, 60); b > 0; --b) {
            lengths.push_back(unit * (same ? 3 : maker.between(1, 9)));
            at.push_back(next);
            next += lengths.back() + unit * maker.between(1, 12);
        }
        const int blocks = static_cast<int>(at.size());
        std::vector<int> order(at.size());
        for (std::size_t b = 0; b < order.size(); ++b) order[b] = static_cast<int>(b);
        std::shuffle(order.begin(), order.end(), random);
        std::vector<int> shuffled_lengths;
        std::vector<MPI_Aint> shuffled_at;
        for (const int b : order) {
            shuffled_lengths.push_back(lengths[static_cast<std::size_t>(b)]);
            shuffled_at.push_back(at[static_cast<std::size_t>(b)]);
            for (int i = 0; i < shuffled_lengths.back(); ++i) list.map.push_back(shuffled_at.back() + i);
        }
        PMPI_Type_create_hindexed(blocks, shuffled_lengths.data(), shuffled_at.data(), MPI_BYTE, &list.type);
        check(list, mpix::typemap_of(*read(list.type))->map, maker.between(1, 3), 6, maker, random);

        if (n % 6 != 0) continue;
        MPI_Datatype one, wide;
        const int members = maker.between(2, 4);
        const MPI_Aint pitch = at[static_cast<std::size_t>(members)];
        PMPI_Type_create_hindexed(members, lengths.data(), at.data(), MPI_BYTE, &one);
        PMPI_Type_create_resized(one, 0, pitch, &wide);
        const int many = static_cast<int>(mpix::most_table_runs);
        structs.named = false;
        PMPI_Type_contiguous(many, wide, &structs.type);
        for (int s = 0; s < many; ++s)
            for (int m = 0; m < members; ++m)
                for (int i = 0; i < lengths[static_cast<std::size_t>(m)]; ++i)
                    structs.map.push_back(s * pitch + at[static_cast<std::size_t>(m)] + i);
        check(structs, mpix::typemap_of(*read(structs.type))->map, 1, 2, maker, random);
        for (MPI_Datatype *type : {&one, &wide}) PMPI_Type_free(type);
    }
    for (const char *const kind : {"1", "2"})
        for (const char *const way : {" pack ", " unpack "}) {
            CAPTURE(kind, way);
            CHECK(runs[std::string(kind) + way + "1"] + runs[std::string(kind) + way + "16"] > 2);
        }
}

TEST_CASE("places beyond 2^32") {
    MPI_Datatype row, type;
    const MPI_Aint stride = MPI_Aint{3} << 31;
    PMPI_Type_vector(1 << 30, 3, 4, MPI_DOUBLE, &row);
    PMPI_Type_create_hvector(1 << 20, 1, stride, row, &type);
    const auto map = mpix::typemap_of(*read(type));
    REQUIRE(map->map.kind == MPIX_TYPEMAP_GRID);
    // The last byte of element 2.
    const std::int64_t size = std::int64_t{24} << 50;
    const auto c = grid_map(map->map).locate(3 * size - 1);
    CHECK(c.left == 1);
    CHECK(c.into == 23);
    CHECK(c.offset == 2 * map->map.extent + ((1 << 20) - 1) * stride + ((std::int64_t{1} << 30) - 1) * 32 + 23);
    PMPI_Type_free(&type);
    PMPI_Type_free(&row);
}

TEST_CASE("one map for a plan, and the plan keeps it") {
    const sample type = rows(3, 5, 9);
    const auto plan = read(type.type);
    const auto map = mpix::typemap_of(*plan);
    CHECK(mpix::typemap_of(*read(type.type)) == map);
    CHECK(map->map.kind == MPIX_TYPEMAP_GRID);
    CHECK(map->map.low == 0);
    CHECK(map->map.high == 23);
    CHECK(memory_end(map->map, 0, 1) == 23);
    CHECK(memory_end(map->map, 15, 1) == 46);
    CHECK(memory_end(map->map, 0, 16) == 46);
}
