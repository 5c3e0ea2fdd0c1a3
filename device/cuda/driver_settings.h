// SPDX-License-Identifier: BSD-3-Clause
//
// What the CUDA driver reads from the environment when it starts, and libmpix sets when it is loaded, unless the variable is set
// already.
//
// CUDA_MODULE_LOADING: EAGER, unless MPIX_CUDA_EAGER_LOADING is 0, since lazy loading can deadlock (docs/troubleshooting.md).
//
// CUDA_DEVICE_MAX_CONNECTIONS: a stream with work takes one of this many hardware queues (8 by default). While kernels wait in all
// of them, work in any other stream begins only when one of those kernels has ended, whatever the priority of the streams. If a
// waiting kernel depends on that work, they deadlock. So libmpix sets 32, the most there are.
#ifndef MPIX_DEVICE_CUDA_DRIVER_SETTINGS_H
#define MPIX_DEVICE_CUDA_DRIVER_SETTINGS_H

#include <string>

namespace mpix::gpu {

#if MPIX_HAVE_CUDA
// The values of CUDA_MODULE_LOADING and CUDA_DEVICE_MAX_CONNECTIONS, and whether mpix has set them. They do not initialise CUDA.
std::string module_loading_setting();
std::string connections_setting();
// Whether kernels are loaded at their first launch. Asks the driver; call it only if CUDA is in use.
bool loads_lazily();
#else
inline std::string module_loading_setting() { return "built without CUDA"; }
inline std::string connections_setting() { return "built without CUDA"; }
inline bool loads_lazily() { return false; }
#endif

}  // namespace mpix::gpu

#endif  // MPIX_DEVICE_CUDA_DRIVER_SETTINGS_H
