// SPDX-License-Identifier: BSD-3-Clause
//
// Included first by the headers that are C++20.
#ifndef MPIX_DETAIL_CXX20_H
#define MPIX_DETAIL_CXX20_H

#if !defined __cplusplus || __cplusplus <= 201703L
#error \
    "mpix: <mpix/device.cuh> and <mpix/host_group.hpp> need C++20; compile with -std=c++20 (CMake: link mpix::device)"
// There is no such file: the compiler stops here, and says nothing of what only follows.
#include <compile with -std=c++20>
#endif

#endif  // MPIX_DETAIL_CXX20_H
