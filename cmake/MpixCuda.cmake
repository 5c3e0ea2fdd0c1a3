# SPDX-License-Identifier: BSD-3-Clause
#
# MPIX_HAVE_CUDA: the toolkit's runtime library is there, so the CUDA transport is built.
# MPIX_HAVE_NVCC: the CUDA language is enabled, so device tests are built.

set(MPIX_HAVE_CUDA OFF)
set(MPIX_HAVE_NVCC OFF)
string(TOUPPER "${MPIX_CUDA}" mpix_cuda_choice)
if(NOT mpix_cuda_choice STREQUAL "AUTO" AND MPIX_CUDA)
    find_package(CUDAToolkit REQUIRED)
elseif(mpix_cuda_choice STREQUAL "AUTO")
    find_package(CUDAToolkit QUIET)
endif()

if(CUDAToolkit_FOUND)
    set(MPIX_HAVE_CUDA ON)

    # Before the language is enabled: CMake would take the compiler's oldest architecture.
    if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
        execute_process(COMMAND nvidia-smi -L
            OUTPUT_VARIABLE gpus ERROR_QUIET RESULT_VARIABLE status)
        if(status EQUAL 0 AND gpus MATCHES "GPU 0")
            set(CMAKE_CUDA_ARCHITECTURES native)
        else()
            set(CMAKE_CUDA_ARCHITECTURES 80 90)
        endif()
    endif()

    # A sanitizer build is about the host; nvcc does not take -fsanitize.
    if(NOT MPIX_SANITIZE)
        include(CheckLanguage)
        check_language(CUDA)
        if(CMAKE_CUDA_COMPILER)
            set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
            enable_language(CUDA)
            # Afterwards: before, CMake does not know yet how to ask this compiler for it.
            include(mpixCuda20)
            set(CMAKE_CUDA_STANDARD 20)
            set(CMAKE_CUDA_STANDARD_REQUIRED ON)
            set(MPIX_HAVE_NVCC ON)
        endif()
    endif()
endif()
