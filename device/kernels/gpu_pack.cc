// SPDX-License-Identifier: BSD-3-Clause
#include "device/kernels/gpu_pack.h"

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>
#include <mpix/impl/pack/tiles.cuh>

#include <algorithm>
#include <atomic>
#include <memory>

#include "device/kernels/device_state.h"
#include "device/kernels/launch.h"
#include "device/kernels/own_stream.h"
#include "device/kernels/pack_choice.h"

namespace mpix::gpu {
namespace {

using detail::cuda_error;
using detail::device_scope;

// Packed bytes that kernels cannot reach go through device memory in pieces of this size.
constexpr int64_t staging_bytes = int64_t{32} << 20;

outcome copy_in_order(void *to, const void *from, int64_t bytes, cudaStream_t stream) {
    const cudaError_t error = cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream);
    return error == cudaSuccess ? outcome{} : cuda_error("cudaMemcpyAsync", error);
}

// Where packed bytes are for kernels on `device`; and by which address, if these can reach them.
packed_place find_packed(char *&packed, int device) {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, packed) != cudaSuccess) {
        cudaGetLastError();
        return packed_place::unreachable;
    }
    const bool other = attributes.type == cudaMemoryTypeDevice && attributes.device != device;
    if (attributes.devicePointer == nullptr || (other && !detail::enable_peer(device, attributes.device).empty()))
        return packed_place::unreachable;
    packed = static_cast<char *>(attributes.devicePointer);
    return other                                   ? packed_place::other_gpu
           : attributes.type == cudaMemoryTypeHost ? packed_place::mapped_host
                                                   : packed_place::same_gpu;
}

// Without nvcc there are no kernels, but copies of one run after another.
std::atomic<pack_mode> mode{MPIX_HAVE_NVCC ? pack_mode::none : pack_mode::rows};

bool costs_matter() { return mode.load(std::memory_order_relaxed) == pack_mode::none; }

int word_of(const message &m) {
    return m.unpack ? detail::kernel_word<true>(*m.type, m.memory, m.packed, m.begin, m.bytes)
                    : detail::kernel_word<false>(*m.type, m.memory, m.packed, m.begin, m.bytes);
}

pack_shape shape_of(const message &m, packed_place packed) {
    return {m.type, m.begin, m.bytes, m.unpack, word_of(m), packed};
}

// By the copy engine, all rows at once.
outcome move_rows(const message &m, const pitched_rows &rows, cudaStream_t stream) {
    const auto width = static_cast<std::size_t>(rows.width), pitch = static_cast<std::size_t>(rows.pitch),
               height = static_cast<std::size_t>(rows.height), depth = static_cast<std::size_t>(rows.depth);
    char *const memory = m.memory + rows.offset;
    cudaError_t error = cudaSuccess;
    if (depth == 1) {
        error = m.unpack ? cudaMemcpy2DAsync(memory, pitch, m.packed, width, width, height, cudaMemcpyDefault, stream)
                         : cudaMemcpy2DAsync(m.packed, width, memory, pitch, width, height, cudaMemcpyDefault, stream);
    } else {
        const cudaPitchedPtr there = make_cudaPitchedPtr(memory, pitch, width, static_cast<std::size_t>(rows.slice)),
                             dense = make_cudaPitchedPtr(m.packed, width, width, height);
        cudaMemcpy3DParms p{};
        p.srcPtr = m.unpack ? dense : there;
        p.dstPtr = m.unpack ? there : dense;
        p.extent = make_cudaExtent(width, height, depth);
        p.kind = cudaMemcpyDefault;
        error = cudaMemcpy3DAsync(&p, stream);
    }
    return error == cudaSuccess ? outcome{} : cuda_error("cannot copy rows", error);
}

