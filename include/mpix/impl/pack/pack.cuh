// SPDX-License-Identifier: BSD-3-Clause
//
// Packing inside kernels, by any group of threads.
#ifndef MPIX_IMPL_PACK_PACK_CUH
#define MPIX_IMPL_PACK_PACK_CUH

#include <mpix/detail/abi.h>
#include <mpix/impl/group/group.cuh>
#include <mpix/impl/pack/tiles.cuh>

namespace mpix::detail {

// Not inlined: there is one for each word size and map, and a call is little beside what it does.
template <int W, bool Unpack, class Map>
MPIX_COLD_FN void do_part(const mpix_typemap &type, char *memory, char *packed, int64_t begin, int64_t bytes,
                          int64_t rank, int64_t threads) {
    const char *const end = Unpack ? packed + bytes : memory + memory_end(type, begin, bytes);
    const packing_job<Map> job{Map(type), memory, packed, begin, bytes, end};
    constexpr int units_each = 4;
    const int64_t tiles = number_of_tiles<W, units_each, Unpack>(job, threads);
    for (int64_t tile = 0; tile < tiles; ++tile) do_tile<W, units_each, Unpack>(job, tile, rank, threads);
}

template <bool Unpack, class Map>
MPIX_FN void do_words(const mpix_typemap &type, char *memory, char *packed, int64_t begin, int64_t bytes, int64_t rank,
                      int64_t threads) {
    switch (kernel_word<Unpack>(type, memory, packed, begin, bytes)) {
        case 16:
            return do_part<16, Unpack, Map>(type, memory, packed, begin, bytes, rank, threads);
        case 8:
            return do_part<8, Unpack, Map>(type, memory, packed, begin, bytes, rank, threads);
        case 4:
            return do_part<4, Unpack, Map>(type, memory, packed, begin, bytes, rank, threads);
        default:
            return do_part<1, Unpack, Map>(type, memory, packed, begin, bytes, rank, threads);
    }
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <bool Unpack, class Group>
MPIX_FN int do_share(const Group &group, MPIX_Typemap type, char *memory, char *packed, int64_t begin, int64_t bytes) {
    if (type == MPIX_TYPEMAP_NULL || type->version != MPIX_ABI_VERSION) return MPI_ERR_TYPE;
    if (begin < 0 || bytes < 0) return MPI_ERR_ARG;
    if (bytes == 0) return MPI_SUCCESS;
    const auto rank = static_cast<int64_t>(group.thread_rank()), threads = static_cast<int64_t>(group.num_threads());
    if (type->kind == MPIX_TYPEMAP_GRID)
        do_words<Unpack, grid_map>(*type, memory, packed, begin, bytes, rank, threads);
    else if (type->kind == MPIX_TYPEMAP_RUNS)
        do_words<Unpack, run_map>(*type, memory, packed, begin, bytes, rank, threads);
    else
        do_words<Unpack, box_map>(*type, memory, packed, begin, bytes, rank, threads);
    return MPI_SUCCESS;
}

}  // namespace mpix::detail

namespace mpix {

template <class Group>
MPIX_FN int pack_tile(const Group &group, MPIX_Typemap type, const void *buffer, int64_t begin, int64_t bytes,
                      void *packed) {
    return detail::do_share<false>(group, type, static_cast<char *>(const_cast<void *>(buffer)),
                                   static_cast<char *>(packed), begin, bytes);
}

template <class Group>
MPIX_FN int unpack_tile(const Group &group, MPIX_Typemap type, void *buffer, int64_t begin, int64_t bytes,
                        const void *packed) {
    return detail::do_share<true>(group, type, static_cast<char *>(buffer),
                                  static_cast<char *>(const_cast<void *>(packed)), begin, bytes);
}

}  // namespace mpix

#endif  // MPIX_IMPL_PACK_PACK_CUH
