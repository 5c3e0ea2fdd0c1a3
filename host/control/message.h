// SPDX-License-Identifier: BSD-3-Clause
//
// The messages by which two processes set up a pair of requests.
//
//   sender                                 receiver
//     OFFER  ------------------------------>            at MPI_Psend_init
//            <------------------------------ ACCEPT     when the matching MPI_Precv_init is there: where
//                                                       to put the bytes; or why it cannot be
//     CONNECT ----------------------------->            mapped; the receiver may now give clear-to-send
//     STARTED ----------------------------->            at its first MPI_Start: it will not withdraw
//     INTRODUCE either way                              before all others, to a process on another node: how
//                                                       the network reaches me, in pieces
//     WITHDRAW  either way                              freed before it was ever started: undo the match; or, from
//                                                       the receiver: its match is another send
//     DETACH    either way                              freed, or answer to WITHDRAW: I no longer touch your
//                                                       memory, you may give it up
//     INQUIRE   either way                              after a long wait: what is your state?
//     ANSWER    either way                              to INQUIRE
#ifndef MPIX_HOST_CONTROL_MESSAGE_H
#define MPIX_HOST_CONTROL_MESSAGE_H

#include <cstdint>
#include <string>

#include "transport/transport.h"

namespace mpix {

enum class control : std::uint32_t {
    offer = 1,
    accept,
    connect,
    started,
    withdraw,
    detach,
    introduce,
    inquire,
    answer
};

// One size for all kinds; what a kind does not use is zero.
struct control_message {
    std::uint32_t magic;
    std::uint32_t kind;  // control
    std::uint64_t from;  // the sender's own number of its request
    std::uint64_t to;    // the addressee's request; 0 in OFFER and INTRODUCE
    // OFFER, INQUIRE: the matching key (the source is the process of the send)
    std::uint64_t communicator;
    std::int32_t tag;         // INTRODUCE: the network's transport_id
    std::int32_t partitions;  // OFFER: the sender's; ACCEPT: the receiver's
    std::uint64_t bytes;      // the whole message, as this side has it; INTRODUCE: the whole address
    std::uint32_t flags;      // OFFER: offer_has_devices, ...; ACCEPT: slots of the landing, accept_in_chunks;
                              // INTRODUCE: where in the address this piece begins; INQUIRE: the mpix_kind of `from`
    std::uint32_t refusal;    // ACCEPT, CONNECT: a refusal_reason
    transport::wire_region words;    // this side's words; INTRODUCE: from here on introduction_piece bytes
    transport::wire_region landing;  // ACCEPT; OFFER: with offer_pull, the send buffer
    transport::wire_region
        arrival;  // ACCEPT: the arrival flags; OFFER: with offer_pull, where kernels tell what they wait for
    transport::wire_region layout;  // ACCEPT: the plan of a landing that has gaps (plan_wire.h), or the rest of the
                                    // description of GPU memory that a network reaches; else zero
    char reason[136];               // with a refusal: a sentence, terminated; ANSWER: what there is, likewise
};
static_assert(sizeof(control_message) == 960);

constexpr std::size_t introduction_piece = 4 * sizeof(transport::wire_region);
constexpr std::uint64_t introduction_limit = 64 * introduction_piece;

constexpr std::uint32_t control_magic = 0x6278706d;  // "mpxb"
constexpr std::uint32_t offer_has_devices = 1;
constexpr std::uint32_t offer_in_place = 2;  // the sender can write into a receive buffer in host memory itself
constexpr std::uint32_t offer_gpu_put = 4;   // the sender's network can put into GPU memory what it sends
constexpr std::uint32_t offer_inline = 8;  // partitions are small enough for an inline buffer of a receive without gaps
constexpr std::uint32_t offer_inline_to_gaps = 16;  // and of one with gaps
constexpr std::uint32_t offer_pull =
    32;  // kernels may read the send buffer (rget.h): it is `landing`, `arrival` what they want
constexpr std::uint32_t accept_slots = 3;   // mask: 1, or 2; within a node that is as many as the landing has room for
constexpr std::uint32_t accept_inline = 8;  // an inline buffer lies behind the arrival flags (inline_drain.h)
constexpr std::uint32_t accept_in_place = 16;  // the landing is the receive buffer, in the receiver's own memory
constexpr std::uint32_t accept_pull = 32;      // they will; RTS words lie behind the arrival flags
constexpr std::uint32_t accept_in_chunks = 4;  // the message travels in chunks, each with its flag (chunks.h)

// After a refusal other than refused_unreachable, the receiver's clear-to-send tells the sender that the pair is final.
// Until then one of the two requests may be freed before it is started, and the other matched anew. A process that
// cannot be reached cannot be told anything.
enum refusal_reason : std::uint32_t { refused_not, refused_size, refused_path, refused_unreachable };

control_message make_control(control kind, std::uint64_t from, std::uint64_t to);

// Checks what can be checked without knowing the requests. Returns a sentence if the message is not valid, else an
// empty string.
std::string check_control(const void *data, std::size_t bytes, control_message &out);

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_MESSAGE_H
