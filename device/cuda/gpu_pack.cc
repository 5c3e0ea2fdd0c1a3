// SPDX-License-Identifier: BSD-3-Clause
#include <mpix/device/gpu_pack.h>

#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>
#include <mpix/device/pack_launch.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace mpix::gpu {
namespace {

using detail::cuda_error;
using detail::device_scope;

// Packed bytes that kernels cannot reach go through device memory in pieces of this size.
constexpr int64_t staging_bytes = int64_t{32} << 20;

outcome copy_in_order(void *to, const void *from, int64_t bytes, cudaStream_t order) {
    const cudaError_t error = cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, order);
    return error == cudaSuccess ? outcome{} : cuda_error("cudaMemcpyAsync", error);
}

// So that a process without GPUs does not start CUDA when it frees a datatype.
std::atomic<bool> tables_were_made{false};

// A type map's tables on one device.
struct tables {
    mpix_typemap map;  // leads to memory of the device
    void *memory = nullptr;
    cudaEvent_t used = nullptr;  // after the last kernel that was enqueued with them
};

// All of one device, which is current wherever this is used.
class device_state {
public:
    outcome open() {
        const std::lock_guard lock(mutex_);
        if (pool_ != nullptr) return {};
        int device = 0;
        cudaError_t error = cudaGetDevice(&device);
        cudaMemPoolProps properties{};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = device;
        if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&maker_, cudaStreamNonBlocking);
        if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&ender_, cudaStreamNonBlocking);
        if (error == cudaSuccess) error = cudaMemPoolCreate(&pool_, &properties);
        uint64_t keep_all = ~uint64_t{0};
        if (error == cudaSuccess) error = cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_all);
        // What the ender is still waiting to free is not given to anybody who would then wait as well.
        int no = 0;
        if (error == cudaSuccess)
            error = cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &no);
        return error == cudaSuccess ? outcome{} : cuda_error("no memory pool on the GPU", error);
    }

    outcome load() {
        if (outcome problem = open(); !problem.empty()) return problem;
        cudaError_t error = cudaSuccess;
#if MPIX_HAVE_NVCC
        std::call_once(loaded_, [&] { error = static_cast<cudaError_t>(load_kernels()); });
#endif
        return error == cudaSuccess ? outcome{} : cuda_error("cannot load the packing kernels", error);
    }

    outcome take_stream(cudaStream_t &out) {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            out = idle_.back();
            idle_.pop_back();
            return {};
        }
        const cudaError_t error = cudaStreamCreateWithFlags(&out, cudaStreamNonBlocking);
        return error == cudaSuccess ? outcome{} : cuda_error("cudaStreamCreateWithFlags", error);
    }
    void give_stream(cudaStream_t stream) {
        const std::lock_guard lock(mutex_);
        idle_.push_back(stream);
    }

    outcome allocate(void **out, int64_t bytes, cudaStream_t stream) {
        const cudaError_t error = cudaMallocFromPoolAsync(out, static_cast<std::size_t>(bytes), pool_, stream);
        return error == cudaSuccess ? outcome{} : cuda_error("no device memory: cudaMallocFromPoolAsync", error);
    }

    // The type with its tables where kernels can read them.
    outcome find_tables(const mpix_typemap &type, mpix_typemap &out) {
        out = type;
        if (type.kind == MPIX_TYPEMAP_GRID) return {};
        const std::lock_guard lock(mutex_);
        const auto found = tables_.find(&type);
        if (found != tables_.end()) {
            out = found->second.map;
            return {};
        }
        tables made;
        outcome problem = upload(type, made);
        if (!problem.empty()) return problem;
        out = made.map;
        tables_.emplace(&type, made);
        tables_were_made.store(true, std::memory_order_relaxed);
        return {};
    }

    // A kernel that uses the type's tables was enqueued.
    outcome note_use(const mpix_typemap &type, cudaStream_t stream) {
        if (type.kind == MPIX_TYPEMAP_GRID) return {};
        cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
        cudaError_t error = cudaStreamIsCapturing(stream, &capture);
        // An event in a graph says nothing of the graph's launches; whoever keeps the graph keeps the type.
        if (error == cudaSuccess && capture != cudaStreamCaptureStatusNone) return {};
        const std::lock_guard lock(mutex_);
        const auto found = tables_.find(&type);
        if (found == tables_.end()) return {};  // moved without tables
        tables &t = found->second;
        // One after another, so that the event speaks for all uses.
        if (error == cudaSuccess) error = cudaStreamWaitEvent(ender_, t.used);
        if (error == cudaSuccess) error = cudaEventRecord(t.used, stream);
        return error == cudaSuccess ? outcome{} : cuda_error("cudaEventRecord", error);
    }

    // Memory with something in it.
    outcome upload_bytes(const void *from, int64_t bytes, void **out) {
        outcome problem = allocate(out, bytes, maker_);
        if (!problem.empty()) return problem;
        problem = copy_in_order(*out, from, bytes, maker_);
        const cudaError_t error = cudaStreamSynchronize(maker_);
        return problem.empty() && error != cudaSuccess ? cuda_error("cudaStreamSynchronize", error) : problem;
    }
    void free_bytes(void *memory) { cudaFreeAsync(memory, ender_); }

    bool knows(const mpix_typemap *type) {
        const std::lock_guard lock(mutex_);
        return tables_.count(type) != 0;
    }
    void forget(const mpix_typemap *type) {
        const std::lock_guard lock(mutex_);
        const auto found = tables_.find(type);
        if (found == tables_.end()) return;
        // In the ender's order, after the kernels: nobody here waits for them.
        cudaStreamWaitEvent(ender_, found->second.used);
        cudaFreeAsync(found->second.memory, ender_);
        cudaEventDestroy(found->second.used);
        tables_.erase(found);
        cudaGetLastError();
    }

