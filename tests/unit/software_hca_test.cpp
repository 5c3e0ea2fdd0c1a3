// SPDX-License-Identifier: BSD-3-Clause
//
// The software HCA does what was seen of a ConnectX: what completes, in which order, with what.
#include <deque>

#include "tests/catch.hpp"
#include "tests/unit/queue_bench.hpp"

using namespace queue_test;

namespace {

struct seen {
    int kind;
    unsigned counter, why, vendor;
    bool operator==(const seen &) const = default;
};
std::ostream &operator<<(std::ostream &out, const seen &s) {
    return out << "{" << s.kind << ", " << s.counter << ", " << s.why << ", " << s.vendor << "}";
}

// What the completion queue holds beyond `from`, in its first lap.
std::vector<seen> completions(const bench &b, std::uint64_t from = 0) {
    std::vector<seen> all;
    for (std::uint64_t i = from; i < 8 && cqe_valid(b.q.rings.cq[i].last_word, i, 3); ++i) {
        const cqe &e = b.q.rings.cq[i];
        all.push_back({cqe_kind(e.last_word), cqe_counter(e.last_word), e.syndrome, e.vendor_syndrome});
    }
    return all;
}

seen good(unsigned counter) { return {cqe_requester, counter, 0, 0}; }
seen cause(unsigned counter, syndrome why) { return {cqe_requester_error, counter, why, 0x5a}; }
seen flushed(unsigned counter) { return {cqe_requester_error, counter, syndrome_flushed, 0xf9}; }

void set_record(bench &b, std::uint64_t next) {
    *b.q.rings.sq_record = to_be32(static_cast<std::uint32_t>(next & 0xffff)).raw;
}

// Finishes writes when told, in any order.
struct late_backend : hca_backend {
    struct job {
        hca_write what;
        hca_operation *op;
    };
    void write(const hca_write &what, hca_operation &op) override { jobs.push_back({what, &op}); }
    std::deque<job> jobs;
};

}  // namespace

TEST_CASE("good entries complete if they are signalled") {
    bench b;
    b.post({b.write(false), b.write(true), b.write(false), b.write(true)});
    b.hca.run();
    CHECK(completions(b) == std::vector<seen>{good(1), good(3)});
    CHECK(from_be(b.q.rings.cq[0].opcode_qpn) == (0x08000000 | queue_memory::qpn));
}

TEST_CASE("after a failure one cause, then every entry up to the doorbell record, flushed") {
    const std::uint64_t start = GENERATE(0ull, 0xfffdull, 0xfffffffdull);
    const auto index = [&](std::uint64_t i) { return static_cast<unsigned>(start + i) & 0xffff; };
    bench b({.first_block = start});
    b.hca.faults.fail_at = start + 3;
    b.hca.faults.fail_with = syndrome_remote_operation;
    b.post({b.write(true), b.write(false), b.write(true), b.write(false), b.write(false), b.write(true)});
    std::fill(b.out.begin(), b.out.end(), 0);
    b.hca.run();
    const std::vector<seen> expected{good(index(0)), good(index(2)), cause(index(3), syndrome_remote_operation),
                                     flushed(index(4)), flushed(index(5))};
    CHECK(completions(b) == expected);
    CHECK(b.hca.counts.executed == 3);
    std::uint64_t first = 0;  // as an executor that has not polled yet
    REQUIRE(reserve_now(&b.q, 2, &first) == room::reserved);
    b.put(first, b.write(false));
    b.put(first + 1, b.write(false));
    b.hca.run();
    CHECK(completions(b).size() == 5);  // below the record only
    publish_blocks(&b.q, first, 2);
    b.hca.run();
    CHECK(completions(b, 5) == std::vector<seen>{flushed(index(6)), flushed(index(7))});
    CHECK(b.hca.counts.flushed == 4);
    CHECK(b.hca.counts.failed == 1);
}