#if MPIX_HAVE_NVCC
outcome move(const message &m, cudaStream_t stream) {
    const int error = launch_pack(m, stream);
    return error == cudaSuccess ? outcome{} : cuda_error("kernel launch", static_cast<cudaError_t>(error));
}
#else
template <class Map>
outcome move_runs(const message &m, const Map &map, cudaStream_t stream) {
    detail::cursor c = map.locate(m.begin);
    for (int64_t at = 0;;) {
        const int64_t n = std::min(c.left, m.bytes - at);
        char *const memory = m.memory + c.offset, *const packed = m.packed + at;
        outcome problem = copy_in_order(m.unpack ? memory : packed, m.unpack ? packed : memory, n, stream);
        at += n;
        if (!problem.empty() || at == m.bytes) return problem;
        map.advance(c, n);
    }
}
// Built without nvcc: the copy engine, run by run. Right, and slow.
outcome move(const message &m, cudaStream_t stream) {
    if (m.type->kind == MPIX_TYPEMAP_GRID) return move_runs(m, detail::grid_map(*m.type), stream);
    if (m.type->kind == MPIX_TYPEMAP_RUNS) return move_runs(m, detail::run_map(*m.type), stream);
    return move_runs(m, detail::box_map(*m.type), stream);
}
#endif

#if MPIX_HAVE_NVCC
outcome move_across(const passage &p, cudaStream_t stream) {
    const int error = launch_move(p, stream);
    return error == cudaSuccess ? outcome{} : cuda_error("kernel launch", static_cast<cudaError_t>(error));
}
#else
outcome move_across(const passage &, cudaStream_t) {
    return "from one datatype with gaps to another on GPUs needs a library that was built with nvcc";
}
#endif

// The message's packed bytes by way of device memory.
outcome move_staged(device_state &device, message m, cudaStream_t stream) {
    void *staging = nullptr;
    if (outcome problem = device.allocate(&staging, std::min(m.bytes, staging_bytes), stream); !problem.empty())
        return problem;
    outcome problem;
    for (int64_t left = m.bytes; left > 0 && problem.empty(); left -= m.bytes, m.begin += m.bytes) {
        char *const outside = m.packed;
        m.bytes = std::min(left, staging_bytes);
        m.packed = static_cast<char *>(staging);
        if (m.unpack) problem = copy_in_order(staging, outside, m.bytes, stream);
        if (problem.empty()) problem = move(m, stream);
        if (problem.empty() && !m.unpack) problem = copy_in_order(outside, staging, m.bytes, stream);
        m.packed = outside + m.bytes;
    }
    cudaFreeAsync(staging, stream);
    return problem;
}

// Every message goes through here.
outcome submit(device_state &device, message m, cudaStream_t stream) {
    const packed_place packed = find_packed(m.packed, m.device);
    const pack_shape shape = shape_of(m, packed);
    const pack_choice choice = consider(shape, device.costs(), mode.load(std::memory_order_relaxed));
    if (choice.taken == pack_way::copy) {
        char *const memory = m.memory + m.type->grid.offset + m.begin;
        return copy_in_order(m.unpack ? memory : m.packed, m.unpack ? m.packed : memory, m.bytes, stream);
    }
    if (pitched_rows rows; choice.taken == pack_way::rows && as_rows(shape, rows)) return move_rows(m, rows, stream);
    mpix_typemap type{};
#if MPIX_HAVE_NVCC
    if (outcome problem = device.find_tables(*m.type, type); !problem.empty()) return problem;
#else
    type = *m.type;
#endif
    const mpix_typemap *const tables = m.type;
    m.type = &type;
    outcome problem = choice.taken == pack_way::staged ? move_staged(device, m, stream) : move(m, stream);
    return problem.empty() ? device.note_use(*tables, stream) : problem;
}

// By the packing kernels where one side is packed, otherwise in one pass.
outcome submit(device_state &device, const passage &p, cudaStream_t stream) {
    if (p.to_type == nullptr || p.from_type == nullptr) {
        const bool unpack = p.from_type == nullptr;
        const message m{unpack ? p.to_type : p.from_type,
                        unpack ? p.to : p.from,
                        p.device,
                        (unpack ? p.from : p.to) + p.begin,
                        p.begin,
                        p.bytes,
                        unpack};
        return submit(device, m, stream);
    }
    mpix_typemap to{}, from{};
    outcome problem = device.find_tables(*p.to_type, to);
    if (problem.empty()) problem = device.find_tables(*p.from_type, from);
    passage placed = p;
    placed.to_type = &to;
    placed.from_type = &from;
    if (problem.empty()) problem = move_across(placed, stream);
    if (problem.empty()) problem = device.note_use(*p.to_type, stream);
    if (problem.empty()) problem = device.note_use(*p.from_type, stream);
    return problem;
}

