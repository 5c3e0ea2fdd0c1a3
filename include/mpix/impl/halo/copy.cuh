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

enum class movement { pack, unpack, own };

// The words of one thread. It loads `Ahead` of them before it stores the first: they take one trip to memory between them.
// All that the loop needs it copies first, for as far as the compiler knows the stores could change the description.
template <int Ahead, class Word, movement Is>
MPIX_FN void copy_words(const device_copy &c, int allocation, std::byte *messages, std::uint32_t rank,
                        std::uint32_t threads) {
    const std::uint32_t words = c.words, rows = c.count[0], planes = c.count[1],
                        all = words * rows * planes * c.count[2];
    const mpix_narrow_divisor of_words = c.by_words, of_rows = c.by_count[0], of_planes = c.by_count[1];
    const std::int64_t row_bytes = c.stride[0], plane_bytes = c.stride[1], space_bytes = c.stride[2];
    const std::int64_t own_row = c.own_stride[0], own_plane = c.own_stride[1], own_space = c.own_stride[2];
    std::byte *const cells = c.cells[allocation];
    std::byte *const others = Is == movement::own ? c.own_cells[allocation] : messages + c.in_message;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (std::uint32_t i = rank; i < all; i += Ahead * threads) {
        Word word[Ahead];
        std::byte *to[Ahead];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int k = 0; k < Ahead; ++k) {
            // Instead of a word that it does not have, a thread loads the last one.
            const std::uint32_t mine = i + static_cast<std::uint32_t>(k) * threads, at = mine < all ? mine : all - 1;
            const std::uint32_t number = mpix::detail::divide_narrow(at, of_words),
                                line = mpix::detail::divide_narrow(number, of_rows),
                                space = mpix::detail::divide_narrow(line, of_planes), row = number - line * rows,
                                plane = line - space * planes;
            const std::int64_t into = static_cast<std::int64_t>(at - number * words) * std::int64_t{sizeof(Word)};
            std::byte *const cell = cells + (row * row_bytes + plane * plane_bytes + space * space_bytes + into);
            // A message has one run after the other.
            std::byte *const other =
                others + (Is == movement::own ? row * own_row + plane * own_plane + space * own_space + into
                                              : static_cast<std::int64_t>(at) * std::int64_t{sizeof(Word)});
            word[k] = *reinterpret_cast<const Word *>(Is == movement::pack ? cell : other);
            to[k] = Is == movement::pack ? other : cell;
        }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int k = 0; k < Ahead; ++k)
            if (i + static_cast<std::uint32_t>(k) * threads < all) *reinterpret_cast<Word *>(to[k]) = word[k];
    }
}

template <class Word, movement Is>
MPIX_FN void copy_words(const device_copy &c, int allocation, std::byte *messages, std::uint32_t rank,
                        std::uint32_t threads) {
    // To find out where four words are takes four times as long.
    if (c.words * c.count[0] * c.count[1] * c.count[2] <= threads)
        copy_words<1, Word, Is>(c, allocation, messages, rank, threads);
    else
        copy_words<4, Word, Is>(c, allocation, messages, rank, threads);
}

// Where in the field a word of a copy is, in bytes behind its first cell.
MPIX_FN std::int64_t place_of(const device_copy &c, std::uint32_t at) {
    const std::uint32_t number = mpix::detail::divide_narrow(at, c.by_words), into = at - number * c.words;
    std::int64_t place = std::int64_t{into} * c.word_bytes;
    if (c.count[1] * c.count[2] == 1) return place + number * c.stride[0];
    const std::uint32_t line = mpix::detail::divide_narrow(number, c.by_count[0]),
                        space = mpix::detail::divide_narrow(line, c.by_count[1]), row = number - line * c.count[0],
                        plane = line - space * c.count[1];
    return place + row * c.stride[0] + plane * c.stride[1] + space * c.stride[2];
}
// Where eight bytes of a copy are whose words are 4, 8 or 16 bytes: all at `first`, or four there and four at `second`.
struct eight_bytes {
    std::byte *first, *second;
};
MPIX_APART_FN std::int64_t place_apart(const device_copy &c, std::uint32_t at) { return place_of(c, at); }
// `at`: so many bytes behind the copy's first one, a multiple of 8.
MPIX_FN eight_bytes find_eight(const device_copy &c, std::byte *cells, std::uint32_t at) {
    const auto word_bytes = static_cast<std::uint32_t>(c.word_bytes);
    const std::uint32_t word = at >> (word_bytes == 16 ? 4 : word_bytes >> 2 == 1 ? 2 : 3);
    std::byte *const first = cells + place_of(c, word) + (at & (word_bytes - 1));
    return {first, word_bytes == 4 ? cells + place_apart(c, word + 1) : nullptr};
}
MPIX_FN std::uint64_t load_eight(const eight_bytes &from) {
    if (from.second == nullptr) return *reinterpret_cast<const std::uint64_t *>(from.first);
    const std::uint64_t low = *reinterpret_cast<const std::uint32_t *>(from.first),
                        high = *reinterpret_cast<const std::uint32_t *>(from.second);
    return low | high << 32;
}
MPIX_FN void store_eight(const eight_bytes &to, std::uint64_t value) {
    if (to.second == nullptr) {
        *reinterpret_cast<std::uint64_t *>(to.first) = value;
        return;
    }
    *reinterpret_cast<std::uint32_t *>(to.first) = static_cast<std::uint32_t>(value);
    *reinterpret_cast<std::uint32_t *>(to.second) = static_cast<std::uint32_t>(value >> 32);
}

