// SPDX-License-Identifier: BSD-3-Clause
//
// Included first by the headers that need C++20.
#ifndef MPIX_DETAIL_CXX20_H
#define MPIX_DETAIL_CXX20_H

#if !defined __cplusplus || __cplusplus <= 201703L
#error \
    "mpix: <mpix/device.cuh>, <mpix/halo.hpp> and <mpix/host_group.hpp> need C++20; compile with -std=c++20 (CMake: link mpix::device)"
// No such file exists, so the compiler stops here and prints no further errors.
#include <compile with -std=c++20>
#endif

#endif  // MPIX_DETAIL_CXX20_H
