// SPDX-License-Identifier: BSD-3-Clause
//
// Reading the host's words. They lie across PCIe, where the reads of many threads queue up. So on a GPU, one thread at
// a time reads those of a request, and notes what it found in the GPU's memory; the others wait for that, and use it.
#ifndef MPIX_IMPL_EPOCH_HOST_EPOCH_CUH
#define MPIX_IMPL_EPOCH_HOST_EPOCH_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

namespace mpix::detail {

// What the host says: its epoch word, and the word behind it; acquired. On a GPU the thread that reads them also reads
// words->inline_buffer, whose value may be older.
struct host_says {
    uint64_t word, second, inline_buffer;
    MPIX_FN uint64_t clear_to_send() const { return second; }  // of a send
    MPIX_FN uint64_t matched() const { return second; }        // of a receive
};

// The epoch that is running, or was running last: the host's, or a later one that a kernel has started since.
struct epoch_now {
    uint64_t number;
    bool active;  // started by the host, and neither completed by it nor waited for by a kernel
};
MPIX_FN epoch_now epoch_of(const mpix_prequest *r, uint64_t host_word) {
    const uint64_t by_kernel = load_relaxed(&r->started_epoch), by_host = host_word >> 1,
                   number = by_kernel > by_host ? by_kernel : by_host;
    return {number, (host_word & 1) != 0 && load_relaxed(&r->waited_epoch) < number};
}

#if MPIX_ON_GPU
// True: the caller reads the words, and then calls end_host_read. False: another thread has begun and ended such a read
// since the caller came, so its result is as good. The reading thread waits for nobody, so this ends.
//
// Two points rely on an order of time, and not on the memory model. The load of the host's words is performed after the
// exchange on which it is conditional. And the result may be of a later turn already; then only its numbers count, as
// with open_word.
MPIX_FN bool begin_host_read(mpix_prequest *r, uint64_t *turn) {
    *turn = load_acquire_gpu(&r->host_read_turn);  // pairs: C4
    const uint64_t enough = ((*turn + 1) & ~uint64_t{1}) + 2;
    while (*turn < enough) {
        if ((*turn & 1) == 0 && cas_acq_rel_gpu(&r->host_read_turn, *turn, *turn + 1)) return true;  // pairs: C4
        *turn = load_relaxed(&r->host_read_turn);
    }
    load_acquire_gpu(&r->host_read_turn);  // pairs: C4
    return false;
}
// What the caller noted comes before the word. Pairs with load_acquire_gpu and cas_acq_rel_gpu in begin_host_read.
// pairs: C4
MPIX_FN void end_host_read(mpix_prequest *r, uint64_t turn) { store_release_gpu(&r->host_read_turn, turn + 2); }
#endif

// Reads the host's words, or takes the result of the thread that does. The reading thread calls note(result) before the
// others continue.
template <class Note>
MPIX_FN host_says read_host(mpix_prequest *r, const Note &note) {
    host_says says{0, 0, 0};
#if MPIX_ON_GPU
    uint64_t turn;
    if (!begin_host_read(r, &turn)) {
        says.word = load_relaxed(&r->host_word);
        says.second = load_relaxed(&r->host_second);
        return says;
    }
    says.inline_buffer = load_relaxed(&r->words->inline_buffer);    // under way together with the other two
    load_acquire_pair(&r->words->epoch, &says.word, &says.second);  // pairs: C1, C2, C3, C7
    store_relaxed(&r->host_word, says.word);
    store_relaxed(&r->host_second, says.second);
    note(says);
    end_host_read(r, turn);
#else
    load_acquire_pair(&r->words->epoch, &says.word, &says.second);  // pairs: C1, C2, C3, C7
    note(says);
#endif
    return says;
}

}  // namespace mpix::detail

#endif  // MPIX_IMPL_EPOCH_HOST_EPOCH_CUH
