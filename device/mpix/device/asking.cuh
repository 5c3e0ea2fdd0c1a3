// SPDX-License-Identifier: BSD-3-Clause
//
// Who reads the host's words. They lie across PCIe, where the reads of many threads queue up. So on a GPU one thread reads those
// of a request at a time, notes what it found where the others look, and these wait for that.
#ifndef MPIX_DEVICE_ASKING_CUH
#define MPIX_DEVICE_ASKING_CUH

#include <mpix/detail/abi.h>
#include <mpix/detail/order.h>

namespace mpix::detail {

// What the host says: its epoch word, and its gate; acquired. To who asks on a GPU also words->mailbox, which may be older.
struct host_says {
    uint64_t word, gate, mailbox;
};

#if MPIX_ON_GPU
// Whether the caller is to read them, and then to call end_asking. False: another thread has begun and ended that since the
// caller came, so what it has noted is as good. Whoever asks has nothing to wait for, so this ends.
//
// That is an order of time, and not of the memory model, in two points: that thread's load of the host's words is performed
// behind the claim that it is conditional on; and what is noted may be of a next turn already, of which only the numbers
// count, as with open_word.
MPIX_FN bool begin_asking(mpix_prequest *r, uint64_t *turn) {
    *turn = observe_gpu(&r->asking);
    const uint64_t enough = ((*turn + 1) & ~uint64_t{1}) + 2;
    while (*turn < enough) {
        if ((*turn & 1) == 0 && claim_gpu(&r->asking, *turn, *turn + 1)) return true;
        *turn = peek(&r->asking);
    }
    observe_gpu(&r->asking);
    return false;
}
// What the caller noted comes before the word. Pairs with observe_gpu and claim_gpu in begin_asking.
MPIX_FN void end_asking(mpix_prequest *r, uint64_t turn) { publish_gpu(&r->asking, turn + 2); }
#endif

// Ask, or take the answer of who has; note(answer) is called by who asks, before the others go on.
template <class Note>
MPIX_FN host_says ask_host(mpix_prequest *r, const Note &note) {
    host_says says{0, 0, 0};
#if MPIX_ON_GPU
    uint64_t turn;
    if (!begin_asking(r, &turn)) {
        says.word = peek(&r->heard_word);
        says.gate = peek(&r->heard_gate);
        return says;
    }
    says.mailbox = peek(&r->words->mailbox);  // under way together with the other two
    observe_pair(&r->words->epoch, &says.word, &says.gate);
    poke(&r->heard_word, says.word);
    poke(&r->heard_gate, says.gate);
    note(says);
    end_asking(r, turn);
#else
    observe_pair(&r->words->epoch, &says.word, &says.gate);
    note(says);
#endif
    return says;
}

}  // namespace mpix::detail

#endif  // MPIX_DEVICE_ASKING_CUH
