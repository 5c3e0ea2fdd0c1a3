// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_tables/copy_shares.h"

#include <algorithm>

#include <mpix/detail/divide.h>

namespace mpix::halo {
namespace {

using detail::device_copy;

// Cuts a copy into parts of at most so many words, across its outermost loop that has several turns: of three loops over runs, and
// the one over the words of a run. A turn that is too long itself is cut likewise.
void cut(const device_copy &c, std::uint32_t most_words, std::vector<device_copy> &parts) {
    const std::uint32_t all = words_of(c);
    if (all <= most_words) {
        parts.push_back(c);
        set_divisors(parts.back());
        return;
    }
    int loop = 2;
    while (loop >= 0 && c.count[loop] == 1) --loop;
    const std::uint32_t turns = loop < 0 ? c.words : c.count[loop], words_of_turn = all / turns;
    const std::uint32_t each = std::max(most_words / words_of_turn, std::uint32_t{1});
    for (std::uint32_t first = 0; first < turns; first += each) {
        device_copy part = c;
        (loop < 0 ? part.words : part.count[loop]) = std::min(each, turns - first);
        const std::int64_t behind = first * (loop < 0 ? c.word_bytes : c.stride[loop]);
        const std::int64_t own_behind = first * (loop < 0 ? c.word_bytes : c.own_stride[loop]);
        for (int i = 0; i < 2; ++i) {
            part.cells[i] += behind;
            part.own_cells[i] += own_behind;
        }
        cut(part, most_words, parts);
    }
}

}  // namespace

void set_divisors(device_copy &c) {
    c.by_words = mpix::detail::narrowed(mpix::detail::make_divisor(c.words));
    for (int loop = 0; loop < 2; ++loop)
        c.by_count[loop] = mpix::detail::narrowed(mpix::detail::make_divisor(c.count[loop]));
}

std::vector<std::vector<device_copy>> share_out(const std::vector<device_copy> &copies, std::uint32_t most_words) {
    std::vector<device_copy> parts;
    for (const device_copy &c : copies) cut(c, most_words, parts);
    std::vector<std::vector<device_copy>> shares;
    std::uint32_t words = most_words;  // of the last share
    for (const device_copy &part : parts) {
        if (shares.empty() || words + words_of(part) > most_words) {
            shares.emplace_back();
            words = 0;
        }
        shares.back().push_back(part);
        words += words_of(part);
    }
    return shares;
}

}  // namespace mpix::halo
