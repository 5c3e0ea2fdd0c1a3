// SPDX-License-Identifier: BSD-3-Clause
//
// What the memory of a GPU must move for rows at a pitch, or other runs: DRAM is read and written by atoms of 64 bytes
// (measured on an H200), so a row costs all the atoms that it touches, once.
#ifndef MPIX_TESTS_BENCH_ATOMS_HPP
#define MPIX_TESTS_BENCH_ATOMS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace bench {

constexpr int64_t atom = 64;

struct traffic {
    double touched = 0, partial = 0;  // atoms of the strided side, and those of them that are not covered entirely
};

// Counts them, over runs that come in ascending order and do not overlap.
class atom_count {
public:
    void add(int64_t at, int64_t end) {
        while (at < end) {
            const int64_t next = std::min(end, (at / atom + 1) * atom);
            if (at / atom != current_) {
                close();
                current_ = at / atom;
                covered_ = 0;
            }
            covered_ += next - at;
            at = next;
        }
    }
    traffic finish() {
        close();
        current_ = -1;
        return t_;
    }

private:
    void close() {
        if (current_ >= 0) t_.touched += 1, t_.partial += covered_ < atom;
    }
    traffic t_;
    int64_t current_ = -1, covered_ = 0;  // of the atom that may get more
};

// `rows` rows of `run` bytes, `pitch` apart, from byte `base` of an atom on. A prefix speaks for very many.
inline traffic traffic_of(int64_t rows, int64_t run, int64_t pitch, int64_t base) {
    const int64_t tried = std::min<int64_t>(rows, 1 << 16);
    atom_count count;
    for (int64_t r = 0; r < tried; ++r) count.add(base + r * pitch, base + r * pitch + run);
    const traffic t = count.finish();
    const double scale = static_cast<double>(rows) / static_cast<double>(tried);
    return {t.touched * scale, t.partial * scale};
}

// Runs in any order, from the beginning of an atom on. A kernel may visit them in the order of memory, so each atom
// counts once.
inline traffic traffic_of(const std::vector<int64_t> &at, const std::vector<int64_t> &length) {
    std::vector<std::size_t> order(at.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return at[a] < at[b]; });
    atom_count count;
    for (const std::size_t i : order) count.add(at[i], at[i] + length[i]);
    return count.finish();
}

// Bytes that have to cross the memory interface. Unpacking reads what it does not overwrite of an atom.
inline double pack_bytes(const traffic &t, double packed) { return atom * t.touched + packed; }
inline double unpack_bytes(const traffic &t, double packed) { return atom * (t.touched + t.partial) + packed; }

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_ATOMS_HPP
