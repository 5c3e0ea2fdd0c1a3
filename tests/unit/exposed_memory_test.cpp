// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that UCX is told of is registered once, for as long as it is exposed, and no longer, whatever fails. UCX is a
// fake that keeps count.
#include <cstdint>
#include <cstdlib>
#include <map>

#include "tests/catch.hpp"
#include "transport/ucx/exposed_memory.h"

using namespace mpix::transport;
using ucx::exposed_memory;

namespace {

struct mapping {
    void *address;
    std::size_t length;
    ucs_memory_type_t type;
};

struct fake_ucx {
    std::map<std::uintptr_t, mapping> mapped;
    std::uintptr_t maps = 0;
    std::size_t key_bytes = 20, packed = 0;
    bool refuses_to_map = false, refuses_to_pack = false;
};
fake_ucx fake;

ucs_status_t map_memory(ucp_context_h, const ucp_mem_map_params_t *p, ucp_mem_h *out) {
    *out = reinterpret_cast<ucp_mem_h>(std::uintptr_t{0xbad});  // UCX promises nothing of it where it fails
    if (fake.refuses_to_map) return UCS_ERR_INVALID_ADDR;
    const bool typed = (p->field_mask & UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE) != 0;
    fake.mapped[++fake.maps] = {p->address, p->length, typed ? p->memory_type : UCS_MEMORY_TYPE_UNKNOWN};
    *out = reinterpret_cast<ucp_mem_h>(fake.maps);
    return UCS_OK;
}
ucs_status_t unmap_memory(ucp_context_h, ucp_mem_h memory) {
    CHECK(fake.mapped.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1);
    return UCS_OK;
}
// A key's bytes count on from the number of its mapping.
ucs_status_t pack_key(ucp_context_h, ucp_mem_h memory, void **out, std::size_t *bytes) {
    CHECK(fake.mapped.count(reinterpret_cast<std::uintptr_t>(memory)) == 1);
    if (fake.refuses_to_pack) return UCS_ERR_NO_MEMORY;
    *out = std::malloc(fake.key_bytes);
    for (std::size_t i = 0; i < fake.key_bytes; ++i)
        static_cast<std::uint8_t *>(*out)[i] = static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(memory) + i);
    *bytes = fake.key_bytes;
    ++fake.packed;
    return UCS_OK;
}
void release_key(void *packed) {
    std::free(packed);
    --fake.packed;
}
const char *name_status(ucs_status_t) { return "so it is"; }

struct bench {
    ucx::ucp_library ucp;
    exposed_memory memory{ucp};
    bench() {
        fake = {};
        ucp.ucp_mem_map = map_memory;
        ucp.ucp_mem_unmap = unmap_memory;
        ucp.ucp_rkey_pack = pack_key;
        ucp.ucp_rkey_buffer_release = release_key;
        ucp.ucs_status_string = name_status;
        memory.open(nullptr, UCS_MEMORY_TYPE_CUDA);
    }
    // What a peer reads out of it: the number of the mapping that its key is of.
    static std::uint8_t key_of(const wire_region &wire, const wire_region *rest) {
        ucx::remote_memory told;
        CHECK(ucx::read_description(wire, rest, told).ok());
        CHECK(told.key.size() == fake.key_bytes);
        std::size_t right = 0;
        while (right < told.key.size() && told.key[right] == static_cast<std::uint8_t>(told.key[0] + right)) ++right;
        CHECK(right == told.key.size());
        return told.key[0];
    }
};

char bytes[4096];

}  // namespace

TEST_CASE("each of a GPU's buffers is registered by itself, and until it is forgotten") {
    bench b;
    for (const std::size_t key_bytes : {20u, 160u, 161u, 336u}) {
        CAPTURE(key_bytes);
        fake.key_bytes = key_bytes;
        region one, same;
        REQUIRE(b.memory.adopt(bytes, 100, 2, one).ok());
        REQUIRE(b.memory.adopt(bytes, 200, 2, same).ok());
        CHECK(fake.mapped.size() == 2);
        const auto last = static_cast<std::uint8_t>(fake.maps);
        const mapping &newest = fake.mapped.at(fake.maps);
        CHECK((newest.address == bytes && newest.length == 200 && newest.type == UCS_MEMORY_TYPE_CUDA));
        wire_region wire, rest;
        REQUIRE(b.memory.describe(one, wire, rest).ok());
        CHECK(b.key_of(wire, &rest) == last - 1);
        b.memory.forget_adopted(one);
        CHECK(fake.mapped.size() == 1);
        CHECK(!b.memory.describe(one, wire, rest).ok());
        b.memory.forget_adopted(one);  // once is enough
        REQUIRE(b.memory.describe(same, wire, rest).ok());
        CHECK(b.key_of(wire, &rest) == last);
        CHECK((wire.device == 2 && wire.bytes == 200));
        b.memory.forget_adopted(same);
        CHECK(fake.mapped.empty());
    }
}

