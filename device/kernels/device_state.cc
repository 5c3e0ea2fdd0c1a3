// SPDX-License-Identifier: BSD-3-Clause
#include <mpix/detail/cuda_host.h>

#include <algorithm>
#include <utility>

#include "device/kernels/best_time.h"
#include "device/kernels/device_state.h"
#include "device/kernels/launch.h"

namespace mpix::gpu {
namespace {

using detail::cuda_error;

std::atomic<bool> any_tables{false};

}  // namespace

bool tables_were_made() { return any_tables.load(std::memory_order_relaxed); }

std::vector<device_state> &devices() {
    static auto *const all = [] {
        int n = 0;
        if (cudaGetDeviceCount(&n) != cudaSuccess) n = 0;
        cudaGetLastError();
        return new std::vector<device_state>(static_cast<std::size_t>(n));
    }();
    return *all;
}

outcome device_state::open() {
    const std::lock_guard lock(mutex_);
    if (open_) return {};
    outcome problem = prepare_streams();
    if (problem.empty()) {
        open_ = true;
        return {};
    }
    // The next caller tries again.
    if (maker_ != nullptr) cudaStreamDestroy(maker_);
    if (ender_ != nullptr) cudaStreamDestroy(ender_);
    for (shared_stream &s : streams_)
        if (s.stream != nullptr) cudaStreamDestroy(std::exchange(s.stream, nullptr));
    if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
    maker_ = ender_ = nullptr;
    pool_ = nullptr;
    return problem;
}

outcome device_state::prepare_streams() {
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&maker_, cudaStreamNonBlocking);
    if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&ender_, cudaStreamNonBlocking);
    for (shared_stream &s : streams_)
        if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) error = cudaMemPoolCreate(&pool_, &properties);
    uint64_t keep_all = ~uint64_t{0};
    if (error == cudaSuccess) error = cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_all);
    // What the ender is still waiting to free is not given to anybody who would then wait as well.
    int no = 0;
    if (error == cudaSuccess) error = cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &no);
    return error == cudaSuccess ? outcome{} : cuda_error("no streams and memory pool on the GPU", error);
}

outcome device_state::load() {
    // Acquire: with the release below, so that what was found is whole.
    if (loaded_.load(std::memory_order_acquire)) return {};  // pairs: H12
    if (outcome problem = open(); !problem.empty()) return problem;
    const std::lock_guard lock(loading_);
    if (loaded_.load(std::memory_order_relaxed)) return {};
#if MPIX_HAVE_NVCC
    if (const auto error = static_cast<cudaError_t>(load_kernels()); error != cudaSuccess)
        return cuda_error("cannot load the packing kernels", error);
    make_timing_room();
    time_lone_thread();
#endif
    loaded_.store(true, std::memory_order_release);  // pairs: H12
    return {};
}

void device_state::measure(int device) {
    if (measured_.load(std::memory_order_acquire)) return;  // pairs: H12
    const std::lock_guard lock(loading_);
    if (measured_.load(std::memory_order_relaxed)) return;
    costs_ = measure_costs(device);
    measured_.store(true, std::memory_order_release);  // pairs: H12
}

#if MPIX_HAVE_NVCC
// Without it nothing is timed, and nothing else is lacking. Not from the pool, whose first allocation takes 7 ms.
void device_state::make_timing_room() {
    void *memory = nullptr, *words = nullptr;
    if (cudaMalloc(&memory, timing_bytes) == cudaSuccess &&
        cudaMemsetAsync(memory, 0, timing_bytes, maker_) == cudaSuccess &&
        cudaStreamSynchronize(maker_) == cudaSuccess &&
        cudaHostAlloc(&words, timed_words * sizeof(uint64_t), cudaHostAllocMapped | cudaHostAllocPortable) ==
            cudaSuccess) {
        timing_ = {static_cast<char *>(memory), static_cast<uint64_t *>(words)};
    } else if (memory != nullptr) {
        cudaFree(memory);
    }
    cudaGetLastError();
}

