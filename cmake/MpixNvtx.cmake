# SPDX-License-Identifier: BSD-3-Clause
#
# MPIX_HAVE_NVTX: CUDA's toolkit has the headers of NVTX 3, by which profilers show mpix's ranges. Nothing is linked.

set(MPIX_HAVE_NVTX OFF)
if(MPIX_HAVE_CUDA)
    find_path(MPIX_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    mark_as_advanced(MPIX_NVTX_INCLUDE)
    if(MPIX_NVTX_INCLUDE)
        set(MPIX_HAVE_NVTX ON)
    endif()
endif()