// Not inlined, because it is long.
template <movement Is>
MPIX_APART_FN void copy_by_words(const device_copy &c, int allocation, std::byte *messages, std::uint32_t rank,
                                 std::uint32_t threads) {
    switch (c.word_bytes) {
        case 16:
            return copy_words<mpix::detail::block16, Is>(c, allocation, messages, rank, threads);
        case 8:
            return copy_words<std::uint64_t, Is>(c, allocation, messages, rank, threads);
        case 4:
            return copy_words<std::uint32_t, Is>(c, allocation, messages, rank, threads);
        case 2:
            return copy_words<std::uint16_t, Is>(c, allocation, messages, rank, threads);
        default:
            return copy_words<std::byte, Is>(c, allocation, messages, rank, threads);
    }
}

// The runs of one thread.
template <movement Is>
inline void copy_by_runs(const device_copy &c, int allocation, std::byte *messages, std::uint32_t rank,
                         std::uint32_t threads) {
    const std::uint32_t all = c.count[0] * c.count[1] * c.count[2];
    const auto run_bytes = static_cast<std::int64_t>(c.words) * c.word_bytes;
    for (std::uint32_t i = rank; i < all; i += threads) {
        const std::uint32_t line = i / c.count[0], run[3] = {i % c.count[0], line % c.count[1], line / c.count[1]};
        std::byte *cell = c.cells[allocation];
        std::byte *other = Is == movement::own ? c.own_cells[allocation] : messages + (c.in_message + i * run_bytes);
        for (int loop = 0; loop < 3; ++loop) {
            cell += run[loop] * c.stride[loop];
            if (Is == movement::own) other += run[loop] * c.own_stride[loop];
        }
        memcpy(Is == movement::pack ? other : cell, Is == movement::pack ? cell : other,
               static_cast<std::size_t>(run_bytes));
    }
}

template <bool ByWords, movement Is, class Group>
MPIX_FN void copy_runs(const Group &group, const device_copy &c, int allocation, std::byte *messages) {
    const auto rank = static_cast<std::uint32_t>(group.thread_rank()),
               threads = static_cast<std::uint32_t>(group.num_threads());
    if constexpr (ByWords)
        copy_by_words<Is>(c, allocation, messages, rank, threads);
    else
        copy_by_runs<Is>(c, allocation, messages, rank, threads);
}

// From a field's allocation into a message of a set.
template <bool ByWords = by_words, class Group>
MPIX_FN void pack(const Group &group, const device_copy &c, int allocation, std::byte *messages) {
    copy_runs<ByWords, movement::pack>(group, c, allocation, messages);
}
// From a message of a set into a field's allocation.
template <bool ByWords = by_words, class Group>
MPIX_FN void unpack(const Group &group, const device_copy &c, std::byte *messages, int allocation) {
    copy_runs<ByWords, movement::unpack>(group, c, allocation, messages);
}
// From own cells to own ghost cells.
template <bool ByWords = by_words, class Group>
MPIX_FN void copy_own(const Group &group, const device_copy &c, int allocation) {
    copy_runs<ByWords, movement::own>(group, c, allocation, nullptr);
}

}  // namespace mpix::halo::detail

#endif  // MPIX_IMPL_HALO_COPY_CUH