TEST_CASE("an entry is checked before it is executed") {
    bench b;
    wqe w = b.write(false);
    syndrome why = syndrome_local_operation;
    const auto data_bytes = [&](std::uint32_t n) { w.data.bytes = to_be32(n); };
    SECTION("remote key") { w.remote.key = to_be32(1), why = syndrome_remote_access; }
    SECTION("remote bounds, below") {
        w.remote.address = to_be64(b.layout.to.address - 1), why = syndrome_remote_access;
    }
    SECTION("remote bounds, above") {
        w.remote.address = to_be64(b.layout.to.address + b.in.size() - 7), why = syndrome_remote_access;
    }
    SECTION("remote bounds, around the end of the address space") {
        w.remote.address = to_be64(~std::uint64_t{0} - 3), why = syndrome_remote_access;
    }
    SECTION("no right to write") {
        w.remote.key = to_be32(b.remote.add(b.in.data(), b.in.size(), may_read_locally)), why = syndrome_remote_access;
    }
    SECTION("a key that was removed") { b.remote.remove(b.to_key), why = syndrome_remote_access; }
    SECTION("local key") { w.data.key = to_be32(1), why = syndrome_local_protection; }
    SECTION("local bounds") {
        w.data.address = to_be64(b.layout.from.address + b.out.size() - 7), why = syndrome_local_protection;
    }
    SECTION("no right to read") {
        w.data.key = to_be32(b.local.add(b.out.data(), b.out.size(), may_write_remotely));
        why = syndrome_local_protection;
    }
    SECTION("2 GiB") { data_bytes(0), why = syndrome_local_length; }
    SECTION("more than 1 GiB") { data_bytes((1u << 30) + 1), why = syndrome_local_length; }
    SECTION("inline bytes that the entry does not hold") {
        data_bytes(13 | wqe_inline_bit), why = syndrome_local_length;
    }
    SECTION("opcode") { w.control.index_opcode = index_opcode(0, 0x10); }
    SECTION("opcode modifier") { w.control.index_opcode = to_be32(0x01000008); }
    SECTION("queue pair") { w.control.qpn_ds = qpn_ds(queue_memory::qpn + 1, 3); }
    SECTION("no remote segment") { w.control.qpn_ds = qpn_ds(queue_memory::qpn, 1); }
    SECTION("longer than a block") { w.control.qpn_ds = qpn_ds(queue_memory::qpn, 5); }
    SECTION("two data segments") { w.control.qpn_ds = qpn_ds(queue_memory::qpn, 4); }
    const std::vector<unsigned char> before = b.in;
    b.post({w, b.write(true)});
    b.hca.run();
    CHECK(completions(b) == std::vector<seen>{cause(0, why), flushed(1)});
    CHECK(b.in == before);
    CHECK(b.hca.counts.torn == 0);
}

TEST_CASE("an entry of another index fails") {
    bench b;
    std::uint64_t first = 0;
    REQUIRE(reserve_now(&b.q, 1, &first) == room::reserved);
    b.put(8, b.write(true));  // the same slot, a lap later
    publish_blocks(&b.q, first, 1);
    b.hca.run();
    CHECK(completions(b) == std::vector<seen>{cause(0, syndrome_local_operation)});
}

TEST_CASE("entries that move nothing succeed") {
    bench b;
    wqe nop = b.write(true);
    nop.control.index_opcode = index_opcode(0, wqe_nop);
    nop.control.qpn_ds = qpn_ds(queue_memory::qpn, 1);
    b.post({nop, b.write(true, 0)});
    b.hca.run();
    CHECK(completions(b) == std::vector<seen>{good(0), good(1)});
    CHECK(b.in[0] == 0);
}

TEST_CASE("the doorbell record is the authority, the doorbell a hint of either form") {
    bench b;
    b.put(0, b.write(true));
    b.put(1, b.write(true));
    const auto ring = [&](std::uint32_t first, std::uint32_t second) {
        b.queue_words->doorbell = static_cast<std::uint64_t>(to_be32(second).raw) << 32 | to_be32(first).raw;
        b.hca.run();
    };
    ring(1 << 8, queue_memory::qpn << 8);
    CHECK(b.hca.counts.executed == 0);
    CHECK(b.hca.counts.strange_kicks == 1);  // ahead of the record
    set_record(b, 1);
    b.hca.run();
    CHECK(b.hca.counts.executed == 1);  // without having been rung
    set_record(b, 2);
    ring(1 << 8 | wqe_rdma_write, queue_memory::qpn << 8 | 3);  // the last entry's first 8 bytes
    CHECK(b.hca.counts.executed == 2);
    CHECK(b.hca.counts.strange_kicks == 1);
    ring(2 << 8, queue_memory::qpn << 8);  // the next index
    CHECK(b.hca.counts.strange_kicks == 1);
    ring(2 << 8, (queue_memory::qpn + 1) << 8);
    CHECK(b.hca.counts.strange_kicks == 2);
    CHECK(b.hca.counts.kicks == 4);
}

