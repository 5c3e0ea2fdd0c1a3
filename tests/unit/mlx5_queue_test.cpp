// SPDX-License-Identifier: BSD-3-Clause
//
// A request's queue is the NIC's where the network has such: chosen, opened on libraries that play a ConnectX, posted
// to by Pready's own code, executed by the software HCA in the place of the silicon, and read along by the host.
#include "transport/ib/mlx5/queues.h"

#include <mpix/impl/work_queue/post.cuh>

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/fake_network.hpp"
#include "tests/unit/mlx5_fakes.hpp"
#include "transport/backends.h"
#include "transport/ib/mlx5/completion_watch.h"
#include "transport/ib/mlx5/export.h"
#include "transport/workqueue/software_hca.h"
#include "transport/wqe/wqe.h"

using namespace mlx5_fakes;
using mpix::failure;
using mpix::status;
using mpix::detail::be32;
using mpix::detail::cqe;
using mpix::detail::from_be;
using mpix::detail::partition_blocks;
using mpix::detail::post_prebuilt;
using mpix::detail::wqe;

namespace {

bool contains(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }
bool contains(const status &what, const char *part) { return contains(what.message(), part); }

// A network on a device that is, or is not, a ConnectX.
struct nic_network : fakes::fake_network {
    std::unique_ptr<hardware_queues> hardware;
    status none;
    status no_hardware_queues() override { return none; }
    status hardware_queue(int peer, transport &host_memory, transport *gpus, int device,
                          std::unique_ptr<send_queue> &out) override {
        return hardware == nullptr ? none : hardware->open_queue(peer, host_memory, gpus, device, out);
    }
};

constexpr int peer = 7;

struct machine {
    world w;
    rdma::port at;
    fakes::fake_gpus host_memory, gpus;  // before the network, whose queues lie there
    nic_network network;
    std::unique_ptr<send_queue> queue;
    std::string executed_by;

    machine() {
        now = &w;
        w.context.device = &w.device;
        w.blocks = 8;
        w.entries = 16;
        REQUIRE(rdma::find_port(port_table(), &w.context, {}, at).ok());
    }
    void connect() {
        network.none = make_queues(
            verbs_table(),
            [](gpu_calls &out) -> status {
                out = gpu_table();
                return {};
            },
            &w.context, &w.domain, at, network.hardware);
        if (!network.none.ok()) return;
        rdma::qp_address address{};
        REQUIRE(network.hardware->introduce(peer, address).ok());
        REQUIRE(network.hardware->meet(peer, address).ok());
    }
    status open(bool on_gpu) {
        return make_queue_to(network, peer, host_memory, on_gpu ? &gpus : nullptr, on_gpu ? 0 : on_host, queue,
                             executed_by);
    }
    void connect_and_open(bool on_gpu = false) {
        connect();
        REQUIRE(open(on_gpu).ok());
    }
    void close() {
        queue = nullptr;
        network.hardware = nullptr;
    }
    mpix_queue_rings rings() const {  // of the silicon
        mpix_queue_rings r{};
        r.sq = reinterpret_cast<wqe *>(const_cast<unsigned char *>(w.sq) + 64);
        r.cq = reinterpret_cast<cqe *>(const_cast<unsigned char *>(w.cq));
        r.sq_record = reinterpret_cast<std::uint32_t *>(const_cast<unsigned char *>(w.records)) + 1;
        r.cq_record = reinterpret_cast<std::uint32_t *>(const_cast<unsigned char *>(w.records) + 64);
        r.doorbell = reinterpret_cast<std::uint64_t *>(const_cast<unsigned char *>(w.registers) + 0x800);
        r.log_sq = 3;
        r.log_cq = 4;
        r.qpn = 0x12f;
        return r;
    }
};

// A message of three partitions, and the memory of the peer's.
struct sent_message {
    static constexpr std::uint32_t partitions = 3;
    static constexpr std::uint64_t bytes = 48;
    std::vector<char> out = std::vector<char>(partitions * bytes);
    alignas(8) char landing[partitions * bytes]{};
    std::uint64_t flags[partitions + 1]{}, words[4]{};
    key_table local, remote;
    memory_backend to_memory{remote};
    std::unique_ptr<queued_message> entered;

