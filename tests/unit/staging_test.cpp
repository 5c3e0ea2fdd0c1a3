// SPDX-License-Identifier: BSD-3-Clause
//
// Messages between GPUs that share no memory: by bounce buffers and chunks onto a network, and from the landing into
// the receive buffer. The GPU and the network are fakes (fake_network.hpp).
#include <mpix/detail/abi.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "host/config.h"
#include "host/staging/chunked_put.h"
#include "host/staging/staged_delivery.h"
#include "tests/catch.hpp"
#include "tests/unit/fake_network.hpp"

namespace {

using mpix::chunk_bytes;
using mpix::chunking;
using mpix::chunks_of;
using mpix::failure;
using mpix::status;
namespace transport = mpix::transport;
using fakes::dice;
using fakes::fake_gpus;
using fakes::fake_network;
using fakes::host_memory;

void fill(std::vector<char> &bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = dice()();
        std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
    }
}

// A pair in one process.
struct pair {
    chunking chunks;
    std::uint64_t slots, message;
    bool from_gpu;
    fake_gpus gpus, memory;  // the bounce buffers' memory comes from a transport as well, and stays
    fake_network network;
    mpix::bounce_buffers bounces;
    std::vector<char> landing_bytes, flag_bytes, source, target;
    transport::region landing, arrival;
    std::unique_ptr<mpix::staged_delivery> delivery;

    pair(std::uint64_t partitions, std::uint64_t partition_bytes, std::uint64_t number_of_slots, bool gpu)
        : chunks(chunks_of(partitions, partition_bytes, true)),
          slots(number_of_slots),
          message(partitions * partition_bytes),
          from_gpu(gpu),
          landing_bytes(slots * message + 1),
          flag_bytes((chunks.all() + 1) * 8),
          source(message + 1),
          target(message + 1) {
        landing = host_memory(landing_bytes);
        arrival = host_memory(flag_bytes);
        REQUIRE(bounces.allocate(memory, gpus, 0).ok());
        delivery =
            std::make_unique<mpix::staged_delivery>(mpix::gpu_buffer{&gpus, 0, target.data(), nullptr}, chunks, slots);
        REQUIRE(delivery->allocate(landing, arrival).ok());
    }
    mpix::remote_message to(std::uint64_t epoch) {
        return {&network, nullptr, 7, landing, arrival, slots == 2 && (epoch & 1) != 0 ? message : 0, epoch, chunks};
    }
    std::unique_ptr<mpix::chunked_put> send(std::uint64_t partition, std::uint64_t epoch) {
        if (from_gpu)
            return std::make_unique<mpix::chunked_put>(to(epoch), partition,
                                                       mpix::gpu_buffer{&gpus, 0, source.data(), nullptr}, bounces);
        return std::make_unique<mpix::chunked_put>(to(epoch), partition,
                                                   source.data() + partition * chunks.partition_bytes);
    }
    bool same(std::uint64_t partition) const {
        const std::uint64_t at = partition * chunks.partition_bytes;
        return std::memcmp(source.data() + at, target.data() + at, chunks.partition_bytes) == 0;
    }
};

// A network that reads and writes GPU memory itself.
struct fake_gpu_puts final : transport::gpu_puts {
    fake_network &network;
    unsigned puts = 0;
    explicit fake_gpu_puts(fake_network &n) : network(n) {}
    status adopt(void *, std::uint64_t, int, transport::region &) override { return {}; }
    status describe(const transport::region &, transport::wire_region &, transport::wire_region &) override {
        return {};
    }
    void forget(transport::region &) override {}
    status attach(const transport::wire_region &, const transport::wire_region &, int, transport::region &) override {
        return {};
    }
    status put(const transport::region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
               std::unique_ptr<transport::transfer> &out) override {
        ++puts;
        return network.put(to, offset, from, bytes, out);
    }
};

}  // namespace

