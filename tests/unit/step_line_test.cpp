// SPDX-License-Identifier: BSD-3-Clause
//
// The line on a run of many steps, by a clock that the test turns.
#include "host/halo_steps/step_line.h"

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "tests/catch.hpp"

using mpix::halo::step_line;

TEST_CASE("a line has the steps, the rates since the last line, and the time left by the whole run") {
    step_line line({.steps = 1000, .cells = 2e6, .bytes = 3e5}, 100);
    CHECK(line.after(50, 100.5).empty());
    CHECK(line.after(50, 102) == "step 100 of 1000 (10 %), 50.0 steps/s, 100 Mcells/s, 15.0 MB/s, 18 s left\n");
    CHECK(line.after(200, 102.9).empty());
    // 500 steps in the last 2.5 s; 600 in 4.5 s.
    CHECK(line.after(300, 104.5) == "step 600 of 1000 (60 %), 200 steps/s, 400 Mcells/s, 60.0 MB/s, 3 s left\n");
    CHECK(line.after(400, 105.5) == "step 1000 of 1000 (100 %), 400 steps/s, 800 Mcells/s, 120 MB/s\n");
    CHECK(line.after(1, 106.5) == "step 1001 of 1000 (100 %), 1.00 steps/s, 2.00 Mcells/s, 300 kB/s\n");
    CHECK(line.end(110.01) == "1001 steps in 10.0 s, 100 steps/s, 200 Mcells/s, 30.0 MB/s\n");
}

TEST_CASE("without the number of steps, or bytes, the line has neither percentage nor time, or no bytes") {
    step_line line({.cells = 10}, 0);
    CHECK(line.after(3, 2) == "step 3, 1.50 steps/s, 15.0 cells/s\n");
    CHECK(line.end(3) == "3 steps in 3.00 s, 1.00 steps/s, 10.0 cells/s\n");
    CHECK(step_line({.cells = 10}, 5).end(9).empty());  // no step
    step_line at_once({.cells = 10}, 5);
    CHECK(at_once.after(2, 5).empty());
    CHECK(at_once.end(5) == "2 steps in 0.00 s\n");  // no rate
}

TEST_CASE("a terminal's line is written over, and the last one stays") {
    step_line line({.steps = 4, .cells = 1, .on_terminal = true}, 0);
    CHECK(line.after(2, 1) == "\rstep 2 of 4 (50 %), 2.00 steps/s, 2.00 cells/s, 1 s left\033[K");
    CHECK(line.end(2) == "\r2 steps in 2.00 s, 1.00 steps/s, 1.00 cells/s\033[K\n");
}

TEST_CASE("long times are in minutes and hours") {
    const auto left = [](double seconds) {  // of one step of two
        step_line line({.steps = 2, .cells = 1}, 0);
        const std::string text = line.after(1, seconds);
        return text.substr(text.rfind(", ") + 2);
    };
    CHECK(left(59.2) == "1 min 0 s left\n");
    CHECK(left(125) == "2 min 5 s left\n");
    CHECK(left(3599.5) == "1 h 0 min left\n");
    CHECK(left(7261) == "2 h 2 min left\n");
    CHECK(left(1e16) == "very long left\n");
}

TEST_CASE("more steps than a number holds are as many as it holds") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    step_line line({.steps = most, .cells = 1, .bytes = 0}, 0);
    CHECK(line.after(most / 2, 2).starts_with("step 4611686018427387903 of 9223372036854775807 (50 %), "));
    CHECK(line.after(most, 4).starts_with("step 9223372036854775807 of 9223372036854775807 (100 %), "));
}

TEST_CASE("there is at most one line in a second, and they tell all steps") {
    std::mt19937 random(9);
    step_line line({.cells = 1}, 0);
    double now = 0, last = 0;
    std::int64_t done = 0;
    int lines = 0;
    for (int i = 0; i < 5000; ++i) {
        now += std::uniform_real_distribution<double>(0, 0.3)(random);
        const int steps = std::uniform_int_distribution<int>(0, 5)(random);
        done += steps;
        const std::string text = line.after(steps, now);
        CHECK(text.empty() == (now - last < 1));
        if (text.empty()) continue;
        CHECK(text.starts_with("step " + std::to_string(done) + ","));
        last = now;
        ++lines;
    }
    CHECK(lines > 300);
}