    static region part(void *at, std::size_t size, std::uint32_t key) {
        region r = fakes::host_memory(at, size);
        r.handle = rdma::handle_of(peer, key);
        return r;
    }
    status enter(machine &m) {
        std::iota(out.begin(), out.end(), static_cast<char>(1));
        // The registration's key, as the fake libibverbs gives it.
        m.w.region.lkey = local.add(out.data(), out.size(), may_read_locally);
        queue_message q;
        q.partitions = partitions;
        q.partition_bytes = bytes;
        q.payload = out.data();
        q.landing = part(landing, sizeof landing, remote.add(landing, sizeof landing, may_write_remotely));
        q.flags = part(flags, sizeof flags, remote.add(flags, sizeof flags, may_write_remotely));
        q.words = part(words, sizeof words, remote.add(words, sizeof words, may_write_remotely));
        q.complete = 8;
        return m.queue->enter(q, entered);
    }
    std::uint64_t post(std::uint32_t p, std::uint64_t epoch) const {
        const mpix_posting *const way = entered->postings();
        return post_prebuilt(way->queue, partition_blocks(way, p), way->payload_blocks + 1, 1, epoch);
    }
    std::uint64_t post_end(std::uint64_t epoch) const {
        const mpix_posting *const way = entered->postings();
        return post_prebuilt(way->queue, partition_blocks(way, partitions), 2, 2, epoch);
    }
};

struct entered_message : sent_message {
    explicit entered_message(machine &m) { REQUIRE(enter(m).ok()); }
};

template <class Done>
void run_until(hca_queue &silicon, const Done &done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
        if (std::chrono::steady_clock::now() >= end) FAIL("it takes too long");
        silicon.step();
    }
}

}  // namespace

TEST_CASE("on a ConnectX the NIC executes the queue, elsewhere the software HCA, and it is said why") {
    machine m;
    SECTION("a ConnectX") {
        m.connect_and_open();
        CHECK(m.executed_by == "the NIC, rung by whoever posts");
    }
    SECTION("one whose doorbell the GPU does not reach") {
        m.w.registers_map = false;
        m.connect_and_open(true);
        CHECK(contains(m.executed_by, "the NIC, rung by a thread of the host: "));
        CHECK(contains(m.executed_by, "operation not permitted"));
    }
    SECTION("a GPU that does not reach the queue") {
        m.connect();
        m.w.fail_at = static_cast<int>(m.w.calls.size()) + 2;  // map_pages of the second ring
        REQUIRE(m.open(true).ok());
        CHECK(contains(m.executed_by, "the software HCA: the GPU does not reach the queue"));
        CHECK(m.w.mapped.empty());
        m.w.fail_at = -1;
        REQUIRE(m.open(false).ok());  // it is still there for the host
        CHECK(contains(m.executed_by, "the NIC"));
    }
    SECTION("another device") {
        m.w.is_mlx5 = false;
        m.connect_and_open();
        CHECK(contains(m.executed_by, "the software HCA: "));
        CHECK(contains(m.executed_by, "is no ConnectX"));
    }
    SECTION("a network that knows of no such queues") {
        m.network.none = m.network.fakes::fake_network::no_hardware_queues();
        REQUIRE(m.open(false).ok());
        CHECK(m.executed_by == "the software HCA: fake executes no queue that others post to");
    }
    SECTION("a second executor") {
        m.connect_and_open();
        std::unique_ptr<send_queue> others;
        REQUIRE(make_queue_to(m.network, peer, m.host_memory, &m.gpus, 0, others, m.executed_by).ok());
        CHECK(contains(m.executed_by, "the software HCA: the NIC's queue to that process is another executor's"));
    }
    SECTION("a peer that was not met") {
        m.connect();
        REQUIRE(make_queue_to(m.network, peer + 1, m.host_memory, nullptr, on_host, m.queue, m.executed_by).ok());
        CHECK(contains(m.executed_by, "the software HCA: the queue pair of the NIC is not connected"));
    }
    m.close();
    CHECK(m.w.clean());
}

TEST_CASE("epoch after epoch, what Pready posts goes through the NIC's ring into the peer's memory") {
    machine m;
    const bool by_gpu = GENERATE(false, true);
    const bool registers_map = GENERATE(true, false);
    m.w.registers_map = registers_map;
    m.connect_and_open(by_gpu);
    entered_message s(m);
    CHECK(m.w.access.back() == access_of(contents::payload_source));
    hca_queue silicon(m.rings(), s.local, s.to_memory);
    silicon.faults.poison = true;
    // Where GPUs do not reach the doorbell they leave it alone.
    CHECK((s.entered->postings()->queue->rings.doorbell == nullptr) == (by_gpu && !registers_map));
    for (std::uint64_t epoch = 1; epoch <= 40; ++epoch) {  // laps of both rings
        for (char &c : s.out) c = static_cast<char>(c + 1);
        std::uint64_t end = 0;
        for (std::uint32_t p = 0; p < s.partitions; ++p) {
            end = s.post(p, epoch);
            REQUIRE(end != 0);
        }
        end = s.post_end(epoch);
        REQUIRE(end != 0);
        CHECK(m.queue->completed() < end);
        run_until(silicon, [&] { return m.queue->completed() >= end; });
        CHECK(m.queue->completed() == end);
        CHECK(m.queue->failed(end).ok());
        CHECK(std::memcmp(s.landing, s.out.data(), s.out.size()) == 0);
        for (const std::uint64_t flag : s.flags) CHECK(flag == epoch);
        CHECK(s.words[1] == epoch);
    }
    CHECK(silicon.counts.failed == 0);
    CHECK(silicon.counts.torn == 0);
    CHECK(silicon.counts.bad_records == 0);
    CHECK(silicon.counts.strange_kicks == 0);
    run_until(silicon, [&] { return silicon.counts.kicks > 0; });  // the doorbell proxy's thread may come late
    CHECK(m.queue->failed(completion_watch::no_block).ok());
    s.entered = nullptr;
    CHECK(m.w.called("dereg_mr") == 1);
    m.close();
    CHECK(m.w.clean());
}

