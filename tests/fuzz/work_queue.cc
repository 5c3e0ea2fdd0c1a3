// SPDX-License-Identifier: BSD-3-Clause
//
// Any bytes as work-queue entries, doorbell records and completions. The software HCA touches no memory that the keys
// do not grant, and goes on completing in order; the poster believes no completion of what is not under way.
#include "tests/fuzz/input.h"
#include "tests/unit/queue_bench.hpp"

using namespace queue_test;

namespace {

// What the poster counts on.
struct watch {
    explicit watch(const bench &on) : b(on), completed(on.q.completed), consumed(on.q.consumed) {}
    void look() {
        FUZZ_CHECK(b.q.completed >= completed && b.q.completed <= b.q.head);
        FUZZ_CHECK(b.q.consumed >= consumed && b.q.consumed - consumed <= std::uint64_t{1} << b.q.rings.log_cq);
        FUZZ_CHECK(error == 0 || b.q.error == error);
        FUZZ_CHECK(b.q.error == 0 || error_syndrome(b.q.error) != syndrome_none);
        FUZZ_CHECK(b.q.head - b.q.completed <= std::uint64_t{1} << b.q.rings.log_sq);
        FUZZ_CHECK(b.q.ready == b.q.head && b.q.publishing == 0 && b.q.polling[0] == 0 && b.q.busy[0] == 0);
        FUZZ_CHECK(b.flags.back() == 0);
        const hca_counts &c = b.hca.counts;
        FUZZ_CHECK(c.failed <= 1 && (c.flushed == 0 || c.failed == 1));
        completed = b.q.completed, consumed = b.q.consumed, error = b.q.error;
    }
    const bench &b;
    std::uint64_t completed, consumed, error = 0;
};

void set_word(std::uint32_t *word, fuzz::input &in, std::uint64_t near, std::uint32_t mask) {
    const auto value = static_cast<std::uint32_t>(near + in.number<std::int8_t>());
    *word = to_be32((in.one_in(8) ? in.number<std::uint32_t>() : value) & mask).raw;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    fuzz::input in(data, size);
    static constexpr std::uint64_t starts[] = {0, 0xfffc, 0xffff, 0xfffffffe};
    bench b({.log_sq = 1 + in.below(3), .log_cq = 3, .first_block = starts[in.below(4)], .first_entry = in.below(16)});
    watch w(b);
    const std::uint64_t slots = std::uint64_t{1} << b.q.rings.log_sq;
    std::uint64_t next = b.q.head;  // where hostile entries go
    while (!in.empty()) {
        wqe entry = in.one_in(2) ? b.blocks[in.below(8)] : b.write(true, in.number<std::uint16_t>());
        switch (in.below(8)) {
            case 0:  // any entry
                in.bytes(&entry, sizeof entry);
                b.q.rings.sq[in.below(static_cast<unsigned>(slots))] = entry;
                break;
            case 1: {  // a good one with a few changes
                entry.control.index_opcode = index_opcode(next, wqe_rdma_write);
                for (unsigned changes = in.below(3); changes > 0; --changes)
                    reinterpret_cast<unsigned char *>(&entry)[in.below(64)] ^=
                        static_cast<unsigned char>(1u << in.below(8));
                b.q.rings.sq[next++ & (slots - 1)] = entry;
                break;
            }
            case 2:
                set_word(b.q.rings.sq_record, in, next, ~0u);
                break;
            case 3:
                b.queue_words->doorbell = in.number<std::uint64_t>();
                break;
            case 4:
                b.hca.run();
                break;
            case 5: {  // any completion, or nearly a good one
                cqe &c = b.q.rings.cq[in.below(8)];
                if (in.one_in(3)) in.bytes(&c, sizeof c);
                c.opcode_qpn = to_be32(queue_memory::qpn ^ (in.one_in(8) ? 1u << in.below(32) : 0));
                c.last_word = cqe_last_word(b.q.head + in.number<std::int8_t>(),
                                            static_cast<std::uint8_t>(in.one_in(4) ? in.below(16) : 0), in.one_in(2));
                break;
            }
            case 6:
                poll_queue(&b.q);
                break;
            default: {
                const unsigned low = in.below(4), count = 1 + in.below(4 - low);
                const posted done = post_range(&b.posting, low, count, in.number<std::uint64_t>());
                FUZZ_CHECK(done.count <= count && (done.what == room::reserved) == (done.count != 0));
                next = std::max(next, b.q.head);
            }
        }
        w.look();
    }
    b.hca.run();
    for (int i = 0; i < 4; ++i) poll_queue(&b.q);
    w.look();
    return 0;
}
