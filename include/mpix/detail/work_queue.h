// SPDX-License-Identifier: BSD-3-Clause
//
// Read by the user's kernels, as detail/abi.h is: a change of mpix_work_queue or mpix_posting needs a new
// MPIX_ABI_VERSION.
//
// The send queue of a ConnectX (mlx5), as far as mpix uses it: work-queue entries (WQEs) of one 64-byte block, 64-byte
// completion-queue entries (CQEs), and what an executor needs to post and to poll. Whoever consumes the queue, a NIC or
// the software HCA, finds the same bytes.
#ifndef MPIX_DETAIL_WORK_QUEUE_H
#define MPIX_DETAIL_WORK_QUEUE_H

#include <stddef.h>

#include <mpix/detail/order.h>

namespace mpix::detail {

// ---- big-endian numbers, of a type of their own so that none is read unswapped -------------------------------------

#ifdef __BYTE_ORDER__  // not with NVRTC, which compiles for GPUs only
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "swapping makes little-endian big-endian");
#endif

struct be16 {
    uint16_t raw;
};
struct be32 {
    uint32_t raw;
};
struct be64 {
    uint64_t raw;
};

MPIX_FN uint32_t swap_bytes(uint32_t value) {
#ifdef __CUDA_ARCH__
    return __byte_perm(value, 0, 0x0123);
#else
    return __builtin_bswap32(value);
#endif
}
MPIX_FN be16 to_be16(uint16_t value) { return {static_cast<uint16_t>(value << 8 | value >> 8)}; }
MPIX_FN be32 to_be32(uint32_t value) { return {swap_bytes(value)}; }
MPIX_FN be64 to_be64(uint64_t value) {
    const uint64_t upper = swap_bytes(static_cast<uint32_t>(value));
    return {upper << 32 | swap_bytes(static_cast<uint32_t>(value >> 32))};
}
MPIX_FN uint16_t from_be(be16 value) { return to_be16(value.raw).raw; }
MPIX_FN uint32_t from_be(be32 value) { return to_be32(value.raw).raw; }
MPIX_FN uint64_t from_be(be64 value) { return to_be64(value.raw).raw; }

// ---- work-queue entries --------------------------------------------------------------------------------------------

enum wqe_opcode : uint8_t { wqe_nop = 0x00, wqe_rdma_write = 0x08 };

constexpr uint8_t wqe_signalled = 0x08;               // in fm_ce_se: a CQE also on success
constexpr uint32_t wqe_inline_bit = 0x80000000u;      // in the byte count: the payload follows
constexpr uint64_t wqe_most_bytes = 1ull << 30;       // of one WRITE; mind that a byte count of 0 means 2 GiB
constexpr uint32_t wqe_inline_bytes = 28;             // that fit the block behind control and remote segment
constexpr uint32_t wqe_flags = wqe_inline_bytes / 8;  // arrival flags in one inline WRITE
constexpr uint32_t wqe_most_log = 15;  // of the blocks of a queue: with 2^15, a 16-bit index tells what is meant

struct wqe_control {
    be32 index_opcode;  // opmod << 24 | index << 8 | opcode; the index counts blocks and has 16 bits
    be32 qpn_ds;        // queue pair << 8 | length of the WQE in 16-byte units
    uint8_t signature;
    uint8_t dci[2];
    uint8_t fm_ce_se;
    be32 immediate;
};
struct wqe_remote {
    be64 address;
    be32 key;
    be32 reserved;
};
struct wqe_data {
    be32 bytes;
    be32 key;
    be64 address;
};
struct wqe_inline {
    be32 bytes;  // | wqe_inline_bit
    uint32_t words[wqe_inline_bytes / 4];
};

// Control, remote, then one of the two. A WQE without payload has neither (2 units), a WQE that moves nothing the
// control segment alone.
struct alignas(64) wqe {
    wqe_control control;
    wqe_remote remote;
    union {
        wqe_data data;
        wqe_inline inlined;
    };
};

