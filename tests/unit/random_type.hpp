// SPDX-License-Identifier: BSD-3-Clause
//
// Random nested datatypes, each with the byte offsets that the MPI standard says it has, worked out beside
// the MPI library: from the constructors' definitions and the extents of the parts.
#ifndef MPIX_TESTS_UNIT_RANDOM_TYPE_HPP
#define MPIX_TESTS_UNIT_RANDOM_TYPE_HPP

#include <mpi.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

// A datatype, owned.
struct sample {
    MPI_Datatype type = MPI_BYTE;
    bool named = true;
    std::vector<std::int64_t> map;  // the offset of each packed byte, in packing order
    std::string text;               // how it was made
    bool empty_part = false;        // something in it has no bytes
    bool backwards = false;         // something in it is a dense vector whose blocks go down
    bool packed_wrongly = false;    // something in it is of a basic type that the library packs wrongly

    sample() = default;
    sample(const sample &) = delete;
    sample &operator=(const sample &) = delete;
    sample(sample &&other) noexcept { *this = std::move(other); }
    sample &operator=(sample &&other) noexcept;
    ~sample();

    std::int64_t extent() const;
};

class type_maker {
public:
    explicit type_maker(std::uint64_t seed) : random_(seed) {}
    // Uncommitted. At most about `size_limit` packed bytes and `depth` constructors on top of each other.
    sample make(int depth);

    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    int between(int low, int high) { return low + below(high - low + 1); }

    static constexpr std::size_t size_limit = 3000;
    static constexpr std::int64_t span_limit = 1 << 20;

private:
    sample named();
    sample derived(int depth);
    sample contiguous(sample child);
    sample vector(sample child, bool bytes);
    sample indexed(sample child, bool bytes, bool same_length);
    sample structure(int depth);
    sample subarray(sample child);
    sample darray(sample child);
    sample resized(sample child);

    std::mt19937_64 random_;
};

#endif  // MPIX_TESTS_UNIT_RANDOM_TYPE_HPP
