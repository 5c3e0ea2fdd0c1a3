// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_EXPLAIN=1 for MPI_Pack and MPI_Unpack of GPU memory. Prints once for each plan, size and direction which ways
// there are, the time that each should take, and which one is chosen; and at MPI_Finalize the times that they took.
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
// As gpu::run and gpu::enqueue, with a line printed on first use.
status run_explained(const char *call, const plan &type, const gpu::message &m);
status enqueue_explained(const char *call, const plan &type, const gpu::message &m, gpu::stream_handle stream);
#endif
// In MPI_Finalize.
void tell_pack_times();

}  // namespace mpix

#endif  // MPIX_HOST_PROTOCOL_PACK_EXPLAIN_H
