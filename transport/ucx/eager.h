// SPDX-License-Identifier: BSD-3-Clause
//
// Puts of up to MPIX_UCX_EAGER_BYTES (over TCP all), and all words, as messages that the receiving process stores
// itself, in its progress ("eager", as MPI libraries call what they send without asking). Bytes and the words behind
// them share a message, so that a word waits neither for a fence nor for a flush.
//
// A message: a head, and records of an address and bytes, padded to 8. Messages of one process are applied in the order
// of their numbers, whatever order they come in: UCX may have several ways to a peer. Nothing is stored outside of what
// is exposed.
//
// One thread at a time.
#ifndef MPIX_TRANSPORT_UCX_EAGER_H
#define MPIX_TRANSPORT_UCX_EAGER_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "transport/reserve.h"
#include "transport/transport.h"

namespace mpix::transport::ucx {

struct eager_head {
    std::uint64_t sender;  // the number by which the receiver calls it
    std::uint64_t number;  // of the message, among those to this receiver, from 0
};

enum class eager_kind : std::uint32_t {
    bytes = 1,  // to `address`
    word,       // of 8 bytes, to `address`: behind all records before it
    question,   // are all messages below number `address` applied? No bytes
    answer,     // to such a question: `address` is its
};

struct eager_record {
    std::uint64_t address;
    std::uint32_t bytes;
    std::uint32_t kind;
};

// A message: what comes before the body, the body, and what comes behind it. The body lies in memory of the caller's; a
// message need not have one.
struct eager_parts {
    std::vector<std::uint8_t> before;
    const void *body = nullptr;
    std::size_t body_bytes = 0;
    std::vector<std::uint8_t> behind;
};

// Of a message, the records so far.
class eager_outbox {
public:
    // A message has about so many bytes: what UCX sends as one piece over any network (1.13, UCX_TCP_TX_SEG_SIZE: 8
    // KiB), and what it sends and receives as one over TCP without a copy of its own (UCX_TCP_RX_SEG_SIZE: 64 KiB).
    static constexpr std::size_t message_bytes = 8000, message_bytes_over_tcp = 56 * 1024;
    // Of these a body has at most so many: the rest is for the words before and behind it.
    static constexpr std::size_t body_bytes_over_tcp = 52 * 1024;
    void set_message_bytes(std::size_t bytes) { message_bytes_ = bytes; }

    void put(std::uint64_t address, const void *from, std::size_t bytes) {
        add(eager_kind::bytes, address, from, bytes);
        stores_ = true;
    }
    // The same without a copy: `from` stays as it is until the message has been sent. Once in a message.
    void put_in_place(std::uint64_t address, const void *from, std::size_t bytes);
    bool has_body() const { return parts_.body != nullptr; }
    void put_word(std::uint64_t address, std::uint64_t value) {
        add(eager_kind::word, address, &value, sizeof value);
        stores_ = true;
    }
    void ask(std::uint64_t below) { add(eager_kind::question, below, nullptr, 0); }
    void answer(std::uint64_t below) { add(eager_kind::answer, below, nullptr, 0); }

    bool empty() const { return message_.empty() && !has_body(); }
    // Whether so many bytes more go into the same message.
    bool has_room(std::size_t bytes) const;
    // The message, numbered.
    eager_parts take(std::uint64_t sender);
    void clear() {
        message_.clear();
        parts_ = {};
    }
    // So many messages were taken when the last was that stores something: those have to be applied for all that to be
    // there.
    std::uint64_t storing() const { return storing_; }

private:
    void add(eager_kind kind, std::uint64_t address, const void *from, std::size_t bytes);

    // A record's head, and room for so many bytes behind it, whose place it returns.
    std::size_t add_record(const eager_record &head, std::size_t room);

    std::vector<std::uint8_t> message_;  // or, if there is a body, what comes behind it
    eager_parts parts_;
    std::size_t message_bytes_ = message_bytes;
    bool stores_ = false;  // what is in the message
    std::uint64_t taken_ = 0, storing_ = 0;
};

// Of one peer's messages, what has been applied.
class eager_inbox {
public:
    using exposed = std::function<bool(std::uint64_t address, std::uint64_t bytes)>;

    // Fails if it is malformed, or names memory that is not exposed; what stands before that is applied.
    status arrive(const void *message, std::size_t bytes, const exposed &is_exposed);

    // Whether there is a question that has not been taken; and the last.
    bool asks() const { return question_ != 0; }
    std::uint64_t question() const { return question_; }
    std::uint64_t take_question() { return std::exchange(question_, 0); }
    // So many of our messages has the peer applied.
    std::uint64_t answered() const { return answered_; }

private:
    status apply(const std::uint8_t *record, std::size_t bytes, const exposed &is_exposed);

    std::uint64_t next_ = 0;
    safe_map<std::uint64_t, safe_vector<std::uint8_t>> early_;  // by number
    std::uint64_t question_ = 0, answered_ = 0;
};

}  // namespace mpix::transport::ucx

#endif  // MPIX_TRANSPORT_UCX_EAGER_H
