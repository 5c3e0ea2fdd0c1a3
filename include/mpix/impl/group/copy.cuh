// SPDX-License-Identifier: BSD-3-Clause
//
// A contiguous copy by all threads of a group.
#ifndef MPIX_IMPL_GROUP_COPY_CUH
#define MPIX_IMPL_GROUP_COPY_CUH

#include <mpix/detail/order.h>

#include <mpix/impl/group/group.cuh>

#if !defined(__CUDA_ARCH__)
#include <string.h>
#endif

namespace mpix::detail {

struct alignas(16) block16 {
    uint64_t low, high;
};

#ifdef __CUDA_ARCH__
// Copies words of type T; both pointers are aligned to it. Each thread has four loads under way before its first store,
// which keeps a block near the link's bandwidth.
template <class T>
__device__ __forceinline__ void copy_words(unsigned rank, unsigned size, T *to, const T *from, uint64_t words) {
    const T *f = from + rank;
    const T *const end = from + words;
    T *t = to + rank;
    for (; f + 3ull * size < end; f += 4ull * size, t += 4ull * size) {
        T a = f[0], b = f[size], c = f[2ull * size], d = f[3ull * size];
        t[0] = a;
        t[size] = b;
        t[2ull * size] = c;
        t[3ull * size] = d;
    }
#pragma unroll 1  // nvcc does not know that there are three at most
    for (; f < end; f += size, t += size) *t = *f;
}

// Copies by the widest word to which both pointers can be aligned together (their difference decides), with single
// bytes at both ends. Not inlined: it is long, and short aligned copies should not pay for it.
__device__ __noinline__ inline void copy_ragged(unsigned rank, unsigned size, char *to, const char *from,
                                                uint64_t bytes) {
    const uint64_t skew = reinterpret_cast<uint64_t>(to) ^ reinterpret_cast<uint64_t>(from);
    const uint64_t width = (skew & 15) == 0 ? 16 : (skew & 7) == 0 ? 8 : (skew & 3) == 0 ? 4 : 1;
    uint64_t head = (0 - reinterpret_cast<uint64_t>(to)) & (width - 1);
    if (head > bytes) head = bytes;
    const uint64_t words = (bytes - head) / width;
    const uint64_t tail = head + words * width;
    for (uint64_t i = rank; i < head; i += size) to[i] = from[i];
    for (uint64_t i = tail + rank; i < bytes; i += size) to[i] = from[i];
    if (width == 16)
        copy_words(rank, size, reinterpret_cast<block16 *>(to + head), reinterpret_cast<const block16 *>(from + head),
                   words);
    else if (width == 8)
        copy_words(rank, size, reinterpret_cast<uint64_t *>(to + head), reinterpret_cast<const uint64_t *>(from + head),
                   words);
    else if (width == 4)
        copy_words(rank, size, reinterpret_cast<uint32_t *>(to + head), reinterpret_cast<const uint32_t *>(from + head),
                   words);
    else
        copy_words(rank, size, to + head, from + head, words);
}
#else
// On host threads: one slice each, cut at cache lines.
template <class Group>
MPIX_FN void copy_slice(const Group &group, char *to, const char *from, uint64_t bytes) {
    const uint64_t size = static_cast<uint64_t>(group.num_threads());
    const uint64_t rank = static_cast<uint64_t>(group.thread_rank());
    const uint64_t slice = ((bytes + size - 1) / size + 63) & ~uint64_t{63};
    const uint64_t begin = rank * slice;
    if (begin < bytes) memcpy(to + begin, from + begin, bytes - begin < slice ? bytes - begin : slice);
}
#endif

// Copies what consists of 16-byte blocks, and is aligned to them, on both sides.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN void group_copy_blocks(const Group &group, char *to, const char *from, uint64_t bytes) {
#ifdef __CUDA_ARCH__
    copy_words(static_cast<unsigned>(group.thread_rank()), static_cast<unsigned>(group.num_threads()),
               reinterpret_cast<block16 *>(to), reinterpret_cast<const block16 *>(from), bytes / sizeof(block16));
#else
    copy_slice(group, to, from, bytes);
#endif
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group>
MPIX_FN void group_copy(const Group &group, char *to, const char *from, uint64_t bytes) {
#ifdef __CUDA_ARCH__
    reconverge(group);
    const unsigned rank = group.thread_rank(), size = group.num_threads();
    const uint64_t together = reinterpret_cast<uint64_t>(to) | reinterpret_cast<uint64_t>(from) | bytes;
    if ((together & 15) == 0)
        group_copy_blocks(group, to, from, bytes);
    else if ((together & 7) == 0 && bytes <= 32ull * size)
        copy_words(rank, size, reinterpret_cast<uint64_t *>(to), reinterpret_cast<const uint64_t *>(from), bytes / 8);
    else
        copy_ragged(rank, size, to, from, bytes);
#else
    copy_slice(group, to, from, bytes);
#endif
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_GROUP_COPY_CUH
