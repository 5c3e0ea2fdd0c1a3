// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of mappings when the owner frees memory and allocates other memory in its place; where the user's memory
// ends, and why others cannot map it; memory that goes by files. CUDA is played (tests/fake_cuda).
#include <cuda_runtime.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include "tests/catch.hpp"
#include "transport/cma.h"
#include "transport/cuda_ipc/ipc_mappings.h"
#include "transport/cuda_ipc/user_memory.h"
#include "transport/cuda_ipc/vmm_memory.h"

using namespace mpix::transport;

namespace {

constexpr std::uint64_t there = 0x10000;

struct mapping_case {
    ipc_mappings mappings;
    mapping_case() {
        fake_cuda::open.clear();
        fake_cuda::closed.clear();
        fake_cuda::in_the_way.clear();
    }
    // The allocation with that id, at `address` in its owner, with that handle.
    static wire_address wire(char handle, std::uint64_t id, std::uint64_t address = there) {
        wire_address w{};
        w.handle.reserved[0] = handle;
        w.pid = 7;
        w.offset = 8;
        w.address = address + w.offset;
        w.allocation_bytes = 0x1000;
        w.id = id;
        return w;
    }
    region attach(const wire_address &w) {
        region r;
        const mpix::status bad = mappings.attach(w, 0, r);
        CAPTURE(bad.message());
        REQUIRE(bad.ok());
        CHECK(r.address == static_cast<char *>(r.backing) + 8);
        return r;
    }
};
void *mapping(int n) { return fake_cuda::mappings[n]; }

const fake_cuda::kind kinds[] = {fake_cuda::plain, fake_cuda::managed, fake_cuda::pool, fake_cuda::mapped};
const void *at(std::uint64_t address) { return reinterpret_cast<const void *>(address); }

}  // namespace

TEST_CASE("regions of one allocation share a mapping, which stays until unused ones are closed") {
    mapping_case c;
    const region one = c.attach(c.wire(1, 10)), two = c.attach(c.wire(1, 10));
    CHECK(one.backing == mapping(1));
    CHECK(fake_cuda::open.size() == 1);
    c.mappings.detach(one);
    c.mappings.close_unused();
    CHECK(fake_cuda::open.size() == 1);
    c.mappings.detach(two);
    CHECK(fake_cuda::closed.empty());
    c.mappings.close_unused();
    CHECK(fake_cuda::open.empty());
}

TEST_CASE("an allocation with a freed one's handle is mapped anew, and not before that one is unmapped") {
    mapping_case c;
    const region old = c.attach(c.wire(1, 10));
    region refused;
    const mpix::status bad = c.mappings.attach(c.wire(1, 11), 0, refused);
    CHECK(bad.message().find("in the place of memory that it has freed") != std::string::npos);
    CHECK(refused.address == nullptr);
    CHECK(fake_cuda::open.size() == 1);
    c.mappings.detach(old);
    c.attach(c.wire(1, 11));
    CHECK(fake_cuda::closed == std::vector<void *>{mapping(1)});
    CHECK(fake_cuda::open.size() == 1);
}

TEST_CASE("an allocation at a freed one's address is mapped beside it, where the driver does that") {
    mapping_case c;
    const region old = c.attach(c.wire(1, 10)), fresh = c.attach(c.wire(2, 11));
    CHECK(old.backing == mapping(1));
    CHECK(fresh.backing == mapping(2));
    CHECK(fake_cuda::closed.empty());
}

TEST_CASE("where it does not, what is unused there is unmapped first, and nothing else") {
    mapping_case c;
    const region old = c.attach(c.wire(1, 10)), elsewhere = c.attach(c.wire(3, 12, there + 0x1000));
    c.mappings.detach(elsewhere);
    fake_cuda::in_the_way = {mapping(1)};
    region refused;
    CHECK(c.mappings.attach(c.wire(2, 11), 0, refused).message().find("cudaIpcOpenMemHandle") != std::string::npos);
    CHECK(fake_cuda::closed.empty());
    c.mappings.detach(old);
    CHECK(c.attach(c.wire(2, 11)).backing == mapping(2));
    CHECK(fake_cuda::closed == std::vector<void *>{mapping(1)});
}

TEST_CASE("a buffer that goes beyond its memory is found where the driver knows the end") {
    for (const fake_cuda::kind k : kinds) {
        CAPTURE(static_cast<int>(k));
        fake_cuda::memory = {{there, {0x1000, k}}, {there + 0x1000, {0x1000, k}}, {there + 0x3000, {0x1000, k}}};
        const bool one_piece = k == fake_cuda::mapped;
        CHECK(check_memory(at(there), 0x1000).ok());
        CHECK(check_memory(at(there + 5), 0x1000 - 5).ok());
        CHECK(check_memory(at(there + 5), 0x1000 - 4).ok() == one_piece);
        CHECK(check_memory(at(there), 0x2000).ok() == one_piece);
        const mpix::status bad = check_memory(at(there), 0x2001);
        CHECK(bad.message() == std::string("the buffer goes beyond the end of its memory, which is at ") +
                                   (one_piece ? "0x12000" : "0x11000"));
        CHECK(check_memory(at(there + 0x2000), 0x800).ok());  // of which the driver knows nothing
        CHECK(check_memory(at(there), 0).ok());
    }
}

TEST_CASE("memory that others cannot map is named") {
    constexpr const char *names[] = {"CUDA IPC refuses", "cudaMallocManaged", "cudaMallocAsync", "cuMemCreate"};
    for (const fake_cuda::kind k : kinds) {
        fake_cuda::memory = {{there, {0x1000, k}}};
        CHECK(not_mappable(at(there + 1)).find(names[k]) != std::string::npos);
    }
}

