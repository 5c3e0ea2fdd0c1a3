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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "transport/reserve.h"
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

// What bodies are made of. All of it is trivially copyable, without padding, and may hold any bytes until it has been
// checked.

// A sentence, or no text. It ends in a zero; what does not fit is cut off.
struct control_text {
    char characters[136] = {};

    bool empty() const { return characters[0] == '\0'; }
    const char *c_str() const { return characters; }
    void assign(std::string_view sentence) {
        *this = {};
        sentence.copy(characters, sizeof characters - 1);
    }
    bool terminated() const { return std::memchr(characters, '\0', sizeof characters) != nullptr; }
};

// Some of the flags that `Flag` names; its `last` is the highest.
template <class Flag>
struct flag_set {
    using number = std::underlying_type_t<Flag>;
    number bits = 0;

    bool has(Flag flag) const { return (bits & static_cast<number>(flag)) != 0; }
    void set(Flag flag, bool on = true) {
        if (on) bits |= static_cast<number>(flag);
    }
    bool only_known() const { return bits < 2 * static_cast<number>(Flag::last); }
    bool operator==(const flag_set &) const = default;
};

enum class pair_side : std::uint64_t { send = 1, receive = 2 };

// After a refusal other than refused_unreachable, the receiver's clear-to-send tells the sender that the pair is final.
// Until then one of the two requests may be freed before it is started, and the other matched anew. A process that
// cannot be reached cannot be told anything.
enum refusal_reason : std::uint32_t { refused_not, refused_size, refused_path, refused_unreachable };

// ---- the bodies, one for each kind -------------------------------------------------------------

enum class offer_flag : std::uint64_t {
    has_devices = 1,      // the sender has GPUs
    in_place = 2,         // a single copy: the sender reaches the receiver's memory, and tells of the send buffer
    gpu_put = 4,          // the sender's network can put into GPU memory what it sends
    inline_packed = 8,    // partitions are small enough for an inline buffer of a receive without gaps
    inline_to_gaps = 16,  // and of one with gaps
    rget = 32,            // kernels of the receiver may read the send buffer (rget.h)
    last = rget
};

struct offer_body {
    static constexpr control kind = control::offer;
    std::uint64_t communicator = 0;  // its name; with the tag and the sender's rank the key by which requests match
    std::int32_t tag = 0;
    std::int32_t partitions = 0;  // of the send
    std::uint64_t bytes = 0;      // of the send's whole message
    flag_set<offer_flag> flags{};
    transport::wire_region words{};         // the sender's
    transport::wire_region send_buffer{};   // with `rget` or `in_place`
    transport::wire_region kernel_words{};  // in GPU memory; none (id_none): see sender_memory.h
    control_text no_network{};              // why `words` are not reached by the network that this pair needs
};
static_assert(sizeof(offer_body) == 744);

enum class accept_flag : std::uint32_t {
    in_chunks = 1,      // the message travels in chunks, each with its flag (chunks.h)
    inline_buffer = 2,  // one lies behind the arrival flags (inline_drain.h)
    in_place = 4,  // a single copy: the landing is the receive buffer, in the receiver's own memory; the words that say
                   // who copies what (mpix_prequest.taken) lie behind the arrival flags
    rget = 8,      // kernels will read the send buffer; RTS words lie behind the arrival flags, before an inline buffer
    last = rget
};

struct accept_body {
    static constexpr control kind = control::accept;
    refusal_reason refusal = refused_not;  // if it is another, only `reason` counts of the rest
    std::int32_t partitions = 0;           // of the receive
    std::uint64_t bytes = 0;               // of the receive's whole message
    std::uint32_t slots = 0;               // 1, or 2; within a node that is as many as the landing has room for
    flag_set<accept_flag> flags{};
    transport::wire_region words{};  // the receiver's
    transport::wire_region landing{};
    transport::wire_region arrival{};  // the arrival flags
    // What else there is to say of the landing: the plan of its gaps (plan_wire.h); of GPU memory that a network
    // reaches, the rest of the description. Else zero.
    transport::wire_region landing_supplement{};
    control_text reason{};  // of the refusal
};
static_assert(sizeof(accept_body) == 928);