TEST_CASE("what the network puts into a GPU is told of once it is there, and copied by nobody") {
    for (const bool from_gpu : {false, true})
        for (const std::uint64_t bytes : {std::uint64_t{8}, chunk_bytes + 3}) {
            CAPTURE(from_gpu, bytes);
            constexpr std::uint64_t partitions = 3;
            const chunking chunks = chunks_of(partitions, bytes, false);
            fake_gpus gpus;
            fake_network network;
            fake_gpu_puts reader(network);
            std::vector<char> source(partitions * bytes), target(partitions * bytes), flags((partitions + 1) * 8);
            transport::region landing = host_memory(target), arrival = host_memory(flags);
            landing.device = 0;
            mpix::staged_delivery delivery(mpix::gpu_buffer{&gpus, 0, target.data(), nullptr}, chunks, 1);
            REQUIRE(delivery.allocate(landing, arrival).ok());
            CHECK(gpus.views == 0);
            CHECK(gpus.admitted == 0);
            for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
                fill(source);
                std::vector<std::unique_ptr<mpix::chunked_put>> moving;
                for (const std::uint64_t p : {1, 2, 0}) {
                    const mpix::remote_message to{&network, from_gpu ? &reader : nullptr, 7, landing, arrival, 0, epoch,
                                                  chunks};
                    moving.push_back(std::make_unique<mpix::chunked_put>(to, p, source.data() + p * bytes));
                    status bad;
                    moving.back()->finished(bad);
                    REQUIRE(bad.ok());
                }
                CHECK(reader.puts == (from_gpu ? partitions * epoch : 0));
                for (int job = 0; job < 6; ++job) {  // each put, then its flag
                    REQUIRE(delivery.step(epoch, true).ok());
                    for (std::uint64_t p = 0; p < partitions; ++p) {
                        const bool told = delivery.delivered(p, epoch);
                        CHECK(told == (delivery.flags()[p] == epoch));
                        CHECK((!told || std::memcmp(&source[p * bytes], &target[p * bytes], bytes) == 0));
                    }
                    CHECK_FALSE(delivery.whole(epoch));
                    network.wire.work(1);
                }
                const unsigned before = gpus.admitted;
                REQUIRE(delivery.step(epoch, true).ok());
                CHECK(gpus.admitted > before);
                CHECK(delivery.whole(epoch));
                CHECK(delivery.flags()[partitions] == epoch);
                CHECK(source == target);
                CHECK(gpus.engine.waiting() == 0);
                std::erase_if(moving, [](auto &m) {
                    status bad;
                    return m->finished(bad);
                });
                CHECK(moving.empty());
            }
            // What the GPU refuses to see is not told of.
            for (std::uint64_t p = 0; p < partitions; ++p) REQUIRE(network.put_word(arrival, p * 8, 3).ok());
            network.wire.work(partitions);
            gpus.not_admitted = failure("it looks away");
            CHECK(delivery.step(3, true).message() == "it looks away");
            CHECK(delivery.flags()[0] == 2);
        }
}

TEST_CASE("what comes into GPU memory of the library's is forwarded, and told of behind the copy") {
    const bool to_kernels = GENERATE(false, true);
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, chunk_bytes + 3}) {
        CAPTURE(bytes, to_kernels);
        constexpr std::uint64_t partitions = 3;
        const chunking chunks = chunks_of(partitions, bytes, false);
        fake_gpus gpus;
        std::vector<char> source(partitions * bytes + 1), target(partitions * bytes + 1), flags((partitions + 1) * 8);
        transport::region landing = host_memory(source), arrival = host_memory(flags);
        landing.device = 0;
        mpix::staged_delivery delivery(mpix::gpu_buffer{&gpus, 0, target.data(), nullptr}, chunks, 1);
        REQUIRE(delivery.allocate(landing, arrival).ok());
        CHECK(gpus.views == 0);
        for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
            fill(source);
            target.back() = source.back();
            for (const std::uint64_t p : {1, 2, 0}) {
                REQUIRE(delivery.step(epoch, to_kernels).ok());
                CHECK_FALSE(delivery.delivered(p, epoch));
                std::memcpy(&flags[p * 8], &epoch, sizeof epoch);
                REQUIRE(delivery.step(epoch, to_kernels).ok());
                CHECK(delivery.delivered(p, epoch) == (bytes == 0));
                CHECK(delivery.copying() == (bytes != 0));
                gpus.engine.work(1);
                REQUIRE(delivery.step(epoch, to_kernels).ok());
                CHECK(delivery.delivered(p, epoch));
                CHECK(delivery.flags()[p] == epoch);
                CHECK(std::memcmp(&source[p * bytes], &target[p * bytes], bytes) == 0);
            }
            CHECK(delivery.whole(epoch));
            CHECK(delivery.flags()[partitions] == epoch);
            CHECK(source == target);
        }
        CHECK(gpus.admitted == 0);
        CHECK(gpus.within == (bytes == 0 || !to_kernels ? 0 : 2 * partitions));
    }
}

TEST_CASE("chunks cover a message once, in order, and end where partitions do") {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, chunk_bytes - 1, chunk_bytes, chunk_bytes + 1,
                                      5 * chunk_bytes, std::uint64_t{1} << 33})
        for (const bool in_chunks : {false, true}) {
            const chunking c = chunks_of(3, bytes, in_chunks);
            std::uint64_t at = 0;
            for (std::uint64_t k = 0; k < c.all(); ++k) {
                CHECK(c.begin(k) == at);
                CHECK((!in_chunks || c.end(k) - c.begin(k) <= chunk_bytes));
                CHECK(c.partition_of(k) == k / c.per_partition);
                at = c.end(k);
                if (k % c.per_partition == c.per_partition - 1) CHECK(at == (k / c.per_partition + 1) * bytes);
            }
            CHECK(at == 3 * bytes);
            if (!in_chunks) CHECK(c.all() == 3);
        }
}

