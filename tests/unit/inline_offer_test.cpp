// SPDX-License-Identifier: BSD-3-Clause
//
// A send between two GPUs, which host memory plays: what its OFFER says of an inline buffer, whether its kernels get
// the one that the receiver accepts with, and what MPIX_EXPLAIN prints of that.
#include <mpix/impl/inline/packet.cuh>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "host/config.h"
#include "host/request/explain.h"
#include "host/transfer/send.h"
#include "host/wireup/wireup.h"

#include "tests/catch.hpp"
#include "tests/fuzz/fake_mpi.h"

using namespace mpix;

namespace {

constexpr std::size_t arena_bytes = std::size_t{1} << 20;
alignas(4096) char arena[arena_bytes];
alignas(16) char scratch[transport::scratch_bytes];

// One GPU, whose memory is the arena and what it allocates.
struct fake_gpu final : transport::transport {
    const char *name() const override { return "cuda_ipc"; }
    mpix::transport::transport_id id() const override { return mpix::transport::id_cuda_ipc; }
    unsigned capabilities() const override { return mpix::transport::device_store | mpix::transport::adopt_buffer; }
    bool usable() override { return true; }
    bool owns(const void *address, int &device) override {
        device = 0;
        return address >= arena && address < arena + arena_bytes;
    }
    mpix::status allocate(std::uint64_t bytes, int device, mpix::transport::region &out) override {
        out = {};
        out.address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        std::memset(out.address, 0, bytes);
        out.bytes = bytes;
        out.device = device;
        return {};
    }
    mpix::status adopt(void *, std::uint64_t, mpix::transport::region &) override { return {}; }
    void release(mpix::transport::region &own) override {
        std::free(own.address);
        own = {};
    }
    mpix::status describe(const mpix::transport::region &own, mpix::transport::wire_region &out) override {
        out = {};
        out.transport = id();
        out.device = own.device;
        out.bytes = own.bytes;
        std::memcpy(out.address, &own.address, sizeof own.address);
        return {};
    }
    mpix::status attach(const mpix::transport::wire_region &wire, int device, mpix::transport::region &out) override {
        out = {};
        std::memcpy(&out.address, wire.address, sizeof out.address);
        out.bytes = wire.bytes;
        out.device = device;
        out.scratch = scratch;
        return {};
    }
    void detach(mpix::transport::region &) override {}
    mpix::status acquire_view(const mpix::transport::region &host, int, void *&out) override {
        out = host.address;
        return {};
    }
    void release_view(const mpix::transport::region &) override {}
    mpix::status write(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    mpix::status read(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    mpix::status start(void *, const void *, std::uint64_t, int,
                       std::unique_ptr<mpix::transport::transfer> &) override {
        return failure("nothing is to be copied");
    }
};

fake_gpu &gpu_here() {
    static auto *const gpu = [] {
        auto *const made = new fake_gpu;
        play_gpus(*made);
        REQUIRE(transport::use_only("shm,cuda_ipc").ok());
        start_setup({});
        return made;
    }();
    return *gpu;
}

constexpr int partitions = 2;

std::shared_ptr<send_request> make_send(std::uint64_t bytes, bool gaps) {
    gpu_here();
    status problem;
    auto members = std::make_shared<communicator>();
    members->name = 99;
    members->peers = {0, 1};
    operation op;
    op.buffer = arena;
    op.partitions = partitions;
    op.count = gaps ? bytes / 8 : bytes;
    // Bytes; or words of 8 bytes with as much between them.
    op.type = gaps ? make_plan({{{0, 0, 8, {}}}, 8, 16}, problem) : make_plan({{{0, 0, 1, {}}}, 1, 1}, problem);
    REQUIRE(problem.ok());
    op.peer = 1;
    op.tag = 3;
    op.members = std::move(members);
    op.names = std::make_shared<argument_names>(argument_names{"world", "bytes"});
    auto r = std::make_shared<send_request>(op);
    REQUIRE(r->prepare().ok());
    join(r);
    return r;
}

// Of its OFFER: for a receive without gaps, and for one with gaps.
struct offered {
    bool inline_packed, to_gaps;
    bool operator==(const offered &) const = default;
};
offered offer_of(send_request &send) {
    const flag_set<offer_flag> flags = send.make_offer().flags;
    return {flags.has(offer_flag::inline_packed), flags.has(offer_flag::inline_to_gaps)};
}
offered offer_of(std::uint64_t bytes, bool gaps) {
    const auto send = make_send(bytes, gaps);
    const offered said = offer_of(*send);
    leave(send);
    return said;
}

// What is printed on stderr meanwhile.
template <class Act>
std::string printed(const Act &act) {
    char name[] = "/tmp/mpix_mail_offer_XXXXXX";
    const int file = mkstemp(name), before = dup(STDERR_FILENO);
    REQUIRE((file >= 0 && before >= 0));
    unlink(name);
    dup2(file, STDERR_FILENO);
    act();
    dup2(before, STDERR_FILENO);
    std::string all(1 << 16, '\0');
    const ssize_t n = pread(file, all.data(), all.size(), 0);
    REQUIRE(n >= 0);
    all.resize(static_cast<std::size_t>(n));
    close(file);
    close(before);
    return all;
}

struct met {
    inline_buffer_layout layout;
    char *arrival = nullptr;        // at the receiver
    char *inline_buffer = nullptr;  // as the sender's kernels have it
    bool handle = false;            // says that it may be used
    std::string text;
};
// A receive accepts with an inline buffer; exported before or after that.
met meet(std::uint64_t bytes, bool export_first) {
    fake_gpu &gpu = gpu_here();
    const auto send = make_send(bytes, false);
    auto copy = std::make_unique<device_copy>(gpu, 0);
    const auto export_it = [&] {
        const std::scoped_lock lock(setup_mutex(), send->engine);
        REQUIRE(send->export_to(copy, 1).ok());
    };
    if (export_first) export_it();
    met m;
    m.layout = inline_buffer_for(partitions, bytes, bytes);
    transport::region arrival, landing, words;
    REQUIRE(gpu.allocate(m.layout.all, 0, arrival).ok());
    REQUIRE(gpu.allocate(partitions * bytes, 0, landing).ok());
    REQUIRE(transport::node_memory().allocate(sizeof(mpix_words), transport::on_host, words).ok());
    accept_body accept{.partitions = partitions, .bytes = partitions * bytes, .slots = 1};
    accept.flags.set(accept_flag::inline_buffer);
    REQUIRE(gpu.describe(arrival, accept.arrival).ok());
    REQUIRE(gpu.describe(landing, accept.landing).ok());
    REQUIRE(transport::node_memory().describe(words, accept.words).ok());
    const control_packet packet = encode_control({.from = 5, .to = send->number, .body = accept});
    m.text = printed([&] {
        fake_mpi::inbox.push_back({1, {reinterpret_cast<const char *>(&packet), sizeof packet}});
        poll_setup();
    });
    REQUIRE(send->path() == "cuda_ipc");
    if (!export_first) export_it();
    mpix_prequest *const handle = send->device->opaque_handle(), *const made = send->device->handle();
    m.arrival = static_cast<char *>(arrival.address);
    m.inline_buffer = made->inline_buffer;
    m.handle = (reinterpret_cast<std::uintptr_t>(handle) & MPIX_HANDLE_INLINE) != 0;
    CHECK(made->landing == landing.address);
    {
        const std::scoped_lock lock(setup_mutex(), send->engine);
        copy = send->end_export();
    }
    copy = nullptr;
    leave(send);
    gpu.release(arrival);
    gpu.release(landing);
    transport::node_memory().release(words);
    return m;
}

bool has(const std::string &text, const std::string &packet) { return text.find(packet) != std::string::npos; }

}  // namespace

TEST_CASE("while nothing has been measured partitions of up to 8 KiB are offered for an inline buffer") {
    config().inline_bytes = {true, 0};
    for (const bool gaps : {false, true}) {
        CAPTURE(gaps);
        CHECK(offer_of(8, gaps) == offered{true, true});
        CHECK(offer_of(8192, gaps) == offered{true, true});
        CHECK(offer_of(8200, gaps) == offered{false, false});
    }
    CHECK(offer_of(0, false) == offered{false, false});
}

TEST_CASE("a number is the limit of what is offered, gaps or not; 0 offers nothing") {
    config().inline_bytes = {false, 16384};
    for (const bool gaps : {false, true}) {
        CHECK(offer_of(16384, gaps) == offered{true, true});
        CHECK(offer_of(16392, gaps) == offered{false, false});
    }
    config().inline_bytes = {false, 0};
    CHECK(offer_of(8, false) == offered{false, false});
}

TEST_CASE("kernels get an inline buffer for what was offered, and no other") {
    config().inline_bytes = {false, 1024};
    for (const bool export_first : {false, true}) {
        CAPTURE(export_first);
        const met small = meet(1024, export_first), large = meet(1032, export_first);
        CHECK(small.inline_buffer == small.arrival + small.layout.packets);
        CHECK(small.handle);
        CHECK(has(small.text, "once kernels receive it: into their inline buffer, the arrival in the data"));
        CHECK(has(small.text,
                  "    inline, where the receiver has a buffer for it: partitions of up to 1024 bytes "
                  "(MPIX_INLINE_BYTES)\n"));
        CHECK(large.inline_buffer == nullptr);
        CHECK_FALSE(large.handle);
        CHECK_FALSE(has(large.text, "once kernels receive it"));
        CHECK(has(large.text, "partitions of up to 1024 bytes (MPIX_INLINE_BYTES)\n"));
    }
    config().inline_bytes = {false, 0};
    const met none = meet(8, false);
    CHECK(none.inline_buffer == nullptr);
    CHECK_FALSE(has(none.text, "MPIX_INLINE_BYTES"));
}

TEST_CASE("the first send to a peer has it measured, and later ones say what came of that") {
    config().inline_bytes = {true, 0};
    const std::string start =
        "inline, where the receiver has a buffer for it: partitions of up to 8192 bytes (MPIX_INLINE_BYTES): ";
    CHECK(has(meet(64, false).text, start + "nothing has been measured to there yet\n"));
    // Without a GPU: that it could not be.
    CHECK(has(meet(64, false).text, start + "mpix was built without CUDA\n"));
}
