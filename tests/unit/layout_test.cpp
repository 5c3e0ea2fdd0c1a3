// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes as mpix reads them: against the MPI library's own MPI_Pack and MPI_Unpack, and against the
// offsets that the standard gives them.
#include "host/datatype/layout.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/random_type.hpp"

namespace {

// Memory around a buffer's address that `count` elements of a type reach.
struct arena {
    std::vector<char> bytes;
    std::int64_t origin = 0;

    arena(const sample &type, int count) {
        const std::int64_t extent = type.extent();
        std::int64_t low = 0, high = 0;
        for (int n = 0; n < count; ++n)
            for (const std::int64_t at : type.map) {
                low = std::min(low, n * extent + at);
                high = std::max(high, n * extent + at + 1);
            }
        origin = 64 - low;
        bytes.resize(static_cast<std::size_t>(high - low + 128));
    }
    char *buffer() { return bytes.data() + origin; }
};

void fill(std::vector<char> &bytes, std::mt19937_64 &random) {
    for (char &b : bytes) b = static_cast<char>(random());
}

// All offsets, element by element.
std::vector<std::int64_t> offsets(const sample &type, int count) {
    std::vector<std::int64_t> all;
    for (int n = 0; n < count; ++n)
        for (const std::int64_t at : type.map) all.push_back(n * type.extent() + at);
    return all;
}

bool overlaps(const std::vector<std::int64_t> &at) {
    return std::set<std::int64_t>(at.begin(), at.end()).size() != at.size();
}

// How many types the library was asked about.
int compared = 0;

// Types that Open MPI 4.1 or MPICH 4.0 pack otherwise than they should: with parts that have no bytes (Open
// MPI forgets the distance between elements), with overlaps or dense but backwards (Open MPI takes them for
// contiguous), and with a long double, of whose padding MPICH copies nothing.
bool library_is_right(const sample &type, const std::vector<std::int64_t> &at) {
    return !type.empty_part && !type.backwards && !type.long_double && !overlaps(at);
}

void check_pack(const sample &type, const mpix::layout &layout, int count, type_maker &maker, std::mt19937_64 &random) {
    const auto expected_at = offsets(type, count);
    const int size = static_cast<int>(expected_at.size());
    arena memory(type, count);
    fill(memory.bytes, random);
    std::vector<char> expected;
    for (const std::int64_t at : expected_at) expected.push_back(memory.buffer()[at]);

    if (library_is_right(type, expected_at)) {
        ++compared;
        std::vector<char> library(static_cast<std::size_t>(size) + 1);  // Open MPI wants an address in any case
        int position = 0;
        REQUIRE(PMPI_Pack(memory.buffer(), count, type.type, library.data(), size, &position, MPI_COMM_SELF) ==
                MPI_SUCCESS);
        REQUIRE(position == size);
        library.pop_back();
        REQUIRE(library == expected);
    }

    for (int attempt = 0; attempt < 6; ++attempt) {
        const int begin = attempt == 0 ? 0 : maker.between(0, size);
        const int bytes = attempt == 0 ? size : maker.between(0, size - begin);
        CAPTURE(begin, bytes);
        std::vector<char> packed(static_cast<std::size_t>(bytes) + 16, 'x');
        mpix::pack_range(layout, memory.buffer(), begin, bytes, packed.data() + 8);
        std::vector<char> wanted(packed.size(), 'x');
        std::copy_n(expected.begin() + begin, bytes, wanted.begin() + 8);
        REQUIRE(packed == wanted);
    }
}

void check_unpack(const sample &type, const mpix::layout &layout, int count, type_maker &maker,
                  std::mt19937_64 &random) {
    const auto at = offsets(type, count);
    if (overlaps(at)) return;  // not for a receive
    const int size = static_cast<int>(at.size());
    std::vector<char> packed(at.size());
    fill(packed, random);
    for (int attempt = 0; attempt < 4; ++attempt) {
        const int begin = attempt == 0 ? 0 : maker.between(0, size);
        const int bytes = attempt == 0 ? size : maker.between(0, size - begin);
        CAPTURE(begin, bytes);
        arena memory(type, count), wanted(type, count);
        fill(memory.bytes, random);
        wanted.bytes = memory.bytes;
        for (int n = begin; n < begin + bytes; ++n)
            wanted.buffer()[at[static_cast<std::size_t>(n)]] = packed[static_cast<std::size_t>(n)];
        mpix::unpack_range(layout, memory.buffer(), begin, bytes, packed.data() + begin);
        REQUIRE(memory.bytes == wanted.bytes);
    }
}

// Runs in packing order that add up, none that should have been one with the one before it.
void check_runs(const sample &type, const mpix::layout &layout) {
    std::int64_t packed = 0;
    for (std::size_t n = 0; n < layout.runs.size(); ++n) {
        const mpix::run &run = layout.runs[n];
        REQUIRE(run.length > 0);
        REQUIRE(run.packed == packed);
        if (n > 0) REQUIRE(run.offset != layout.runs[n - 1].offset + layout.runs[n - 1].length);
        packed += run.length;
    }
    REQUIRE(layout.size == packed);
    REQUIRE(layout.size == static_cast<std::int64_t>(type.map.size()));
    REQUIRE(layout.extent == type.extent());
}

std::shared_ptr<const mpix::layout> read(MPI_Datatype type) {
    std::string problem;
    const auto layout = mpix::layout_of(type, problem);
    CAPTURE(problem);
    REQUIRE(layout != nullptr);
    return layout;
}

void check(const sample &type, type_maker &maker, std::mt19937_64 &random) {
    CAPTURE(type.text);
    const auto layout = read(type.type);
    check_runs(type, *layout);
    const int count = maker.between(1, 3);
    CAPTURE(count);
    // MPI_Pack wants a committed type; mpix reads it either way.
    MPI_Datatype committed = type.type;
    if (!type.named) PMPI_Type_commit(&committed);
    check_pack(type, *layout, count, maker, random);
    check_unpack(type, *layout, count, maker, random);
}

}  // namespace

