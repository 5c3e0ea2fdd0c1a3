// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_steps/step_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "host/format.h"

namespace mpix::halo {
namespace {

// "1.23 M": three digits, and the prefix of a unit.
std::string with_prefix(double value) {
    const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    int i = 0;
    for (; value >= 999.5 && i < 6; ++i) value /= 1000;
    char text[64];
    std::snprintf(text, sizeof text, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, prefixes[i]);
    return text;
}

// Rounded up to a second, or to a minute.
std::string time_text(double seconds) {
    if (!(seconds < 1e15)) return "very long";
    const auto all = static_cast<std::int64_t>(std::ceil(seconds));
    if (all < 60) return format("{} s", all);
    if (all < 3600) return format("{} min {} s", all / 60, all % 60);
    const std::int64_t minutes = (all + 59) / 60;
    return format("{} h {} min", minutes / 60, minutes % 60);
}

}  // namespace

std::string step_line::after(std::int64_t steps, double now) {
    done_ = steps > std::numeric_limits<std::int64_t>::max() - done_ ? std::numeric_limits<std::int64_t>::max()
                                                                     : done_ + steps;
    if (now - last_ < 1) return {};
    std::string text = format("step {}", done_);
    if (run_.steps > 0) {
        const double percent = 100 * (static_cast<double>(done_) / static_cast<double>(run_.steps));
        text += format(" of {} ({} %)", run_.steps, done_ < run_.steps ? std::min(static_cast<int>(percent), 99) : 100);
    }
    text += ", " + rates(done_ - told_, now - last_);
    if (run_.steps > done_ && done_ > 0)
        text += format(", {} left", time_text((now - begin_) / static_cast<double>(done_) *
                                              static_cast<double>(run_.steps - done_)));
    told_ = done_;
    last_ = now;
    return as_line(text, false);
}

std::string step_line::end(double now) const {
    if (done_ == 0) return {};
    const double seconds = now - begin_;
    std::string text = format("{} steps in {}s", done_, with_prefix(seconds));
    if (seconds > 0) text += ", " + rates(done_, seconds);
    return as_line(text, true);
}

std::string step_line::rates(std::int64_t steps, double seconds) const {
    const double rate = static_cast<double>(steps) / seconds;
    std::string text = with_prefix(rate) + "steps/s, " + with_prefix(rate * run_.cells) + "cells/s";
    if (run_.bytes > 0) text += ", " + with_prefix(rate * run_.bytes) + "B/s";
    return text;
}

std::string step_line::as_line(const std::string &text, bool is_last) const {
    if (!run_.on_terminal) return text + "\n";
    return "\r" + text + "\033[K" + (is_last ? "\n" : "");  // the rest of the line before is erased
}

}  // namespace mpix::halo
