// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_EXPLAIN=1 for MPI_Pack and MPI_Unpack of GPU memory: for each plan, size and direction once what could move it,
// what each way should take, and which one is chosen; at MPI_Finalize what they took.
#ifndef MPIX_HOST_PROTOCOL_PACK_EXPLAIN_H
#define MPIX_HOST_PROTOCOL_PACK_EXPLAIN_H

#include <cstdint>
#include <string>
#include <vector>

#include "device/kernels/gpu_pack.h"
#include "host/datatype/plan.h"

namespace mpix {

// A line for the plan, and one for each way.
std::vector<std::string> explain_pack(const char *call, const plan &type, std::int64_t bytes, int device,
                                      const gpu::pack_choice &choice);

#if MPIX_HAVE_CUDA
// gpu::run and gpu::enqueue, told.
std::string run_explained(const char *call, const plan &type, const gpu::message &m);
std::string enqueue_explained(const char *call, const plan &type, const gpu::message &m, gpu::stream_handle stream);
#endif
// In MPI_Finalize.
void tell_pack_times();

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_PACK_EXPLAIN_H
