// SPDX-License-Identifier: BSD-3-Clause
//
// Node memory: what one process gives out, another maps; what is given back can be had again; and what a
// peer says of its memory is believed only as far as it can be checked.
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "transport/select.h"
#include "transport/transport.h"

#include "tests/catch.hpp"

using namespace mpix::transport;

namespace {

constexpr std::uint64_t mebibyte = 1u << 20;

transport &memory() { return node_memory(); }

int open_files() {
    int n = 0;
    DIR *const dir = opendir("/proc/self/fd");
    while (readdir(dir) != nullptr) ++n;
    closedir(dir);
    return n;
}

// Mappings of memory files of ours.
int mappings() {
    std::ifstream maps("/proc/self/maps");
    int n = 0;
    for (std::string line; std::getline(maps, line);) n += line.find("/memfd:mpix") != std::string::npos;
    return n;
}

region allocate(std::uint64_t bytes) {
    region r;
    REQUIRE(memory().allocate(bytes, on_host, r).ok());
    return r;
}

wire_region describe(const region &r) {
    wire_region wire;
    REQUIRE(memory().describe(r, wire).ok());
    return wire;
}

std::uint64_t address_of(const void *p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

TEST_CASE("a region is zeroed, aligned and as large as was asked, also when its memory was used before") {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{127}, std::uint64_t{129},
                                      mebibyte - 1, mebibyte, 3 * mebibyte + 5})
        for (int round = 0; round < 2; ++round) {
            CAPTURE(bytes, round);
            region r = allocate(bytes);
            CHECK(r.bytes == bytes);
            CHECK(r.device == on_host);
            CHECK(address_of(r.address) % 128 == 0);
            CHECK(address_of(r.address) + bytes <= address_of(r.backing) + r.backing_bytes);
            const char *const at = static_cast<char *>(r.address);
            CHECK(std::all_of(at, at + bytes, [](char c) { return c == 0; }));
            std::memset(r.address, 0xff, bytes);
            memory().release(r);
            CHECK_FALSE(r);
        }
}

TEST_CASE("a size beyond all bounds is refused") {
    region r;
    CHECK(!memory().allocate(~std::uint64_t{0}, on_host, r).ok());
    CHECK(!memory().allocate(std::uint64_t{1} << 47, on_host, r).ok());
    CHECK_FALSE(r);
}

TEST_CASE("regions do not overlap") {
    const auto seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    struct owned {
        region r;
        unsigned char mark;
    };
    std::vector<owned> all;
    const auto intact = [](const owned &o) {
        const auto *at = static_cast<unsigned char *>(o.r.address);
        return std::all_of(at, at + o.r.bytes, [&](unsigned char c) { return c == o.mark; });
    };
    for (int step = 0; step < 3000; ++step) {
        if (all.size() < 60 && random() % 2 != 0) {
            all.push_back(
                {allocate(random() % (random() % 8 == 0 ? 300000 : 2000)), static_cast<unsigned char>(random())});
            std::memset(all.back().r.address, all.back().mark, all.back().r.bytes);
        } else if (!all.empty()) {
            std::swap(all[random() % all.size()], all.back());
            REQUIRE(intact(all.back()));
            memory().release(all.back().r);
            all.pop_back();
        }
    }
    for (owned &o : all) {
        REQUIRE(intact(o));
        memory().release(o.r);
    }
}

TEST_CASE("after everything was released the same large blocks can be had again, without new memory") {
    const auto seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto large_blocks = [] {
        std::vector<region> blocks;
        for (int i = 0; i < 4; ++i) blocks.push_back(allocate(mebibyte - 128));
        return blocks;
    };
    const auto release_all = [&](std::vector<region> &blocks) {
        std::shuffle(blocks.begin(), blocks.end(), random);
        for (region &r : blocks) memory().release(r);
    };
    auto blocks = large_blocks();
    release_all(blocks);
    const int files = open_files();
    for (int round = 0; round < 20; ++round) {
        std::vector<region> small;
        for (std::uint64_t total = 0; total < 3 * mebibyte; total += small.back().bytes + 128)
            small.push_back(allocate(random() % 60000));
        release_all(small);
        blocks = large_blocks();
        CHECK(open_files() == files);
        release_all(blocks);
    }
}

