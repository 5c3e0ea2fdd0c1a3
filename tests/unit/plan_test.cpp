// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes as mpix reads them: against the MPI library's own MPI_Pack and MPI_Unpack, and against the
// offsets that the standard gives them.
#include "host/datatype/decode.h"
#include "host/datatype/host_copy.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/arena.hpp"
#include "tests/unit/random_type.hpp"

namespace {

int contents_read = 0;

}  // namespace

// In place of the library's, for all that is linked into this program.
int PMPI_Type_get_contents(MPI_Datatype datatype, int integers, int addresses, int types, int array_of_integers[],
                           MPI_Aint array_of_addresses[], MPI_Datatype array_of_types[]) {
    static const auto library =
        reinterpret_cast<decltype(&PMPI_Type_get_contents)>(dlsym(RTLD_NEXT, "PMPI_Type_get_contents"));
    ++contents_read;
    return library(datatype, integers, addresses, types, array_of_integers, array_of_addresses, array_of_types);
}

namespace {

// How many types the library was asked about, and of how many of them mpix says that it is right.
int compared = 0, said_right = 0;

// Types that Open MPI 4.1 or MPICH 4.0 pack otherwise than they should: with parts that have no bytes (Open
// MPI forgets the distance between elements), with overlaps or dense but backwards (Open MPI takes them for
// contiguous), with a long double, of whose padding MPICH copies nothing, and on Open MPI 5 with a complex number.
bool library_is_right(const sample &type, const std::vector<std::int64_t> &at) {
    return !type.empty_part && !type.backwards && !type.packed_wrongly && !overlaps(at);
}

void check_pack(const sample &type, const mpix::plan &plan, int count, type_maker &maker, std::mt19937_64 &random) {
    const auto expected_at = offsets(type, count);
    const int size = static_cast<int>(expected_at.size());
    arena memory(type, count);
    fill(memory.bytes, random);
    std::vector<char> expected;
    for (const std::int64_t at : expected_at) expected.push_back(memory.buffer()[at]);

    // mpix says it of one element: several may overlap.
    mpix::type_facts facts;
    REQUIRE(mpix::facts_of(type.type, 1e6, facts));
    const bool right = facts.library_is_right && facts.size > 0 && (count == 1 || facts.extent >= facts.true_extent);
    said_right += right;
    if (right || library_is_right(type, expected_at)) {
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
        mpix::pack_range(plan, memory.buffer(), begin, bytes, packed.data() + 8);
        std::vector<char> wanted(packed.size(), 'x');
        std::copy_n(expected.begin() + begin, bytes, wanted.begin() + 8);
        REQUIRE(packed == wanted);
    }
}

void check_unpack(const sample &type, const mpix::plan &plan, int count, type_maker &maker, std::mt19937_64 &random) {
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
        mpix::unpack_range(plan, memory.buffer(), begin, bytes, packed.data() + begin);
        REQUIRE(memory.bytes == wanted.bytes);
    }
}

std::shared_ptr<const mpix::plan> read(MPI_Datatype type) {
    mpix::status problem;
    const auto plan = mpix::plan_of(type, problem);
    CAPTURE(problem.message());
    REQUIRE(plan != nullptr);
    return plan;
}

// Every packed byte is in the plan once, and where the standard says.
void check_map(const sample &type, const mpix::plan &plan) {
    REQUIRE(plan.size == static_cast<std::int64_t>(type.map.size()));
    REQUIRE(plan.extent == type.extent());
    REQUIRE(plan.boxes.size() <= mpix::most_boxes);
    std::vector<std::int64_t> at(type.map.size(), INT64_MIN);
    const auto run = [&](std::int64_t offset, std::int64_t packed, std::int64_t length) {
        REQUIRE(length > 0);
        for (std::int64_t n = 0; n < length; ++n) {
            std::int64_t &byte = at.at(static_cast<std::size_t>(packed + n));
            REQUIRE(byte == INT64_MIN);
            byte = offset + n;
        }
    };
    for (const mpix_box &box : plan.boxes)
        for (std::int64_t n = 0; n < mpix::detail::runs_in(box); ++n) {
            const auto place = mpix::detail::place_of_run(box, n);
            run(place.offset, place.packed, box.run);
            REQUIRE(mpix::detail::runs_before(box, place.packed) == n);
            REQUIRE(mpix::detail::runs_before(box, place.packed + 1) == n + 1);
        }
    for (const mpix_run &r : plan.loose) run(r.offset, r.packed, r.length);
    REQUIRE(at == type.map);
}

