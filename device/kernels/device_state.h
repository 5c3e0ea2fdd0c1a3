// SPDX-License-Identifier: BSD-3-Clause
//
// What packing keeps of each GPU: streams, a pool of memory, the tables of type maps, the constants of its costs; and room
// for what else is timed there. Not for kernels.
//
// Thread safety: every function may be called from any thread, where the device is current. Errors: one sentence for
// the user, empty for success.
#ifndef MPIX_DEVICE_KERNELS_DEVICE_STATE_H
#define MPIX_DEVICE_KERNELS_DEVICE_STATE_H

#include <cuda_runtime.h>
#include <mpix/detail/typemap.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device/kernels/pack_choice.h"

namespace mpix::gpu {

using outcome = std::string;

// A type map's tables on one device.
struct tables {
    mpix_typemap map;  // leads to memory of the device
    void *memory = nullptr;
    cudaEvent_t used = nullptr;  // after the last kernel that was enqueued with them
};

// Where a kernel that times things works, and page-locked words for what it finds; kept. Null: there was no memory.
struct timing_room {
    char *memory = nullptr;
    uint64_t *words = nullptr;
};

constexpr double usual_lone_thread_rate = 290;  // bytes a microsecond, of an H200

class device_state {
public:
    // Before anything else.
    outcome open();
    // All kernels, room for timing, and how fast one thread copies: once, in a few milliseconds. This may wait for kernels
    // that run.
    outcome load();
    // What packing costs, once: some milliseconds more. This may wait as well. After load().
    void measure(int device);

    // A stream of ours for some work; others may have theirs in it as well. After open().
    cudaStream_t take_stream();
    void give_stream(cudaStream_t stream);

    outcome allocate(void **out, int64_t bytes, cudaStream_t stream);
    // Memory with something in it.
    outcome upload_bytes(const void *from, int64_t bytes, void **out);
    void free_bytes(void *memory);

    // The type with its tables where kernels can read them.
    outcome find_tables(const mpix_typemap &type, mpix_typemap &out);
    // A kernel that uses the type's tables was enqueued.
    outcome note_use(const mpix_typemap &type, cudaStream_t stream);
    bool knows(const mpix_typemap *type);
    // In stream order, after the kernels: nobody waits for them.
    void forget(const mpix_typemap *type);

    // As measured, or else of an H200.
    const pack_costs &costs() const;
    // Bytes that one thread of a user's kernel copies in a microsecond; as measured once it is loaded, or else of an H200.
    double lone_thread_rate() const;
    // Once it is loaded.
    timing_room room_for_timing() const;

private:
    outcome prepare_streams();
    outcome upload(const mpix_typemap &type, tables &out);
    void make_timing_room();
    void time_lone_thread();

    std::mutex mutex_;
    bool open_ = false;
    cudaMemPool_t pool_ = nullptr;
    // Memory of tables comes in the order of the one, where nothing ever waits for a kernel, and goes in the other's.
    cudaStream_t maker_ = nullptr, ender_ = nullptr;
    // Enough to keep the copy engines busy. All are made at once: CUDA makes no stream while a kernel runs, and that kernel
    // may wait for the work.
    struct shared_stream {
        cudaStream_t stream = nullptr;
        int users = 0;
    };
    std::array<shared_stream, 8> streams_;
    std::map<const mpix_typemap *, tables> tables_;
    std::mutex loading_;
    std::atomic<bool> loaded_{false}, measured_{false};
    pack_costs costs_;
    double lone_thread_rate_ = usual_lone_thread_rate;
    timing_room timing_;
};

// By ordinal. Never destroyed: the CUDA runtime may be gone by the time of static destructors.
std::vector<device_state> &devices();
// So that a process without GPUs does not start CUDA when it frees a datatype.
bool tables_were_made();

// The costs of the current device, in the order of a stream of its own; as they are by default if that is not possible.
pack_costs measure_costs(int device);

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_KERNELS_DEVICE_STATE_H
