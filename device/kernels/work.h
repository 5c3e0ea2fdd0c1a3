// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels of the library are given to do, and work under way. Not for kernels; needs no CUDA header.
#ifndef MPIX_DEVICE_KERNELS_WORK_H
#define MPIX_DEVICE_KERNELS_WORK_H

#include <mpix/detail/typemap.h>

#include <cstdint>
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

// Packed bytes [begin, begin + bytes) of a message, bytes at least 1, from one layout to another, of which at least one
// has a type; without one a side is the packed bytes themselves, in any memory that the process can reach, its address
// that of packed byte 0. A side with a type is memory that kernels of `device` can reach.
struct passage {
    const mpix_typemap *from_type;
    char *from;
    const mpix_typemap *to_type;
    char *to;
    int64_t begin, bytes;
    int device;
};

// Work under way. True once it is done; `problem` is set if it failed.
struct pending {
    virtual ~pending() = default;
    virtual bool finished(outcome &problem) = 0;
};

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_KERNELS_WORK_H
