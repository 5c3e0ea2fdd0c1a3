// SPDX-License-Identifier: BSD-3-Clause
//
// The GPU's executor of type maps, as the host calls it. Not for kernels; needs no CUDA header.
//
// Errors: one sentence for the user, empty for success. Thread safety: every function may be called from any thread.
// The caller's current device is left as it was; nothing runs on the legacy default stream.
#ifndef MPIX_DEVICE_GPU_PACK_H
#define MPIX_DEVICE_GPU_PACK_H

#include <mpix/detail/typemap.h>

#include <string>

struct CUstream_st;

namespace mpix::gpu {

using stream_handle = CUstream_st *;  // a cudaStream_t
using outcome = std::string;

// Packed bytes [begin, begin + bytes) of a sequence of elements, bytes at least 1. `memory` is memory of `device`;
// `packed`, where byte `begin` is or goes, any memory that the process can reach. The type's tables are in host memory
// and stay as they are until forget().
struct message {
    const mpix_typemap *type;
    char *memory;
    int device;
    char *packed;
    int64_t begin, bytes;
    bool unpack;
};

#if MPIX_HAVE_CUDA
// Done on return.
outcome run(const message &m);
// In the order of a stream of the message's device.
outcome enqueue(const message &m, stream_handle order);
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
inline void forget(const mpix_typemap *) {}
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_GPU_PACK_H