// The same bytes in the same order, said block by block.
void check_description(const sample &type, const mpix::plan &plan) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> at;
    for (std::size_t n = 0; n < type.map.size(); ++n) {
        if (n > 0 && type.map[n] == type.map[n - 1] + 1) {
            ++lengths.back();
        } else {
            lengths.push_back(1);
            at.push_back(type.map[n]);
        }
    }
    MPI_Datatype blocks, same;
    PMPI_Type_create_hindexed(static_cast<int>(at.size()), lengths.data(), at.data(), MPI_BYTE, &blocks);
    PMPI_Type_create_resized(blocks, 0, type.extent(), &same);
    REQUIRE(read(same).get() == &plan);
    PMPI_Type_free(&same);
    PMPI_Type_free(&blocks);
}

void check(const sample &type, type_maker &maker, std::mt19937_64 &random) {
    CAPTURE(type.text);
    const auto plan = read(type.type);
    check_map(type, *plan);
    check_description(type, *plan);
    const int count = maker.between(1, 3);
    CAPTURE(count);
    // MPI_Pack wants a committed type; mpix reads it either way.
    MPI_Datatype committed = type.type;
    if (!type.named) PMPI_Type_commit(&committed);
    check_pack(type, *plan, count, maker, random);
    check_unpack(type, *plan, count, maker, random);
}

}  // namespace

TEST_CASE("random nested types") {
    const char *const given = std::getenv("MPIX_TEST_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    CAPTURE(seed);
    type_maker maker(seed);
    std::mt19937_64 random(seed + 1);
    const char *const number = std::getenv("MPIX_TEST_TYPES");
    const int types = number != nullptr ? std::atoi(number) : 8000;
    for (int n = 0; n < types; ++n) {
        CAPTURE(n);
        check(maker.make(n % 4), maker, random);
    }
    CHECK(compared > types / 3);
    CHECK(said_right > types / 4);
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
    CHECK(read(type)->boxes.size() == 1);
    PMPI_Type_free(&type);
    PMPI_Type_vector(3, 4, 5, MPI_INT, &type);
    CHECK_FALSE(read(type)->contiguous());
    CHECK(read(type)->boxes.size() == 1);
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
    const auto plan = read(outer);
    PMPI_Type_free(&outer);
    CHECK(plan->boxes.size() == 2);  // one int and one, and two that abut
    CHECK(plan->size == 16);
}

TEST_CASE("a cube has one plan, however it is described") {
    const int x = 6, y = 5, z = 4, pitch = 64, plane = 64 * 32;
    MPI_Datatype row, rows, cube[5];
    // vector, hvector, hvector
    PMPI_Type_vector(x, 1, 1, MPI_BYTE, &row);
    PMPI_Type_create_hvector(y, 1, pitch, row, &rows);
    PMPI_Type_create_hvector(z, 1, plane, rows, &cube[0]);
    PMPI_Type_free(&row);
    PMPI_Type_free(&rows);
    // vector, hvector
    PMPI_Type_vector(y, x, pitch, MPI_BYTE, &rows);
    PMPI_Type_create_hvector(z, 1, plane, rows, &cube[1]);
    PMPI_Type_free(&rows);
    // hindexed, hindexed_block
    std::vector<int> lengths(y * z, x);
    std::vector<MPI_Aint> at;
    for (int k = 0; k < z; ++k)
        for (int j = 0; j < y; ++j) at.push_back(k * plane + j * pitch);
    PMPI_Type_create_hindexed(y * z, lengths.data(), at.data(), MPI_BYTE, &cube[2]);
    PMPI_Type_create_hindexed_block(y * z, x, at.data(), MPI_BYTE, &cube[3]);
    // subarray, whose extent is the whole array's
    const int sizes[] = {z, 32, 64}, part[] = {z, y, x}, start[] = {0, 0, 0};
    MPI_Datatype wide;
    PMPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, MPI_BYTE, &wide);
    PMPI_Type_create_resized(wide, 0, (z - 1) * plane + (y - 1) * pitch + x, &cube[4]);
    PMPI_Type_free(&wide);
    const auto plan = read(cube[0]);
    CHECK(plan->boxes.size() == 1);
    CHECK(plan->boxes[0].dimensions == 2);
    CHECK(plan->boxes[0].run == x);
    CHECK(plan->loose.empty());
    for (MPI_Datatype &type : cube) {
        CHECK(read(type) == plan);
        PMPI_Type_free(&type);
    }
}

