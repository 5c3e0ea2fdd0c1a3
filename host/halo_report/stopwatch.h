// SPDX-License-Identifier: BSD-3-Clause
//
// The time that calls of an exchange take, if it is measured.
#ifndef MPIX_HOST_HALO_REPORT_STOPWATCH_H
#define MPIX_HOST_HALO_REPORT_STOPWATCH_H

#include <chrono>
#include <mutex>

namespace mpix::halo {

using exchange_clock = std::chrono::steady_clock;

inline double seconds_since(exchange_clock::time_point begun) {
    return std::chrono::duration<double>(exchange_clock::now() - begun).count();
}

// Adds the time until its end to a sum, which `guard` guards, if that is given.
class stopwatch {
public:
    stopwatch(bool on, double &sum, std::mutex *guard = nullptr) : on_(on), sum_(sum), guard_(guard) {
        if (on) since_ = exchange_clock::now();
    }
    ~stopwatch() {
        if (!on_) return;
        const double passed = seconds_since(since_);
        const auto lock = guard_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*guard_);
        sum_ += passed;
    }
    stopwatch(const stopwatch &) = delete;
    stopwatch &operator=(const stopwatch &) = delete;

private:
    const bool on_;
    double &sum_;
    std::mutex *const guard_;
    exchange_clock::time_point since_;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_REPORT_STOPWATCH_H