MPIX_FN be32 index_opcode(uint64_t index, uint8_t opcode) {
    return to_be32(static_cast<uint32_t>(index & 0xffff) << 8 | opcode);
}
MPIX_FN be32 qpn_ds(uint32_t qpn, uint32_t units) { return to_be32(qpn << 8 | units); }

// ---- completion-queue entries --------------------------------------------------------------------------------------

enum cqe_opcode : uint8_t { cqe_requester = 0, cqe_requester_error = 13, cqe_invalid = 15 };
constexpr uint8_t cqe_never_written = 0xf0;  // op_own before the NIC's first lap

// Of failed entries. The last one is mpix's own: a completion that no NIC would write.
enum syndrome : uint8_t {
    syndrome_none = 0x00,
    syndrome_local_length = 0x01,
    syndrome_local_operation = 0x02,
    syndrome_local_protection = 0x04,
    syndrome_flushed = 0x05,
    syndrome_remote_access = 0x13,
    syndrome_remote_operation = 0x14,
    syndrome_retries_exceeded = 0x15,
    syndrome_strange_completion = 0xff
};

struct alignas(64) cqe {
    uint8_t not_ours[44];
    be32 bytes;
    uint8_t timestamp[6];
    uint8_t vendor_syndrome;  // these two of failed entries only
    uint8_t syndrome;
    be32 opcode_qpn;  // of the WQE
    // One word, since it is written at once: be16 wqe_counter, signature, op_own (opcode << 4 | owner).
    uint32_t last_word;
};

MPIX_FN uint32_t cqe_last_word(uint64_t wqe_index, uint8_t opcode, bool owner) {
    return static_cast<uint32_t>(to_be16(static_cast<uint16_t>(wqe_index)).raw) |
           (static_cast<uint32_t>(opcode) << 4 | (owner ? 1u : 0u)) << 24;
}
// The entry's last eight bytes in one word: whose it is, and whether it is valid.
MPIX_FN const uint64_t *cqe_tail(const cqe *entry) { return reinterpret_cast<const uint64_t *>(&entry->opcode_qpn); }
MPIX_FN uint64_t cqe_tail(be32 opcode_qpn, uint32_t last_word) { return opcode_qpn.raw | uint64_t{last_word} << 32; }
MPIX_FN uint32_t last_word_of(uint64_t tail) { return static_cast<uint32_t>(tail >> 32); }
MPIX_FN uint32_t qpn_of(uint64_t tail) { return from_be(be32{static_cast<uint32_t>(tail)}) & 0xffffff; }
MPIX_FN uint16_t cqe_counter(uint32_t last_word) { return from_be(be16{static_cast<uint16_t>(last_word)}); }
MPIX_FN uint8_t cqe_kind(uint32_t last_word) { return static_cast<uint8_t>(last_word >> 28); }
// Lap by lap the NIC writes the other value.
MPIX_FN bool cqe_owner(uint64_t entry, uint32_t log_cq) { return (entry >> log_cq & 1) != 0; }
MPIX_FN bool cqe_valid(uint32_t last_word, uint64_t entry, uint32_t log_cq) {
    return cqe_kind(last_word) != cqe_invalid && (last_word >> 24 & 1) == (cqe_owner(entry, log_cq) ? 1u : 0u);
}

// The first error: syndrome << 56 | vendor's syndrome << 48 | low 48 bits of the failed WQE's index. 0 = none.
MPIX_FN uint64_t queue_error(uint8_t syndrome, uint8_t vendor, uint64_t index) {
    return static_cast<uint64_t>(syndrome) << 56 | static_cast<uint64_t>(vendor) << 48 | (index & 0xffffffffffffull);
}
MPIX_FN uint8_t error_syndrome(uint64_t error) { return static_cast<uint8_t>(error >> 56); }
MPIX_FN uint8_t error_vendor(uint64_t error) { return static_cast<uint8_t>(error >> 48); }
MPIX_FN uint64_t error_index(uint64_t error) { return error & 0xffffffffffffull; }

}  // namespace mpix::detail

