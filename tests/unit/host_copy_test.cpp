// SPDX-License-Identifier: BSD-3-Clause
//
// The CPU's executor of plans, byte by byte: every length of run, ranges cut anywhere, and memory and packed bytes that
// end, or begin, where no page is.
#include "host/datatype/host_copy.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "tests/catch.hpp"

namespace {

// `size` bytes between two pages that may not be touched, at the end of what is between, or at its beginning.
class fenced {
public:
    fenced(std::int64_t size, bool at_end) : size_(size) {
        const std::int64_t page = sysconf(_SC_PAGESIZE), inside = (size + page - 1) / page * page;
        mapped_ = static_cast<std::size_t>(inside + 2 * page);
        void *const all = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(all != MAP_FAILED);
        base_ = static_cast<char *>(all);
        if (inside > 0) REQUIRE(mprotect(base_ + page, static_cast<std::size_t>(inside), PROT_READ | PROT_WRITE) == 0);
        data_ = base_ + page + (at_end ? inside - size : 0);
    }
    ~fenced() { munmap(base_, mapped_); }
    fenced(const fenced &) = delete;
    fenced &operator=(const fenced &) = delete;

    char *data() { return data_; }
    void set(const std::vector<char> &bytes) { std::copy(bytes.begin(), bytes.end(), data_); }
    std::vector<char> get() const { return {data_, data_ + size_}; }

private:
    std::int64_t size_;
    std::size_t mapped_;
    char *base_, *data_;
};

// Where each packed byte of `count` elements is in memory.
std::vector<std::int64_t> places(const mpix::plan &type, std::int64_t count) {
    std::vector<std::int64_t> one(static_cast<std::size_t>(type.size), INT64_MIN), all;
    const auto run = [&](std::int64_t offset, std::int64_t packed, std::int64_t length) {
        for (std::int64_t n = 0; n < length; ++n) one.at(static_cast<std::size_t>(packed + n)) = offset + n;
    };
    for (const mpix_box &b : type.boxes) {
        std::vector<std::int64_t> digit(static_cast<std::size_t>(b.dimensions));
        for (bool more = true; more;) {
            std::int64_t offset = b.offset, packed = b.packed;
            for (std::size_t k = 0; k < digit.size(); ++k) {
                offset += digit[k] * b.dimension[k].stride;
                packed += digit[k] * b.dimension[k].packed;
            }
            run(offset, packed, b.run);
            more = false;
            for (std::size_t k = 0; k < digit.size() && !more; ++k) {
                more = ++digit[k] < b.dimension[k].count;
                if (!more) digit[k] = 0;
            }
        }
    }
    for (const mpix_run &r : type.loose) run(r.offset, r.packed, r.length);
    REQUIRE(std::count(one.begin(), one.end(), INT64_MIN) == 0);
    for (std::int64_t n = 0; n < count; ++n)
        for (const std::int64_t at : one) all.push_back(n * type.extent + at);
    return all;
}

std::mt19937_64 dice(1);
std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(high - low + 1));
}
std::vector<char> random_bytes(std::int64_t n) {
    std::vector<char> bytes(static_cast<std::size_t>(n));
    for (char &b : bytes) b = static_cast<char>(dice());
    return bytes;
}

// Both directions, all of it and `cuts` ranges of it.
void check(const mpix::plan &type, std::int64_t count, int cuts) {
    const std::vector<std::int64_t> at = places(type, count);
    const auto [low, high] = std::minmax_element(at.begin(), at.end());
    const std::int64_t reach = *high + 1 - *low, size = static_cast<std::int64_t>(at.size());
    for (int cut = 0; cut <= cuts; ++cut) {
        const std::int64_t begin = cut == 0 ? 0 : between(0, std::min<std::int64_t>(size - 1, cut % 2 ? size : 40));
        const std::int64_t end = cut == 0 ? size : between(cut % 3 ? begin : std::max(begin, size - 40), size);
        const std::int64_t bytes = end - begin;
        CAPTURE(begin, bytes, size, count);
        fenced memory(reach, cut % 2 == 0), packed(bytes, cut % 2 == 0);
        char *const buffer = memory.data() - *low;
        const std::vector<char> before = random_bytes(reach), other = random_bytes(bytes);

        memory.set(before);
        std::vector<char> wanted = other;
        for (std::int64_t n = 0; n < bytes; ++n)
            wanted[static_cast<std::size_t>(n)] =
                before[static_cast<std::size_t>(at[static_cast<std::size_t>(begin + n)] - *low)];
        packed.set(other);
        mpix::pack_range(type, buffer, begin, bytes, packed.data());
        REQUIRE(packed.get() == wanted);

        packed.set(other);
        wanted = before;
        for (std::int64_t n = 0; n < bytes; ++n)
            wanted[static_cast<std::size_t>(at[static_cast<std::size_t>(begin + n)] - *low)] =
                other[static_cast<std::size_t>(n)];
        mpix::unpack_range(type, buffer, begin, bytes, packed.data());
        REQUIRE(memory.get() == wanted);
    }
}

}  // namespace

