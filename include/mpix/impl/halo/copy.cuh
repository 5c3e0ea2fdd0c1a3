// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of cells by all threads of a group.
#ifndef MPIX_IMPL_HALO_COPY_CUH
#define MPIX_IMPL_HALO_COPY_CUH

#include <mpix/detail/order.h>
#include <mpix/halo/device_exchange.hpp>

#include <mpix/impl/group/copy.cuh>

#include <string.h>

namespace mpix::halo::detail {

// GPU threads copy word by word, host threads run by run. (Tests have host threads copy words, too.)
inline constexpr bool by_words = MPIX_ON_GPU;

template <class Word>
MPIX_FN void copy_word(std::byte *to, const std::byte *from) {
    *reinterpret_cast<Word *>(to) = *reinterpret_cast<const Word *>(from);
}

// Where a run is behind the first one.
struct run_number {
    std::uint32_t at[3];
    MPIX_FN std::int64_t behind(const std::int64_t stride[3]) const {
        return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2];
    }
};

// Calls each(run, bytes into it, bytes before these in all runs) for this thread's share.
template <bool ByWords, class Group, class Each>
MPIX_FN void for_each_part(const Group &group, const device_copy &c, const Each &each) {
    const std::uint32_t parts = ByWords ? c.words : 1;
    const std::int64_t bytes = ByWords ? c.word_bytes : static_cast<std::int64_t>(c.words) * c.word_bytes;
    const std::uint32_t all = parts * c.count[0] * c.count[1] * c.count[2];
    const auto step = static_cast<std::uint32_t>(group.num_threads());
    for (auto i = static_cast<std::uint32_t>(group.thread_rank()); i < all; i += step) {
        const std::uint32_t run = i / parts, plane = run / c.count[0];
        each(run_number{{run % c.count[0], plane % c.count[1], plane / c.count[1]}}, i % parts * bytes, i * bytes);
    }
}

// What each() of for_each_part copies.
template <bool ByWords>
MPIX_FN void copy_part(std::byte *to, const std::byte *from, const device_copy &c) {
    if constexpr (ByWords) {
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
    } else {
        memcpy(to, from, static_cast<std::size_t>(c.words) * static_cast<std::size_t>(c.word_bytes));
    }
}

// From the field into a message.
template <bool ByWords = by_words, class Group>
MPIX_FN void pack(const Group &group, const device_copy &c, const std::byte *field, std::byte *message) {
    for_each_part<ByWords>(group, c, [&](const run_number &run, std::int64_t into, std::int64_t before) {
        copy_part<ByWords>(message + c.from + before, field + c.at + run.behind(c.stride) + into, c);
    });
}
// From a message into the field.
template <bool ByWords = by_words, class Group>
MPIX_FN void unpack(const Group &group, const device_copy &c, const std::byte *message, std::byte *field) {
    for_each_part<ByWords>(group, c, [&](const run_number &run, std::int64_t into, std::int64_t before) {
        copy_part<ByWords>(field + c.at + run.behind(c.stride) + into, message + c.from + before, c);
    });
}
// From own cells to own ghost cells.
template <bool ByWords = by_words, class Group>
MPIX_FN void copy_own(const Group &group, const device_copy &c, const std::byte *cells, std::byte *ghosts) {
    for_each_part<ByWords>(group, c, [&](const run_number &run, std::int64_t into, std::int64_t) {
        copy_part<ByWords>(ghosts + c.at + run.behind(c.stride) + into,
                           cells + c.from + run.behind(c.from_stride) + into, c);
    });
}

}  // namespace mpix::halo::detail

#endif  // MPIX_IMPL_HALO_COPY_CUH
