// SPDX-License-Identifier: BSD-3-Clause
//
// What MPIX_EXPLAIN=1 prints: lines on stderr that say whose they are.
#ifndef MPIX_HOST_EXPLAIN_TEXT_H
#define MPIX_HOST_EXPLAIN_TEXT_H

#include <unistd.h>

#include <cerrno>
#include <string>

#include "host/format.h"
#include "host/report.h"

namespace mpix {

class explain_text {
public:
    explain_text() { start_ = format("mpix explain: rank {}: ", this_world_rank()); }
    void line(const std::string &what) { whole_ += start_ + what + "\n"; }

    // At once, so that the lines of several ranks and threads do not mix.
    void print() const {
        for (std::size_t at = 0; at < whole_.size();) {
            const ssize_t n = write(STDERR_FILENO, whole_.data() + at, whole_.size() - at);
            if (n < 0 && errno != EINTR) return;
            if (n > 0) at += static_cast<std::size_t>(n);
        }
    }

private:
    std::string start_, whole_;
};

}  // namespace mpix

#endif  // MPIX_HOST_EXPLAIN_TEXT_H
