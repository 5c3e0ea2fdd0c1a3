// SPDX-License-Identifier: BSD-3-Clause
//
// GPU memory of one node, through CUDA IPC: the user's own receive buffer is mapped by the peer, whose
// kernels then store straight into it; its copy engine serves the progress engine.
//
// Only non-blocking streams, and no call that touches the legacy default stream. The caller's current
// device is left as it was. Measured on an H200 with CUDA 13.0: of the calls used here cudaFree,
// cudaIpcCloseMemHandle and cudaHostUnregister wait for running kernels, and cudaStreamCreate sometimes does, the others do
// not; and while one of these waits, a cudaMemcpyAsync of another thread does not return. So memory of our own comes from
// slabs that are kept, mappings are closed only where transport.h says so, and streams are made with a request (prepare).
#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/backends.h"
#include "transport/cuda_ipc/host_views.h"
#include "transport/cuda_ipc/ipc_mappings.h"
#include "transport/cuda_ipc/posted_words.h"
#include "transport/cuda_ipc/user_memory.h"
#include "transport/cuda_ipc/vmm_memory.h"
#include "transport/free_ranges.h"
#include "transport/reserve.h"
#include "transport/transport.h"

namespace mpix::transport {
namespace {

using detail::device_scope;

// Page-locked memory by which a device copies to itself, a piece at a time in the order of its stream. Never freed, as
// below.
constexpr std::uint64_t bounce_bytes = 256 << 10;

constexpr std::uint64_t alignment = 256;
constexpr std::uint64_t slab_unit = 2u << 20;  // what cudaMalloc rounds to anyway

status cuda_error(const char *call, cudaError_t error) { return failure(detail::cuda_error(call, error)); }

std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

// Device memory of ours that regions are cut from, behind scratch_bytes for peers to store to.
struct slab {
    char *base;
    std::uint64_t bytes;
    int device;
    free_ranges free;
};

// In the low bits of a region's handle; an adopted one has a number of its own in the others.
constexpr unsigned kind_bits = 8;
enum region_kind : std::uint64_t {
    adopted = 0,
    allocated = 1,
    attached_here = 2,
    attached_by_ipc = 3,
    attached_by_files = 4
};

class cuda_ipc final : public transport {
public:
    const char *name() const override { return "cuda_ipc"; }
    transport_id id() const override { return id_cuda_ipc; }
    unsigned capabilities() const override { return device_store | adopt_buffer; }

    bool usable() override {
        std::call_once(probed_, [this] {
            int devices = 0;
            usable_ = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
            cudaGetLastError();
            if (!usable_) return;
            streams_.resize(static_cast<std::size_t>(devices));
            copy_streams_.resize(static_cast<std::size_t>(devices));
        });
        return usable_;
    }

    bool owns(const void *address, int &device) override {
        if (address == nullptr || !known_to_cuda(address)) return false;
        cudaPointerAttributes attributes{};
        if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
            cudaGetLastError();
            return false;
        }
        if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged) return false;
        device = attributes.device;
        return true;
    }

    status check(const void *buffer, std::uint64_t bytes) override { return check_memory(buffer, bytes); }

    status allocate(std::uint64_t bytes, int device, region &out) override {
        const device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        const std::uint64_t length = round_up(bytes == 0 ? 1 : bytes, alignment);
        out = {};
        if (status bad = cut(length, device, out); !bad.ok()) return bad;
        out.bytes = bytes;
        out.device = device;
        out.handle = allocated;
        cudaStream_t stream = nullptr;
        status bad = stream_of(device, stream);
        cudaError_t error = cudaSuccess;
        if (bad.ok() && ((error = cudaMemsetAsync(out.address, 0, bytes, stream)) != cudaSuccess ||
                         (error = cudaStreamSynchronize(stream)) != cudaSuccess))
            bad = cuda_error("cudaMemsetAsync", error);
        if (!bad.ok()) release(out);
        return bad;
    }

    status adopt(void *buffer, std::uint64_t bytes, region &out) override {
        cudaPointerAttributes attributes{};
        if (const cudaError_t error = cudaPointerGetAttributes(&attributes, buffer); error != cudaSuccess)
            return cuda_error("cudaPointerGetAttributes", error);
        if (attributes.type != cudaMemoryTypeDevice) return failure(not_mappable(buffer));
        out = {};
        out.address = buffer;
        out.bytes = bytes;
        out.device = attributes.device;
        out.handle = adopted | (adopted_regions_.fetch_add(1, std::memory_order_relaxed) + 1) << kind_bits;
        return {};
    }