struct connect_body {
    static constexpr control kind = control::connect;
    refusal_reason refusal = refused_not;
    control_text reason{};  // of the refusal
};
static_assert(sizeof(connect_body) == 140);

struct started_body {
    static constexpr control kind = control::started;
};

struct withdraw_body {
    static constexpr control kind = control::withdraw;
    pair_side by = pair_side::send;
};
static_assert(sizeof(withdraw_body) == 8);

struct detach_body {
    static constexpr control kind = control::detach;
};

constexpr std::size_t introduction_piece = 768;
constexpr std::uint64_t introduction_limit = 64 * introduction_piece;

struct introduce_body {
    static constexpr control kind = control::introduce;
    transport::transport_id network = transport::id_none;
    std::uint32_t offset = 0;         // of this piece in the address
    std::uint64_t address_bytes = 0;  // in all pieces
    std::uint8_t piece[introduction_piece] = {};

    std::size_t piece_bytes() const {
        return static_cast<std::size_t>(std::min<std::uint64_t>(introduction_piece, address_bytes - offset));
    }
};
static_assert(sizeof(introduce_body) == 784);

struct inquire_body {
    static constexpr control kind = control::inquire;
    std::uint64_t communicator = 0;  // the name of the asking request's
    pair_side by = pair_side::send;
};
static_assert(sizeof(inquire_body) == 16);

struct answer_body {
    static constexpr control kind = control::answer;
    control_text state{};  // continues "rank n has"
};
static_assert(sizeof(answer_body) == 136);

using control_body = std::variant<offer_body, accept_body, connect_body, started_body, withdraw_body, detach_body,
                                  introduce_body, inquire_body, answer_body>;

struct control_message {
    std::uint64_t from = 0;  // the sender's own number of its request; 0: the message is of none
    std::uint64_t to = 0;    // the addressee's number of its request; likewise
    control_body body{};
};

// How many of these bytes there are up to the last that is not zero, rounded up to a multiple of 8 (as `bytes` is).
std::size_t filled_bytes(const void *from, std::size_t bytes);

// A body that is kept without the zeros at its end, of which most of it usually consists.
class body_at_rest {
public:
    body_at_rest() = default;
    template <class Body>
    explicit body_at_rest(const Body &body) {
        static_assert(sizeof body % sizeof(std::uint64_t) == 0);
        const auto *const from = reinterpret_cast<const std::byte *>(&body);
        filled_.assign(from, from + filled_bytes(from, sizeof body));
    }
    // Of the same kind.
    template <class Body>
    Body get() const {
        Body body;
        std::memset(static_cast<void *>(&body), 0, sizeof body);
        std::copy(filled_.begin(), filled_.end(), reinterpret_cast<std::byte *>(&body));
        return body;
    }

private:
    transport::safe_vector<std::byte> filled_;
};

// ---- on the way --------------------------------------------------------------------------------

// "mpxc". The last letter changes with the format: processes with different formats ignore each other's messages, and
// say so.
constexpr std::uint32_t control_magic = 0x6378706d;

struct control_header {
    std::uint32_t magic;
    control kind;
    std::uint64_t from, to;
};
static_assert(sizeof(control_header) == 24);

// The header, the body, and zeros. One size for all kinds.
struct control_packet {
    alignas(std::uint64_t) std::byte bytes[960];
};
static_assert(sizeof(control_packet) == 960);

control_packet encode_control(const control_message &message);

// The packet's length without the zeros at its end, a multiple of 8.
std::size_t filled_bytes(const control_packet &packet);

// Decodes a packet, of which nothing is trusted, and checks all that can be checked without knowing the requests.
// `out` is set only with success.
status check_control(const void *packet, std::size_t bytes, control_message &out);

}  // namespace mpix

#endif  // MPIX_HOST_CONTROL_MESSAGE_H