TEST_CASE("the bytes of the ring: a write of the payload by our key, and the flag behind it") {
    machine m;
    m.connect_and_open();
    entered_message s(m);
    REQUIRE(s.post(1, 0x1122334455667788) == 2);
    const mpix_queue_rings r = m.rings();
    const wqe &payload = r.sq[0], &flag = r.sq[1];
    CHECK(from_be(payload.control.index_opcode) == mpix::detail::wqe_rdma_write);
    CHECK(from_be(payload.control.qpn_ds) == (0x12f << 8 | 3));
    CHECK(from_be(payload.remote.address) == reinterpret_cast<std::uint64_t>(s.landing + s.bytes));
    CHECK(from_be(payload.data.bytes) == s.bytes);
    CHECK(from_be(payload.data.key) == m.w.region.lkey);
    CHECK(from_be(payload.data.address) == reinterpret_cast<std::uint64_t>(s.out.data() + s.bytes));
    CHECK(from_be(flag.control.index_opcode) == (1u << 8 | mpix::detail::wqe_rdma_write));
    CHECK(flag.control.fm_ce_se == mpix::detail::wqe_signalled);
    CHECK(from_be(flag.remote.address) == reinterpret_cast<std::uint64_t>(&s.flags[1]));
    CHECK(from_be(flag.remote.key) != from_be(payload.remote.key));
    CHECK((flag.inlined.words[0] == 0x55667788 && flag.inlined.words[1] == 0x11223344));
    CHECK(from_be(be32{*r.sq_record}) == 2);
    CHECK(from_be(be32{static_cast<std::uint32_t>(*r.doorbell)}) == 2u << 8);
}

TEST_CASE("the first error fails what it hit and all behind it, and nothing before") {
    machine m;
    m.connect_and_open();
    entered_message s(m);
    hca_queue silicon(m.rings(), s.local, s.to_memory);
    silicon.faults.fail_at = 2;
    silicon.faults.fail_with = mpix::detail::syndrome_retries_exceeded;
    const std::uint64_t good = s.post(0, 1), bad = s.post(1, 1), flushed = s.post(2, 1);
    // The poster may have taken some of the completions, or none.
    const bool poll = GENERATE(false, true);
    run_until(silicon, [&] {
        if (poll) mpix::detail::poll_queue(s.entered->postings()->queue);
        return m.queue->completed() >= flushed;
    });
    CHECK(m.queue->failed(good).ok());
    CHECK(contains(m.queue->failed(bad), "entry 2 the syndrome 0x15"));
    CHECK(contains(m.queue->failed(flushed), "entry 2"));
    CHECK(s.flags[0] == 1);
    CHECK(s.flags[1] == 0);
}

TEST_CASE("a process that was given up is written to no more, and the end of the device ends the queue") {
    machine m;
    m.connect_and_open();
    entered_message s(m);
    m.network.hardware->give_up(peer + 1);
    m.network.hardware->give_up(peer);
    CHECK(m.w.modified.back().qp_state == IBV_QPS_ERR);
    CHECK(m.w.masks.back() == IBV_QP_STATE);
    m.network.hardware = nullptr;
    CHECK(m.w.clean());
    CHECK(m.queue->completed() == 0);
    sent_message late;
    CHECK(contains(late.enter(m), "closed"));
}

TEST_CASE("completions that the poster has taken are known by its record and report") {
    machine m;
    m.connect_and_open();
    entered_message s(m);
    hca_queue silicon(m.rings(), s.local, s.to_memory);
    mpix_work_queue *const q = s.entered->postings()->queue;
    std::uint64_t end = 0;
    for (std::uint64_t epoch = 1; epoch <= 100; ++epoch) {  // the host looks now and then, the ring laps between
        end = s.post(epoch % 3, epoch);
        REQUIRE(end != 0);
        run_until(silicon, [&] {
            mpix::detail::poll_queue(q);
            return mpix::detail::queue_completed(q) >= end;
        });
        if (epoch % 37 == 0) CHECK(m.queue->completed() == end);
    }
    CHECK(m.queue->completed() == end);
    const std::uint64_t untaken = s.post(0, 101);
    run_until(silicon, [&] { return m.queue->completed() >= untaken; });
    CHECK(m.queue->completed() == untaken);
    CHECK(mpix::detail::queue_completed(q) == end);
}
