// SPDX-License-Identifier: BSD-3-Clause
//
// The GPU's executor of type maps, as the host calls it. Not for kernels; needs no CUDA header.
//
// Errors: one sentence for the user, empty for success. Thread safety: every function may be called from any thread.
// The caller's current device is left as it was; nothing runs on the legacy default stream.
#ifndef MPIX_DEVICE_KERNELS_GPU_PACK_H
#define MPIX_DEVICE_KERNELS_GPU_PACK_H

#include <mpix/detail/typemap.h>

#include <memory>
#include <string>

#include "device/kernels/pack_choice.h"
#include "device/kernels/work.h"

namespace mpix::gpu {

#if MPIX_HAVE_CUDA
// How run() would move it, and by what constants of the GPU.
pack_choice explain(message m, pack_costs &costs);
// Of all messages from now on.
void prefer(pack_mode way);
// Load all kernels for `device`, and time one thread that copies. The first time this takes a few milliseconds and may wait
// for kernels that run; nothing does afterwards.
outcome load_on(int device);
// After that: measure what packing costs there; run() does both. As above. Until then, start() and enqueue() go by the
// costs of an H200.
void measure_on(int device);
// Bytes that one thread of a user's kernel copies in a microsecond: of an H200 until the kernels are loaded.
double lone_thread_rate(int device);
// In a stream of our own. Whoever calls keeps the types and the memory until it is finished.
outcome start(const passage &p, std::unique_ptr<pending> &out);
// Done on return.
outcome run(const message &m);
// In the order of a stream of the message's device.
outcome enqueue(const message &m, stream_handle stream);
// A contiguous copy between any two places, by the copy engine of `device`; done on return.
outcome copy(void *to, const void *from, int64_t bytes, int device);
// A copy of the type map, with its tables, for the user's kernels on `device`; and its end, after which no kernel uses it.
// The type map itself stays until then.
outcome place(const mpix_typemap *type, int device, const mpix_typemap **out);
void unplace(const mpix_typemap *placed, int device);
int number_of_devices();
// The type map is going away; kernels that use a GPU's copy of it may still be under way.
void forget(const mpix_typemap *type);
#else
inline int number_of_devices() { return 0; }
inline void prefer(pack_mode) {}
inline outcome load_on(int) { return {}; }
inline void measure_on(int) {}
inline double lone_thread_rate(int) { return 0; }
inline void forget(const mpix_typemap *) {}
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_KERNELS_GPU_PACK_H