private:
    outcome upload(const mpix_typemap &type, tables &out) {
        out.map = type;
        struct part {
            const void *from;
            int64_t bytes, at;
        };
        std::vector<part> parts;
        int64_t total = 0;
        const auto add = [&](const void *from, int64_t bytes) {
            parts.push_back({from, bytes, total});
            total += (bytes + 15) & ~int64_t{15};
            return parts.back().at;
        };
        const mpix_run_table &t = type.table;
        const bool runs = type.kind == MPIX_TYPEMAP_RUNS;
        const int64_t packed = runs ? add(t.packed, (t.runs + 1) * 8) : 0,
                      offset = runs ? add(t.offset, t.runs * 8) : 0, bucket = runs ? add(t.bucket, t.buckets * 4) : 0,
                      boxes = runs ? 0 : add(type.boxes, type.number_of_boxes * int64_t{sizeof(mpix_grid)});
        if (outcome problem = allocate(&out.memory, total, maker_); !problem.empty()) return problem;
        char *const base = static_cast<char *>(out.memory);
        cudaError_t error = cudaEventCreateWithFlags(&out.used, cudaEventDisableTiming);
        for (const part &p : parts)
            if (error == cudaSuccess)
                error = cudaMemcpyAsync(base + p.at, p.from, static_cast<std::size_t>(p.bytes), cudaMemcpyHostToDevice,
                                        maker_);
        if (error == cudaSuccess) error = cudaStreamSynchronize(maker_);
        if (error != cudaSuccess) {
            if (out.used != nullptr) cudaEventDestroy(out.used);
            cudaFreeAsync(out.memory, maker_);
            return cuda_error("cannot copy a datatype to the GPU", error);
        }
        out.map.table.packed = reinterpret_cast<const int64_t *>(base + packed);
        out.map.table.offset = reinterpret_cast<const int64_t *>(base + offset);
        out.map.table.bucket = reinterpret_cast<const uint32_t *>(base + bucket);
        out.map.boxes = reinterpret_cast<const mpix_grid *>(base + boxes);
        return {};
    }

    std::mutex mutex_;
    cudaMemPool_t pool_ = nullptr;
    // Memory of tables comes in the order of the one, where nothing ever waits for a kernel, and goes in the other's.
    cudaStream_t maker_ = nullptr, ender_ = nullptr;
    std::vector<cudaStream_t> idle_;
    std::once_flag loaded_;
    std::map<const mpix_typemap *, tables> tables_;
};