// Submit to a stream of our own, and wait.
template <class Submit>
outcome finish_on(int ordinal, const Submit &submit_to) {
    const device_scope scope(ordinal);
    if (!scope.problem().empty()) return scope.problem();
    device_state &device = devices().at(static_cast<std::size_t>(ordinal));
    if (outcome problem = device.open(); !problem.empty()) return problem;
    cudaStream_t const stream = device.take_stream();
    outcome problem = submit_to(device, stream);
    const cudaError_t error = cudaStreamSynchronize(stream);
    if (problem.empty() && error != cudaSuccess) problem = cuda_error("cudaStreamSynchronize", error);
    device.give_stream(stream);
    return problem;
}

}  // namespace

outcome run(const message &m) {
    return finish_on(m.device, [&](device_state &device, cudaStream_t stream) {
        // In one piece it needs no kernel.
        if (m.type->kind != MPIX_TYPEMAP_GRID || m.type->grid.dimensions != 0) {
            if (outcome problem = device.load(); !problem.empty()) return problem;
            if (costs_matter()) device.measure(m.device);
        }
        return submit(device, m, stream);
    });
}

outcome load_on(int ordinal) {
    const device_scope scope(ordinal);
    if (!scope.problem().empty()) return scope.problem();
    return devices().at(static_cast<std::size_t>(ordinal)).load();
}

void measure_on(int ordinal) {
    const device_scope scope(ordinal);
    if (scope.problem().empty() && costs_matter()) devices().at(static_cast<std::size_t>(ordinal)).measure(ordinal);
}

outcome start(const passage &p, std::unique_ptr<pending> &out) {
    return start_in_own_stream(
        p.device, "packing on the GPU",
        [&](device_state &device, cudaStream_t stream) { return submit(device, p, stream); }, out);
}

outcome enqueue(const message &m, stream_handle stream) {
    const device_scope scope(m.device);
    if (!scope.problem().empty()) return scope.problem();
    device_state &device = devices().at(static_cast<std::size_t>(m.device));
    if (outcome problem = device.open(); !problem.empty()) return problem;
    return submit(device, m, stream);
}

double lone_thread_rate(int device) { return devices().at(static_cast<std::size_t>(device)).lone_thread_rate(); }

pack_choice explain(message m, pack_costs &costs) {
    const device_scope scope(m.device);
    costs = devices().at(static_cast<std::size_t>(m.device)).costs();
    const packed_place packed = find_packed(m.packed, m.device);
    return consider(shape_of(m, packed), costs, mode.load(std::memory_order_relaxed));
}

void prefer(pack_mode way) { mode.store(way, std::memory_order_relaxed); }

outcome copy(void *to, const void *from, int64_t bytes, int device) {
    return finish_on(device,
                     [&](device_state &, cudaStream_t stream) { return copy_in_order(to, from, bytes, stream); });
}

outcome place(const mpix_typemap *type, int device, const mpix_typemap **out) {
    const device_scope scope(device);
    if (!scope.problem().empty()) return scope.problem();
    device_state &state = devices().at(static_cast<std::size_t>(device));
    mpix_typemap there{};
    outcome problem = state.open();
    if (problem.empty()) problem = state.find_tables(*type, there);
    void *placed = nullptr;
    if (problem.empty()) problem = state.upload_bytes(&there, sizeof there, &placed);
    *out = static_cast<const mpix_typemap *>(placed);
    return problem;
}

void unplace(const mpix_typemap *placed, int device) {
    const device_scope scope(device);
    devices().at(static_cast<std::size_t>(device)).free_bytes(const_cast<mpix_typemap *>(placed));
}

int number_of_devices() { return static_cast<int>(devices().size()); }

void forget(const mpix_typemap *type) {
    if (type->kind == MPIX_TYPEMAP_GRID || !tables_were_made()) return;
    std::vector<device_state> &all = devices();
    for (std::size_t d = 0; d < all.size(); ++d) {
        if (!all[d].knows(type)) continue;  // nor is the device's context wanted
        const device_scope scope(static_cast<int>(d));
        all[d].forget(type);
    }
}

}  // namespace mpix::gpu