TEST_CASE("random nested types") {
    const char *const given = std::getenv("MPIX_TEST_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    CAPTURE(seed);
    type_maker maker(seed);
    std::mt19937_64 random(seed + 1);
    for (int n = 0; n < 4000; ++n) {
        CAPTURE(n);
        check(maker.make(n % 4), maker, random);
    }
    CHECK(compared > 1500);
}

TEST_CASE("contiguous types are recognised as such") {
    MPI_Datatype type;
    CHECK(read(MPI_DOUBLE)->contiguous());
    CHECK(read(MPI_2INT)->contiguous());
    CHECK_FALSE(read(MPI_SHORT_INT)->contiguous());
    PMPI_Type_contiguous(7, MPI_INT, &type);
    CHECK(read(type)->contiguous());
    PMPI_Type_free(&type);
    PMPI_Type_vector(3, 4, 4, MPI_INT, &type);
    CHECK(read(type)->contiguous());
    CHECK(read(type)->runs.size() == 1);
    PMPI_Type_free(&type);
    PMPI_Type_vector(3, 4, 5, MPI_INT, &type);
    CHECK_FALSE(read(type)->contiguous());
    CHECK(read(type)->runs.size() == 3);
    PMPI_Type_free(&type);
    PMPI_Type_contiguous(0, MPI_INT, &type);
    CHECK(read(type)->size == 0);
    PMPI_Type_free(&type);
    // One run, but not where the buffer starts, or with a gap to the next element.
    const int at = 1;
    PMPI_Type_create_indexed_block(1, 4, &at, MPI_INT, &type);
    CHECK_FALSE(read(type)->contiguous());
    PMPI_Type_free(&type);
    PMPI_Type_create_resized(MPI_INT, 0, 8, &type);
    CHECK_FALSE(read(type)->contiguous());
    PMPI_Type_free(&type);
}

TEST_CASE("a type outlives its parts") {
    MPI_Datatype inner, outer;
    PMPI_Type_vector(2, 1, 3, MPI_INT, &inner);
    PMPI_Type_contiguous(2, inner, &outer);
    PMPI_Type_free(&inner);
    const auto layout = read(outer);
    PMPI_Type_free(&outer);
    CHECK(layout->runs.size() == 3);
    CHECK(layout->size == 16);
}

TEST_CASE("a type with too many separate blocks is refused") {
    MPI_Datatype row, column, type;
    PMPI_Type_vector(1 << 14, 1, 2, MPI_CHAR, &row);
    PMPI_Type_create_resized(row, 0, 1 << 15, &column);
    PMPI_Type_contiguous(1 << 13, column, &type);  // 2^27 bytes, each on its own
    std::string problem;
    CHECK(mpix::layout_of(type, problem) == nullptr);
    CHECK(problem.find("too many") != std::string::npos);
    PMPI_Type_free(&type);
    PMPI_Type_free(&column);
    PMPI_Type_free(&row);
}

TEST_CASE("a type that does not explain itself is refused") {
    MPI_Datatype type;
    if (PMPI_Type_create_f90_real(6, 30, &type) != MPI_SUCCESS) return;
    std::string problem;
    if (mpix::layout_of(type, problem) == nullptr) CHECK_FALSE(problem.empty());
}
