// SPDX-License-Identifier: BSD-3-Clause
//
// What the hardware allows beyond what the memory model promises: flag-in-data by lines of 128 bytes, as NCCL's LL128.
// Eight lanes of a warp store 16 bytes each into one line: 120 bytes of payload and, in the upper half of the last
// lane's 16, the number of the message. The receiver loads the line with the same eight lanes until the last one finds
// the number, and copies the bytes out; 94 % of what travels is payload, where 16-byte stores with a flag each have 50
// %.
//
// That the 112 bytes of the other lanes are there when the last lane's 16 are is no rule of PTX, by which only each 8
// of them are single-copy atomic. It rests on the hardware: a warp's stores of one instruction to an aligned line of
// 128 bytes go as one transaction, NVLink keeps it whole, and a warp's loads of one instruction from such a line see it
// whole. Over PCIe that does not hold.
#ifndef MPIX_TESTS_BENCH_LINE_PORT_CUH
#define MPIX_TESTS_BENCH_LINE_PORT_CUH

#include "tests/bench/floor.cuh"

namespace bench {

struct line_port {
    floor_end end;

    static constexpr uint64_t line_bytes = 128, line_words = 15;  // of payload, 8 bytes each
    __host__ __device__ static constexpr uint64_t lines(uint64_t bytes) {
        return (bytes / 8 + line_words - 1) / line_words;
    }
    static constexpr uint64_t box_bytes(uint64_t bytes) { return 2 * line_bytes * lines(bytes); }

    __device__ void put(const whole_warp &warp, int i) const { store(warp, i); }
    __device__ void put(const whole_block &block, int i) const { store(block, i); }

    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        uint64_t *const to = reinterpret_cast<uint64_t *>(end.in + static_cast<uint64_t>(i) * end.bytes);
        const place at(group, end.box + slot(i), end.bytes);
        const uint64_t flag = end.number(i);
        bool good = true;
        for (uint64_t first = at.first; good && first < at.lines; first += each * at.step) {
            uint64_t low[each], high[each];
            bool there = false;
            for (unsigned polls = 0; !there && polls != most_polls; ++polls) {
                bool mine = true;
                __syncwarp();  // so that one instruction loads the line
#pragma unroll
                for (unsigned k = 0; k < each; ++k)
                    if (at.exists(first, k))
                        asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                                     : "=l"(low[k]), "=l"(high[k])
                                     : "l"(at.in_box(first, k))
                                     : "memory");
#pragma unroll
                for (unsigned k = 0; k < each; ++k)
                    if (at.exists(first, k) && at.has_flag) mine = mine && high[k] == flag;
                there = __all_sync(~0u, mine) != 0;
            }
            good = there;
#pragma unroll
            for (unsigned k = 0; k < each; ++k) {
                const uint64_t word = at.word(first, k);
                if (good && word < at.words) to[word] = low[k];
                if (good && !at.has_flag && word + 1 < at.words) to[word + 1] = high[k];
            }
        }
        return all_agree(group, good);
    }

private:
    static constexpr unsigned each = 4;  // lines in flight of eight lanes

    // Which 16 bytes are the caller's: of its line, and of all lines that its group takes at a time. A warp takes four
    // lines side by side, so that its threads go through the loops together.
    struct place {
        template <class Group>
        __device__ place(const Group &group, char *inline_buffer, uint64_t bytes)
            : box(inline_buffer),
              first(group.thread_rank() / 32 * 4),
              step(group.num_threads() / 32 * 4),
              lines(line_port::lines(bytes)),
              words(bytes / 8),
              line(group.thread_rank() % 32 / 8),
              lane(group.thread_rank() % 8),
              has_flag(lane == 7) {}
        __device__ bool exists(uint64_t from, unsigned k) const { return from + k * step + line < lines; }
        // The first of its two words of payload, or its only one; from `words` on there is none.
        __device__ uint64_t word(uint64_t from, unsigned k) const {
            return (from + k * step + line) * line_words + 2 * lane;
        }
        __device__ char *in_box(uint64_t from, unsigned k) const {
            return box + (from + k * step + line) * line_bytes + 16 * lane;
        }

        char *box;
        uint64_t first, step, lines, words;
        unsigned line, lane;
        bool has_flag;
    };

    __device__ uint64_t slot(int i) const { return static_cast<uint64_t>(i & 1) * line_bytes * lines(end.bytes); }

    template <class Group>
    __device__ void store(const Group &group, int i) const {
        const uint64_t *const from = reinterpret_cast<const uint64_t *>(end.out + static_cast<uint64_t>(i) * end.bytes);
        const place at(group, end.peer_box + slot(i), end.bytes);
        const uint64_t flag = end.number(i);
        for (uint64_t first = at.first; first < at.lines; first += each * at.step) {
            uint64_t low[each], high[each];
            // Loads without branches: where there is no such word, the last one.
#pragma unroll
            for (unsigned k = 0; k < each; ++k) {
                const uint64_t word = at.word(first, k), last = at.words - 1;
                low[k] = from[word < last ? word : last];
                high[k] = from[word < last ? word + 1 : last];
                if (at.has_flag) high[k] = flag;
            }
            __syncwarp();  // so that one instruction stores the line
#pragma unroll
            for (unsigned k = 0; k < each; ++k)
                if (at.exists(first, k))
                    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at.in_box(first, k)), "l"(low[k]),
                                 "l"(high[k])
                                 : "memory");
        }
    }
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_LINE_PORT_CUH
