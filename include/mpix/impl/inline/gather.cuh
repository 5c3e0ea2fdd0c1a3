// SPDX-License-Identifier: BSD-3-Clause
//
// Loads and stores of a packet's payload (packet.cuh): eight packed bytes of a partition, fewer at its end. The user's
// buffer, at the other end, may have gaps.
#ifndef MPIX_IMPL_INLINE_GATHER_CUH
#define MPIX_IMPL_INLINE_GATHER_CUH

#include <mpix/impl/group/words.cuh>

namespace mpix::detail {

constexpr uint64_t packet_payload = 8;

MPIX_FN bool in_words(const char *memory, uint64_t bytes) {
    return ((reinterpret_cast<uint64_t>(memory) | bytes) & 7) == 0;
}

// The offset table says where in the user's buffer the pieces of a message with gaps are, in packing order. All pieces
// of a message have the same length: 8, 4, 2 or 1 bytes. Partitions consist of whole pieces. It is a table, because
// each thread waits for the lookup: a type map would take longer, and twice the registers.
//
// The low bits of the table's address say how often eight is halved to get a piece's length.
constexpr uint64_t offset_bits = 3;
MPIX_FN uint64_t halvings(const int64_t *offsets) { return reinterpret_cast<uint64_t>(offsets) & offset_bits; }
MPIX_FN const int64_t *table_of(const int64_t *offsets) {
    return reinterpret_cast<const int64_t *>(reinterpret_cast<uint64_t>(offsets) & ~offset_bits);
}
inline const int64_t *offsets_in(const int64_t *table, int64_t piece) {
    uint64_t halved = 0;
    while (piece << halved < static_cast<int64_t>(packet_payload)) ++halved;
    return reinterpret_cast<const int64_t *>(reinterpret_cast<uint64_t>(table) | halved);
}

// A partition in the user's buffer.
struct packed_view {
    char *memory;            // the partition's first byte, or with gaps element 0 of the message
    const int64_t *offsets;  // of its pieces; null: no gaps

    // With gaps: the table's entry for the piece that begins at packed byte `at` of the partition.
    MPIX_FN const int64_t *place(uint64_t at) const { return table_of(offsets) + (at >> (3 - halvings(offsets))); }
};
// The partition that begins at packed byte `begin` of the message.
MPIX_FN packed_view packed_view_of(char *buffer, const int64_t *offsets, uint64_t begin) {
    if (offsets == nullptr) return {buffer + begin, nullptr};
    return {buffer, offsets + (begin >> (3 - halvings(offsets)))};
}

// A packet's payload: the bytes from `at` on of a partition of `bytes` bytes, at any alignment, fewer at the end. Not
// inlined, because it is long.
MPIX_COLD_FN uint64_t load_ragged(const char *from, uint64_t at, uint64_t bytes) {
    const uint64_t left = bytes - at;
    return load_bytes(from + at, static_cast<int>(left < packet_payload ? left : packet_payload), from + bytes).low;
}
MPIX_COLD_FN void store_ragged(char *to, uint64_t at, uint64_t bytes, uint64_t value) {
    const uint64_t left = bytes - at;
    store_bytes(to + at, {value, 0}, static_cast<int>(left < packet_payload ? left : packet_payload));
}

// `bytes` packed bytes, at most eight, in pieces. The first piece is at *place.
MPIX_FN uint64_t gather_pieces(const char *memory, const int64_t *place, unsigned halved, unsigned bytes) {
    uint64_t value = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (unsigned done = 0; done < bytes; done += 8u >> halved) {
        const char *const from = memory + *place++;
        value |= (halved == 0   ? load_word<uint64_t>(from)
                  : halved == 1 ? uint64_t{load_word<uint32_t>(from)}
                  : halved == 2 ? uint64_t{load_word<uint16_t>(from)}
                                : uint64_t{load_word<uint8_t>(from)})
                 << (8 * done);
    }
    return value;
}
// Not inlined, so that buffers without gaps do not pay for it.
MPIX_COLD_FN void scatter_pieces(char *memory, const int64_t *place, unsigned halved, unsigned bytes, uint64_t value) {
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (unsigned done = 0; done < bytes; done += 8u >> halved, value >>= 64u >> halved) {
        char *const to = memory + *place++;
        if (halved == 0) return store_word(to, value);
        if (halved == 1)
            store_word(to, static_cast<uint32_t>(value));
        else if (halved == 2)
            store_word(to, static_cast<uint16_t>(value));
        else
            store_word(to, static_cast<uint8_t>(value));
    }
}

// Stores a packet's payload in the user's buffer.
MPIX_FN void store_payload(const packed_view &to, uint64_t at, uint64_t bytes, uint64_t value) {
    if (to.offsets == nullptr)
        return in_words(to.memory, bytes) ? store_word(to.memory + at, value)
                                          : store_ragged(to.memory, at, bytes, value);
    const uint64_t left = bytes - at < packet_payload ? bytes - at : packet_payload;
    scatter_pieces(to.memory, to.place(at), static_cast<unsigned>(halvings(to.offsets)), static_cast<unsigned>(left),
                   value);
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_INLINE_GATHER_CUH
