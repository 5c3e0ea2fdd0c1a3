// SPDX-License-Identifier: BSD-3-Clause
//
// Work-queue entries byte by byte, against those that rdma-core's own provider builds.
#include "transport/wqe/wqe.h"

#include <cstdio>
#include <cstring>

#include "tests/catch.hpp"

using namespace mpix::detail;
using namespace mpix::transport;

namespace {

constexpr std::uint32_t qpn = 0x12f;
constexpr remote_place there{0x7f0011223344a000, 0x181dd5};
constexpr local_place here{0x7f55667788990000, 0x204ee1};

template <class T>
std::string hex(const T &object, std::size_t bytes) {
    std::string text;
    unsigned char raw[sizeof(T)];
    std::memcpy(raw, &object, sizeof raw);
    for (std::size_t i = 0; i < bytes; ++i) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", raw[i]);
        text += i > 0 && i % 4 == 0 ? std::string(" ") + two : two;
    }
    return text;
}

}  // namespace

TEST_CASE("a signalled WRITE") {
    wqe w = make_write(qpn, there, here, 4096, true);
    w.control.index_opcode = index_opcode(0x71234, wqe_rdma_write);
    CHECK(
        hex(w, 48) ==
        "00123408 00012f03 00000008 00000000 7f001122 3344a000 00181dd5 00000000 00001000 00204ee1 7f556677 88990000");
    CHECK(from_be(w.remote.address) == there.address);
    CHECK(from_be(w.data.key) == here.key);
}

TEST_CASE("an inline WRITE of 8 bytes") {
    wqe w = make_flag_write(qpn, there, 0x1122334455667788, true);
    w.control.index_opcode = index_opcode(7, wqe_rdma_write);
    CHECK(
        hex(w, 48) ==
        "00000708 00012f03 00000008 00000000 7f001122 3344a000 00181dd5 00000000 80000008 88776655 44332211 00000000");
}

TEST_CASE("a WRITE of nothing has no data segment, for a byte count of 0 means 2 GiB") {
    const wqe w = make_write(qpn, there, here, 0, false);
    CHECK(hex(w, 64) ==
          "00000008 00012f02 00000000 00000000 7f001122 3344a000 00181dd5 00000000 "
          "00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000");
}

TEST_CASE("a send doorbell record") { CHECK(hex(to_be32(0x1235), 4) == "00001235"); }

TEST_CASE("the index of an entry has 16 bits") {
    CHECK(hex(index_opcode(0xffff, wqe_rdma_write), 4) == "00ffff08");
    CHECK(hex(index_opcode(0x10000, wqe_nop), 4) == "00000000");
}

TEST_CASE("a completion's last word") {
    CHECK(hex(cqe_last_word(0x51234, cqe_requester, true), 4) == "12340001");
    CHECK(hex(cqe_last_word(2, cqe_requester_error, false), 4) == "000200d0");
    const std::uint32_t word = cqe_last_word(0xabcd, cqe_requester_error, true);
    CHECK(cqe_counter(word) == 0xabcd);
    CHECK(cqe_kind(word) == cqe_requester_error);
    CHECK(cqe_valid(word, 8, 3));
    CHECK(!cqe_valid(word, 7, 3));
    CHECK(!cqe_valid(word, 16, 3));
    CHECK(!cqe_valid(std::uint32_t{cqe_never_written} << 24, 0, 3));
}

TEST_CASE("large partitions are split") {
    constexpr std::uint64_t gib = 1u << 30, bytes = 2 * gib + 5;
    const partition_layout l{qpn, 3, bytes, here, bytes, there, 4 * gib, {0x10000, 9}};
    const auto blocks = make_blocks(l);
    REQUIRE(blocks.size() == 3 * 4);
    const wqe *second = &blocks[4];
    CHECK(from_be(second[0].data.bytes) == gib);
    CHECK(from_be(second[1].data.bytes) == gib);
    CHECK(from_be(second[2].data.bytes) == 5);
    CHECK(from_be(second[2].data.address) == here.address + bytes + 2 * gib);
    CHECK(from_be(second[2].remote.address) == there.address + 6 * gib);
    CHECK(from_be(second[3].remote.address) == 0x10008);
    CHECK(from_be(second[3].remote.key) == 9);
    for (int i = 0; i < 4; ++i) CHECK(second[i].control.fm_ce_se == (i == 3 ? wqe_signalled : 0));
    const mpix_posting p = describe_posting(l, nullptr, blocks.data());
    CHECK(p.payload_blocks == 3);
    CHECK(!p.contiguous);
    CHECK(!check_layout(l, 1).ok());
    CHECK(check_layout(l, 2).ok());
    CHECK(!check_layout(l, 16).ok());
}

TEST_CASE("an empty partition has its flag alone") {
    const partition_layout l{qpn, 2, 0, here, 0, there, 0, {0x10000, 9}};
    const auto blocks = make_blocks(l);
    REQUIRE(blocks.size() == 2);
    CHECK(from_be(blocks[1].inlined.bytes) == (8 | wqe_inline_bit));
    CHECK(from_be(blocks[1].remote.address) == 0x10008);
}