TEST_CASE("what is said to have been delivered is there, and nothing is lost") {
    const std::uint64_t sizes[] = {0, 1, 8, 4096, chunk_bytes, chunk_bytes + 3, 2 * chunk_bytes + 77};
    for (const std::uint64_t bytes : sizes)
        for (const std::uint64_t partitions : {1, 3, 12})
            for (const std::uint64_t slots : {1, 2})
                for (const bool from_gpu : {false, true}) {
                    CAPTURE(bytes, partitions, slots, from_gpu);
                    pair p(partitions, bytes, slots, from_gpu);
                    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
                        fill(p.source);
                        std::fill(p.target.begin(), p.target.end(), '\x5a');
                        std::vector<std::uint64_t> order(partitions);
                        for (std::uint64_t i = 0; i < partitions; ++i) order[i] = i;
                        std::shuffle(order.begin(), order.end(), dice());
                        std::vector<std::unique_ptr<mpix::chunked_put>> moving;
                        std::size_t sent = 0;
                        unsigned rounds = 0;
                        bool right = true;
                        while (!p.delivery->whole(epoch)) {
                            REQUIRE(++rounds < 100000);
                            if (sent < partitions && dice()() % 3 == 0) moving.push_back(p.send(order[sent++], epoch));
                            std::erase_if(moving, [](auto &m) {
                                status bad;
                                const bool over = m->finished(bad);
                                REQUIRE(bad.ok());
                                return over;
                            });
                            if (dice()() % 2 == 0) p.gpus.engine.work(dice()() % 3);
                            if (dice()() % 2 == 0) p.network.wire.work(dice()() % 4);
                            REQUIRE(p.delivery->step(epoch, false).ok());
                            for (std::uint64_t i = 0; i < partitions; ++i) {
                                const bool told = p.delivery->flags()[i] == epoch;
                                right = right && told == p.delivery->delivered(i, epoch) && (!told || p.same(i));
                            }
                            const bool whole = p.delivery->flags()[partitions] == epoch;
                            right = right && whole == p.delivery->whole(epoch) && (!whole || sent == partitions);
                        }
                        CHECK(right);
                        for (std::uint64_t i = 0; i < partitions; ++i) CHECK(p.same(i));
                        CHECK(p.target[p.message] == '\x5a');
                        p.network.wire.work(1000);
                        std::erase_if(moving, [](auto &m) {
                            status bad;
                            return m->finished(bad);
                        });
                        CHECK(moving.empty());
                    }
                    // All bounce buffers are back.
                    std::vector<mpix::locked_memory> all(mpix::bounce_buffers::number);
                    for (std::size_t i = 0; i < all.size(); ++i)
                        CHECK(p.bounces.take(static_cast<int>(i / mpix::bounce_buffers::most_of_one), all[i]));
                    mpix::locked_memory none;
                    CHECK_FALSE(p.bounces.take(99, none));
                }
}

TEST_CASE("chunks are on the network while others are read from the GPU, and no more than there are bounce buffers") {
    pair p(1, 64 * chunk_bytes, 1, true);
    const auto put = p.send(0, 1);
    status bad;
    CHECK_FALSE(put->finished(bad));
    CHECK(p.gpus.engine.waiting() == mpix::bounce_buffers::most_of_one);
    p.gpus.engine.work(3);
    CHECK_FALSE(put->finished(bad));
    CHECK(p.network.wire.waiting() == 6);  // three chunks, three flags
    CHECK(p.gpus.engine.waiting() == mpix::bounce_buffers::most_of_one - 3);
    p.network.wire.work(6);
    CHECK_FALSE(put->finished(bad));
    CHECK_FALSE(put->finished(bad));
    CHECK(p.gpus.engine.waiting() == mpix::bounce_buffers::most_of_one);
    REQUIRE(p.delivery->step(1, false).ok());
    p.gpus.engine.work(100);
    CHECK(std::memcmp(p.target.data(), p.source.data(), 3 * chunk_bytes) == 0);
    CHECK_FALSE(p.delivery->delivered(0, 1));
}

