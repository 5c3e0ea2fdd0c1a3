// SPDX-License-Identifier: BSD-3-Clause
//
// A peer's description of its memory, with changes: what can be attached can be read and written, all of it.
#include "transport/select.h"
#include "transport/transport.h"

#include "tests/fuzz/input.h"

using namespace mpix::transport;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    fuzz::input in(data, size);
    transport &memory = node_memory();
    region own;
    static constexpr std::uint64_t sizes[] = {0, 1, 64, 5000, 1u << 20, (4u << 20) - 128, 3u << 20};
    FUZZ_CHECK(memory.allocate(sizes[in.below(7)], on_host, own).ok());
    wire_region wire;
    FUZZ_CHECK(memory.describe(own, wire).ok());
    for (unsigned changes = in.below(4); changes > 0; --changes) {
        const unsigned at = in.below(64), n = 1 + in.below(8);
        in.bytes(reinterpret_cast<char *>(&wire) + at, n);
    }
    region theirs;
    if (memory.attach(wire, on_host, theirs).ok()) {
        FUZZ_CHECK(theirs.device == on_host);
        const auto *const base = static_cast<char *>(theirs.backing), *const at = static_cast<char *>(theirs.address);
        FUZZ_CHECK(at >= base && theirs.bytes <= theirs.backing_bytes);
        FUZZ_CHECK(static_cast<std::uint64_t>(at - base) <= theirs.backing_bytes - theirs.bytes);
        volatile char *const bytes = static_cast<char *>(theirs.address);
        if (theirs.bytes > 0) {
            bytes[0] = bytes[0];
            bytes[theirs.bytes - 1] = bytes[theirs.bytes - 1];
        }
        memory.detach(theirs);
    }
    memory.release(own);
    return 0;
}
