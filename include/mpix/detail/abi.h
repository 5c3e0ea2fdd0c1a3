// SPDX-License-Identifier: BSD-3-Clause
//
// The plain structures that host, device code and transports share. Everything here is fixed in
// layout: the host writes it, kernels compiled by the user's compiler read it, so a change of any field
// needs a new MPIX_ABI_VERSION (the device functions check it).
#ifndef MPIX_DETAIL_ABI_H
#define MPIX_DETAIL_ABI_H

#include <stddef.h>
#include <stdint.h>

#define MPIX_ABI_VERSION 16u

#define MPIX_HEAD_NULL_PEER (1ull << 40)  // the peer is MPI_PROC_NULL
#define MPIX_NEVER (~0ull)                // of a receive: nothing will ever come, see mpix_words

enum mpix_kind { MPIX_KIND_SEND = 1, MPIX_KIND_RECV = 2 };

// The device call that an error occurred in.
enum mpix_device_call {
    MPIX_CALL_NONE,  // the caller reports the error itself
    MPIX_CALL_PREADY,
    MPIX_CALL_PREADY_TYPED,
    MPIX_CALL_PREADY_RANGE,
    MPIX_CALL_PREADY_LIST,
    MPIX_CALL_PREADY_CONTRIBUTE,
    MPIX_CALL_PARRIVED,
    MPIX_CALL_WAIT_ARRIVED,
    MPIX_CALL_WAIT,
    MPIX_CALL_START,
    MPIX_CALL_LAST = MPIX_CALL_START
};

// The cause of an error, grouped by class: from 1 MPI_ERR_ARG, from 32 MPI_ERR_REQUEST, from 64 MPI_ERR_PENDING.
enum mpix_cause {
    MPIX_CAUSE_INDEX = 1,     // there is no such partition
    MPIX_CAUSE_RANGE,         // the range is empty, or goes beyond the partitions; kept with its invalid end
    MPIX_CAUSE_LIST,          // the list's length is negative, or the list null
    MPIX_CAUSE_FLAG,          // flag is null
    MPIX_CAUSE_READY,         // the partition is ready already
    MPIX_CAUSE_SHARE_BEYOND,  // a share ends beyond the partition
    MPIX_CAUSE_SHARES,        // an epoch's shares have more bytes than the partition
    MPIX_CAUSE_OVERLAP,       // two shares overlap; detected with MPIX_CHECK only
    MPIX_CAUSE_STALE,         // an epoch handle of an older epoch; with MPIX_CHECK only, otherwise pready says READY
    MPIX_CAUSE_KIND = 32,     // a receive in place of a send, or the reverse
    MPIX_CAUSE_HANDLE,        // not a handle, or one of another version of mpix
    MPIX_CAUSE_INACTIVE,
    MPIX_CAUSE_ACTIVE,  // start of an epoch, and the one before has not been waited for
    MPIX_CAUSE_DEADLINE = 64,
    MPIX_CAUSE_RESIDENCY,  // the same, in a grid with more blocks than the GPU holds at a time
    MPIX_CAUSE_LAST = MPIX_CAUSE_RESIDENCY
};

// A kept error: call << 56 | cause << 48 | low bits of the period << 32 | (partition + 1). The period of an active
// request is 2 * epoch + 1; that of the inactive time before is 2 * epoch.
#define MPIX_ERROR_PERIOD_BITS 16

// The words of one request that live in host memory which every party can reach: the owner's host,
// the owner's GPU (page-locked), and, for the ones marked so, the peer's host and GPU.
//
// Epochs count the Starts of a request, by the host and by kernels, from 1, and never go back. An *epoch word* is
// 2*epoch + (1 while the epoch is active), so one word tells both.
struct mpix_words {
    uint64_t epoch;              // epoch word; written by the owner's host only
    union {                      // executors of both kinds read it in one pair with `epoch`
        uint64_t clear_to_send;  // send: the last epoch the receiver has started (written by the peer)
        uint64_t matched;        // receive: 1 once matched, and the route below is filled in (owner's host);
                                 // MPIX_NEVER: nothing will ever come, the pair cannot work
    };
    uint64_t all_ready;  // send: last epoch in which every partition was readied (last caller of Pready)
    uint64_t complete;   // receive: last epoch whose bytes and flags are all in place (written by the peer)
    uint64_t error;      // first error of device code: see mpix_cause; 0 = none
    uint64_t posted;     // send by a work queue, as of all_ready: its index behind all that was posted
    uint64_t ended;      // the same: last epoch whose end was posted, too (see mpix_posting)
    // send: 1 = the receiver's kernels drain its inline buffer (written by the peer, before `clear_to_send`);
    // receive: last epoch of which partitions may lie there (the peer's, before `complete`)
    uint64_t inline_buffer;
    // The second cache line.
    uint64_t kernel_epoch;  // last epoch that a kernel has started (the owner's kernels)
    uint64_t concluded;     // send: last epoch that needed the progress engine, or the host's Pready, and is over
                            // (owner's host)
    uint64_t read_cost;  // send, single copy: the receiver's peer_memory.read_cost (transport/cma.h), in ns for a MiB
                         // (written by the peer)
    uint64_t unused[5];
};

