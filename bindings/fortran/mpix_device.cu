// SPDX-License-Identifier: BSD-3-Clause
//
// The device functions for kernels in CUDA Fortran (the module mpix_device). Compile it with `nvcc -rdc=true -std=c++20`, and link
// it with them.
#include <mpix/device_c.cuh>
