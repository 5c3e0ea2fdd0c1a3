// SPDX-License-Identifier: BSD-3-Clause
//
// As much of the CUDA driver's header as the sources need that are tested with it where there is no CUDA.
#ifndef MPIX_TESTS_FAKE_CUDA_CUDA_H
#define MPIX_TESTS_FAKE_CUDA_CUDA_H

using CUdeviceptr = unsigned long long;
enum CUresult { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 };
enum CUpointer_attribute {
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17
};

using CUmemGenericAllocationHandle = unsigned long long;
enum CUmemAllocationHandleType { CU_MEM_HANDLE_TYPE_NONE = 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1 };
enum CUmemLocationType { CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum CUmemAccess_flags { CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };
struct CUmemLocation {
    CUmemLocationType type;
    int id;
};
struct CUmemAllocationProp {
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
};
struct CUmemAccessDesc {
    CUmemLocation location;
    CUmemAccess_flags flags;
};
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *, void *);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *, CUmemGenericAllocationHandle);
CUresult cuMemExportToShareableHandle(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                                      unsigned long long);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
CUresult cuMemRelease(CUmemGenericAllocationHandle);
CUresult cuMemAddressReserve(CUdeviceptr *, unsigned long, unsigned long, CUdeviceptr, unsigned long long);
CUresult cuMemAddressFree(CUdeviceptr, unsigned long);
CUresult cuMemMap(CUdeviceptr, unsigned long, unsigned long, CUmemGenericAllocationHandle, unsigned long long);
CUresult cuMemUnmap(CUdeviceptr, unsigned long);
CUresult cuMemSetAccess(CUdeviceptr, unsigned long, const CUmemAccessDesc *, unsigned long);

#endif  // MPIX_TESTS_FAKE_CUDA_CUDA_H
