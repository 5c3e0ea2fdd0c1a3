// SPDX-License-Identifier: BSD-3-Clause
//
// One kernel template: word size, units per thread, direction, and how bytes are looked up.
#include <cuda_runtime.h>
#include <mpix/device/move.cuh>
#include <mpix/device/pack_launch.h>
#include <mpix/device/pack_tiles.cuh>

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

template <int W, int U, bool Unpack, class Map>
cudaError_t start(const message &m, stream_handle order) {
    const detail::packing_job<Map> job{Map(*m.type), m.memory, m.packed, m.begin, m.bytes, nullptr};
    const int64_t blocks = detail::number_of_tiles<W, U, Unpack>(job, threads);
    if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
    const char *const end = Unpack ? m.packed + m.bytes : m.memory + detail::memory_end(*m.type, m.begin, m.bytes);
    move<W, U, Unpack, Map>
        <<<static_cast<unsigned>(blocks), threads, 0, order>>>(*m.type, m.memory, m.packed, m.begin, m.bytes, end);
    return cudaGetLastError();
}

// Few units a thread where there are few for all, so that every multiprocessor has some.
constexpr int64_t many_bytes = int64_t{4} << 20;

template <int W, bool Unpack, class Map>
cudaError_t start_words(const message &m, stream_handle order) {
    if (m.bytes >= many_bytes) return start<W, 4, Unpack, Map>(m, order);
    return start<W, 1, Unpack, Map>(m, order);
}

template <bool Unpack, class Map>
cudaError_t start_map(const message &m, stream_handle order) {
    switch (detail::kernel_word<Unpack>(*m.type, m.memory, m.packed, m.begin, m.bytes)) {
        case 16:
            return start_words<16, Unpack, Map>(m, order);
        case 8:
            return start_words<8, Unpack, Map>(m, order);
        case 4:
            return start_words<4, Unpack, Map>(m, order);
        default:
            return start_words<1, Unpack, Map>(m, order);
    }
}

template <bool Unpack>
cudaError_t start_way(const message &m, stream_handle order) {
    switch (m.type->kind) {
        case MPIX_TYPEMAP_GRID:
            return start_map<Unpack, detail::grid_map>(m, order);
        case MPIX_TYPEMAP_RUNS:
            return start_map<Unpack, detail::run_map>(m, order);
        default:
            return start_map<Unpack, detail::box_map>(m, order);
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
    load_maps<detail::grid_map, detail::run_map, detail::box_map>(error);
    return error;
}

int launch_move(const passage &p, stream_handle order) {
    const int64_t blocks = (p.bytes + bytes_per_block - 1) / bytes_per_block;
    move_across<<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), threads, 0, order>>>(
        *p.to_type, p.to, *p.from_type, p.from, p.begin, p.bytes);
    return cudaGetLastError();
}

int launch_pack(const message &m, stream_handle order) {
    return m.unpack ? start_way<true>(m, order) : start_way<false>(m, order);
}

}  // namespace mpix::gpu
