// SPDX-License-Identifier: BSD-3-Clause
//
// The GPUs of this node, as this process sees them.
#ifndef MPIX_DEVICE_CUDA_NODE_GPUS_H
#define MPIX_DEVICE_CUDA_NODE_GPUS_H

#include <string>
#include <vector>

namespace mpix::gpu {

struct node_gpus {
    std::string why_none;            // a sentence; empty: there are some
    std::vector<std::string> names;  // "0: NVIDIA H100 80GB HBM3, compute capability 9.0"
    // Pairs of different GPUs, in both directions, of which one does not reach the other's memory: "0 -> 1".
    std::vector<std::string> apart;
    std::string why_no_ipc;     // of GPU 0's memory; empty: other processes can map it
    std::string why_no_fabric;  // memory that is mapped across nodes (IMEX); empty: it can be made
};

// find_gpus makes a context on the current GPU; the others make none. gpu_id: of a GPU, or of a MIG instance, the same
// 16 bytes in all processes of the node; empty if CUDA does not tell it.
#if MPIX_HAVE_CUDA
node_gpus find_gpus();
int count_gpus();
std::string gpu_id(int device);
#else
inline node_gpus find_gpus() {
    const std::string why = "mpix was built without CUDA";
    return {why, {}, {}, why, why};
}
inline int count_gpus() { return 0; }
inline std::string gpu_id(int) { return {}; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_CUDA_NODE_GPUS_H