TEST_CASE("an array of structs has a box for each member") {
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE}, one, wide, many;
    const int lengths[] = {1, 2};
    const MPI_Aint at[] = {0, 8};
    PMPI_Type_create_struct(2, lengths, at, types, &one);
    PMPI_Type_create_resized(one, 0, 32, &wide);
    PMPI_Type_contiguous(1000, wide, &many);
    const auto plan = read(many);
    CHECK(plan->boxes.size() == 2);
    CHECK(plan->loose.empty());
    for (MPI_Datatype *type : {&one, &wide, &many}) PMPI_Type_free(type);
}

TEST_CASE("counts and strides beyond 2^31") {
    MPI_Datatype row, type;
    const MPI_Aint stride = MPI_Aint{3} << 31;
    PMPI_Type_vector(1 << 30, 3, 4, MPI_DOUBLE, &row);
    PMPI_Type_create_hvector(1 << 20, 1, stride, row, &type);
    const auto plan = read(type);
    REQUIRE(plan->boxes.size() == 1);
    const mpix_box &box = plan->boxes[0];
    CHECK(plan->size == std::int64_t{24} << 50);
    REQUIRE(box.dimensions == 2);
    CHECK(box.dimension[0].count == 1 << 30);
    CHECK(box.dimension[1].stride == stride);
    // The last run.
    const auto place = mpix::detail::place_of_run(box, mpix::detail::runs_in(box) - 1);
    CHECK(place.packed == plan->size - 24);
    CHECK(place.offset == ((1 << 20) - 1) * stride + ((std::int64_t{1} << 30) - 1) * 32);
    CHECK(mpix::detail::runs_before(box, place.packed) == mpix::detail::runs_in(box) - 1);
    PMPI_Type_free(&type);
    PMPI_Type_free(&row);
}

TEST_CASE("irregular blocks stay blocks") {
    std::mt19937_64 random(7);
    std::vector<int> at;
    for (int n = 0, next = 0; n < 5000; ++n) at.push_back(next += 2 + static_cast<int>(random() % 50));
    MPI_Datatype type;
    PMPI_Type_create_indexed_block(static_cast<int>(at.size()), 1, at.data(), MPI_INT, &type);
    const auto plan = read(type);
    CHECK(plan->loose.size() > 4500);
    CHECK(plan->boxes.size() <= mpix::most_boxes);
    PMPI_Type_free(&type);
}

TEST_CASE("rows are found among blocks without order, however both are described") {
    std::mt19937_64 random(11);
    std::vector<int> lengths, at, odd_lengths, odd_at;
    int next = 0;
    for (int n = 0; n < 40000; ++n) {
        odd_lengths.push_back(1 + static_cast<int>(random() % 40));
        odd_at.push_back(next);
        next += odd_lengths.back() + 1 + static_cast<int>(random() % 50);
    }
    lengths = odd_lengths;
    at = odd_at;
    const int rows = 1000, columns = 20, pitch = 100;
    for (int n = 0; n < rows * columns; ++n) {
        lengths.push_back(2);
        at.push_back(next + n / columns * pitch + n % columns * 3);
    }
    MPI_Datatype blocks, odd, row, plane, both;
    PMPI_Type_indexed(static_cast<int>(at.size()), lengths.data(), at.data(), MPI_CHAR, &blocks);
    const auto plan = read(blocks);
    REQUIRE(plan->boxes.size() == 1);
    CHECK(plan->boxes[0].dimensions == 2);
    CHECK(mpix::detail::runs_in(plan->boxes[0]) == std::int64_t{rows} * columns);
    REQUIRE(plan->loose.size() == odd_at.size());
    std::int64_t packed = 0;
    bool right = true;
    for (std::size_t n = 0; n < odd_at.size(); ++n) {
        const mpix_run &r = plan->loose[n];
        right = right && r.offset == odd_at[n] && r.packed == packed && r.length == odd_lengths[n];
        packed += r.length;
    }
    CHECK(right);

    PMPI_Type_indexed(static_cast<int>(odd_at.size()), odd_lengths.data(), odd_at.data(), MPI_CHAR, &odd);
    PMPI_Type_vector(columns, 2, 3, MPI_CHAR, &row);
    PMPI_Type_create_hvector(rows, 1, pitch, row, &plane);
    const int one[2] = {1, 1};
    const MPI_Aint places[2] = {0, next};
    const MPI_Datatype parts[2] = {odd, plane};
    PMPI_Type_create_struct(2, one, places, parts, &both);
    CHECK(read(both) == plan);
    for (MPI_Datatype *type : {&blocks, &odd, &row, &plane, &both}) PMPI_Type_free(type);
}

