// SPDX-License-Identifier: BSD-3-Clause
//
// What the hardware allows: the same ping-pong by hand, over a mapping of the bench's own. No deferral, no checks.
//
//   fence_port    a group copies the payload to the peer with the widest stores, one fence, one flag; the receiver
//                 polls the flag
//   counter_port  several blocks copy a share each, and add one to a counter of the message with a release; every block
//                 of the receiver polls the counter
//   inline_port   flag-in-data: 16-byte stores of {4 bytes, number, 4 bytes, number} into an inline buffer of two
//                 messages; the receiver polls them all and copies the bytes out. Each half of the store is
//                 single-copy atomic.
//
// line_port and rget_port have files of their own.
#ifndef MPIX_TESTS_BENCH_FLOOR_CUH
#define MPIX_TESTS_BENCH_FLOOR_CUH

#include "tests/bench/by_hand.cuh"
#include "tests/bench/ping_pong.cuh"

namespace bench {

// One end of the channel.
struct floor_end {
    char *in, *out, *peer_in;      // `count` payloads each
    uint64_t *flags, *peer_flags;  // one a payload
    char *box, *peer_box;          // for two messages with their flags
    uint64_t bytes, epoch;
    int count;

    // A message's number: never 0, which the inline buffer begins with, and another one each time that a slot is used.
    __device__ uint64_t number(int i) const { return epoch * static_cast<uint64_t>(count) + static_cast<uint64_t>(i); }
};

struct fence_port {
    floor_end end;
    static constexpr uint64_t box_bytes(uint64_t) { return 0; }

    template <class Group>
    __device__ void put(const Group &group, int i) const {
        const uint64_t at = static_cast<uint64_t>(i) * end.bytes;
        if (end.bytes % sizeof(uint4) == 0)
            copy_by_hand<uint4>(group, end.peer_in + at, end.out + at, end.bytes);
        else
            copy_by_hand<uint64_t>(group, end.peer_in + at, end.out + at, end.bytes);
        group.sync();
        if (group.thread_rank() == 0)
            asm volatile("fence.acq_rel.sys;\n\tst.relaxed.sys.global.u64 [%0], %1;" ::"l"(end.peer_flags + i),
                         "l"(end.epoch)
                         : "memory");
    }

    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        return all_agree(group, group.thread_rank() != 0 || poll_flag(end.flags + i, end.epoch));
    }
};

struct counter_port {
    floor_end end;
    static constexpr uint64_t box_bytes(uint64_t) { return 0; }

    __device__ void put(const whole_block &block, int i) const {
        const uint64_t share = end.bytes / gridDim.x;  // both are powers of two
        const uint64_t at = static_cast<uint64_t>(i) * end.bytes + blockIdx.x * share;
        copy_by_hand<uint4>(block, end.peer_in + at, end.out + at, share);
        block.sync();
        if (block.thread_rank() == 0)
            asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(end.peer_flags + i), "l"(uint64_t{1})
                         : "memory");
    }

    __device__ bool await(const whole_block &block, int i) const {
        const uint64_t all = end.epoch * gridDim.x;  // counters are never reset
        return all_agree(block, block.thread_rank() != 0 || poll_flag(end.flags + i, all));
    }
};

struct inline_port {
    floor_end end;
    static constexpr uint64_t box_bytes(uint64_t bytes) { return 4 * bytes; }

    __device__ uint64_t slot(int i) const { return static_cast<uint64_t>(i & 1) * 2 * end.bytes; }

    template <class Group>
    __device__ void put(const Group &group, int i) const {
        const uint64_t *const from = reinterpret_cast<const uint64_t *>(end.out + static_cast<uint64_t>(i) * end.bytes);
        char *const box = end.peer_box + slot(i);
        const uint64_t flag = end.number(i) << 32, words = end.bytes / 8, size = group.num_threads();
        for (uint64_t first = group.thread_rank(); first < words; first += each * size) {
            uint64_t word[each];
#pragma unroll
            for (unsigned k = 0; k < each; ++k)
                if (first + k * size < words) word[k] = from[first + k * size];
#pragma unroll
            for (unsigned k = 0; k < each; ++k)
                if (first + k * size < words)
                    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(box + 16 * (first + k * size)),
                                 "l"((word[k] & 0xffffffffu) | flag), "l"(word[k] >> 32 | flag)
                                 : "memory");
        }
    }

    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        uint64_t *const to = reinterpret_cast<uint64_t *>(end.in + static_cast<uint64_t>(i) * end.bytes);
        const char *const box = end.box + slot(i);
        const uint64_t flag = end.number(i) & 0xffffffffu, words = end.bytes / 8, size = group.num_threads();
        bool good = true;
        for (uint64_t first = group.thread_rank(); good && first < words; first += each * size) {
            uint64_t low[each], high[each];
            bool there = false;
            for (unsigned polls = 0; !there && polls != most_polls; ++polls) {
                there = true;
#pragma unroll
                for (unsigned k = 0; k < each; ++k)
                    if (first + k * size < words)
                        asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                                     : "=l"(low[k]), "=l"(high[k])
                                     : "l"(box + 16 * (first + k * size))
                                     : "memory");
#pragma unroll
                for (unsigned k = 0; k < each; ++k)
                    if (first + k * size < words) there = there && low[k] >> 32 == flag && high[k] >> 32 == flag;
            }
            good = there;
#pragma unroll
            for (unsigned k = 0; k < each; ++k)
                if (good && first + k * size < words) to[first + k * size] = (low[k] & 0xffffffffu) | high[k] << 32;
        }
        return all_agree(group, good);
    }

private:
    static constexpr unsigned each = 4;  // words in flight a thread
};

// Payloads, flags and inline buffer of both ranks, mapped into the other; a Port's box_bytes(bytes) for the inline
// buffer.
class floor_channel {
public:
    floor_channel(int peer, uint64_t bytes, int count, uint64_t box_bytes)
        : bytes_(bytes),
          count_(count),
          flags_((bytes * static_cast<uint64_t>(count) + 255) & ~uint64_t{255}),
          box_((flags_ + static_cast<uint64_t>(count) * sizeof(uint64_t) + 255) & ~uint64_t{255}),
          memory_(peer, box_ + box_bytes) {}

    char *payloads() const { return memory_.own(); }
    floor_end end(char *out, int epoch) const {
        char *const own = memory_.own(), *const peer = memory_.peer();
        return {own,
                out,
                peer,
                reinterpret_cast<uint64_t *>(own + flags_),
                reinterpret_cast<uint64_t *>(peer + flags_),
                own + box_,
                peer + box_,
                bytes_,
                static_cast<uint64_t>(epoch),
                count_};
    }

private:
    uint64_t bytes_;
    int count_;
    uint64_t flags_, box_;  // where they begin
    mapped_memory memory_;
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_FLOOR_CUH