// An entry of the ring: a caller of Pready asks the progress engine to move a partition. The lower half is the
// partition's index; with MPIX_RING_RTS the partition was offered to the receiver's kernels, see `answers`. The upper
// half is the low half of the epoch, so that a stale entry is never taken for a new one.
typedef uint64_t mpix_ring_entry;
#define MPIX_RING_RTS (1ull << 31)

struct mpix_typemap;
struct mpix_posting;  // work_queue.h

// The layouts between which a message is copied: by Pready from the user's buffer to the landing, by a receive from the
// landing to the user's buffer. Null: packed, one piece.
struct mpix_layouts {
    const struct mpix_typemap *from, *to;
};
#define MPIX_FLAGS_WITH_LAYOUTS 1ull  // in mpix_prequest.flags of a send

// Another process's own memory. Only the host reads and writes it, by these calls, which return 0 or an errno.
struct mpix_far_memory {
    int (*read)(const struct mpix_far_memory *self, void *to, const char *from, uint64_t bytes);
    int (*write)(const struct mpix_far_memory *self, char *to, const void *from, uint64_t bytes);
};

// An opaque handle, MPIX_Prequest, is the address of the structure below, with bits in its low end. The lowest says
// that the request may have an inline buffer. Above it, the handle of a send has the binary logarithm of the least
// number of threads in a group that uses the inline buffer. The bits are here, and not in the structure, so that a call
// need not wait for a load before it does anything else.
#define MPIX_HANDLE_INLINE 1ull
#define MPIX_HANDLE_THREADS_SHIFT 1
// In the handle of a receive, above the lowest bit: "mpix_waiters" is 1; then the logarithm of the least number of
// threads in a group that uses wait_inline_fast.
#define MPIX_HANDLE_SOLE 2ull
#define MPIX_HANDLE_TAKERS_SHIFT 2
// In the handle of a receive without the lowest bit: its kernels may be offered partitions to read (rget.cuh).
#define MPIX_HANDLE_READS 2ull
#define MPIX_HANDLE_BITS 63ull

// One request as Pready and Parrived see it. A send or receive always has one in host memory, which
// the host's own MPI_Pready and MPI_Parrived use; exporting to a GPU makes a second one there.
// The arrays that depend on the number of partitions lie behind the struct (see mpix_prequest_size).
struct mpix_prequest {
    // Fixed when the request is made.
    uint64_t head;          // MPIX_ABI_VERSION | kind << 32, and MPIX_HEAD_NULL_PEER: one word. Checked by wait, start,
                            // and every call that asks the host, so by all in a handle's first epoch; the store
                            // core, and waits that know the epoch, rely on that and do not look at it
    int32_t partitions;     // this side's
    uint32_t contributors;  // calls of pready_contribute per partition
    uint64_t partition_bytes;  // packed bytes of one partition of this side
    char *buffer;              // the user's buffer: element 0
    struct mpix_words *words;  // as this executor (host or GPU) reaches it
    mpix_ring_entry *ring;     // send: `partitions` entries in host memory; deferred partitions
    uint64_t stall_ns;         // default deadline of wait_arrived; 0 = none
    const int64_t *offsets;    // on a GPU, of a request with gaps that may go inline: where in the user's buffer each
        // piece of the packed message is, the first one first; in the low bits of the address how
        // often eight bytes must be halved to make a piece (see gather.cuh). Else null.

    // The route. Every field is zero until the peer is known and is then written once, so a non-zero
    // value read without any ordering is the final one.
    char *landing;             // where the message lies or goes. With `far`: of a send the receive buffer, of a receive
                               // the send buffer, as addresses in the other process. Null: the user's buffer (receive),
                               // or nothing that this executor can store to (send)
    uint64_t *flags;           // one epoch per *sender* partition, then one for the whole message. Of a send,
                               // MPIX_FLAGS_WITH_LAYOUTS in the address: `layouts` is not null. So a thread that
                               // has read this field without ordering knows whether to read that one.
    uint64_t *peer_complete;   // send: the receiver's words.complete
    uint64_t slots;            // epochs the landing holds side by side: 1, or a power of two up to 128
    uint64_t peer_partitions;  // receive: the sender's number of partitions
    uint64_t *taken;           // receive with a landing or an inline buffer, or either side with `far`, per sender
                               // partition: 2*epoch once it was copied to the user's buffer, 2*epoch - 1 while a
                               // thread, with `far` of either process, is copying
                               // (of an inline buffer: waiting or copying, or done, which the flag says; there it
                               // always lies behind the flags, where kernels find it without this field)
    const struct mpix_layouts *layouts;  // null: both sides are one piece
    const struct mpix_posting
        *postings;        // send without a landing here: one for each slot of the peer's landing; null: no
                          // queue leads there. Read after clear-to-send: a match may be undone.
    char *inline_buffer;  // the receiver's packets (packet.cuh), of each sender partition in turn; or null
    // In one sector of 32 bytes: what decides whether others move a large partition.
    uint64_t *wanted;  // in the sender's GPU, per sender partition: the last epoch in which a group has asked for it
    // send: bytes for each thread of a group from which on others move the partition; 0: never.
    uint32_t offload_bytes;      // for groups that may offer: the smaller of these two that is not 0
    uint32_t copy_engine_bytes;  // the progress engine; the only limit of larger groups (offload_from)
    uint32_t rget_bytes;         // a group of the receiver that waits for it
    uint32_t unused;
    uint64_t *told;  // receive with an inline buffer, in host memory: per sender partition the last epoch
                     // in which a kernel took it out of there
    // Where the receiver's kernels may read the send buffer (rget.cuh), else null; likewise `wanted` above.
    const char *peer_buffer;  // receive: the send buffer
    uint64_t
        *answers;  // receive: in the sender's host memory, behind its ring, per sender partition: 2*epoch once it was
                   // read, 2*epoch + 1 once no kernel will read it any more, so that the engine moves it
    // Clear-to-send of epochs that kernels start (kernel_epoch/start.cuh).
    uint64_t *kernel_clear_to_send;  // in the sender's GPU, of both sides: 2 * the last epoch that the receiver's
                                     // kernels have started, and 1 more if they drain the inline buffer; null: none
    uint64_t *peer_clear_to_send;    // receive: the sender's words.clear_to_send; null: the progress engine writes it

