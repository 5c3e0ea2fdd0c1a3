// SPDX-License-Identifier: BSD-3-Clause
//
// How a thread of a test waits for another.
#ifndef MPIX_TESTS_BACKOFF_HPP
#define MPIX_TESTS_BACKOFF_HPP

#include <chrono>
#include <thread>

// Call pause() between two polls. On a busy machine a thread that yields runs again only after all others, one that
// wakes up from sleep sooner. So it yields a few times, and then sleeps.
class backoff {
public:
    void pause() {
        if (++looks_ <= 16)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(50));
    }

private:
    unsigned looks_ = 0;
};

#endif  // MPIX_TESTS_BACKOFF_HPP
