// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_tables/split_copies.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "host/halo_tables/copies.h"

namespace mpix::halo {
namespace {

using detail::device_copy;

bool comes_before(const device_copy &a, const device_copy &b) { return std::less<>()(a.cells[0], b.cells[0]); }

// Whether a and b fill the ghost cells at the two ends of the same rows, in short runs. Then each writes the units of
// memory that the other reads, so they are copied at the same time (docs/performance/stencil.md, "On one GPU").
bool fill_both_ends_of_rows(const device_copy &a, const device_copy &b) {
    constexpr std::int64_t short_run_bytes = 64;  // the unit in which GPU memory is read and written
    // count[2]: join_row_ends() needs that loop. count[0]: with one row there is nothing to gain.
    if (a.claim >= 0 || b.claim >= 0 || a.words != b.words || a.word_bytes != b.word_bytes ||
        std::int64_t{a.words} * a.word_bytes >= short_run_bytes || a.count[0] < 2 || a.count[2] != 1 ||
        !std::equal(std::begin(a.count), std::end(a.count), std::begin(b.count)) ||
        !std::equal(std::begin(a.stride), std::end(a.stride), std::begin(b.stride)) ||
        !std::equal(std::begin(a.own_stride), std::end(a.own_stride), std::begin(b.own_stride)))
        return false;
    const std::int64_t apart = b.cells[0] - a.cells[0];
    return apart > 0 && apart < a.stride[0] && b.cells[1] - a.cells[1] == apart &&
           b.own_cells[0] - a.own_cells[0] == b.own_cells[1] - a.own_cells[1];
}

// a and b as one copy. Its innermost loop runs over the two ends of a row; the loops of a move one place outwards.
device_copy join_row_ends(const device_copy &a, const device_copy &b) {
    device_copy both = a;
    for (const int loop : {2, 1}) {
        both.count[loop] = a.count[loop - 1];
        both.stride[loop] = a.stride[loop - 1];
        both.own_stride[loop] = a.own_stride[loop - 1];
    }
    both.count[0] = 2;
    both.stride[0] = b.cells[0] - a.cells[0];
    both.own_stride[0] = b.own_cells[0] - a.own_cells[0];
    return both;
}

// Cuts a copy into pieces of at most so many words, across its outermost loop that has several iterations: of three
// loops over runs, and the one over the words of a run. An iteration that is too long itself is cut likewise.
void cut(const device_copy &c, std::uint32_t most_words, std::vector<device_copy> &pieces) {
    const std::uint32_t all = words_of(c);
    if (all <= most_words) {
        pieces.push_back(c);
        set_divisors(pieces.back());
        return;
    }
    int loop = 2;
    while (loop >= 0 && c.count[loop] == 1) --loop;
    const std::uint32_t iterations = loop < 0 ? c.words : c.count[loop], words_of_iteration = all / iterations;
    const std::uint32_t each = std::max(most_words / words_of_iteration, std::uint32_t{1});
    for (std::uint32_t first = 0; first < iterations; first += each) {
        device_copy piece = c;
        (loop < 0 ? piece.words : piece.count[loop]) = std::min(each, iterations - first);
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

std::vector<std::vector<device_copy>> split_copies(std::vector<device_copy> copies, std::uint32_t most_words) {
    std::stable_sort(copies.begin(), copies.end(), comes_before);
    std::vector<device_copy> pieces;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        if (i + 1 < copies.size() && fill_both_ends_of_rows(copies[i], copies[i + 1])) {
            cut(join_row_ends(copies[i], copies[i + 1]), most_words, pieces);
            ++i;
        } else
            cut(copies[i], most_words, pieces);
    }
    // What is near in memory is copied at about the same time, while it is in the cache.
    std::stable_sort(pieces.begin(), pieces.end(), comes_before);
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
