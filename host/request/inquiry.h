// SPDX-License-Identifier: BSD-3-Clause
//
// A long wait asks the peer for the state of the other request of the pair, or for its unmatched requests. The peer
// answers when it makes progress; if it does not, the report says so.
#ifndef MPIX_HOST_REQUEST_INQUIRY_H
#define MPIX_HOST_REQUEST_INQUIRY_H

#include <chrono>
#include <cstdint>
#include <string>

namespace mpix {

class request;
struct answer_body;
struct inquire_body;

// A request's question to its peer, and the answer. Guarded by setup_mutex.
struct inquiry {
    std::uint64_t epoch = 0;  // in which it was asked
    bool pending = false;
    std::string answer;  // the latest
    std::chrono::steady_clock::time_point answered;
};

// Ask, unless a question is pending, or this side knows as much as the peer. The caller holds no lock.
void inquire(request &r);

// setup_mutex is held from here on.
// `to`: the request that the peer's is matched with, 0: none that the peer knows. `from`: the peer's.
void answer_inquiry(int source, std::uint64_t from, std::uint64_t to, const inquire_body &question);
void take_answer(request &r, const answer_body &answer);
// What the peer of a waiting request has answered; empty if it was not asked in this epoch.
std::string peer_says(const request &r);

// "once", "twice", "3 times"
std::string times(std::uint64_t n);

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_INQUIRY_H