void device_state::time_lone_thread() {
    if (timing_.memory == nullptr) return;
    constexpr int64_t half = timing_bytes / 2, less = half / 2;
    cudaError_t error = cudaSuccess;
    const auto us = [&](int64_t bytes) {
        return best_time_us(maker_, error, [&] {
            return static_cast<cudaError_t>(launch_lone_copy(timing_.memory + half, timing_.memory, bytes, maker_));
        });
    };
    const double whole = us(half), part = us(less), rate = (half - less) / std::max(whole - part, 0.1);
    cudaGetLastError();
    // Whoever else used the GPU meanwhile may have made nonsense of it. No GPU is beyond these.
    if (error == cudaSuccess && rate > 10 && rate < 1e5) lone_thread_rate_ = rate;
}
#endif

cudaStream_t device_state::take_stream() {
    const std::lock_guard lock(mutex_);
    shared_stream &least = *std::min_element(streams_.begin(), streams_.end(),
                                             [](const auto &a, const auto &b) { return a.users < b.users; });
    ++least.users;
    return least.stream;
}

void device_state::give_stream(cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    for (shared_stream &s : streams_)
        if (s.stream == stream) --s.users;
}

outcome device_state::allocate(void **out, int64_t bytes, cudaStream_t stream) {
    const cudaError_t error = cudaMallocFromPoolAsync(out, static_cast<std::size_t>(bytes), pool_, stream);
    return error == cudaSuccess ? outcome{} : cuda_error("no device memory: cudaMallocFromPoolAsync", error);
}

outcome device_state::upload_bytes(const void *from, int64_t bytes, void **out) {
    outcome problem = allocate(out, bytes, maker_);
    if (!problem.empty()) return problem;
    cudaError_t error = cudaMemcpyAsync(*out, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, maker_);
    if (error == cudaSuccess) error = cudaStreamSynchronize(maker_);
    if (error == cudaSuccess) return {};
    free_bytes(*out);
    *out = nullptr;
    return cuda_error("cannot copy to the GPU", error);
}

void device_state::free_bytes(void *memory) { cudaFreeAsync(memory, ender_); }

outcome device_state::find_tables(const mpix_typemap &type, mpix_typemap &out) {
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
    any_tables.store(true, std::memory_order_relaxed);
    return {};
}

outcome device_state::note_use(const mpix_typemap &type, cudaStream_t stream) {
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

bool device_state::knows(const mpix_typemap *type) {
    const std::lock_guard lock(mutex_);
    return tables_.count(type) != 0;
}

void device_state::forget(const mpix_typemap *type) {
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

outcome device_state::upload(const mpix_typemap &type, tables &out) {
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
    const int64_t packed = runs ? add(t.packed, (t.runs + 1) * 8) : 0, offset = runs ? add(t.offset, t.runs * 8) : 0,
                  bucket = runs ? add(t.bucket, t.buckets * 4) : 0,
                  boxes = runs ? 0 : add(type.boxes, type.number_of_boxes * int64_t{sizeof(mpix_grid)});
    if (outcome problem = allocate(&out.memory, total, maker_); !problem.empty()) return problem;
    char *const base = static_cast<char *>(out.memory);
    cudaError_t error = cudaEventCreateWithFlags(&out.used, cudaEventDisableTiming);
    for (const part &p : parts)
        if (error == cudaSuccess)
            error =
                cudaMemcpyAsync(base + p.at, p.from, static_cast<std::size_t>(p.bytes), cudaMemcpyHostToDevice, maker_);
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

const pack_costs &device_state::costs() const {
    static const pack_costs usual;
    return measured_.load(std::memory_order_acquire) ? costs_ : usual;  // pairs: H12
}

double device_state::lone_thread_rate() const {
    return loaded_.load(std::memory_order_acquire) ? lone_thread_rate_ : usual_lone_thread_rate;  // pairs: H12
}

timing_room device_state::room_for_timing() const {
    return loaded_.load(std::memory_order_acquire) ? timing_ : timing_room{};  // pairs: H12
}

}  // namespace mpix::gpu
