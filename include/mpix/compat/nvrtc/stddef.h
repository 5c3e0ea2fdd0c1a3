/* SPDX-License-Identifier: BSD-3-Clause
 * For NVRTC, which has no headers of the host's. */
#ifndef MPIX_COMPAT_NVRTC_STDDEF_H
#define MPIX_COMPAT_NVRTC_STDDEF_H

#include <cuda/std/cstddef>

/* CUDA's is no constant. */
#undef offsetof
#define offsetof(type, member) ((size_t)__INTADDR__(&((type *)0)->member))

#endif