TEST_CASE("rows of every length, at every kind of pitch") {
    for (std::int64_t run = 1; run <= 131; ++run)
        for (const std::int64_t stride :
             {2 * run, run + 1, 4 * run, run + between(1, 999), -2 * run, -run - between(1, 99)})
            for (const std::int64_t rows : {between(2, 5), between(6, 40)}) {
                CAPTURE(run, stride, rows);
                mpix::plan type;
                type.size = run * rows;
                type.extent = std::abs(stride) * rows + between(0, 3);
                type.boxes.push_back({between(-9, 9), 0, run, 1, {{rows, stride, run}}});
                check(type, between(1, 3), 6);
            }
}

TEST_CASE("gaps as long as the runs, and any number of them before the end of the page") {
    for (const std::int64_t run : {1, 2, 4, 8})
        for (std::int64_t rows = 2; rows <= 70; ++rows) {
            CAPTURE(run, rows);
            mpix::plan type;
            type.size = run * rows;
            type.extent = 2 * type.size;
            type.boxes.push_back({0, 0, run, 1, {{rows, 2 * run, run}}});
            check(type, 1, 2);
            // The first row is the last in memory.
            type.boxes[0].dimensions = 2;
            type.boxes[0].dimension[1] = {3, -type.extent, type.size};
            type.size *= 3;
            check(type, 1, 2);
        }
}

TEST_CASE("one run in an element") {
    for (std::int64_t run = 1; run <= 131; ++run)
        for (const std::int64_t extent : {2 * run, run + 1, -2 * run}) {
            CAPTURE(run, extent);
            mpix::plan type;
            type.size = run;
            type.extent = extent;
            type.boxes.push_back({between(0, 9), 0, run, 0, {}});
            check(type, between(1, 50), 4);
        }
}

TEST_CASE("transposes, and planes of planes") {
    for (const std::int64_t run : {1, 2, 4, 7, 8, 16, 24, 63, 64})
        for (const std::int64_t n : {3, 15, 16, 17, 33}) {
            CAPTURE(run, n);
            const std::int64_t columns = between(2, 40), pitch = columns * run + between(0, 70);
            mpix::plan type;
            type.size = run * n * columns;
            type.extent = n * pitch;
            type.boxes.push_back({0, 0, run, 2, {{n, pitch, run}, {columns, run, n * run}}});
            check(type, 1, 6);
            // Backwards through the columns.
            type.boxes[0].dimension[1].stride = -run;
            check(type, 2, 6);
            // And several of them.
            type.boxes[0].dimensions = 3;
            type.boxes[0].dimension[2] = {3, n * pitch + 5, type.size};
            type.size *= 3;
            type.extent *= 4;
            check(type, 2, 6);
        }
}

TEST_CASE("an array of structs takes turns between its members") {
    for (const std::int64_t n : {9, 700, 2000}) {
        mpix::plan type;
        type.size = 22 * n;
        type.extent = 32 * n;
        type.boxes.push_back({0, 0, 20, 1, {{n, 32, 22}}});
        type.boxes.push_back({24, 20, 2, 1, {{n, 32, 22}}});
        check(type, 1, 12);
        check(type, 3, 12);
    }
}

TEST_CASE("many small elements of several pieces") {
    for (int round = 0; round < 60; ++round) {
        mpix::plan type;
        std::int64_t next = between(-20, 20);
        // Runs on their own around boxes of one or two dimensions.
        for (int piece = 0; piece < 6; ++piece) {
            const std::int64_t run = between(1, 30);
            if (piece % 3 == 1) {
                const std::int64_t rows = between(2, 9), planes = between(1, 3);
                mpix_box box{next, type.size, run, 1, {{rows, run + 3, run}}};
                if (planes > 1) box.dimension[box.dimensions++] = {planes, rows * (run + 3), rows * run};
                type.boxes.push_back(box);
                type.size += planes * rows * run;
                next += planes * rows * (run + 3) + 1;
            } else {
                type.loose.push_back({next, type.size, run});
                type.size += run;
                next += run + between(1, 9);
            }
        }
        type.extent = next + 25;
        check(type, between(1, 7), 4);
        check(type, between(8, 80), 4);
        type.extent = -type.extent;
        check(type, between(8, 20), 2);
    }
}

TEST_CASE("runs on their own") {
    mpix::plan type;
    std::int64_t next = 3;
    for (int n = 0; n < 300; ++n) {
        const std::int64_t run = between(1, 140);
        type.loose.push_back({next, type.size, run});
        type.size += run;
        next += run + between(1, 50);
    }
    type.extent = next;
    check(type, 1, 100);
    check(type, 2, 20);
}