namespace {

std::ptrdiff_t open_files() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

// Not on Linux before 5.6, nor where a filter of system calls refuses it.
bool files_can_be_taken() {
    const int process = open_process(getpid()), file = process < 0 ? -1 : take_file(process, process);
    for (const int f : {process, file})
        if (f >= 0) close(f);
    return file >= 0;
}

// Three allocations side by side, of which a region begins in the first and ends in the last; the peer is this process.
struct vmm_case {
    const std::ptrdiff_t files_before = open_files();
    vmm_exports exports;
    vmm_mappings mappings;
    wire_address wire{};

    vmm_case() {
        fake_cuda::memory = {{there, {0x1000, fake_cuda::mapped, true, 11}},
                             {there + 0x1000, {0x2000, fake_cuda::mapped, true, 12}},
                             {there + 0x3000, {0x1000, fake_cuda::mapped, true, 13}}};
        fake_cuda::reserved.clear();
        fake_cuda::mapped_here.clear();
        fake_cuda::admitted.clear();
        fake_cuda::not_imported = 0;
    }
    ~vmm_case() {
        for (const std::uint64_t number : {1, 2}) exports.take_back(number);
        CHECK(open_files() == files_before);
        CHECK(fake_cuda::handles == 0);
    }
    static region own() {
        region r;
        r.address = reinterpret_cast<void *>(there + 8);
        r.bytes = 0x3000;
        return r;
    }
    void give(std::uint64_t number = 1) {
        const mpix::status bad = exports.give(own(), number, wire);
        CAPTURE(bad.message());
        REQUIRE(bad.ok());
    }
    region attach() {
        region r;
        const mpix::status bad = mappings.attach(wire, 1, r);
        CAPTURE(bad.message());
        REQUIRE(bad.ok());
        CHECK(reinterpret_cast<std::uint64_t>(r.address) == reinterpret_cast<std::uint64_t>(r.backing) + 8);
        return r;
    }
};

}  // namespace

TEST_CASE("memory that the user has mapped goes by files, all of its allocations") {
    if (!files_can_be_taken()) {
        WARN("skipped: no pidfd_getfd");
        return;
    }
    vmm_case c;
    c.give();
    const region one = c.attach(), two = c.attach();
    CHECK(one.backing == two.backing);
    const auto base = reinterpret_cast<unsigned long long>(one.backing);
    CHECK(fake_cuda::mapped_here ==
          std::map<unsigned long long, unsigned long long>{{base, 11}, {base + 0x1000, 12}, {base + 0x3000, 13}});
    CHECK(fake_cuda::reserved == std::map<unsigned long long, unsigned long>{{base, 0x4000}});
    CHECK(fake_cuda::admitted == std::vector<int>{1});
    c.mappings.detach(one);
    c.mappings.close_unused();
    CHECK(fake_cuda::reserved.size() == 1);
    c.mappings.detach(two);
    c.mappings.close_unused();
    CHECK(fake_cuda::reserved.empty());
    CHECK(fake_cuda::mapped_here.empty());
}

TEST_CASE("its files stay open until all regions have ended that were given") {
    vmm_case c;
    c.give(1);
    const std::ptrdiff_t files = open_files();
    const std::int64_t table = c.wire.files;
    c.give(2);
    c.give(2);
    CHECK(c.wire.files == table);
    CHECK(open_files() == files);
    c.exports.take_back(3);  // which was not given
    c.exports.take_back(1);
    CHECK(open_files() == files);
    c.exports.take_back(2);
    CHECK(open_files() == c.files_before);
}

TEST_CASE("other allocations at the same addresses are mapped anew") {
    if (!files_can_be_taken()) {
        WARN("skipped: no pidfd_getfd");
        return;
    }
    vmm_case c;
    c.give();
    const region old = c.attach();
    fake_cuda::memory[there + 0x1000].id = 22;  // not the first one
    c.give(2);
    const region fresh = c.attach();
    CHECK(fresh.backing != old.backing);
    CHECK(fake_cuda::reserved.size() == 2);
    // Also where nothing tells the new ones from the old ones.
    c.exports.take_back(2);
    c.give(2);
    CHECK(c.attach().backing != fresh.backing);
}

TEST_CASE("what cannot go by files says why, and leaves nothing behind") {
    if (!files_can_be_taken()) {
        WARN("skipped: no pidfd_getfd");
        return;
    }
    vmm_case c;
    fake_cuda::memory[there + 0x1000].shareable = false;
    CHECK(c.exports.give(vmm_case::own(), 1, c.wire).message() ==
          "it was made without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
    CHECK(open_files() == c.files_before);
    const auto few = std::exchange(fake_cuda::memory, {});
    for (unsigned i = 0; i < 257; ++i) fake_cuda::memory[there + 0x10 * i] = {0x10, fake_cuda::mapped, true, i + 1};
    region large = vmm_case::own();
    large.bytes = 0x1000;
    CHECK(c.exports.give(large, 1, c.wire).message() ==
          "there would be more than 256 open files of such memory, one for each allocation");
    CHECK(open_files() == c.files_before);
    fake_cuda::memory = few;
    fake_cuda::memory[there + 0x1000].shareable = true;
    c.give();
    region refused;
    fake_cuda::not_imported = 13;
    CHECK(c.mappings.attach(c.wire, 0, refused).message() ==
          "cannot map the peer's GPU memory: cuMemImportFromShareableHandle: error 1 of the CUDA driver");
    CHECK(fake_cuda::reserved.empty());
    CHECK(fake_cuda::mapped_here.empty());
    CHECK(refused.address == nullptr);
    wire_address other = c.wire;
    other.files = 900;
    CHECK(c.mappings.attach(other, 0, refused).message() ==
          "cannot map the peer's GPU memory: pidfd_getfd: Bad file descriptor");
}
