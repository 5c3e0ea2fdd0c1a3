// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of mappings when the owner frees memory and allocates other memory in its place; where the user's memory
// ends, and why others cannot map it. CUDA is played (tests/fake_cuda).
#include <cuda_runtime.h>

#include <string>
#include <utility>

#include "tests/catch.hpp"
#include "transport/cuda_ipc/ipc_mappings.h"
#include "transport/cuda_ipc/user_memory.h"

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
