// SPDX-License-Identifier: BSD-3-Clause
//
// A user's buffer in GPU memory, as the progress engine moves packed bytes out of it and into it by way of page-locked
// host memory, or into it from GPU memory of ours.
#ifndef MPIX_HOST_STAGING_GPU_BUFFER_H
#define MPIX_HOST_STAGING_GPU_BUFFER_H

#include <cstdint>
#include <memory>

#include "host/datatype/plan.h"
#include "transport/transport.h"

namespace mpix {

struct gpu_buffer {
    transport::transport *gpus = nullptr;
    int device = 0;
    char *memory = nullptr;            // element 0
    std::shared_ptr<const plan> type;  // null: one piece, in packing order
};

// Page-locked host memory, as the CPU and as kernels reach it; or memory of the buffer's GPU, which has one address.
struct locked_memory {
    char *host = nullptr, *view = nullptr;
    bool on_gpu = false;
};

// Packed bytes [begin, begin + bytes) of the buffer, to and from where `packed` is; without gaps by the copy engine,
// else by a kernel. `bytes` is not 0. `beside_kernels`: the user's kernels wait for it, and may fill the GPU.
status start_reading(const gpu_buffer &from, std::uint64_t begin, std::uint64_t bytes, locked_memory packed,
                     std::unique_ptr<transport::transfer> &out);
status start_writing(const gpu_buffer &to, std::uint64_t begin, std::uint64_t bytes, locked_memory packed,
                     bool beside_kernels, std::unique_ptr<transport::transfer> &out);

}  // namespace mpix

#endif  // MPIX_HOST_STAGING_GPU_BUFFER_H