// ---- the queue ------------------------------------------------------------------------------------------------------

// What executor and NIC share, each by its own addresses.
struct mpix_queue_rings {
    mpix::detail::wqe *sq;  // 2^log_sq blocks
    mpix::detail::cqe *cq;  // 2^log_cq entries, no fewer than the blocks: every WQE may complete with one
    uint32_t *sq_record;    // big-endian: the low 16 bits of the index behind the last handed-over block
    uint32_t *cq_record;    // big-endian: the low 24 bits of the number of entries consumed
    uint64_t *doorbell;     // the NIC's register; null: the NIC is not rung, it looks at the record by itself
    uint32_t log_sq, log_cq;
    uint32_t qpn;
    uint32_t reserved;
};

// For a host that does not reach the queue's own words.
struct mpix_queue_report {
    uint64_t completed, error;  // as in mpix_work_queue
};

enum mpix_poller { MPIX_POLLER_HOST = 0, MPIX_POLLER_GPU = 1 };

// Threads of one executor post. Both host and GPU may poll, at any time, where both reach these words; where the words
// lie in the GPU's own memory it polls alone, and the host reads the report. The counters have 64 bits, count blocks or
// entries from wherever the NIC's do, and never wrap; index & 0xffff is what the NIC knows.
struct mpix_work_queue {
    struct mpix_queue_rings rings;
    uint64_t *filled;  // per slot: the index behind the posting that begins there; older: not filled yet
    struct mpix_queue_report *report;  // may be null

    alignas(64) uint64_t head;  // blocks below are reserved
    alignas(64) uint64_t
        publishing;  // calls of publish that the thread in charge has not settled; 0: nobody is in charge
    uint64_t ready;  // blocks below are handed over; belongs to the thread in charge
    // By mpix_poller. GPU and host each claim their own `polling`, then raise their own `busy` against the other's.
    alignas(64) uint64_t polling[2];
    uint64_t busy[2];
    uint64_t consumed;               // entries of the CQ; belongs to who polls
    alignas(64) uint64_t completed;  // blocks below may be reserved again
    uint64_t error;                  // the first, see queue_error; the queue is of no use then
};

// What Pready posts of one request: the host's prebuilt WQEs, for each partition its payload and then its arrival flag.
// Of a request also its end: two more, for the flag of the whole message, and for the word by which the receiver's host
// learns of it.
struct mpix_posting {
    struct mpix_work_queue *queue;
    const mpix::detail::wqe *blocks;  // partitions * (payload_blocks + 1), and the end's
    char *staging;  // packed byte 0 of where Pready puts the payload before; null: the entries read the
                    // user's buffer
    uint64_t partition_bytes;
    uint32_t partitions;
    uint32_t payload_blocks;  // of one partition
    uint32_t contiguous;      // partitions follow each other without a gap, at both ends
    uint32_t gaps;            // the user's buffer has some: it is packed into `staging`
};

namespace mpix::detail {
static_assert(sizeof(wqe_control) == 16 && sizeof(wqe_remote) == 16 && sizeof(wqe_data) == 16);
static_assert(sizeof(wqe_inline) == 32 && sizeof(wqe) == 64 && offsetof(wqe, data) == 32);
static_assert(offsetof(wqe_control, fm_ce_se) == 11 && offsetof(wqe_control, immediate) == 12);
static_assert(sizeof(cqe) == 64 && offsetof(cqe, bytes) == 44 && offsetof(cqe, vendor_syndrome) == 54);
static_assert(offsetof(cqe, opcode_qpn) == 56 && offsetof(cqe, last_word) == 60);
static_assert(sizeof(mpix_queue_rings) == 56 && sizeof(mpix_work_queue) == 384 && sizeof(mpix_posting) == 48);
static_assert(offsetof(mpix_work_queue, head) == 128 && offsetof(mpix_work_queue, completed) == 320);
}  // namespace mpix::detail

#endif  // MPIX_DETAIL_WORK_QUEUE_H