    // Changes while in use; each word is accessed atomically.
    uint64_t seen_epoch;              // last active epoch number read from words->epoch
    union {                           // last value read
        uint64_t seen_clear_to_send;  // send: from words->clear_to_send
        uint64_t seen_matched;        // receive: from words->matched
    };
    uint64_t host_read_turn;  // on a GPU: odd while one thread reads the host's words for all; see host_epoch.cuh
    uint64_t open_word;    // send: 2*epoch of the last epoch whose partitions may be stored at the receiver, as far as
                           // is known here, and 1 more if they may go inline
    uint64_t ready_count;  // send: partitions readied since the request was made, all epochs; those that the
                           // host readies of an exported request join it at the end of the epoch
    uint64_t defer_count;  // send: partitions ever put into the ring
    uint64_t posted;       // send: the work queue's index behind the last posting
    uint64_t defer_epoch;  // send: last epoch in which any partition was deferred
    uint64_t host_word;  // on a GPU: what host_read_turn's thread last read of words->epoch, and of the word behind it
    uint64_t host_second;
    uint64_t error;  // the last period in which an error was kept; only the first of a period is
    uint64_t asker;  // receive, on a GPU, with MPIX_CHECK: the last epoch in which a kernel read the host's words << 32
                     // | the number of the first launch that did
    uint64_t started_epoch;   // last epoch that a kernel has started, until the host completes it; then 0
    uint64_t waited_epoch;    // last epoch that a kernel has waited for to the end
    uint64_t told_epoch;      // send: 2 * the last epoch of which the last caller of Pready has told everybody who is
                              // told, and 1 more if the progress engine ends it
    uint64_t both_started;    // send: last epoch that kernels of both sides have started, as far as known here. No host
                              // is told of its end; their completion calls look at the GPUs' memory
    uint64_t inactive_since;  // receive, the host's own: when it was last made inactive (now_ns), and by which thread
    uint64_t inactive_by;

    // Only the host's own, written before `landing`, which then is the other side's buffer in its own memory: either
    // process copies from buffer to buffer. Else null.
    const struct mpix_far_memory *far;

    // Send, with MPIX_CHECK in the environment: a bit for each byte that a share has contributed in this epoch; each
    // partition has its own words. Else null.
    uint64_t *shared;
};

// Behind the struct of a send lie four arrays of one word per partition. state: the last epoch in which it was readied.
// contributions: the calls of pready_contribute so far. contributed: epoch * partition_bytes, plus the bytes of the
// next epoch's shares; or an older value. late: the last epoch in which a share was not stored by its caller.
static inline size_t mpix_prequest_size(enum mpix_kind kind, int partitions) {
    return sizeof(struct mpix_prequest) + (kind == MPIX_KIND_SEND ? 4u * (size_t)partitions * sizeof(uint64_t) : 0u);
}

#ifdef __cplusplus
static_assert(sizeof(mpix_words) == 128, "the words fill two cache lines");
static_assert(offsetof(mpix_words, clear_to_send) == offsetof(mpix_words, epoch) + 8 &&
                  offsetof(mpix_words, matched) == offsetof(mpix_words, epoch) + 8,
              "read as one 16-byte pair");
static_assert(offsetof(mpix_prequest, wanted) / 32 == offsetof(mpix_prequest, rget_bytes) / 32, "one sector");
static_assert(offsetof(mpix_prequest, seen_clear_to_send) == offsetof(mpix_prequest, seen_epoch) + 8, "a pair");
static_assert(offsetof(mpix_prequest, ready_count) == offsetof(mpix_prequest, open_word) + 8 &&
                  offsetof(mpix_prequest, open_word) % 16 == 0,
              "read as one 16-byte pair");
#endif

#endif  // MPIX_DETAIL_ABI_H
