// SPDX-License-Identifier: BSD-3-Clause
//
// One kernel template: word size, units per thread, direction, and how bytes are looked up. For large messages of rows
// there are others, through shared memory.
#include <cuda_runtime.h>
#include <mpix/impl/pack/staged.cuh>
#include <mpix/impl/pack/tiles.cuh>
#include <mpix/impl/pack/typed_copy.cuh>

#include "device/enqueue/enqueue.h"
#include "device/halo/launch.h"
#include "device/kernels/drain.h"
#include "device/kernels/launch.h"

namespace mpix::gpu {
namespace {

constexpr int threads = 256;

// Blocks on a multiprocessor, by which the compiler allots registers; 0: as it likes.
template <int W, bool Unpack, class Map>
constexpr int at_once = W != 1 || !detail::is_grid<Map> ? 0
                        : Unpack                        ? 5
                                                        : 4;

template <int W, int U, bool Unpack, class Map>
__global__ void __launch_bounds__(threads, at_once<W, Unpack, Map>)
    move(const __grid_constant__ mpix_typemap type, char *memory, char *packed, int64_t begin, int64_t bytes,
         const char *readable_end) {
    const detail::packing_job<Map> job{Map(type), memory, packed, begin, bytes, readable_end};
    detail::do_tile<W, U, Unpack>(job, blockIdx.x, threadIdx.x, threads);
}

const char *readable_end(const message &m) {
    return m.unpack ? m.packed + m.bytes : m.memory + detail::memory_end(*m.type, m.begin, m.bytes);
}

template <int W, int U, bool Unpack, class Map>
cudaError_t start(const message &m, stream_handle stream) {
    const detail::packing_job<Map> job{Map(*m.type), m.memory, m.packed, m.begin, m.bytes, nullptr};
    const int64_t blocks = detail::number_of_tiles<W, U, Unpack>(job, threads);
    if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
    move<W, U, Unpack, Map><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(*m.type, m.memory, m.packed, m.begin,
                                                                                   m.bytes, readable_end(m));
    return cudaGetLastError();
}

// Few units a thread where there are few for all, so that every multiprocessor has some.
constexpr int64_t many_bytes = int64_t{4} << 20;

// ---- through shared memory --------------------------------------------------------------------------------------

int dynamic_bytes(int stage) { return (stage + 15) / 16 * 16 + 2 * detail::stage_margin; }

template <detail::staging How>
struct pack_shape {  // rows
    static constexpr int threads = 128, blocks = 12, tile = 8192, word = 16;
};
template <>
struct pack_shape<detail::staging::span> {
    static constexpr int threads = 256, blocks = 8, tile = 8192, word = 4;
};
template <>
struct pack_shape<detail::staging::bytes> {
    static constexpr int threads = 256, blocks = 6, tile = 2048, word = 4;
};

template <detail::staging How>
__global__ void __launch_bounds__(pack_shape<How>::threads, pack_shape<How>::blocks)
    pack_staged(const __grid_constant__ mpix_typemap type, char *memory, char *packed, int64_t begin, int64_t bytes,
                const char *readable_end) {
    using shape = pack_shape<How>;
    const detail::packing_job<detail::grid_map> job{detail::grid_map(type), memory, packed, begin, bytes, readable_end};
    extern __shared__ __align__(16) char shared[];
    char *const stage = shared + detail::stage_margin;
    const int rank = static_cast<int>(threadIdx.x);
    const int64_t tile = job.word_begin(16, int64_t{blockIdx.x} * (shape::tile / 16)), tile_end = tile + shape::tile;
    const int64_t end = tile_end < bytes ? tile_end : bytes;
    for (int64_t from = tile < 0 ? 0 : tile; from < end;) {
        const int64_t to = detail::staged_pack<How>::end_of_part(job, from, end);
        const detail::staged_pack<How> part(job, {from, to});
        part.load(stage, rank, shape::threads);
        __syncthreads();
        part.template store<shape::word, shape::tile, shape::threads>(stage, rank);
        from = to;
        if (from < end) __syncthreads();  // before the stage is filled again
    }
}

template <detail::staging How>
cudaError_t start_staged_pack(const message &m, stream_handle stream) {
    using shape = pack_shape<How>;
    const detail::packing_job<detail::grid_map> job{
        detail::grid_map(*m.type), m.memory, m.packed, m.begin, m.bytes, readable_end(m)};
    constexpr int words = shape::tile / 16;
    const int64_t blocks = (job.words<16>() + words - 1) / words;
    if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
    const int stage = detail::staged_pack<How>::stage_bytes(m.type->grid, shape::tile);
    pack_staged<How><<<static_cast<unsigned>(blocks), shape::threads, dynamic_bytes(stage), stream>>>(
        *m.type, m.memory, m.packed, m.begin, m.bytes, job.readable_end);
    return cudaGetLastError();
}

// N bytes a cell.
template <int N>
constexpr int cell_threads = N == 4 ? 256 : 128;
template <int N>
constexpr int cells_per_tile = N == 4 ? 2048 : 512;

template <int N, bool Expect>
__global__ void __launch_bounds__(cell_threads<N>, 1536 / cell_threads<N>)
    unpack_staged(const __grid_constant__ mpix_typemap type, char *memory, char *packed, int64_t begin, int64_t bytes,
                  const char *readable_end, const __grid_constant__ mpix_divisor by_cells) {
    const detail::packing_job<detail::grid_map> job{detail::grid_map(type), memory, packed, begin, bytes, readable_end};
    extern __shared__ __align__(16) char shared[];
    char *const stage = shared + detail::stage_margin;
    const detail::staged_unpack<N> tile(job, by_cells, blockIdx.x, cells_per_tile<N>);
    tile.load(stage, Expect, static_cast<int>(threadIdx.x), cell_threads<N>);
    __syncthreads();
    tile.template store<cells_per_tile<N>, cell_threads<N>>(stage, static_cast<int>(threadIdx.x));
}

template <int N, bool Expect>
cudaError_t start_staged_unpack(const message &m, int word, stream_handle stream) {
    using staged = detail::staged_unpack<N>;
    const detail::packing_job<detail::grid_map> job{
        detail::grid_map(*m.type), m.memory, m.packed, m.begin, m.bytes, readable_end(m)};
    const mpix_divisor by_cells = detail::make_divisor(staged::cells_of_row(job.map.run(), word >= N));
    const int64_t blocks = (staged::cells(job, by_cells) + cells_per_tile<N> - 1) / cells_per_tile<N>;
    if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
    unpack_staged<N, Expect>
        <<<static_cast<unsigned>(blocks), cell_threads<N>, dynamic_bytes(staged::stage_bytes(cells_per_tile<N>)),
           stream>>>(*m.type, m.memory, m.packed, m.begin, m.bytes, job.readable_end, by_cells);
    return cudaGetLastError();
}

// do_tile() after expect_tile(), for W = 1 in short rows, or 16.
template <int W>
__global__ void __launch_bounds__(threads, at_once<W, true, detail::grid_map>)
    unpack_expecting(const __grid_constant__ mpix_typemap type, char *memory, char *packed, int64_t begin,
                     int64_t bytes, const char *readable_end) {
    const detail::packing_job<detail::grid_map> job{detail::grid_map(type), memory, packed, begin, bytes, readable_end};
    constexpr int tile = threads * W * (W == 16 ? 4 : detail::lanes_each<W, 4>);
    detail::expect_tile(job, W, blockIdx.x, tile, static_cast<int>(threadIdx.x), threads);
    detail::do_tile<W, 4, true>(job, blockIdx.x, threadIdx.x, threads);
}
template <int W>
cudaError_t start_expecting(const message &m, stream_handle stream) {
    const detail::packing_job<detail::grid_map> job{
        detail::grid_map(*m.type), m.memory, m.packed, m.begin, m.bytes, readable_end(m)};
    const int64_t blocks = detail::number_of_tiles<W, 4, true>(job, threads);
    if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
    unpack_expecting<W><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(*m.type, m.memory, m.packed, m.begin,
                                                                               m.bytes, job.readable_end);
    return cudaGetLastError();
}

// False where that is not the way.
bool start_staged(const message &m, stream_handle stream, cudaError_t &error) {
    using detail::pack_way;
    using detail::unpack_way;
    if (m.unpack) {
        const int word = detail::word_size(*m.type, m.memory, m.packed, m.begin, m.bytes);
        switch (detail::choose_unpack_way(*m.type, word)) {
            case unpack_way::plain:
                return false;
            case unpack_way::expecting:
                error = word == 16 ? start_expecting<16>(m, stream) : start_expecting<1>(m, stream);
                return true;
            case unpack_way::lanes:
                error = start<1, 4, true, detail::grid_map>(m, stream);
                return true;
            case unpack_way::words:
                error = start_staged_unpack<4, false>(m, word, stream);
                return true;
            case unpack_way::words_expecting:
                error = start_staged_unpack<4, true>(m, word, stream);
                return true;
            case unpack_way::cells:
                error = start_staged_unpack<16, true>(m, word, stream);
                return true;
        }
    }
    const int word = detail::kernel_word<false>(*m.type, m.memory, m.packed, m.begin, m.bytes);
    switch (detail::choose_pack_way(*m.type, word)) {
        case pack_way::plain:
            return false;
        case pack_way::rows:
            error = start_staged_pack<detail::staging::rows>(m, stream);
            return true;
        case pack_way::span:
            error = start_staged_pack<detail::staging::span>(m, stream);
            return true;
        case pack_way::bytes:
            error = start_staged_pack<detail::staging::bytes>(m, stream);
            return true;
    }
    return false;
}

// ---- the choice -------------------------------------------------------------------------------------------------

template <int W, bool Unpack, class Map>
cudaError_t start_words(const message &m, stream_handle stream) {
    if (m.bytes >= many_bytes) return start<W, 4, Unpack, Map>(m, stream);
    return start<W, 1, Unpack, Map>(m, stream);
}

template <bool Unpack, class Map>
cudaError_t start_map(const message &m, stream_handle stream) {
    switch (detail::kernel_word<Unpack>(*m.type, m.memory, m.packed, m.begin, m.bytes)) {
        case 16:
            return start_words<16, Unpack, Map>(m, stream);
        case 8:
            return start_words<8, Unpack, Map>(m, stream);
        case 4:
            return start_words<4, Unpack, Map>(m, stream);
        default:
            return start_words<1, Unpack, Map>(m, stream);
    }
}

template <bool Unpack>
cudaError_t start_way(const message &m, stream_handle stream) {
    switch (m.type->kind) {
        case MPIX_TYPEMAP_GRID: {
            cudaError_t error = cudaSuccess;
            if (m.bytes >= many_bytes && start_staged(m, stream, error)) return error;
            return start_map<Unpack, detail::grid_map>(m, stream);
        }
        case MPIX_TYPEMAP_RUNS:
            return start_map<Unpack, detail::run_map>(m, stream);
        default:
            return start_map<Unpack, detail::box_map>(m, stream);
    }
}

// From one type to another, for as many blocks as there are 16 KiB.
__global__ void __launch_bounds__(threads)
    move_across(const __grid_constant__ mpix_typemap to_type, char *to, const __grid_constant__ mpix_typemap from_type,
                char *from, int64_t begin, int64_t bytes) {
    detail::move_share({to, &to_type}, {from, &from_type}, begin, bytes, int64_t{blockIdx.x} * threads + threadIdx.x,
                       int64_t{gridDim.x} * threads);
}
constexpr int64_t bytes_per_block = 16384, most_blocks = 1024;

template <class Kernel>
void load(cudaError_t &error, Kernel *kernel) {
    cudaFuncAttributes attributes;
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel);
}
template <bool Unpack, class Map, int... W>
void load_words(cudaError_t &error) {
    (load(error, move<W, 1, Unpack, Map>), ...);
    (load(error, move<W, 4, Unpack, Map>), ...);
}
template <class... Map>
void load_maps(cudaError_t &error) {
    (load_words<false, Map, 1, 4, 8, 16>(error), ...);
    (load_words<true, Map, 1, 4, 8, 16>(error), ...);
}

}  // namespace

