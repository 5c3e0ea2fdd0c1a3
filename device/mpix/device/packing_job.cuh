// SPDX-License-Identifier: BSD-3-Clause
//
// What is to be packed or unpacked.
#ifndef MPIX_DEVICE_PACKING_JOB_CUH
#define MPIX_DEVICE_PACKING_JOB_CUH

#include <mpix/detail/typemap.h>
#include <mpix/device/words.cuh>

namespace mpix::detail {

template <int W>
struct word_of;
template <>
struct word_of<1> {
    using type = uint8_t;
};
template <>
struct word_of<4> {
    using type = uint32_t;
};
template <>
struct word_of<8> {
    using type = uint64_t;
};
template <>
struct word_of<16> {
    using type = block16;
};

template <class Map>
inline constexpr bool is_grid = false;
template <>
inline constexpr bool is_grid<grid_map> = true;

// One message, or a part of one.
template <class Map>
struct packing_job {
    Map map;
    char *memory;  // of element 0
    char *packed;  // of packed byte `begin`
    int64_t begin, bytes;
    const char *readable_end;  // of the side that is read

    MPIX_FN int skew() const { return static_cast<int>(reinterpret_cast<uint64_t>(packed) & 15); }
    MPIX_FN int64_t units() const { return (skew() + bytes + 15) >> 4; }

    // Of unit k the bytes [from, to) after packed.
    struct part {
        int64_t from, to;
        MPIX_FN bool whole() const { return to - from == 16; }
        MPIX_FN int bytes() const { return static_cast<int>(to - from); }
    };
    MPIX_FN part unit(int64_t k) const {
        const int64_t from = 16 * k - skew(), to = from + 16;
        return {from < 0 ? 0 : from, to < bytes ? to : bytes};
    }
};

}  // namespace mpix::detail

#endif  // MPIX_DEVICE_PACKING_JOB_CUH
