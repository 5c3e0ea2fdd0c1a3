/* SPDX-License-Identifier: BSD-3-Clause
 * For NVRTC, which has no headers of the host's. The types must be those of CUDA's own headers. */
#include <cuda/std/cstdint>
