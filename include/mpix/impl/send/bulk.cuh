// SPDX-License-Identifier: BSD-3-Clause
//
// Pready by bulk asynchronous copies (PTX cp.async.bulk, compute capability 9.0 and later): one thread has the hardware
// copy a partition, through shared memory that the caller lends, to the peer GPU. A thread that stores itself waits for
// its own loads, and takes 3.6 to 5.7 times as long for 4 and 8 KiB (docs/performance/gpu-latency.md).
#ifndef MPIX_IMPL_SEND_BULK_CUH
#define MPIX_IMPL_SEND_BULK_CUH

#include <mpix/impl/send/pready.cuh>

namespace mpix {

template <unsigned Bytes>
struct bulk_buffer {
    static_assert(Bytes >= 1024 && Bytes % 512 == 0, "a bulk_buffer is at least 1024 bytes, and a multiple of 512");
    alignas(128) char bytes[Bytes];
    uint64_t arrived[4];  // mbarriers, one for each quarter of `bytes`; valid during a call only
};

namespace detail {

// Whether a group of so many threads is slower by its own stores. Of more buffers than these the copy takes longer than
// other ways.
constexpr uint64_t most_bulk_buffers = 8, most_bulk_bytes = 64 * 1024;
MPIX_FN bool is_for_bulk(uint64_t bytes, unsigned threads, uint64_t buffer_bytes) {
    return threads <= 32 && bytes >= (threads == 1 ? 256 : 1024 * uint64_t{threads}) &&
           bytes <= most_bulk_buffers * buffer_bytes && bytes <= most_bulk_bytes;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

// A copy by one thread, through four pieces of shared memory in turn.
template <unsigned Bytes>
class bulk_copy {
public:
    static constexpr unsigned pieces = 4, piece = Bytes / pieces;

    __device__ bulk_copy(bulk_buffer<Bytes> &shared, const char *from, unsigned bytes)
        : data_(address(shared.bytes)), arrived_(address(shared.arrived)), from_(from), bytes_(bytes) {
        for (unsigned k = 0; k < pieces; ++k)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrived_ + 8 * k) : "memory");
        // What the group has written to the partition, the barriers, and what the caller did with this shared memory,
        // come before the asynchronous accesses to them.
        asm volatile("fence.proxy.async;" ::: "memory");
        for (unsigned k = 0; k < pieces; ++k) load(k);
    }

    __device__ void store(char *to) {
#pragma unroll 1
        for (unsigned k = 0; k * piece < bytes_; ++k) {
            wait(k);
            asm volatile(
                "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\t"
                "cp.async.bulk.commit_group;" ::"l"(to + k * piece),
                "r"(data_ + k % pieces * piece), "r"(length(k))
                : "memory");
            if (k == 0) continue;
            // The piece before this one has been read from shared memory, so its place is free.
            asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
            load(k + pieces - 1);
        }
        // All bytes are at the peer, and visible to this thread. Behind the fence its release of the flag covers them,
        // as it does bytes that it has stored itself.
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        end();
    }

    // Instead of store().
    __device__ void give_up() {
        for (unsigned k = 0; k < pieces && k * piece < bytes_; ++k) wait(k);
        end();
    }

private:
    template <class T>
    __device__ static uint32_t address(T &shared) {
        return static_cast<uint32_t>(__cvta_generic_to_shared(&shared));
    }
    __device__ unsigned length(unsigned k) const { return bytes_ - k * piece < piece ? bytes_ - k * piece : piece; }
    __device__ void load(unsigned k) {
        if (k * piece >= bytes_) return;
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%3], %2;\n\t"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                data_ + k % pieces * piece),
            "l"(from_ + k * piece), "r"(length(k)), "r"(arrived_ + 8 * (k % pieces))
            : "memory");
    }
    // Without a deadline: a copy that was started ends, or the kernel does, with an error.
    __device__ void wait(unsigned k) const {
        asm volatile(
            "{\n\t.reg .pred arrived;\n"
            "again:\n\t"
            "mbarrier.try_wait.parity.shared::cta.b64 arrived, [%0], %1;\n\t"
            "@!arrived bra again;\n\t}" ::"r"(arrived_ + 8 * (k % pieces)),
            "r"(k / pieces % 2)
            : "memory");
    }
    __device__ void end() const {
        for (unsigned k = 0; k < pieces; ++k)
            asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(arrived_ + 8 * k) : "memory");
    }

    const uint32_t data_, arrived_;
    const char *const from_;
    const unsigned bytes_;
};

// Stores partition p as store_direct does, by the leader, who gets the flags as well.
template <class Group, unsigned Bytes>
__device__ __forceinline__ stored store_bulk(const Group &group, const mpix_prequest *r, int p,
                                             bulk_buffer<Bytes> &shared, uint64_t **checked_flags) {
    const uint64_t bytes = r->partition_bytes, offset = static_cast<uint64_t>(p) * bytes;
    stored s{0, false};
    // Each member's writes to the partition come before asynchronous accesses, and the barrier before the leader's.
    if (group.num_threads() > 1) asm volatile("fence.proxy.async;" ::: "memory");
    group.sync();  // as in store_direct
    if (group.thread_rank() == 0 && static_cast<unsigned>(p) < static_cast<unsigned>(r->partitions)) {
        uint64_t word, readied;
        load_relaxed_pair(&r->open_word, &word, &readied);
        char *const landing = load_pointer_weak(&r->landing), *const buffer = r->buffer;
        uint64_t *const flags = load_pointer_weak(&r->flags);
        *checked_flags = flags;
        const bool valid =
            landing != nullptr && flags != nullptr && !has_layouts(flags) &&
            ((reinterpret_cast<uint64_t>(buffer) | reinterpret_cast<uint64_t>(landing) | bytes) & 15) == 0;
        if (valid) {
            bulk_copy<Bytes> copy(shared, buffer + offset, static_cast<unsigned>(bytes));
            if (const uint64_t epoch = open_epoch(r, word, readied); epoch != 0) {
                s.epoch = epoch;
                copy.store(landing + offset);
            } else {
                copy.give_up();
            }
        }
    }
    if (!broadcast_bool(group, s.epoch != 0))
        s.epoch = 0;
    else if (s.epoch == 0)
        s.epoch = 1;  // only the leader's counts
    return s;
}
#endif

}  // namespace detail

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Group, unsigned Bytes>
MPIX_FN int pready(const Group &group, int partition, MPIX_Prequest preq, bulk_buffer<Bytes> &shared) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    using namespace detail;
    if (preq == nullptr) return MPI_ERR_REQUEST;
    mpix_prequest *const r = request_of(preq);
    uint64_t *flags = nullptr;
    if (is_for_bulk(r->partition_bytes, static_cast<unsigned>(group.num_threads()), Bytes))
        if (const stored s = store_bulk(group, r, partition, shared, &flags); s.epoch != 0)
            return conclude_direct<MPIX_CALL_PREADY>(group, partition, r, s.epoch, flags);
#else
    (void)shared;
#endif
    return detail::ready(group, partition, preq, detail::group_mover<false>{});
}

}  // namespace mpix

#endif  // MPIX_IMPL_SEND_BULK_CUH