// A struct of two of the same, again and again: dense, of 2^depth bytes.
TEST_CASE("types of types are not read once for each time that they occur") {
    const int depth = 14;
    MPI_Datatype type, next;
    PMPI_Type_contiguous(1, MPI_BYTE, &type);
    for (int k = 0; k < depth; ++k) {
        const int ones[2] = {1, 1};
        const MPI_Aint at[2] = {0, MPI_Aint{1} << k};
        const MPI_Datatype two[2] = {type, type};
        PMPI_Type_create_struct(2, ones, at, two, &next);
        PMPI_Type_free(&type);
        type = next;
    }
    PMPI_Type_commit(&type);
    mpix::type_facts facts;
    contents_read = 0;
    CHECK(mpix::library_packs_sooner(type, 1, facts));
    CHECK(contents_read > 0);
    CHECK(contents_read < 1000);

    // Open MPI has a new handle for each occurrence.
    int integers[3];
    MPI_Aint addresses[2];
    MPI_Datatype parts[2];
    PMPI_Type_get_contents(type, 3, 2, 2, integers, addresses, parts);
    const bool same = parts[0] == parts[1];
    for (MPI_Datatype &part : parts) PMPI_Type_free(&part);
    contents_read = 0;
    CHECK(read(type)->contiguous());
    if (same) CHECK(contents_read == depth + 1);
    PMPI_Type_free(&type);
}

TEST_CASE("a type with too many separate blocks is refused") {
    const int rows = static_cast<int>(mpix::most_boxes) + 1;
    std::vector<MPI_Datatype> row(rows);
    std::vector<int> lengths(rows, 1);
    std::vector<MPI_Aint> at;
    for (int n = 0; n < rows; ++n) {
        PMPI_Type_vector(1 << 18, 1, 2 + n, MPI_CHAR, &row[static_cast<std::size_t>(n)]);
        at.push_back(MPI_Aint{n} << 32);
    }
    MPI_Datatype type;
    PMPI_Type_create_struct(rows, lengths.data(), at.data(), row.data(), &type);
    mpix::status problem;
    CHECK(mpix::plan_of(type, problem) == nullptr);
    CHECK(problem.message().find("too many") != std::string::npos);
    PMPI_Type_free(&type);
    for (MPI_Datatype &r : row) PMPI_Type_free(&r);
}

TEST_CASE("types of Fortran's kinds are basic types") {
    MPI_Datatype type;
    if (PMPI_Type_create_f90_real(15, MPI_UNDEFINED, &type) != MPI_SUCCESS) return;  // a library without Fortran
    CHECK(read(type) == read(MPI_DOUBLE));
    MPI_Datatype rows;
    PMPI_Type_vector(3, 1, 2, type, &rows);
    CHECK(read(rows)->boxes.size() == 1);
    PMPI_Type_free(&rows);
}

TEST_CASE("a struct of no blocks has no bytes") {
    MPI_Datatype nothing, type;
    PMPI_Type_create_struct(0, nullptr, nullptr, nullptr, &nothing);
    CHECK(read(nothing)->size == 0);
    CHECK(read(nothing)->boxes.empty());
    const int lengths[2] = {3, 2};
    const MPI_Aint at[2] = {0, 16};
    const MPI_Datatype members[2] = {nothing, MPI_INT};
    PMPI_Type_create_struct(2, lengths, at, members, &type);
    CHECK(read(type)->size == 8);
    CHECK(read(type)->first_offset() == 16);
    PMPI_Type_free(&type);
    PMPI_Type_free(&nothing);
}
