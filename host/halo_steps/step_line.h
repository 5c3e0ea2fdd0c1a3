// SPDX-License-Identifier: BSD-3-Clause
//
// When a line on a run of many steps is due, and what it says. Times are the caller's, in seconds.
#ifndef MPIX_HOST_HALO_STEPS_STEP_LINE_H
#define MPIX_HOST_HALO_STEPS_STEP_LINE_H

#include <cstdint>
#include <string>

namespace mpix::halo {

class step_line {
public:
    struct run {
        std::int64_t steps = 0;  // 0: not known
        // Of one step, of all ranks.
        double cells = 0, bytes = 0;
        bool on_terminal = false;
    };
    step_line(const run &r, double now) : run_(r), begin_(now), last_(now) {}

    // After some more steps: what to write, or nothing.
    std::string after(std::int64_t steps, double now);
    // At the end: the last line, or nothing if no step was done.
    std::string end(double now) const;

private:
    std::string rates(std::int64_t steps, double seconds) const;
    std::string as_line(const std::string &text, bool is_last) const;

    run run_;
    double begin_, last_;  // when the run began; when the last line was written
    std::int64_t done_ = 0, told_ = 0;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_STEPS_STEP_LINE_H