TEST_CASE("a copy that does not end is waited for until the deadline, and keeps what it works with") {
    const double configured = std::exchange(mpix::config().stall_seconds, 0.02);
    pair p(1, chunk_bytes, 1, false);
    fill(p.source);
    const auto moving = p.send(0, 1);
    status bad;
    while (!moving->finished(bad)) p.network.wire.work(1);
    p.network.wire.work(1000);
    REQUIRE(p.delivery->step(1, false).ok());
    REQUIRE(p.delivery->copying());
    const std::size_t kept = p.gpus.allocated.size();
    CHECK_FALSE(p.delivery->end());
    p.delivery = nullptr;
    CHECK(p.gpus.allocated.size() == kept);
    p.gpus.engine.work(1);
    CHECK(p.same(0));
    mpix::config().stall_seconds = configured;
}

TEST_CASE("a delivery ends with its copies, and gives back what it has") {
    pair p(1, chunk_bytes, 1, false);
    const std::size_t had = p.gpus.allocated.size();
    CHECK(p.delivery->end());
    CHECK(p.gpus.allocated.size() == had - 1);
}

TEST_CASE("an epoch that arrives while the one before is delivered is kept apart from it") {
    pair p(3, chunk_bytes + 5, 2, false);
    std::vector<char> sent[2];
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
        fill(p.source);
        sent[epoch - 1] = p.source;
        for (std::uint64_t i = 0; i < 3; ++i) {
            const auto put = p.send(i, epoch);
            status bad;
            put->finished(bad);
            p.network.wire.work(1000);
            CHECK(put->finished(bad));
        }
        if (epoch == 1) REQUIRE(p.delivery->step(1, false).ok());  // its copies have begun
    }
    for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
        while (!p.delivery->whole(epoch)) {
            REQUIRE(p.delivery->step(epoch, false).ok());
            p.gpus.engine.work(1);
        }
        CHECK(std::memcmp(p.target.data(), sent[epoch - 1].data(), p.message) == 0);
    }
}

TEST_CASE("what a put leaves under way comes back once it has ended, and one peer cannot take it all") {
    pair p(8, chunk_bytes, 1, true);
    status bad;
    auto reading = p.send(0, 1), putting = p.send(1, 1);
    reading->finished(bad);
    putting->finished(bad);
    p.gpus.engine.work(1);
    reading->finished(bad);  // from the GPU to the network
    reading.reset();
    putting.reset();
    mpix::locked_memory one;
    const auto takes = [&](int peer) {
        unsigned n = 0;
        while (p.bounces.take(peer, one)) ++n;
        return n;
    };
    CHECK(takes(7) == mpix::bounce_buffers::most_of_one - 2);
    p.gpus.engine.work(100);
    p.network.wire.work(100);
    CHECK(takes(7) == 2);
    CHECK(takes(8) == mpix::bounce_buffers::most_of_one);
}

TEST_CASE("packed bytes stay as long as the network may read them, also of a put that is given up") {
    // Whether the network still reads what was left behind is asked of it later, so it stays.
    static pair &p = *new pair(1, chunk_bytes, 1, false);
    for (int again = 0; again < 3; ++again) {
        fill(p.source);
        std::vector<char> packed(p.source.begin(), p.source.end() - 1);
        auto put = std::make_unique<mpix::chunked_put>(p.to(1), 0, std::move(packed));
        status bad;
        CHECK_FALSE(put->finished(bad));
        put = nullptr;
        const std::vector<char> next(chunk_bytes, 0x5a);  // where they were, if they are there no more
        p.network.wire.work(1000);
        CHECK(std::memcmp(p.landing_bytes.data(), p.source.data(), chunk_bytes) == 0);
    }
}

TEST_CASE("a failure of the network or of the GPU ends a put, and is said") {
    for (const bool of_network : {false, true}) {
        pair p(1, 20 * chunk_bytes, 1, true);
        const auto put = p.send(0, 1);
        status bad;
        CHECK_FALSE(put->finished(bad));
        p.gpus.engine.work(2);
        CHECK_FALSE(put->finished(bad));
        (of_network ? p.network.problem : p.gpus.problem).set(failure("it broke"));
        for (int i = 0; i < 100 && !put->finished(bad); ++i) {
            p.gpus.engine.work(1);
            if (!of_network) p.network.wire.work(1);
        }
        CHECK(bad.message() == "it broke");
    }
    pair p(2, 100, 1, false);
    const auto put = p.send(0, 1);
    status bad;
    put->finished(bad);
    p.network.wire.work(100);
    REQUIRE(p.delivery->step(1, false).ok());
    p.gpus.problem.set(failure("the copy failed"));
    CHECK(p.delivery->step(1, false).message() == "the copy failed");
    CHECK_FALSE(p.delivery->delivered(0, 1));
    CHECK(p.delivery->tell_never().ok());
    CHECK(p.delivery->flags()[2] == MPIX_NEVER);
}