// What our memory files hold, in bytes.
std::int64_t bytes_held() {
    std::int64_t bytes = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
        struct stat status;
        if (target.find("memfd:mpix") != std::string::npos && stat(entry.path().c_str(), &status) == 0)
            bytes += status.st_blocks * 512;
    }
    return bytes;
}

TEST_CASE("a large region is given back to the system, whatever its size") {
    region first = allocate(mebibyte);
    memory().release(first);
    // Around the size of the memory that small regions are cut from, too.
    for (const std::uint64_t bytes : {mebibyte, 2 * mebibyte, 4 * mebibyte - 4096, 4 * mebibyte - 128, 4 * mebibyte}) {
        CAPTURE(bytes);
        const int files = open_files(), maps = mappings();
        const std::int64_t held = bytes_held();
        for (int i = 0; i < 3; ++i) {
            region r = allocate(bytes);
            const auto *const all = static_cast<const unsigned char *>(r.address);
            CHECK(std::all_of(all, all + bytes, [](unsigned char c) { return c == 0; }));
            std::memset(r.address, 0x5a, bytes);
            CHECK(bytes_held() >= held + static_cast<std::int64_t>(bytes));
            memory().release(r);
        }
        CHECK(bytes_held() == held);
        CHECK(open_files() == files);
        CHECK(mappings() == maps);
    }
}

TEST_CASE("a small region that is given back takes no large one with it") {
    // What a large region leaves of its last page is no room for small ones: the mapping goes with the large region
    // alone.
    region large = allocate(mebibyte);
    std::vector<region> small;
    for (int i = 0; i < 64; ++i) small.push_back(allocate(64));
    for (const region &r : small) CHECK(r.backing != large.backing);
    std::memset(large.address, 0x3c, large.bytes);
    for (region &r : small) memory().release(r);
    REQUIRE(mappings() > 0);
    for (std::uint64_t i = 0; i < large.bytes; ++i) REQUIRE(static_cast<char *>(large.address)[i] == 0x3c);
    memory().release(large);
}

TEST_CASE("large regions need no descriptor each") {
    std::vector<region> all;
    all.push_back(allocate(mebibyte));
    const int files = open_files();
    for (int i = 0; i < 50; ++i) all.push_back(allocate(mebibyte + static_cast<std::uint64_t>(i) * 5000));
    CHECK(open_files() == files);
    for (std::size_t i = 0; i < all.size(); ++i) std::memset(all[i].address, static_cast<int>(i), all[i].bytes);
    for (std::size_t i = 0; i < all.size(); ++i) {
        region there;
        REQUIRE(memory().attach(describe(all[i]), on_host, there).ok());
        const auto *const bytes = static_cast<const unsigned char *>(there.address);
        CHECK(std::all_of(bytes, bytes + there.bytes, [&](unsigned char c) { return c == i; }));
        memory().detach(there);
    }
    for (region &r : all) memory().release(r);
    CHECK(open_files() == files);
}

TEST_CASE("attached regions share a mapping") {
    region first = allocate(1000), second = allocate(5000);
    const wire_region wire = describe(first), other = describe(second);
    const int maps = mappings(), files = open_files();
    region a, b, c;
    REQUIRE(memory().attach(wire, on_host, a).ok());
    CHECK(mappings() <= maps + 1);
    REQUIRE(memory().attach(wire, on_host, b).ok());
    CHECK(a.address == b.address);
    REQUIRE(memory().attach(other, on_host, c).ok());
    if (first.backing == second.backing) CHECK(a.backing == c.backing);
    CHECK(open_files() == files);  // a mapping needs no descriptor
    CHECK(a.bytes == 1000);
    CHECK(c.bytes == 5000);
    CHECK(a.address != first.address);
    std::memcpy(first.address, "written", 8);
    CHECK(std::strcmp(static_cast<char *>(a.address), "written") == 0);
    std::memcpy(c.address, "back", 5);
    CHECK(std::strcmp(static_cast<char *>(second.address), "back") == 0);
    memory().detach(a);
    CHECK_FALSE(a);
    CHECK(std::strcmp(static_cast<char *>(b.address), "written") == 0);
    memory().detach(c);
    memory().detach(b);
    // What small regions are cut from may stay mapped, but only once.
    const int kept = mappings();
    REQUIRE(memory().attach(wire, on_host, a).ok());
    memory().detach(a);
    CHECK(mappings() == kept);
    memory().release(first);
    memory().release(second);
}

