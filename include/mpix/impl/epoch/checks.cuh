// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of device code that is compiled with MPIX_CHECK: print each erroneous call, with block and thread, and detect
// overlapping shares of a partition if the host has allocated memory for that (MPIX_CHECK=1 in the environment).
#ifndef MPIX_IMPL_EPOCH_CHECKS_CUH
#define MPIX_IMPL_EPOCH_CHECKS_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/host_launch.h>
#include <mpix/detail/order.h>

#include <mpix/impl/epoch/error_text.cuh>

#include <cstdio>

namespace mpix::detail {

// partition: -1 for a call that is of none.
MPIX_COLD_FN void print_error(unsigned call_and_cause, int partition) {
    const char *const call = name_of(static_cast<mpix_device_call>(call_and_cause >> 8)),
                      *const text = text_of(static_cast<mpix_cause>(call_and_cause & 0xff));
#ifdef __CUDA_ARCH__
    if (partition >= 0)
        printf("mpix check: block (%u, %u, %u), thread (%u, %u, %u): %s of partition %d: %s\n", blockIdx.x, blockIdx.y,
               blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, call, partition, text);
    else
        printf("mpix check: block (%u, %u, %u), thread (%u, %u, %u): %s: %s\n", blockIdx.x, blockIdx.y, blockIdx.z,
               threadIdx.x, threadIdx.y, threadIdx.z, call, text);
#else
    if (partition >= 0)
        std::fprintf(stderr, "mpix check: block %d, thread %d: %s of partition %d: %s\n", played.block, played.thread,
                     call, partition, text);
    else
        std::fprintf(stderr, "mpix check: block %d, thread %d: %s: %s\n", played.block, played.thread, call, text);
#endif
}

MPIX_FN uint64_t *shared_bytes(mpix_prequest *r, int p) {
    return r->shared + static_cast<uint64_t>(p) * ((r->partition_bytes + 63) / 64);
}
// Record the bytes of a share; true if another share of this epoch has contributed any of them. Called by one thread.
MPIX_COLD_FN bool overlaps_others(mpix_prequest *r, int p, uint64_t begin, uint64_t bytes) {
    if (r->shared == nullptr) return false;
    uint64_t *const noted = shared_bytes(r, p);
    bool found = false;
    for (uint64_t word = begin / 64; word * 64 < begin + bytes; ++word) {
        uint64_t mine = ~uint64_t{0};
        if (word * 64 < begin) mine &= ~uint64_t{0} << (begin % 64);
        if ((word + 1) * 64 > begin + bytes) mine &= ~uint64_t{0} >> ((word + 1) * 64 - begin - bytes);
        uint64_t before = load_relaxed(noted + word);
        while (!compare_exchange_acq_rel_gpu(noted + word, &before, before | mine)) {  // pairs: A9
        }
        found |= (before & mine) != 0;
    }
    return found;
}
// Called when all shares of the epoch have been contributed.
MPIX_COLD_FN void forget_shares(mpix_prequest *r, int p) {
    if (r->shared == nullptr) return;
    for (uint64_t word = 0; word * 64 < r->partition_bytes; ++word) store_relaxed(shared_bytes(r, p) + word, 0);
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_EPOCH_CHECKS_CUH
