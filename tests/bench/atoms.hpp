// SPDX-License-Identifier: BSD-3-Clause
//
// What the memory of a GPU must move for rows at a pitch: DRAM is read and written by atoms of 64 bytes (measured on an
// H200), so a row costs all the atoms that it touches, once.
#ifndef MPIX_TESTS_BENCH_ATOMS_HPP
#define MPIX_TESTS_BENCH_ATOMS_HPP

#include <algorithm>
#include <cstdint>

namespace bench {

constexpr int64_t atom = 64;

struct traffic {
    double touched = 0, partial = 0;  // atoms of the strided side, and those of them that are not covered entirely
};

// `rows` rows of `run` bytes, `pitch` apart, from byte `base` of an atom on. A prefix speaks for very many.
inline traffic traffic_of(int64_t rows, int64_t run, int64_t pitch, int64_t base) {
    const int64_t tried = std::min<int64_t>(rows, 1 << 16);
    traffic t;
    int64_t current = -1, covered = 0;  // of the atom that may get more
    const auto close = [&] {
        if (current >= 0) t.touched += 1, t.partial += covered < atom;
    };
    for (int64_t r = 0; r < tried; ++r) {
        for (int64_t at = base + r * pitch, end = at + run; at < end;) {
            const int64_t next = std::min(end, (at / atom + 1) * atom);
            if (at / atom != current) {
                close();
                current = at / atom;
                covered = 0;
            }
            covered += next - at;
            at = next;
        }
    }
    close();
    const double scale = static_cast<double>(rows) / static_cast<double>(tried);
    return {t.touched * scale, t.partial * scale};
}

// Bytes that have to cross the memory interface. Unpacking reads what it does not overwrite of an atom.
inline double pack_bytes(const traffic &t, double packed) { return atom * t.touched + packed; }
inline double unpack_bytes(const traffic &t, double packed) { return atom * (t.touched + t.partial) + packed; }

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_ATOMS_HPP
