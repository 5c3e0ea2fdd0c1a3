// SPDX-License-Identifier: BSD-3-Clause
//
// The datatypes of applications that ddtbench (T. Schneider, R. Gerstenberger, T. Hoefler, 2012) collected, with its
// sizes. Where an application uses absolute addresses of several arrays, the arrays lie in one allocation here, one
// after another, and the addresses are offsets in it. Index lists are distinct and in random order, as there.
#ifndef MPIX_TESTS_BENCH_DDTBENCH_TYPES_HPP
#define MPIX_TESTS_BENCH_DDTBENCH_TYPES_HPP

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/pack_types.hpp"

namespace bench {

struct application_type {
    std::string name;
    bench_type t;  // its runs in the order in which they are packed
};

// ---- what they are made of ------------------------------------------------------------------------------------

inline MPI_Datatype contiguous(int count, MPI_Datatype of) {
    MPI_Datatype all;
    MPI_Type_contiguous(count, of, &all);
    return all;
}

// Replaces `type` by `count` of it, `stride` bytes apart.
inline void repeat(MPI_Datatype &type, int count, int64_t stride) {
    MPI_Datatype all;
    MPI_Type_create_hvector(count, 1, stride, type, &all);
    MPI_Type_free(&type);
    type = all;
}

// The members at their offsets; frees the members.
inline MPI_Datatype gathered(std::vector<MPI_Datatype> members, const std::vector<MPI_Aint> &at) {
    const std::vector<int> ones(members.size(), 1);
    MPI_Datatype all;
    MPI_Type_create_struct(static_cast<int>(members.size()), ones.data(), at.data(), members.data(), &all);
    for (MPI_Datatype &m : members) MPI_Type_free(&m);
    return all;
}

inline std::vector<int> random_indices(int wanted, int of, std::mt19937_64 &random) {
    std::vector<int> all(static_cast<std::size_t>(of));
    std::iota(all.begin(), all.end(), 0);
    // Not std::shuffle, which may differ between standard libraries.
    for (std::size_t i = all.size() - 1; i > 0; --i) std::swap(all[i], all[random() % (i + 1)]);
    all.resize(static_cast<std::size_t>(wanted));
    return all;
}

inline int64_t rounded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// ---- WRF: halos of arrays (i, k, j) of floats, i varying fastest -------------------------------------------------

struct span_of {
    int first, last;
    int count() const { return last - first + 1; }
};

// Four arrays (i, j), three (i, k, j), and of two (i, k, j, scalar) the second of two scalars.
inline application_type wrf(const char *name, bool subarrays, span_of mi, span_of mk, span_of mj, span_of i, span_of k,
                            span_of j) {
    application_type out{std::string(name) + (subarrays ? " subarrays" : " vectors"), {}};
    std::vector<MPI_Datatype> members;
    std::vector<MPI_Aint> at;
    int64_t base = 0;
    for (const int dimensions : {2, 2, 2, 2, 3, 3, 3, 4, 4}) {
        const int nk = dimensions == 2 ? 1 : mk.count(), scalars = dimensions == 4 ? 2 : 1;
        const int from_k = dimensions == 2 ? 0 : k.first - mk.first, count_k = dimensions == 2 ? 1 : k.count();
        const int64_t row = int64_t{4} * mi.count(), plane = row * nk, volume = plane * mj.count();
        const int64_t first =
            (scalars - 1) * volume + (j.first - mj.first) * plane + from_k * row + int64_t{4} * (i.first - mi.first);
        for (int b = 0; b < j.count(); ++b)
            for (int a = 0; a < count_k; ++a) out.t.add(base + first + b * plane + a * row, int64_t{4} * i.count());
        MPI_Datatype member;
        if (subarrays) {
            std::vector<int> sizes, parts, starts;
            const auto dimension = [&](int size, int part, int start) {
                sizes.push_back(size);
                parts.push_back(part);
                starts.push_back(start);
            };
            dimension(mi.count(), i.count(), i.first - mi.first);
            if (dimensions > 2) dimension(nk, count_k, from_k);
            dimension(mj.count(), j.count(), j.first - mj.first);
            if (dimensions > 3) dimension(scalars, 1, scalars - 1);
            MPI_Type_create_subarray(dimensions, sizes.data(), parts.data(), starts.data(), MPI_ORDER_FORTRAN,
                                     MPI_FLOAT, &member);
            at.push_back(base);
        } else {
            member = contiguous(i.count(), MPI_FLOAT);
            if (dimensions > 2) repeat(member, count_k, row);
            repeat(member, j.count(), plane);
            at.push_back(base + first);
        }
        members.push_back(member);
        base += rounded(scalars * volume);
    }
    out.t.type = gathered(members, at);
    return out;
}

// ---- lattices and grids ------------------------------------------------------------------------------------------

inline application_type milc_su3_zd(int x, int y, int z,
                                    int t) {  // even and odd sites, vectors of three complex floats
    const auto text = [](int n) { return std::to_string(n); };
    application_type out{"MILC su3 zd " + text(x) + "/" + text(y) + "/" + text(z) + "/" + text(t), {}};
    MPI_Datatype site = contiguous(6, MPI_FLOAT);
    MPI_Type_vector(t, x * y / 2, x * y * z / 2, site, &out.t.type);
    MPI_Type_free(&site);
    const int64_t half = int64_t{24} * x * y * z * t / 2;
    repeat(out.t.type, 2, half);
    for (int64_t parity = 0; parity < 2; ++parity)
        for (int64_t s = 0; s < t; ++s)
            out.t.add(parity * half + s * 24 * (int64_t{x} * y * z / 2), int64_t{24} * x * y / 2);
    return out;
}

inline application_type nas_lu(bool y, int n) {  // (5, n + 2, n + 2) doubles
    application_type out{std::string(y ? "NAS LU y " : "NAS LU x ") + std::to_string(n), {}};
    MPI_Datatype five = contiguous(5, MPI_DOUBLE);
    if (y)
        MPI_Type_vector(n, 1, n + 2, five, &out.t.type);
    else
        MPI_Type_contiguous(n, five, &out.t.type);
    MPI_Type_free(&five);
    if (y)
        for (int64_t i = 0; i < n; ++i) out.t.add(i * 40 * (n + 2), 40);
    else
        out.t.add(0, int64_t{40} * n);
    return out;
}

inline application_type nas_mg(char face, int x, int y, int z) {  // doubles, x varying fastest; without the rim
    application_type out{
        std::string("NAS MG ") + face + " " + std::to_string(x) + "/" + std::to_string(y) + "/" + std::to_string(z),
        {}};
    const int64_t row = int64_t{8} * x, plane = row * y;
    if (face == 'x') {
        MPI_Type_vector(y - 2, 1, x, MPI_DOUBLE, &out.t.type);
        repeat(out.t.type, z - 2, plane);
        for (int64_t k = 0; k < z - 2; ++k)
            for (int64_t j = 0; j < y - 2; ++j) out.t.add(k * plane + j * row, 8);
        return out;
    }
    const int64_t step = face == 'y' ? plane : row;
    const int rows = face == 'y' ? z - 2 : y - 2;
    MPI_Type_vector(rows, x - 2, static_cast<int>(step / 8), MPI_DOUBLE, &out.t.type);
    for (int64_t r = 0; r < rows; ++r) out.t.add(r * step, int64_t{8} * (x - 2));
    return out;
}

inline application_type fft2d(int n, int processes) {  // what one of them sends to another for a transpose
    application_type out{"FFT2D " + std::to_string(n), {}};
    const int part = n / processes;
    MPI_Datatype complex = contiguous(2, MPI_DOUBLE), column, narrow;
    MPI_Type_vector(part, 1, n, complex, &column);
    MPI_Type_create_resized(column, 0, 16, &narrow);
    MPI_Type_contiguous(part, narrow, &out.t.type);
    for (MPI_Datatype *t : {&complex, &column, &narrow}) MPI_Type_free(t);
    for (int64_t i = 0; i < part; ++i)
        for (int64_t j = 0; j < part; ++j) out.t.add(16 * (j * n + i), 16);
    return out;
}

// ---- particles and unstructured grids ----------------------------------------------------------------------------

// Blocks of `width` elements, that many elements apart, at the indices; and their runs, from `base` on.
inline MPI_Datatype blocks(bench_type &runs, int64_t base, const std::vector<int> &indices, int width, MPI_Datatype of,
                           int64_t size) {
    std::vector<int> at(indices);
    for (int &a : at) a *= width;
    for (const int a : at) runs.add(base + size * a, size * width);
    MPI_Datatype type;
    MPI_Type_create_indexed_block(static_cast<int>(at.size()), width, at.data(), of, &type);
    return type;
}

// Positions, then one number each of the other properties.
inline application_type lammps(const char *name, int properties, int wanted, int atoms, std::mt19937_64 &random) {
    application_type out{std::string(name) + " " + std::to_string(wanted) + "/" + std::to_string(atoms), {}};
    const std::vector<int> indices = random_indices(wanted, atoms, random);
    std::vector<MPI_Datatype> members;
    std::vector<MPI_Aint> at;
    int64_t base = 0;
    for (int p = 0; p < properties; ++p) {
        const int width = p == 0 ? 3 : 1;
        at.push_back(base);
        members.push_back(blocks(out.t, base, indices, width, MPI_DOUBLE, 8));
        base += rounded(int64_t{8} * width * atoms);
    }
    out.t.type = gathered(members, at);
    return out;
}

inline application_type specfem_oc(int wanted, int points, std::mt19937_64 &random) {
    application_type out{"SPECFEM3D oc " + std::to_string(wanted) + "/" + std::to_string(points), {}};
    out.t.type = blocks(out.t, 0, random_indices(wanted, points, random), 1, MPI_FLOAT, 4);
    return out;
}

inline application_type specfem_cm(std::array<int, 2> wanted, std::array<int, 2> points, std::mt19937_64 &random) {
    application_type out{"SPECFEM3D cm " + std::to_string(wanted[0]) + "+" + std::to_string(wanted[1]), {}};
    const int64_t second = rounded(int64_t{12} * points[0]);
    std::vector<MPI_Datatype> members;
    members.push_back(blocks(out.t, 0, random_indices(wanted[0], points[0], random), 3, MPI_FLOAT, 4));
    members.push_back(blocks(out.t, second, random_indices(wanted[1], points[1], random), 3, MPI_FLOAT, 4));
    out.t.type = gathered(members, {0, static_cast<MPI_Aint>(second)});
    return out;
}

inline application_type specfem_mt(int points) {
    application_type out{"SPECFEM3D mt " + std::to_string(points), {}};
    MPI_Datatype three = contiguous(3, MPI_FLOAT);
    MPI_Type_vector(points, 1, 2, three, &out.t.type);
    MPI_Type_free(&three);
    for (int64_t i = 0; i < points; ++i) out.t.add(24 * i, 12);
    return out;
}

// ---- all of them -------------------------------------------------------------------------------------------------

inline std::vector<application_type> application_types() {
    std::mt19937_64 random(2012);
    std::vector<application_type> all;
    for (const bool subarrays : {false, true}) {
        all.push_back(wrf("WRF x", subarrays, {-4, 27}, {1, 65}, {34, 85}, {18, 20}, {1, 65}, {38, 81}));
        all.push_back(wrf("WRF y", subarrays, {-4, 27}, {1, 65}, {34, 85}, {1, 23}, {1, 65}, {41, 43}));
    }
    all.push_back(milc_su3_zd(16, 16, 16, 16));
    all.push_back(milc_su3_zd(8, 8, 16, 16));
    all.push_back(milc_su3_zd(8, 8, 8, 16));
    all.push_back(milc_su3_zd(8, 8, 8, 8));
    for (const bool y : {false, true})
        for (const int n : {12, 33, 64, 102, 162, 408, 1020}) all.push_back(nas_lu(y, n));
    for (const char face : {'x', 'y', 'z'})
        for (const int n : {18, 66, 130, 258}) all.push_back(nas_mg(face, 2 * n - 2, n, n));
    all.push_back(lammps("LAMMPS full", 6, 3062, 3534, random));
    all.push_back(lammps("LAMMPS full", 6, 2243, 2597, random));
    all.push_back(lammps("LAMMPS full", 6, 1662, 1907, random));
    all.push_back(lammps("LAMMPS atomic", 4, 243, 4084, random));
    all.push_back(lammps("LAMMPS atomic", 4, 145, 2157, random));
    all.push_back(lammps("LAMMPS atomic", 4, 114, 1217, random));
    all.push_back(specfem_oc(3225, 88881, random));
    all.push_back(specfem_oc(1897, 38585, random));
    all.push_back(specfem_oc(877, 12857, random));
    all.push_back(specfem_oc(493, 3697, random));
    all.push_back(specfem_cm({11797, 3009}, {834917, 51153}, random));
    all.push_back(specfem_cm({7125, 1729}, {396849, 22477}, random));
    all.push_back(specfem_cm({3801, 801}, {152001, 7209}, random));
    all.push_back(specfem_cm({1957, 245}, {39929, 1225}, random));
    for (const int points : {7600, 6400, 5600, 6200}) all.push_back(specfem_mt(points));
    for (const int n : {256, 512, 768, 1024, 1536}) all.push_back(fft2d(n, 4));
    for (application_type &a : all) a.t.commit();
    return all;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_DDTBENCH_TYPES_HPP
