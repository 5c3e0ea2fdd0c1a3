// SPDX-License-Identifier: BSD-3-Clause
//
// Words on their way to a device: they wait for their copies in page-locked memory, which is used as a ring.
#ifndef MPIX_TRANSPORT_CUDA_IPC_POSTED_WORDS_H
#define MPIX_TRANSPORT_CUDA_IPC_POSTED_WORDS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/status.h"

namespace mpix::transport {

/** Not thread-safe. */
class posted_words {
public:
    static constexpr std::size_t room = 4096;

    bool has_memory() const { return words_ != nullptr; }
    /** `room` words, which the caller keeps. */
    void use(std::uint64_t *words) { words_ = words; }

    /**
     * Posts `value` to `count` words from `to` on. `copy(to, from, n)` begins a copy of n words, and may return before these
     * are read; `drain()` returns when all copies that were begun are done. The first status that is not good is returned.
     */
    template <class Copy, class Drain>
    status post(std::uint64_t *to, std::uint64_t value, std::uint64_t count, const Copy &copy, const Drain &drain) {
        while (count != 0) {
            if (next_ == room) {
                if (status bad = drain(); !bad.ok()) return bad;
                next_ = 0;
            }
            const std::uint64_t n = std::min<std::uint64_t>(count, room - next_);
            std::uint64_t *const from = words_ + next_;
            std::fill_n(from, n, value);
            next_ += n;
            if (status bad = copy(to, from, n); !bad.ok()) return bad;
            to += n;
            count -= n;
        }
        return {};
    }

private:
    std::uint64_t *words_ = nullptr;
    std::size_t next_ = 0;
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_CUDA_IPC_POSTED_WORDS_H
