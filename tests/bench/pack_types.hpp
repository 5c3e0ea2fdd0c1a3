// SPDX-License-Identifier: BSD-3-Clause
//
// The datatypes of the pack bench.
#ifndef MPIX_TESTS_BENCH_PACK_TYPES_HPP
#define MPIX_TESTS_BENCH_PACK_TYPES_HPP

#include <mpi.h>

#include <cstdint>
#include <random>
#include <vector>

namespace bench {

// A committed datatype, and its contiguous blocks as the copy engine would need them.
struct bench_type {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::vector<int64_t> at, length;
    int64_t bytes() const {
        int64_t sum = 0;
        for (const int64_t n : length) sum += n;
        return sum;
    }
    int64_t span() const { return at.empty() ? 0 : at.back() + length.back(); }
    void add(int64_t offset, int64_t n) {
        at.push_back(offset);
        length.push_back(n);
    }
    void commit() { MPI_Type_commit(&type); }
    void free() { MPI_Type_free(&type); }
};

// A cube of x by y by z bytes out of one of `side` bytes each way, described in four ways.
inline const char *const cube_descriptions[] = {"v_hv_hv", "v_hv", "hi", "hib"};
inline MPI_Datatype cube(int description, int x, int y, int z, int64_t side) {
    MPI_Datatype row, plane, all;
    if (description == 0) {
        MPI_Type_vector(x, 1, 1, MPI_BYTE, &row);
        MPI_Type_create_hvector(y, 1, side, row, &plane);
        MPI_Type_create_hvector(z, 1, side * side, plane, &all);
        MPI_Type_free(&row);
        MPI_Type_free(&plane);
    } else if (description == 1) {
        MPI_Type_vector(y, x, static_cast<int>(side), MPI_BYTE, &plane);
        MPI_Type_create_hvector(z, 1, side * side, plane, &all);
        MPI_Type_free(&plane);
    } else {
        std::vector<MPI_Aint> at;
        for (int64_t k = 0; k < z; ++k)
            for (int64_t j = 0; j < y; ++j) at.push_back(k * side * side + j * side);
        const int rows = static_cast<int>(at.size());
        const std::vector<int> lengths(at.size(), x);
        if (description == 2)
            MPI_Type_create_hindexed(rows, lengths.data(), at.data(), MPI_BYTE, &all);
        else
            MPI_Type_create_hindexed_block(rows, x, at.data(), MPI_BYTE, &all);
    }
    MPI_Type_commit(&all);
    return all;
}

// ---- J. Jenkins et al., Cluster 2012: about `bytes` packed bytes each -----------------------------------------

inline bench_type vector_2d(int64_t bytes) {  // rows of 64 doubles, every fourth
    bench_type out;
    const int rows = static_cast<int>(bytes / 512);
    MPI_Type_vector(rows, 64, 256, MPI_DOUBLE, &out.type);
    for (int64_t r = 0; r < rows; ++r) out.add(r * 2048, 512);
    out.commit();
    return out;
}

inline bench_type subarray_4d(int64_t bytes) {  // half of each dimension: 16 floats innermost
    bench_type out;
    int n = 1;
    while (int64_t{64} * (n + 1) * (n + 1) * (n + 1) <= bytes) ++n;
    const int sizes[] = {2 * n, 2 * n, 2 * n, 32}, parts[] = {n, n, n, 16}, starts[] = {0, 0, 0, 0};
    MPI_Type_create_subarray(4, sizes, parts, starts, MPI_ORDER_C, MPI_FLOAT, &out.type);
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
            for (int64_t k = 0; k < n; ++k) out.add(((i * 2 * n + j) * 2 * n + k) * 128, 64);
    out.commit();
    return out;
}

inline bench_type indexed(int64_t bytes) {  // blocks of 1 to 16 doubles, gaps alike
    bench_type out;
    std::mt19937_64 random(2012);
    std::vector<int> lengths, at;
    int next = 0;
    for (int64_t have = 0; have < bytes;) {
        const int n = 1 + static_cast<int>(random() % 16);
        lengths.push_back(n);
        at.push_back(next);
        out.add(int64_t{8} * next, int64_t{8} * n);
        next += n + 1 + static_cast<int>(random() % 16);
        have += 8 * n;
    }
    MPI_Type_indexed(static_cast<int>(at.size()), lengths.data(), at.data(), MPI_DOUBLE, &out.type);
    out.commit();
    return out;
}

inline bench_type structs(int64_t bytes) {  // {double; float[3]; char[2]} of a 32-byte struct, an array of them
    bench_type out;
    const int lengths[] = {1, 3, 2};
    const MPI_Aint at[] = {0, 8, 24};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_FLOAT, MPI_CHAR};
    MPI_Datatype one, wide;
    MPI_Type_create_struct(3, lengths, at, types, &one);
    MPI_Type_create_resized(one, 0, 32, &wide);
    const int count = static_cast<int>(bytes / 22);
    MPI_Type_contiguous(count, wide, &out.type);
    for (int64_t i = 0; i < count; ++i) {
        out.add(32 * i, 20);
        out.add(32 * i + 24, 2);
    }
    MPI_Type_free(&one);
    MPI_Type_free(&wide);
    out.commit();
    return out;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_PACK_TYPES_HPP