int load_kernels() {
    cudaError_t error = cudaSuccess;
    load(error, move_across);
    load(error, pack_staged<detail::staging::rows>);
    load(error, pack_staged<detail::staging::span>);
    load(error, pack_staged<detail::staging::bytes>);
    load(error, unpack_staged<4, false>);
    load(error, unpack_staged<4, true>);
    load(error, unpack_staged<16, true>);
    load(error, unpack_expecting<1>);
    load(error, unpack_expecting<16>);
    load_maps<detail::grid_map, detail::run_map, detail::box_map>(error);
    if (error == cudaSuccess) error = static_cast<cudaError_t>(load_inline_kernels());
    if (error == cudaSuccess) error = static_cast<cudaError_t>(load_enqueue_kernels());
    return error == cudaSuccess ? load_exchange_kernels() : error;
}

int launch_move(const passage &p, stream_handle stream) {
    const int64_t blocks = (p.bytes + bytes_per_block - 1) / bytes_per_block;
    move_across<<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), threads, 0, stream>>>(
        *p.to_type, p.to, *p.from_type, p.from, p.begin, p.bytes);
    return cudaGetLastError();
}

int launch_pack(const message &m, stream_handle stream) {
    return m.unpack ? start_way<true>(m, stream) : start_way<false>(m, stream);
}

}  // namespace mpix::gpu
