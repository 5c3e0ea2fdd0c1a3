// SPDX-License-Identifier: BSD-3-Clause
//
// How a thread of a test waits for another.
#ifndef MPIX_TESTS_BACKOFF_HPP
#define MPIX_TESTS_BACKOFF_HPP

#include <chrono>
#include <thread>

#include <mpix/detail/give_way.h>

// Call pause() between two polls. It yields a few times, and then sleeps. Beside busy processes, where yields are slow, it
// sleeps at once.
class backoff {
public:
    void pause() {
        if (++looks_ > 16 || !mpix::detail::try_yield()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }

private:
    unsigned looks_ = 0;
};

#endif  // MPIX_TESTS_BACKOFF_HPP
