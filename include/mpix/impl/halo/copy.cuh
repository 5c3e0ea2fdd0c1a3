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

// One side of a copy: where its first run begins, and how far it is from run to run.
template <class Byte>
struct run_places {
    Byte *first;
    std::int64_t stride[3];

    MPIX_FN Byte *at(const std::uint32_t (&run)[3]) const {
        return first + (run[0] * stride[0] + run[1] * stride[1] + run[2] * stride[2]);
    }
};
using runs_from = run_places<const std::byte>;
using runs_to = run_places<std::byte>;

template <class Byte>
MPIX_FN run_places<Byte> in_field(const device_copy &c, int allocation) {
    return {c.cells[allocation], {c.stride[0], c.stride[1], c.stride[2]}};
}
// One run after the other.
template <class Byte>
MPIX_FN run_places<Byte> in_message(const device_copy &c, Byte *messages) {
    const std::int64_t row = static_cast<std::int64_t>(c.words) * c.word_bytes, plane = row * c.count[0];
    return {messages + c.in_message, {row, plane, plane * c.count[1]}};
}

// The words of one thread. It loads several before it stores the first: they take one trip to memory between them.
template <class Word>
MPIX_FN void copy_words(const device_copy &c, const runs_from &from, const runs_to &to, std::uint32_t rank,
                        std::uint32_t threads) {
    constexpr int ahead = 4;
    const std::uint32_t all = c.words * c.count[0] * c.count[1] * c.count[2];
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (std::uint32_t i = rank; i < all; i += ahead * threads) {
        Word word[ahead];
        std::byte *place[ahead];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int k = 0; k < ahead; ++k) {
            const std::uint32_t at = i + static_cast<std::uint32_t>(k) * threads;
            if (at >= all) continue;
            const std::uint32_t number = mpix::detail::divide_narrow(at, c.by_words),
                                row = mpix::detail::divide_narrow(number, c.by_count[0]),
                                plane = mpix::detail::divide_narrow(row, c.by_count[1]),
                                run[3] = {number - row * c.count[0], row - plane * c.count[1], plane};
            const std::int64_t into = static_cast<std::int64_t>(at - number * c.words) * c.word_bytes;
            word[k] = *reinterpret_cast<const Word *>(from.at(run) + into);
            place[k] = to.at(run) + into;
        }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
        for (int k = 0; k < ahead; ++k)
            if (i + static_cast<std::uint32_t>(k) * threads < all) *reinterpret_cast<Word *>(place[k]) = word[k];
    }
}

// Not inlined, because it is long.
MPIX_APART_FN void copy_by_words(const device_copy &c, const runs_from &from, const runs_to &to, std::uint32_t rank,
                                 std::uint32_t threads) {
    switch (c.word_bytes) {
        case 16:
            return copy_words<mpix::detail::block16>(c, from, to, rank, threads);
        case 8:
            return copy_words<std::uint64_t>(c, from, to, rank, threads);
        case 4:
            return copy_words<std::uint32_t>(c, from, to, rank, threads);
        case 2:
            return copy_words<std::uint16_t>(c, from, to, rank, threads);
        default:
            return copy_words<std::byte>(c, from, to, rank, threads);
    }
}

// The runs of one thread.
inline void copy_by_runs(const device_copy &c, const runs_from &from, const runs_to &to, std::uint32_t rank,
                         std::uint32_t threads) {
    const std::uint32_t all = c.count[0] * c.count[1] * c.count[2];
    for (std::uint32_t i = rank; i < all; i += threads) {
        const std::uint32_t row = i / c.count[0], run[3] = {i % c.count[0], row % c.count[1], row / c.count[1]};
        memcpy(to.at(run), from.at(run), static_cast<std::size_t>(c.words) * static_cast<std::size_t>(c.word_bytes));
    }
}

template <bool ByWords, class Group>
MPIX_FN void copy_runs(const Group &group, const device_copy &c, const runs_from &from, const runs_to &to) {
    const auto rank = static_cast<std::uint32_t>(group.thread_rank()),
               threads = static_cast<std::uint32_t>(group.num_threads());
    if constexpr (ByWords)
        copy_by_words(c, from, to, rank, threads);
    else
        copy_by_runs(c, from, to, rank, threads);
}

// From a field's allocation into a message of a set.
template <bool ByWords = by_words, class Group>
MPIX_FN void pack(const Group &group, const device_copy &c, int allocation, std::byte *messages) {
    copy_runs<ByWords>(group, c, in_field<const std::byte>(c, allocation), in_message(c, messages));
}
// From a message of a set into a field's allocation.
template <bool ByWords = by_words, class Group>
MPIX_FN void unpack(const Group &group, const device_copy &c, const std::byte *messages, int allocation) {
    copy_runs<ByWords>(group, c, in_message(c, messages), in_field<std::byte>(c, allocation));
}
// From own cells to own ghost cells.
template <bool ByWords = by_words, class Group>
MPIX_FN void copy_own(const Group &group, const device_copy &c, int allocation) {
    const runs_from from = {c.own_cells[allocation], {c.own_stride[0], c.own_stride[1], c.own_stride[2]}};
    copy_runs<ByWords>(group, c, from, in_field<std::byte>(c, allocation));
}

}  // namespace mpix::halo::detail

#endif  // MPIX_IMPL_HALO_COPY_CUH
