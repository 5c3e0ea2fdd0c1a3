// SPDX-License-Identifier: BSD-3-Clause
//
// What is to be packed or unpacked.
#ifndef MPIX_IMPL_PACK_JOB_CUH
#define MPIX_IMPL_PACK_JOB_CUH

#include <mpix/detail/typemap.h>
#include <mpix/impl/group/words.cuh>

namespace mpix::detail {

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

    // Word k of W bytes of the packed memory, counted from the word with the first byte, begins `word_begin` after
    // packed. Of that word the message has [from, to).
    MPIX_FN int64_t word_begin(int W, int64_t k) const {
        return W * k - (static_cast<int64_t>(reinterpret_cast<uint64_t>(packed)) & (W - 1));
    }
    template <int W>
    MPIX_FN int64_t words() const {
        return (bytes - word_begin(W, 0) + W - 1) / W;
    }
    struct part {
        int64_t from, to;
        MPIX_FN int bytes() const { return static_cast<int>(to - from); }
    };
    MPIX_FN part word(int W, int64_t k) const {
        const int64_t from = word_begin(W, k), to = from + W;
        return {from < 0 ? 0 : from, to < bytes ? to : bytes};
    }
};

}  // namespace mpix::detail

#endif  // MPIX_IMPL_PACK_JOB_CUH
