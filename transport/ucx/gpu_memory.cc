// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/gpu_memory.h"

#include <string>

namespace mpix::transport::ucx {

status why_no_gpu_memory(const ucx_options &options, const library_abilities &library) {
    if (!options.gpu_memory) return failure("MPIX_UCX_GPU is 0");
    if (options.fake_gpus) return {};
    const std::string version = "UCX " + std::to_string(library.major) + "." + std::to_string(library.minor);
    // From there on words wait for a flush, see flushes.cc. Bytes for a GPU and words for its host may go different
    // ways, which earlier versions' fence is not known to order; and they have copied to GPUs by calls that wait for
    // running kernels.
    if (library.major < 1 || (library.major == 1 && library.minor < 16))
        return failure(
            version + " reaches GPU memory, if it does, in an order that is not known to be ours (from 1.16 on it is)");
    if (!library.knows_cuda)
        return failure(version +
                       " knows no GPU memory: it was built without CUDA, or its CUDA modules cannot be loaded");
    return {};
}

}  // namespace mpix::transport::ucx
