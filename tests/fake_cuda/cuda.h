// SPDX-License-Identifier: BSD-3-Clause
//
// As much of the CUDA driver's header as the sources need that are tested with it where there is no CUDA.
#ifndef MPIX_TESTS_FAKE_CUDA_CUDA_H
#define MPIX_TESTS_FAKE_CUDA_CUDA_H

using CUdeviceptr = unsigned long long;
enum CUresult { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 };
enum CUpointer_attribute {
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17
};

#endif  // MPIX_TESTS_FAKE_CUDA_CUDA_H
