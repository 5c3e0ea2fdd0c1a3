// SPDX-License-Identifier: BSD-3-Clause
//
// When CUDA loads kernels. By default (LAZY) it does so at a kernel's first launch, which may wait for running kernels. If one of
// those waits for a peer, or for the kernel that is launched, they deadlock. So libmpix sets CUDA_MODULE_LOADING=EAGER when it is
// loaded, unless that variable is set already or MPIX_CUDA_EAGER_LOADING is 0.
#ifndef MPIX_DEVICE_CUDA_MODULE_LOADING_H
#define MPIX_DEVICE_CUDA_MODULE_LOADING_H

#include <string>

namespace mpix::gpu {

#if MPIX_HAVE_CUDA
// The value of CUDA_MODULE_LOADING, and whether mpix has set it. Does not initialise CUDA.
std::string module_loading_setting();
// Whether kernels are loaded at their first launch. Asks the driver; call it only if CUDA is in use.
bool loads_lazily();
#else
inline std::string module_loading_setting() { return "built without CUDA"; }
inline bool loads_lazily() { return false; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_CUDA_MODULE_LOADING_H