    void release(region &own) override {
        if (own.handle == allocated) {
            const std::lock_guard lock(mutex_);
            const auto *at = static_cast<char *>(own.address);
            for (slab &s : slabs_)
                if (at >= s.base && at < s.base + s.bytes) {
                    s.free.give(static_cast<std::uint64_t>(at - s.base),
                                round_up(own.bytes == 0 ? 1 : own.bytes, alignment));
                    break;
                }
        } else if (is_adopted(own)) {
            exports_.take_back(own.handle);
        }
        own = {};
    }

    status describe(const region &own, wire_region &out) override {
        const device_scope scope(own.device);
        if (!scope.problem().empty()) return failure(scope.problem());
        wire_address address{};
        if (is_adopted(own) && is_vmm_memory(own.address)) {
            if (status bad = exports_.give(own, own.handle, address); !bad.ok())
                return bad.in_context((not_mappable(own.address) + ": ").c_str());
            write_wire(own, address, out);
            return {};
        }
        address.pid = getpid();
        address.files = -1;
        address.lasting = own.handle == allocated ? scratch_bytes : 0;
        address.address = reinterpret_cast<std::uint64_t>(own.address);
        if (const cudaError_t error = cudaIpcGetMemHandle(&address.handle, own.address); error != cudaSuccess)
            return cuda_error((not_mappable(own.address) + ": cudaIpcGetMemHandle").c_str(), error);
        std::uint64_t base = 0, size = 0;  // cudaIpcGetMemHandle names the whole allocation
        if (status bad = from_sentence(detail::find_allocation(address.address, base, size)); !bad.ok()) return bad;
        address.offset = address.address - base;
        address.allocation_bytes = size;
        attribute_of(own.address, CU_POINTER_ATTRIBUTE_BUFFER_ID, address.id);
        if (own.bytes > size - address.offset) return beyond(base + size);
        write_wire(own, address, out);
        return {};
    }

    bool gives_files(const wire_region &described) const override {
        wire_address address;
        std::memcpy(&address, described.address, sizeof address);
        return described.transport == id_cuda_ipc && address.files >= 0;
    }

    status attach(const wire_region &wire, int device, region &out) override {
        wire_address address;
        std::memcpy(&address, wire.address, sizeof address);
        out = {};
        out.bytes = wire.bytes;
        if (address.pid == getpid()) {  // a handle cannot be opened in the process it comes from
            if (wire.device < 0 || static_cast<std::size_t>(wire.device) >= streams_.size())
                return failure("malformed description of a GPU memory region");
            out.address = reinterpret_cast<void *>(address.address);
            out.device = wire.device;
            out.handle = attached_here;
            if (address.lasting >= scratch_bytes)
                out.scratch = reinterpret_cast<void *>(address.address - address.offset);
            if (device == wire.device) return {};
            if (address.files >= 0)
                return admit_device(address.address - address.offset, address.allocation_bytes, device);
            return from_sentence(detail::enable_peer(device, wire.device));
        }
        const device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        const bool by_files = address.files >= 0;
        status bad = by_files ? files_.attach(address, device, out) : mappings_.attach(address, device, out);
        if (bad.ok()) out.handle = by_files ? attached_by_files : attached_by_ipc;
        return bad;
    }

    void detach(region &peers) override {
        if (peers.handle == attached_by_ipc) mappings_.detach(peers);
        if (peers.handle == attached_by_files) files_.detach(peers);
        peers = {};
    }

    void close_unused() override {
        mappings_.close_unused();
        files_.close_unused();
    }

    status acquire_view(const region &host, int device, void *&out) override {
        return views_.acquire(host, device, out);
    }
    void release_view(const region &host) override { views_.release(host); }

    int device_in_use() override {
        for (int device = 0; device < static_cast<int>(streams_.size()); ++device)
            if (detail::has_context(device)) return device;
        return 0;
    }

    status write(void *to, const void *from, std::uint64_t bytes, int device) override {
        return copy_now(to, from, bytes, device);
    }
    status read(void *to, const void *from, std::uint64_t bytes, int device) override {
        return copy_now(to, from, bytes, device);
    }

    status prepare(int device) override {
        const device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        cudaStream_t stream = nullptr;
        if (status bad = stream_of(device, stream); !bad.ok()) return bad;
        if (status bad = stream_of(copy_streams_, device, stream); !bad.ok()) return bad;
        char *bounce = nullptr;
        if (status bad = bounce_of(device, bounce); !bad.ok()) return bad;
        const std::lock_guard lock(posting_);
        return allocate_words(posted_[device]);
    }