TEST_CASE("the mapping of a large region goes with its last user") {
    region own = allocate(3 * mebibyte);
    const wire_region wire = describe(own);
    const int maps = mappings();
    region a, b;
    REQUIRE(memory().attach(wire, on_host, a).ok());
    REQUIRE(memory().attach(wire, on_host, b).ok());
    CHECK(a.address == b.address);
    CHECK(mappings() == maps + 1);
    memory().detach(a);
    CHECK(mappings() == maps + 1);
    memory().detach(b);
    CHECK(mappings() == maps);
    memory().release(own);
}

TEST_CASE("another process maps it") {
    region own = allocate(64);
    const wire_region wire = describe(own);
    const pid_t child = fork();
    if (child == 0) {
        region r;
        if (!memory().attach(wire, on_host, r).ok()) _exit(1);
        std::memcpy(r.address, "from the child", 15);
        _exit(0);
    }
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
    CHECK(std::strcmp(static_cast<char *>(own.address), "from the child") == 0);
    memory().release(own);
}

TEST_CASE("a description of memory that is gone is refused") {
    region own = allocate(2 * mebibyte);
    const wire_region wire = describe(own);
    memory().release(own);
    region again = allocate(2 * mebibyte);  // the same descriptor number, and the same size
    region r;
    CHECK(!memory().attach(wire, on_host, r).ok());
    CHECK_FALSE(r);
    memory().release(again);
    CHECK(!memory().attach(wire, on_host, r).ok());
    wire_region none;
    CHECK(!memory().describe(own, none).ok());
}

TEST_CASE("a corrupted description is refused, or stays within the peer's memory") {
    region own = allocate(2 * mebibyte);
    const wire_region good = describe(own);
    const int maps = mappings(), files = open_files();
    region held;
    // Once with nothing mapped, once with the good description in use.
    for (int in_use = 0; in_use < 2; ++in_use) {
        if (in_use == 1) REQUIRE(memory().attach(good, on_host, held).ok());
        const auto try_it = [&](const wire_region &wire) {
            region r;
            if (!memory().attach(wire, on_host, r).ok()) {
                CHECK_FALSE(r);
                return false;
            }
            CHECK(address_of(r.address) >= address_of(r.backing) + 128);
            CHECK(r.bytes <= r.backing_bytes);
            CHECK(address_of(r.address) - address_of(r.backing) <= r.backing_bytes - r.bytes);
            memory().detach(r);
            return true;
        };
        // Process, descriptor, first page, random number, size: 40 bytes. The offset, last, has other good values.
        for (unsigned bit = 0; bit < 48 * 8; ++bit) {
            wire_region wire = good;
            wire.address[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
            const bool taken = try_it(wire);
            CAPTURE(in_use, bit);
            const unsigned byte = bit / 8;
            if (byte < 40) CHECK_FALSE(taken);
        }
        for (unsigned bit = 0; bit < 64; ++bit) {
            wire_region wire = good;
            wire.bytes ^= std::uint64_t{1} << bit;
            try_it(wire);
        }
        wire_region longer = good;
        longer.bytes = own.backing_bytes;
        CHECK_FALSE(try_it(longer));
        CHECK_FALSE(try_it(wire_region{}));
        wire_region ones;
        std::memset(&ones, 0xff, sizeof ones);
        CHECK_FALSE(try_it(ones));
    }
    memory().detach(held);
    CHECK(mappings() == maps);
    CHECK(open_files() == files);
    memory().release(own);
}