TEST_CASE("a mapping of host memory is registered once, and until it is forgotten, except for those that last") {
    bench b;
    region first, second;
    first.address = bytes;
    second.address = bytes + 64;
    first.bytes = second.bytes = 64;
    first.backing = second.backing = bytes;
    first.backing_bytes = second.backing_bytes = sizeof bytes;
    wire_region wire;
    REQUIRE(b.memory.describe(first, wire).ok());
    REQUIRE(b.memory.describe(second, wire).ok());
    CHECK(b.key_of(wire, nullptr) == 1);
    REQUIRE(fake.mapped.size() == 1);
    CHECK((fake.mapped.at(1).length == sizeof bytes && fake.mapped.at(1).type == UCS_MEMORY_TYPE_UNKNOWN));
    second.lasting = true;
    b.memory.forget(second);
    CHECK(fake.mapped.size() == 1);
    b.memory.forget(first);
    CHECK(fake.mapped.empty());
    b.memory.forget(first);
    REQUIRE(b.memory.describe(first, wire).ok());
    CHECK(b.key_of(wire, nullptr) == 2);
    b.memory.close();
    CHECK(fake.mapped.empty());
}

TEST_CASE("messages may store in what is exposed, up to its last byte") {
    bench b;
    static char more[64];
    const auto at = [](const char *byte) { return reinterpret_cast<std::uint64_t>(byte); };
    region first;
    first.address = bytes + 16;  // the whole mapping is registered
    first.bytes = 8;
    first.backing = bytes;
    first.backing_bytes = sizeof bytes;
    wire_region wire;
    CHECK_FALSE(b.memory.covers(at(bytes), 1));
    REQUIRE(b.memory.describe(first, wire).ok());
    CHECK(b.memory.covers(at(bytes), sizeof bytes));
    CHECK(b.memory.covers(at(bytes) + sizeof bytes - 1, 1));
    CHECK_FALSE(b.memory.covers(at(bytes) + sizeof bytes - 1, 2));
    CHECK_FALSE(b.memory.covers(at(bytes) - 1, 1));
    CHECK_FALSE(b.memory.covers(at(bytes) + 1, ~std::uint64_t{0}));
    CHECK_FALSE(b.memory.covers(at(more), 1));
    // A GPU's is stored to by UCX alone.
    region gpu;
    REQUIRE(b.memory.adopt(more, sizeof more, 0, gpu).ok());
    CHECK_FALSE(b.memory.covers(at(more), 1));
    b.memory.forget(first);
    CHECK_FALSE(b.memory.covers(at(bytes), 1));
    b.memory.close();
}

TEST_CASE("what fails leaves nothing registered") {
    bench b;
    region host, gpu;
    host.address = host.backing = bytes;
    host.bytes = host.backing_bytes = sizeof bytes;
    wire_region wire;
    const auto fails = [&](const char *host_says, const char *gpu_says) {
        CHECK(b.memory.describe(host, wire).message().find(host_says) == 0);
        CHECK(b.memory.adopt(bytes, 100, 0, gpu).message().find(gpu_says) == 0);
        CHECK_FALSE(gpu);
        CHECK(fake.mapped.empty());
        CHECK(fake.packed == 0);
    };
    fake.refuses_to_map = true;
    fails("UCX: ucp_mem_map: so it is", "UCX: ucp_mem_map: so it is");
    fake.refuses_to_map = false;
    fake.refuses_to_pack = true;
    fails("UCX: ucp_rkey_pack: so it is", "UCX: ucp_rkey_pack: so it is");
    fake.refuses_to_pack = false;
    fake.key_bytes = 337;
    fails("UCX's remote key has 337 bytes", "UCX's remote key has 337 bytes");
    // And is no hindrance later.
    fake.key_bytes = 160;
    CHECK(b.memory.describe(host, wire).ok());
    CHECK(b.memory.adopt(bytes, 100, 0, gpu).ok());
    CHECK(fake.mapped.size() == 2);
    b.memory.close();
    CHECK(fake.mapped.empty());
}