std::vector<device_state> &devices() {
    // Never destroyed: the CUDA runtime may be gone by the time of static destructors.
    static auto *const all = [] {
        int n = 0;
        if (cudaGetDeviceCount(&n) != cudaSuccess) n = 0;
        cudaGetLastError();
        return new std::vector<device_state>(static_cast<std::size_t>(n));
    }();
    return *all;
}

// The address by which kernels on `device` reach `packed`; null if they cannot.
char *reach(char *packed, int device) {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, packed) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    if (attributes.type == cudaMemoryTypeDevice && attributes.device != device &&
        !detail::enable_peer(device, attributes.device).empty())
        return nullptr;
    return static_cast<char *>(attributes.devicePointer);
}

#if MPIX_HAVE_NVCC
outcome move(const message &m, cudaStream_t order) {
    const int error = launch_pack(m, order);
    return error == cudaSuccess ? outcome{} : cuda_error("kernel launch", static_cast<cudaError_t>(error));
}
#else
template <class Map>
outcome move_runs(const message &m, const Map &map, cudaStream_t order) {
    detail::cursor c = map.locate(m.begin);
    for (int64_t at = 0;;) {
        const int64_t n = std::min(c.left, m.bytes - at);
        char *const memory = m.memory + c.offset, *const packed = m.packed + at;
        outcome problem = copy_in_order(m.unpack ? memory : packed, m.unpack ? packed : memory, n, order);
        at += n;
        if (!problem.empty() || at == m.bytes) return problem;
        map.advance(c, n);
    }
}
// Built without nvcc: the copy engine, run by run. Right, and slow.
outcome move(const message &m, cudaStream_t order) {
    if (m.type->kind == MPIX_TYPEMAP_GRID) return move_runs(m, detail::grid_map(*m.type), order);
    if (m.type->kind == MPIX_TYPEMAP_RUNS) return move_runs(m, detail::run_map(*m.type), order);
    return move_runs(m, detail::box_map(*m.type), order);
}
#endif

#if MPIX_HAVE_NVCC
outcome move_across(const passage &p, cudaStream_t order) {
    const int error = launch_move(p, order);
    return error == cudaSuccess ? outcome{} : cuda_error("kernel launch", static_cast<cudaError_t>(error));
}
#else
outcome move_across(const passage &, cudaStream_t) {
    return "from one datatype with gaps to another on GPUs needs a library that was built with nvcc";
}
#endif

// The message's packed bytes by way of device memory.
outcome move_staged(device_state &device, message m, cudaStream_t order) {
    void *staging = nullptr;
    if (outcome problem = device.allocate(&staging, std::min(m.bytes, staging_bytes), order); !problem.empty())
        return problem;
    outcome problem;
    for (int64_t left = m.bytes; left > 0 && problem.empty(); left -= m.bytes, m.begin += m.bytes) {
        char *const outside = m.packed;
        m.bytes = std::min(left, staging_bytes);
        m.packed = static_cast<char *>(staging);
        if (m.unpack) problem = copy_in_order(staging, outside, m.bytes, order);
        if (problem.empty()) problem = move(m, order);
        if (problem.empty() && !m.unpack) problem = copy_in_order(outside, staging, m.bytes, order);
        m.packed = outside + m.bytes;
    }
    cudaFreeAsync(staging, order);
    return problem;
}

outcome submit(device_state &device, message m, cudaStream_t order) {
    if (m.type->kind == MPIX_TYPEMAP_GRID && m.type->grid.dimensions == 0) {
        char *const memory = m.memory + m.type->grid.offset + m.begin;
        return copy_in_order(m.unpack ? memory : m.packed, m.unpack ? m.packed : memory, m.bytes, order);
    }
    mpix_typemap type{};
#if MPIX_HAVE_NVCC
    if (outcome problem = device.find_tables(*m.type, type); !problem.empty()) return problem;
#else
    type = *m.type;
#endif
    m.type = &type;
    char *const reached = reach(m.packed, m.device);
    if (reached == nullptr) return move_staged(device, m, order);
    m.packed = reached;
    return move(m, order);
}

