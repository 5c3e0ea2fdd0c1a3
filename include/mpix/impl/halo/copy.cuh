// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of cells by all threads of a group.
#ifndef MPIX_IMPL_HALO_COPY_CUH
#define MPIX_IMPL_HALO_COPY_CUH

#include <mpix/detail/order.h>
#include <mpix/halo/device_exchange.hpp>

#include <mpix/impl/group/copy.cuh>

#if !defined(__CUDA_ARCH__)
#include <string.h>
#endif

namespace mpix::halo::detail {

#ifdef __CUDA_ARCH__
template <class Word>
__device__ __forceinline__ void copy_word(std::byte *to, const std::byte *from) {
    *reinterpret_cast<Word *>(to) = *reinterpret_cast<const Word *>(from);
}
#endif

// Where a piece is behind the first one.
struct piece_number {
    std::uint32_t at[3];
    MPIX_FN std::int64_t behind(const std::int64_t stride[3]) const {
        return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2];
    }
};

// Calls each(piece, bytes into it, bytes before these in all pieces) for this thread's share: its words on a GPU, its
// pieces on the host.
template <class Group, class Each>
MPIX_FN void for_each_part(const Group &group, const device_copy &c, const Each &each) {
#ifdef __CUDA_ARCH__
    const std::uint32_t parts = c.words;
    const std::int64_t bytes = c.word_bytes;
#else
    const std::uint32_t parts = 1;
    const std::int64_t bytes = static_cast<std::int64_t>(c.words) * c.word_bytes;
#endif
    const std::uint32_t all = parts * c.count[0] * c.count[1] * c.count[2];
    const auto step = static_cast<std::uint32_t>(group.num_threads());
    for (auto i = static_cast<std::uint32_t>(group.thread_rank()); i < all; i += step) {
        const std::uint32_t piece = i / parts, plane = piece / c.count[0];
        each(piece_number{{piece % c.count[0], plane % c.count[1], plane / c.count[1]}}, i % parts * bytes, i * bytes);
    }
}

// What each() of for_each_part copies.
MPIX_FN void copy_part(std::byte *to, const std::byte *from, const device_copy &c) {
#ifdef __CUDA_ARCH__
    switch (c.word_bytes) {
        case 16:
            return copy_word<mpix::detail::block16>(to, from);
        case 8:
            return copy_word<std::uint64_t>(to, from);
        case 4:
            return copy_word<std::uint32_t>(to, from);
        case 2:
            return copy_word<std::uint16_t>(to, from);
        default:
            return copy_word<std::byte>(to, from);
    }
#else
    memcpy(to, from, static_cast<size_t>(c.words) * static_cast<size_t>(c.word_bytes));
#endif
}

// From the field into a message.
template <class Group>
MPIX_FN void pack(const Group &group, const device_copy &c, const std::byte *field, std::byte *message) {
    for_each_part(group, c, [&](const piece_number &piece, std::int64_t into, std::int64_t before) {
        copy_part(message + c.from + before, field + c.at + piece.behind(c.stride) + into, c);
    });
}
// From a message into the field.
template <class Group>
MPIX_FN void unpack(const Group &group, const device_copy &c, const std::byte *message, std::byte *field) {
    for_each_part(group, c, [&](const piece_number &piece, std::int64_t into, std::int64_t before) {
        copy_part(field + c.at + piece.behind(c.stride) + into, message + c.from + before, c);
    });
}
// From own cells to own ghost cells.
template <class Group>
MPIX_FN void copy_own(const Group &group, const device_copy &c, const std::byte *cells, std::byte *ghosts) {
    for_each_part(group, c, [&](const piece_number &piece, std::int64_t into, std::int64_t) {
        copy_part(ghosts + c.at + piece.behind(c.stride) + into, cells + c.from + piece.behind(c.from_stride) + into,
                  c);
    });
}

}  // namespace mpix::halo::detail

#endif  // MPIX_IMPL_HALO_COPY_CUH
