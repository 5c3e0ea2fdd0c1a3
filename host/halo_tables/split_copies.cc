// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_tables/split_copies.h"

#include <algorithm>

#include "host/halo_tables/copies.h"

namespace mpix::halo {
namespace {

using detail::device_copy;

// Cuts a copy into pieces of at most so many words, across its outermost loop that has several turns: of three loops
// over runs, and the one over the words of a run. A turn that is too long itself is cut likewise.
void cut(const device_copy &c, std::uint32_t most_words, std::vector<device_copy> &pieces) {
    const std::uint32_t all = words_of(c);
    if (all <= most_words) {
        pieces.push_back(c);
        set_divisors(pieces.back());
        return;
    }
    int loop = 2;
    while (loop >= 0 && c.count[loop] == 1) --loop;
    const std::uint32_t turns = loop < 0 ? c.words : c.count[loop], words_of_turn = all / turns;
    const std::uint32_t each = std::max(most_words / words_of_turn, std::uint32_t{1});
    for (std::uint32_t first = 0; first < turns; first += each) {
        device_copy piece = c;
        (loop < 0 ? piece.words : piece.count[loop]) = std::min(each, turns - first);
        const std::int64_t behind = first * (loop < 0 ? c.word_bytes : c.stride[loop]);
        const std::int64_t own_behind = first * (loop < 0 ? c.word_bytes : c.own_stride[loop]);
        for (int i = 0; i < 2; ++i) {
            piece.cells[i] += behind;
            piece.own_cells[i] += own_behind;
        }
        cut(piece, most_words, pieces);
    }
}

}  // namespace

std::vector<std::vector<device_copy>> split_copies(const std::vector<device_copy> &copies, std::uint32_t most_words) {
    std::vector<device_copy> pieces;
    for (const device_copy &c : copies) cut(c, most_words, pieces);
    std::vector<std::vector<device_copy>> lists;
    std::uint32_t words = most_words;  // of the last list
    for (const device_copy &piece : pieces) {
        if (lists.empty() || words + words_of(piece) > most_words) {
            lists.emplace_back();
            words = 0;
        }
        lists.back().push_back(piece);
        words += words_of(piece);
    }
    return lists;
}

}  // namespace mpix::halo
