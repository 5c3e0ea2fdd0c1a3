// SPDX-License-Identifier: BSD-3-Clause
//
// When CUDA loads the code of kernels. By default (LAZY) that is at a kernel's first launch, which may wait for kernels that
// run: then a kernel that waits for a peer, or for another kernel, and a first launch beside it wait for each other. So
// libmpix sets CUDA_MODULE_LOADING=EAGER when it is loaded, unless it is set, or MPIX_CUDA_EAGER_LOADING is 0.
#ifndef MPIX_DEVICE_MODULE_LOADING_H
#define MPIX_DEVICE_MODULE_LOADING_H

#include <string>

namespace mpix::gpu {

#if MPIX_HAVE_CUDA
// What CUDA_MODULE_LOADING is, and who has set it. Does not start CUDA.
std::string module_loading_setting();
// Whether kernels are loaded at their first launch. Asks the driver, so only where CUDA is in use.
bool loads_lazily();
#else
inline std::string module_loading_setting() { return "built without CUDA"; }
inline bool loads_lazily() { return false; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_MODULE_LOADING_H
