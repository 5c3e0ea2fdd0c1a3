// SPDX-License-Identifier: BSD-3-Clause
//
// Packing on the host, where the MPI library can take part: one side packs with mpix, the other unpacks with the
// library.
#ifndef MPIX_TESTS_DEVICE_PACK_LIBRARY_HPP
#define MPIX_TESTS_DEVICE_PACK_LIBRARY_HPP

#include "tests/device/pack_samples.hpp"

namespace pack_test {

// One side packs with mpix, the other unpacks with the MPI library, and the other way round; and both agree on sizes.
inline void with_the_library(session &s, std::mt19937_64 &random) {
    type_maker maker(s.seed + 1);
    for (int n = 0; n < 300; ++n) {
        sample type = maker.make(n % 4);
        s.what = "type " + std::to_string(n) + ": " + type.text;
        commit(type);
        const auto at = offsets(type, 2);
        // What the libraries themselves get wrong: see plan_test.cpp.
        if (at.empty() || type.empty_part || type.backwards || type.packed_wrongly || overlaps(at)) continue;
        const int size = static_cast<int>(at.size());
        arena from(type, 2), to(type, 2);
        fill(from.bytes, random);
        arena expected = to;
        for (const std::int64_t byte : at) expected.buffer()[byte] = from.buffer()[byte];
        for (const bool pack_by_library : {false, true}) {
            bytes packed(at.size());
            int in = 0, out = 0, bound = 0;
            must((pack_by_library ? PMPI_Pack : MPI_Pack)(from.buffer(), 2, type.type, packed.data(), size, &in,
                                                          MPI_COMM_WORLD),
                 "MPI_Pack");
            must((pack_by_library ? MPI_Unpack : PMPI_Unpack)(packed.data(), size, &out, to.buffer(), 2, type.type,
                                                              MPI_COMM_WORLD),
                 "MPI_Unpack");
            must(MPI_Pack_size(2, type.type, MPI_COMM_WORLD, &bound), "MPI_Pack_size");
            REQUIRE(in == size && out == size && bound == size, "%s: %d, %d, %d bytes", s.what.c_str(), in, out, bound);
            same(s, to.bytes, expected.bytes,
                 pack_by_library ? "by the library, then mpix" : "by mpix, then the library");
            std::fill(to.bytes.begin(), to.bytes.end(), char{});
        }
    }
}

// A type that does not explain itself is the library's business.
inline void fall_through(session &s) {
    s.what = "a Fortran type";
    MPI_Datatype real;
    if (MPI_Type_create_f90_real(6, 30, &real) != MPI_SUCCESS) return;
    const float from[] = {1.5f, 2.5f};
    float to[2] = {};
    char packed[64];
    int position = 0, size = 0;
    must(MPI_Pack_size(2, real, MPI_COMM_WORLD, &size), "MPI_Pack_size");
    must(MPI_Pack(from, 2, real, packed, size, &position, MPI_COMM_WORLD), "MPI_Pack");
    REQUIRE(position == 8, "position is %d", position);
    position = 0;
    must(MPI_Unpack(packed, size, &position, to, 2, real, MPI_COMM_WORLD), "MPI_Unpack");
    REQUIRE(to[0] == 1.5f && to[1] == 2.5f, "%f, %f", to[0], to[1]);
}

#if MPI_VERSION >= 4
inline void large_counts(session &s) {
    s.what = "large counts";
    const sample type = rows(4, 3, 8);
    bytes from(64), packed(16), to(64);
    for (std::size_t n = 0; n < from.size(); ++n) from[n] = static_cast<char>(n + 1);
    MPI_Count position = 2, size = 0;
    must(MPI_Pack_size_c(MPI_Count{1} << 40, type.type, MPI_COMM_WORLD, &size), "MPI_Pack_size_c");
    REQUIRE(size == MPI_Count{12} << 40, "%lld bytes", static_cast<long long>(size));
    must(MPI_Pack_c(from.data(), 1, type.type, packed.data(), 14, &position, MPI_COMM_WORLD), "MPI_Pack_c");
    REQUIRE(position == 14, "position is %lld", static_cast<long long>(position));
    must_refuse(MPI_Pack_c(from.data(), MPI_Count{1} << 60, type.type, packed.data(), 14, &position, MPI_COMM_WORLD),
                MPI_ERR_COUNT, "MPI_Pack_c of more bytes than can be counted");
    position = 2;
    must(MPI_Unpack_c(packed.data(), 14, &position, to.data(), 1, type.type, MPI_COMM_WORLD), "MPI_Unpack_c");
    for (const std::int64_t at : type.map) REQUIRE(to[at] == from[at], "byte %lld", static_cast<long long>(at));
    int small = 0;
    must_refuse(MPI_Pack_size(1 << 30, type.type, MPI_COMM_WORLD, &small), MPI_ERR_COUNT,
                "MPI_Pack_size beyond an int");
    REQUIRE(small == MPI_UNDEFINED, "MPI_Pack_size says %d", small);
}
#else
inline void large_counts(session &) {}
#endif

inline void only_on_the_host(session &s, std::mt19937_64 &random) {
    begin("with the library");
    with_the_library(s, random);
    fall_through(s);
    large_counts(s);
}

}  // namespace pack_test

#endif  // MPIX_TESTS_DEVICE_PACK_LIBRARY_HPP
