// SPDX-License-Identifier: BSD-3-Clause
//
// How a test's thread waits for another.
#ifndef MPIX_TESTS_BACKOFF_HPP
#define MPIX_TESTS_BACKOFF_HPP

#include <chrono>
#include <thread>

// pause() between two looks. On a busy machine a thread that yields gets its core back only after everybody else; one that has
// slept gets it soon. So it yields a few times, and then sleeps.
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