    // Waiting for the GPU takes longer than all the rest, so the words wait for their copies in page-locked memory.
    status post_words(void *to, std::uint64_t value, std::uint64_t count, int device) override {
        const device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        cudaStream_t stream = nullptr;
        if (status bad = stream_of(device, stream); !bad.ok()) return bad;
        const std::lock_guard lock(posting_);
        posted_words &posted = posted_[device];
        if (status bad = allocate_words(posted); !bad.ok()) return bad;
        return posted.post(
            static_cast<std::uint64_t *>(to), value, count,
            [&](std::uint64_t *at, const std::uint64_t *words, std::uint64_t n) {
                const cudaError_t error = cudaMemcpyAsync(at, words, n * sizeof value, cudaMemcpyDefault, stream);
                return error == cudaSuccess ? status{} : cuda_error("cudaMemcpyAsync", error);
            },
            [&] {
                const cudaError_t error = cudaStreamSynchronize(stream);
                return error == cudaSuccess ? status{} : cuda_error("cudaStreamSynchronize", error);
            });
    }
    status flush_words(int device) override {
        const device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        cudaStream_t stream = nullptr;
        if (status bad = stream_of(device, stream); !bad.ok()) return bad;
        const cudaError_t error = cudaStreamSynchronize(stream);
        return error == cudaSuccess ? status{} : cuda_error("cudaStreamSynchronize", error);
    }

    // On most machines a GPU sees what comes over PCIe in order, and there is nothing to do.
    status admit_network(int device) override {
        {
            const std::lock_guard lock(mutex_);
            if (sees_in_order_.count(device) != 0) return {};
            int order = cudaGPUDirectRDMAWritesOrderingNone;
            if (const cudaError_t error =
                    cudaDeviceGetAttribute(&order, cudaDevAttrGPUDirectRDMAWritesOrdering, device);
                error != cudaSuccess)
                return cuda_error("cudaDeviceGetAttribute", error);
            if (order >= cudaGPUDirectRDMAWritesOrderingOwner) {
                sees_in_order_.insert(device);
                return {};
            }
        }
        const device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        const cudaError_t error = cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                                                     cudaFlushGPUDirectRDMAWritesToOwner);
        return error == cudaSuccess ? status{} : cuda_error("cudaDeviceFlushGPUDirectRDMAWrites", error);
    }

    status start(void *to, const void *from, std::uint64_t bytes, int device, std::unique_ptr<transfer> &out) override {
        return start_copy(copy_by_stream, copy_streams_, to, from, bytes, device, out);
    }
    // CUDA copies within a GPU by a kernel, also where cudaMemcpyFlagPreferOverlapWithCompute asks it not to (13.0, on an
    // H100). It would wait where the user's kernels fill the GPU, and these may wait for the copy. So the bytes go through
    // host memory: copies there and back are the copy engines'.
    status start_within(void *to, const void *from, std::uint64_t bytes, int device,
                        std::unique_ptr<transfer> &out) override {
        char *bounce = nullptr;
        if (status bad = bounce_of(device, bounce); !bad.ok()) return bad;
        const std::lock_guard lock(bouncing_);  // between the two copies of a piece no other thread's come
        const auto copy = [bounce](void *all_to, const void *all_from, std::size_t all, cudaStream_t stream) {
            cudaError_t error = cudaSuccess;
            for (std::size_t at = 0; at < all && error == cudaSuccess; at += bounce_bytes) {
                const std::size_t n = std::min<std::size_t>(bounce_bytes, all - at);
                error = copy_by_stream(bounce, static_cast<const char *>(all_from) + at, n, stream);
                if (error == cudaSuccess) error = copy_by_stream(static_cast<char *>(all_to) + at, bounce, n, stream);
            }
            return error;
        };
        return start_copy(copy, streams_, to, from, bytes, device, out);
    }

