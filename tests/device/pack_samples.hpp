// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of packing have in common: memory of the executor, types whose offsets are known, and how a difference
// is told.
#ifndef MPIX_TESTS_DEVICE_PACK_SAMPLES_HPP
#define MPIX_TESTS_DEVICE_PACK_SAMPLES_HPP

#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/device/harness.hpp"
#include "tests/unit/arena.hpp"
#include "tests/unit/random_type.hpp"

namespace pack_test {

using namespace device_test;

using bytes = std::vector<char>;

// What dies without a word of its own has its part named.
inline void begin(const char *part) {
    std::printf("part: %s\n", part);
    std::fflush(stdout);
}

// Memory of the executor, exactly as long as asked for, so that compute-sanitizer sees what is outside.
class memory {
public:
    memory(session &s, std::size_t size, int skew = 0) : s_(s), size_(size), skew_(static_cast<std::size_t>(skew)) {
        base_ = static_cast<char *>(s.device->allocate(size + skew_ + 1));
    }
    ~memory() { s_.device->release(base_); }
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;

    char *at() const { return base_ + skew_; }
    void put(const bytes &from) { s_.device->upload(at(), from.data(), from.size()); }
    bytes get() const {
        bytes out(size_);
        s_.device->download(out.data(), at(), size_);
        return out;
    }

private:
    session &s_;
    std::size_t size_, skew_;
    char *base_;
};

inline void commit(sample &type) {
    if (!type.named) must(MPI_Type_commit(&type.type), "MPI_Type_commit");
}

inline void same(session &s, const bytes &found, const bytes &expected, const char *what) {
    if (found == expected) return;
    const auto at = std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin();
    REQUIRE(false, "%s: %s: byte %lld of %zu is wrong", s.what.c_str(), what, static_cast<long long>(at), found.size());
}

inline sample rows(int count, int run, int pitch) {
    sample out;
    out.named = false;
    MPI_Type_create_hvector(count, run, pitch, MPI_BYTE, &out.type);
    for (int r = 0; r < count; ++r)
        for (int n = 0; n < run; ++n) out.map.push_back(std::int64_t{r} * pitch + n);
    commit(out);
    return out;
}

inline sample blocks(std::mt19937_64 &random, int count, int unit, bool equal) {
    sample out;
    out.named = false;
    std::vector<int> lengths;
    std::vector<MPI_Aint> at;
    MPI_Aint next = 0;
    for (int b = 0; b < count; ++b) {
        lengths.push_back(unit * (equal ? 3 : 1 + static_cast<int>(random() % 9)));
        at.push_back(next);
        for (int n = 0; n < lengths.back(); ++n) out.map.push_back(next + n);
        next += lengths.back() + unit * (1 + static_cast<MPI_Aint>(random() % 12));
    }
    MPI_Type_create_hindexed(count, lengths.data(), at.data(), MPI_BYTE, &out.type);
    commit(out);
    return out;
}

}  // namespace pack_test

#endif  // MPIX_TESTS_DEVICE_PACK_SAMPLES_HPP
