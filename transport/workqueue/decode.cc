// SPDX-License-Identifier: BSD-3-Clause
#include "transport/workqueue/decode.h"

#include <algorithm>
#include <cstring>

namespace mpix::transport {

using namespace mpix::detail;

namespace {

// Inline bytes may be anything, so behind the first 48 bytes nothing can be told from poison.
bool holds_poison(const wqe &entry) {
    unsigned char raw[48];
    std::memcpy(raw, &entry, sizeof raw);
    for (int unit = 0; unit < 48; unit += 16)
        if (std::all_of(raw + unit, raw + unit + 16, [](unsigned char b) { return b == poison_byte; })) return true;
    return false;
}

void decode_inline(const wqe &entry, std::uint32_t units, decoded_wqe &d) {
    d.is_inline = true;
    d.bytes = from_be(entry.inlined.bytes) & ~wqe_inline_bit;
    if (d.bytes > wqe_inline_bytes || 4 + d.bytes > (units - 2) * 16u) {
        d.problem = syndrome_local_length;
        return;
    }
    std::memcpy(d.inlined, entry.inlined.words, d.bytes);
}

}  // namespace

decoded_wqe decode(const wqe &entry, std::uint64_t index, std::uint32_t qpn) {
    decoded_wqe d;
    d.torn = holds_poison(entry);
    const std::uint32_t first = from_be(entry.control.index_opcode), second = from_be(entry.control.qpn_ds);
    const std::uint32_t units = second & 0x3f;
    d.opcode = static_cast<std::uint8_t>(first);
    d.signalled = (entry.control.fm_ce_se & 0x0c) == wqe_signalled;
    const bool known = d.opcode == wqe_nop || d.opcode == wqe_rdma_write;
    if (d.torn || first >> 24 != 0 || (first >> 8 & 0xffff) != (index & 0xffff) || second >> 8 != qpn || !known ||
        (second & 0xc0) != 0 || units < (d.opcode == wqe_nop ? 1u : 2u) || units > 4) {
        d.problem = syndrome_local_operation;
        return d;
    }
    if (d.opcode == wqe_nop) return d;
    d.remote_address = from_be(entry.remote.address);
    d.remote_key = from_be(entry.remote.key);
    if (units == 2) return d;
    if ((from_be(entry.data.bytes) & wqe_inline_bit) != 0) {
        decode_inline(entry, units, d);
        return d;
    }
    if (units != 3) {  // a second data segment, which we never write
        d.problem = syndrome_local_operation;
        return d;
    }
    d.bytes = from_be(entry.data.bytes);
    if (d.bytes == 0) d.bytes = std::uint64_t{2} << 30;
    if (d.bytes > wqe_most_bytes) d.problem = syndrome_local_length;
    d.local_key = from_be(entry.data.key);
    d.local_address = from_be(entry.data.address);
    return d;
}

}  // namespace mpix::transport