// By the packing kernels where one side is packed, otherwise in one pass.
outcome submit(device_state &device, const passage &p, cudaStream_t order) {
    if (p.to_type == nullptr || p.from_type == nullptr) {
        const bool unpack = p.from_type == nullptr;
        const message m{unpack ? p.to_type : p.from_type,
                        unpack ? p.to : p.from,
                        p.device,
                        (unpack ? p.from : p.to) + p.begin,
                        p.begin,
                        p.bytes,
                        unpack};
        outcome problem = submit(device, m, order);
        return problem.empty() ? device.note_use(*m.type, order) : problem;
    }
    mpix_typemap to{}, from{};
    outcome problem = device.find_tables(*p.to_type, to);
    if (problem.empty()) problem = device.find_tables(*p.from_type, from);
    passage placed = p;
    placed.to_type = &to;
    placed.from_type = &from;
    if (problem.empty()) problem = move_across(placed, order);
    if (problem.empty()) problem = device.note_use(*p.to_type, order);
    if (problem.empty()) problem = device.note_use(*p.from_type, order);
    return problem;
}

struct under_way final : pending {
    device_state *device = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
    ~under_way() override {
        if (end != nullptr) cudaEventDestroy(end);
        if (stream != nullptr) device->give_stream(stream);
    }
    bool finished(outcome &problem) override {
        const cudaError_t state = cudaEventQuery(end);
        if (state == cudaErrorNotReady) {
            cudaGetLastError();
            return false;
        }
        if (state != cudaSuccess) problem = cuda_error("packing on the GPU", state);
        return true;
    }
};

// Submit to a stream of our own, and wait.
template <class Submit>
outcome finish_on(int ordinal, const Submit &submit_to) {
    const device_scope scope(ordinal);
    device_state &device = devices().at(static_cast<std::size_t>(ordinal));
    if (outcome problem = device.open(); !problem.empty()) return problem;
    cudaStream_t stream = nullptr;
    if (outcome problem = device.take_stream(stream); !problem.empty()) return problem;
    outcome problem = submit_to(device, stream);
    const cudaError_t error = cudaStreamSynchronize(stream);
    if (problem.empty() && error != cudaSuccess) problem = cuda_error("cudaStreamSynchronize", error);
    device.give_stream(stream);
    return problem;
}

}  // namespace

outcome run(const message &m) {
    return finish_on(m.device, [&](device_state &device, cudaStream_t stream) { return submit(device, m, stream); });
}

outcome prepare(int ordinal) {
    const device_scope scope(ordinal);
    return devices().at(static_cast<std::size_t>(ordinal)).load();
}

outcome start(const passage &p, std::unique_ptr<pending> &out) {
    const device_scope scope(p.device);
    device_state &device = devices().at(static_cast<std::size_t>(p.device));
    if (outcome problem = device.open(); !problem.empty()) return problem;
    auto made = std::make_unique<under_way>();
    made->device = &device;
    if (outcome problem = device.take_stream(made->stream); !problem.empty()) return problem;
    if (outcome problem = submit(device, p, made->stream); !problem.empty()) return problem;
    cudaError_t error = cudaEventCreateWithFlags(&made->end, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventRecord(made->end, made->stream);
    if (error != cudaSuccess) return cuda_error("cudaEventRecord", error);
    out = std::move(made);
    return {};
}

outcome enqueue(const message &m, stream_handle order) {
    const device_scope scope(m.device);
    device_state &device = devices().at(static_cast<std::size_t>(m.device));
    if (outcome problem = device.open(); !problem.empty()) return problem;
    if (outcome problem = submit(device, m, order); !problem.empty()) return problem;
    return device.note_use(*m.type, order);
}

outcome copy(void *to, const void *from, int64_t bytes, int device) {
    return finish_on(device,
                     [&](device_state &, cudaStream_t stream) { return copy_in_order(to, from, bytes, stream); });
}

outcome place(const mpix_typemap *type, int device, const mpix_typemap **out) {
    const device_scope scope(device);
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
    if (type->kind == MPIX_TYPEMAP_GRID || !tables_were_made.load(std::memory_order_relaxed)) return;
    std::vector<device_state> &all = devices();
    for (std::size_t d = 0; d < all.size(); ++d) {
        if (!all[d].knows(type)) continue;  // nor is the device's context wanted
        const device_scope scope(static_cast<int>(d));
        all[d].forget(type);
    }
}

}  // namespace mpix::gpu