TEST_CASE("a doorbell record that cannot be is not followed") {
    bench b({.first_block = 0xfffd});
    b.post({b.write(true)});
    b.hca.run();
    for (const std::uint64_t next : {0xfffdull, 0xfffeull + 9, 0x7ffeull}) {
        set_record(b, next);
        b.hca.run();
    }
    CHECK(b.hca.counts.bad_records == 3);
    CHECK(b.hca.counts.executed == 1);
}

TEST_CASE("a stalled doorbell and a delay hold entries back") {
    bench b;
    b.hca.faults.stall_doorbell = true;
    b.post({b.write(true), b.write(true)});
    b.hca.run();
    CHECK(b.hca.counts.executed == 0);
    b.hca.faults.delay_ns = 3'000'000;
    b.hca.faults.stall_doorbell = false;
    const std::uint64_t before = now_ns();
    b.hca.run();
    CHECK(b.hca.counts.executed == 2);
    CHECK(now_ns() - before >= 3'000'000);
}

TEST_CASE("no completion is lost where the completion queue is full") {
    bench b({.log_sq = 4, .log_cq = 2});
    b.post(std::vector<wqe>(6, b.write(true)));
    b.hca.run();
    CHECK(b.hca.counts.overruns > 0);
    CHECK(poll_queue(&b.q) == 4);
    b.hca.run();
    CHECK(poll_queue(&b.q) == 2);
    CHECK(b.q.error == 0);
}

TEST_CASE("completions come in order, and flags behind their payload, also where writes take their time") {
    late_backend late;
    bench b({}, &late);
    post_range(&b.posting, 0, 1, 1);
    b.post({b.write(true)});
    b.hca.run();
    REQUIRE(late.jobs.size() == 1);  // the flag waits for its payload, and what follows for the flag
    SECTION("all well") {
        late.jobs[0].op->finish(syndrome_none);
        b.hca.run();
        REQUIRE(late.jobs.size() == 3);
        CHECK(late.jobs[1].what.is_inline);
        late.jobs[2].op->finish(syndrome_none);
        b.hca.run();
        CHECK(completions(b).empty());
        late.jobs[1].op->finish(syndrome_none);
        b.hca.run();
        CHECK(completions(b) == std::vector<seen>{good(1), good(2)});
    }
    SECTION("the payload fails") {
        late.jobs[0].op->finish(syndrome_retries_exceeded);
        b.hca.run();
        CHECK(late.jobs.size() == 1);  // no flag of what has not arrived
        CHECK(completions(b) == std::vector<seen>{cause(0, syndrome_retries_exceeded), flushed(1), flushed(2)});
    }
    SECTION("the flag fails when the next payload is in place") {
        late.jobs[0].op->finish(syndrome_none);
        b.hca.run();
        late.jobs[2].op->finish(syndrome_none);
        late.jobs[1].op->finish(syndrome_retries_exceeded);
        b.hca.run();
        CHECK(completions(b) == std::vector<seen>{cause(1, syndrome_retries_exceeded), flushed(2)});
    }
}

TEST_CASE("a thread serves queues that come and go") {
    software_hca hca;
    for (int round = 0; round < 20; ++round) {
        bench b;
        const auto queue = std::make_shared<hca_queue>(b.q.rings, b.local, b.to_memory);
        hca.add(queue);
        const posted done = post_range(&b.posting, 0, 4, 7);
        for (const std::uint64_t end = now_ns() + 20'000'000'000u; queue_completed(&b.q) < done.complete;) {
            REQUIRE(now_ns() < end);
            poll_queue(&b.q);
        }
        CHECK(b.arrived(3));
        hca.remove(queue.get());
        post_range(&b.posting, 0, 4, 8);
        CHECK(b.flags[0] == 7);
    }
}