private:
    static bool is_adopted(const region &own) { return own && (own.handle & ((1u << kind_bits) - 1)) == adopted; }
    static void write_wire(const region &own, const wire_address &address, wire_region &out) {
        out = {};
        out.transport = id_cuda_ipc;
        out.device = own.device;
        out.bytes = own.bytes;
        std::memcpy(out.address, &address, sizeof address);
    }

    static cudaError_t copy_by_stream(void *to, const void *from, std::size_t bytes, cudaStream_t stream) {
        return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
    }

    // call(to, from, bytes, stream) enqueues it.
    template <class Call>
    status start_copy(const Call &call, std::vector<cudaStream_t> &streams, void *to, const void *from,
                      std::uint64_t bytes, int device, std::unique_ptr<transfer> &out) {
        struct copy final : transfer {
            cudaEvent_t event = nullptr;
            int device = 0;
            ~copy() override {
                if (event == nullptr) return;
                const device_scope scope(device);
                cudaEventDestroy(event);
            }
            bool finished(status &bad) override {
                std::string sentence;
                const bool passed = detail::event_passed(event, "copy engine", sentence);
                if (!sentence.empty()) bad = failure(std::move(sentence));
                return passed;
            }
        };
        const device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        cudaStream_t stream = nullptr;
        if (status bad = stream_of(streams, device, stream); !bad.ok()) return bad;
        auto made = std::make_unique<copy>();
        made->device = device;
        cudaError_t error = cudaEventCreateWithFlags(&made->event, cudaEventDisableTiming);
        if (error == cudaSuccess) error = call(to, from, bytes, stream);
        if (error == cudaSuccess) error = cudaEventRecord(made->event, stream);
        if (error != cudaSuccess) return cuda_error("copy engine", error);
        out = std::move(made);
        return {};
    }

    // While the device is current.
    status cut(std::uint64_t length, int device, region &out) {
        const std::lock_guard lock(mutex_);
        std::uint64_t offset = 0;
        for (slab &s : slabs_)
            if (s.device == device && s.free.take(length, offset)) {
                out.address = s.base + offset;
                return {};
            }
        void *base = nullptr;
        const std::uint64_t bytes = round_up(scratch_bytes + length, slab_unit);
        if (const cudaError_t error = cudaMalloc(&base, bytes); error != cudaSuccess)
            return cuda_error("no device memory: cudaMalloc", error);
        slabs_.push_back({static_cast<char *>(base), bytes, device, {}});
        slabs_.back().free.give(scratch_bytes, bytes - scratch_bytes);
        slabs_.back().free.take(length, offset);
        out.address = slabs_.back().base + offset;
        return {};
    }

    status bounce_of(int device, char *&out) {
        const device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        const std::lock_guard lock(mutex_);
        void *&bounce = bounces_[device];
        if (bounce == nullptr)
            if (const cudaError_t error = cudaHostAlloc(&bounce, bounce_bytes, cudaHostAllocPortable);
                error != cudaSuccess)
                return cuda_error("no page-locked memory: cudaHostAlloc", error);
        out = static_cast<char *>(bounce);
        return {};
    }

    // Never freed: cudaFreeHost would wait for the user's kernels.
    static status allocate_words(posted_words &posted) {
        if (posted.has_memory()) return {};
        void *words = nullptr;
        const cudaError_t error =
            cudaHostAlloc(&words, posted_words::room * sizeof(std::uint64_t), cudaHostAllocPortable);
        if (error != cudaSuccess) return cuda_error("no page-locked memory: cudaHostAlloc", error);
        posted.use(static_cast<std::uint64_t *>(words));
        return {};
    }

    status stream_of(int device, cudaStream_t &out) { return stream_of(streams_, device, out); }
    status stream_of(std::vector<cudaStream_t> &streams, int device, cudaStream_t &out) {
        const std::lock_guard lock(mutex_);
        cudaStream_t &stream = streams.at(static_cast<std::size_t>(device));
        if (stream == nullptr)
            if (const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
                error != cudaSuccess)
                return cuda_error("cudaStreamCreate", error);
        out = stream;
        return {};
    }

    status copy_now(void *to, const void *from, std::uint64_t bytes, int device) {
        const device_scope scope(device);
        if (!scope.problem().empty()) return failure(scope.problem());
        cudaStream_t stream = nullptr;
        if (status bad = stream_of(device, stream); !bad.ok()) return bad;
        cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
        if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
        return error == cudaSuccess ? status{} : cuda_error("cudaMemcpyAsync", error);
    }

    // The runtime makes a context, of hundreds of MiB on the GPU, to say what an address is; the driver does not, and
    // knows none while the program leaves the GPUs alone. Later the runtime is quicker.
    bool known_to_cuda(const void *address) {
        if (in_use_.load(std::memory_order_relaxed)) return true;
        unsigned type = 0;
        const bool known = attribute_of(address, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, type);
        if (known) in_use_.store(true, std::memory_order_relaxed);
        return known;
    }

    std::mutex posting_;
    std::map<int, posted_words> posted_;  // by device
    std::once_flag probed_;
    bool usable_ = false;
    std::atomic<bool> in_use_{false};  // CUDA has known an address
    std::mutex mutex_;
    // Of each device: for small copies, words and what goes by way of the host, none of which waits for a kernel; and for
    // other copies, which may.
    std::vector<cudaStream_t> streams_, copy_streams_;
    std::mutex bouncing_;            // held while copies by way of a bounce buffer are enqueued; taken before mutex_
    std::map<int, void *> bounces_;  // by device
    std::set<int> sees_in_order_;    // devices that see what comes over PCIe in order
    ipc_mappings mappings_;
    vmm_mappings files_;
    vmm_exports exports_;
    std::atomic<std::uint64_t> adopted_regions_{0};
    host_views views_;
    std::vector<slab> slabs_;
};

}  // namespace

transport &cuda_ipc_transport() {
    // Never destroyed: the CUDA runtime may be gone by the time of static destructors.
    static cuda_ipc *const instance = new cuda_ipc;
    return *instance;
}

}  // namespace mpix::transport
