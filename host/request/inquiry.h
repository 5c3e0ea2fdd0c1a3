// SPDX-License-Identifier: BSD-3-Clause
//
// A wait that takes long asks the peer what it has there: how far the other request of the pair is, or which requests wait
// there for a partner. The peer answers in its progress; a peer that makes none has not answered, which is said as well.
#ifndef MPIX_HOST_REQUEST_INQUIRY_H
#define MPIX_HOST_REQUEST_INQUIRY_H

#include <chrono>
#include <cstdint>
#include <string>

namespace mpix {

class request;
struct control_message;

// What a request has asked its peer, and heard. Guarded by setup_mutex.
struct inquiry {
    std::uint64_t epoch = 0;  // in which it was asked
    bool pending = false;
    std::string answer;  // the latest
    std::chrono::steady_clock::time_point answered;
};

// Ask, unless the last question has not been answered yet, or we know as much as the peer. No lock is held.
void inquire(request &r);

// setup_mutex is held from here on.
void answer_inquiry(int source, const control_message &question);
void take_answer(request &r, const control_message &answer);
// What is known of the peer of a request that waits; empty if it was not asked in this epoch.
std::string peer_says(const request &r);

// "once", "twice", "3 times"
std::string times(std::uint64_t n);

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_INQUIRY_H
