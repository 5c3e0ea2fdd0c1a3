// SPDX-License-Identifier: BSD-3-Clause
//
// check_control on any bytes: what it lets through is what the rest counts on, and comes out as it went in.
#include "host/control/message.h"

#include "tests/fuzz/input.h"

using namespace mpix;

namespace {

void check_partitions(std::int32_t partitions, std::uint64_t bytes) {
    FUZZ_CHECK(partitions >= 1);
    FUZZ_CHECK(bytes % static_cast<std::uint64_t>(partitions) == 0);
    FUZZ_CHECK(bytes <= std::uint64_t{1} << 60);
}
void check_text(const control_text &text) {
    FUZZ_CHECK(std::memchr(text.characters, 0, sizeof text.characters) != nullptr);
}
void check_side(pair_side side) { FUZZ_CHECK(side == pair_side::send || side == pair_side::receive); }

struct checker {
    std::uint64_t from, to;

    void operator()(const offer_body &b) const {
        FUZZ_CHECK(from != 0 && to == 0);
        check_partitions(b.partitions, b.bytes);
        FUZZ_CHECK(b.flags.bits < 64);
        check_text(b.no_network);
    }
    void operator()(const accept_body &b) const {
        FUZZ_CHECK(from != 0 && to != 0);
        FUZZ_CHECK(b.refusal <= refused_unreachable);
        FUZZ_CHECK(b.flags.bits < 16);
        check_text(b.reason);
        if (b.refusal != refused_not) return;
        check_partitions(b.partitions, b.bytes);
        FUZZ_CHECK(b.slots == 1 || b.slots == 2);
    }
    void operator()(const connect_body &b) const {
        FUZZ_CHECK(from != 0 && to != 0);
        FUZZ_CHECK(b.refusal <= refused_unreachable);
        check_text(b.reason);
    }
    void operator()(const started_body &) const { FUZZ_CHECK(from != 0); }
    void operator()(const withdraw_body &b) const {
        FUZZ_CHECK(from != 0);
        check_side(b.by);
    }
    void operator()(const detach_body &) const { FUZZ_CHECK(to != 0); }
    void operator()(const introduce_body &b) const {
        FUZZ_CHECK(b.address_bytes <= introduction_limit && b.offset < b.address_bytes);
        FUZZ_CHECK(b.offset % introduction_piece == 0 && b.piece_bytes() <= sizeof b.piece);
        FUZZ_CHECK(b.offset + b.piece_bytes() <= b.address_bytes);
    }
    void operator()(const inquire_body &b) const {
        FUZZ_CHECK(from != 0);
        check_side(b.by);
    }
    void operator()(const answer_body &b) const {
        FUZZ_CHECK(to != 0);
        check_text(b.state);
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    control_message m;
    if (!check_control(data, size, m).ok()) return 0;
    FUZZ_CHECK(size == sizeof(control_packet));
    std::visit(checker{m.from, m.to}, m.body);
    const control_packet again = encode_control(m);
    FUZZ_CHECK(std::memcmp(&again, data, size) == 0);
    return 0;
}
