// SPDX-License-Identifier: BSD-3-Clause
//
// The device functions of <mpix/device.cuh> by C names, for kernels in other languages: CUDA Fortran, Numba. A source file of
// one line includes it, and is compiled for linking with device code (nvcc -rdc=true -std=c++20, or NVRTC with -dlto). As C++ it
// has those for one thread, for host threads.
#ifndef MPIX_DEVICE_C_CUH
#define MPIX_DEVICE_C_CUH

#include <mpix/device.cuh>

#if defined(__CUDACC__)
#include <cooperative_groups.h>
#define MPIX_DEVICE_NAME extern "C" __device__
#else
#define MPIX_DEVICE_NAME extern "C"
#endif

// All threads of `group` call with the same arguments. Waits end after MPIX_STALL_SECONDS.
#define MPIX_DEVICE_CALLS(scope, group)                                                             \
    MPIX_DEVICE_NAME int mpix_pready##scope(int partition, MPIX_Prequest preq) {                    \
        return mpix::pready(group, partition, preq);                                                \
    }                                                                                               \
    MPIX_DEVICE_NAME int mpix_pready_typed##scope(int partition, MPIX_Prequest preq) {              \
        return mpix::pready_typed(group, partition, preq);                                          \
    }                                                                                               \
    MPIX_DEVICE_NAME int mpix_pready_range##scope(int low, int high, MPIX_Prequest preq) {          \
        return mpix::pready_range(group, low, high, preq);                                          \
    }                                                                                               \
    MPIX_DEVICE_NAME int mpix_parrived##scope(MPIX_Prequest preq, int partition) {                  \
        return mpix::parrived(group, preq, partition);                                              \
    }                                                                                               \
    MPIX_DEVICE_NAME int mpix_wait_arrived##scope(MPIX_Prequest preq, int partition) {              \
        return mpix::wait_arrived(group, preq, partition);                                          \
    }                                                                                               \
    MPIX_DEVICE_NAME int mpix_wait##scope(MPIX_Prequest preq) { return mpix::wait(group, preq); }   \
    MPIX_DEVICE_NAME int mpix_start##scope(MPIX_Prequest preq) { return mpix::start(group, preq); } \
    MPIX_DEVICE_NAME int mpix_next_epoch##scope(MPIX_Prequest preq) { return mpix::next_epoch(group, preq); }

MPIX_DEVICE_CALLS(, mpix::this_thread())
#if defined(__CUDACC__)
MPIX_DEVICE_CALLS(_warp, cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block()))
MPIX_DEVICE_CALLS(_block, cooperative_groups::this_thread_block())
#endif

#endif  // MPIX_DEVICE_C_CUH
