# SPDX-License-Identifier: BSD-3-Clause
#
# MPIX_HAVE_CUDA: the toolkit's runtime library is there, so the CUDA transport is built.
# MPIX_HAVE_NVCC: the CUDA language is enabled, so device tests are built.
# MPIX_RUN_CUDA_TESTS: they are linked and run (MPIX_CUDA_TESTS); otherwise compiled to PTX only, for MPIX_PTX_ARCHITECTURE.

set(MPIX_HAVE_CUDA OFF)
set(MPIX_HAVE_NVCC OFF)
set(MPIX_RUN_CUDA_TESTS OFF)
string(TOUPPER "${MPIX_CUDA}" mpix_cuda_choice)
if(NOT mpix_cuda_choice STREQUAL "AUTO" AND MPIX_CUDA)
    find_package(CUDAToolkit REQUIRED)
elseif(mpix_cuda_choice STREQUAL "AUTO")
    find_package(CUDAToolkit QUIET)
endif()

if(CUDAToolkit_FOUND)
    set(MPIX_HAVE_CUDA ON)

    execute_process(COMMAND nvidia-smi -L
        OUTPUT_VARIABLE gpus ERROR_QUIET RESULT_VARIABLE status)
    set(gpu_found OFF)
    if(status EQUAL 0 AND gpus MATCHES "GPU 0")
        set(gpu_found ON)
    endif()
    string(TOUPPER "${MPIX_CUDA_TESTS}" choice)
    if(choice STREQUAL "RUN" OR (choice STREQUAL "AUTO" AND gpu_found))
        set(MPIX_RUN_CUDA_TESTS ON)
    elseif(NOT choice MATCHES "^(AUTO|COMPILE)$")
        message(FATAL_ERROR "MPIX_CUDA_TESTS=${MPIX_CUDA_TESTS}: must be AUTO, RUN or COMPILE")
    endif()

    # Before the language is enabled: CMake would take the compiler's oldest architecture.
    if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
        if(gpu_found)
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

            # PTX targets one architecture: the last one listed, which supports most instructions.
            set(MPIX_PTX_ARCHITECTURE "${CMAKE_CUDA_ARCHITECTURES}")
            list(POP_BACK MPIX_PTX_ARCHITECTURE MPIX_PTX_ARCHITECTURE)
            string(REGEX REPLACE "-(real|virtual)$" "" MPIX_PTX_ARCHITECTURE "${MPIX_PTX_ARCHITECTURE}")
            if(NOT MPIX_PTX_ARCHITECTURE MATCHES "^[0-9]+[a-z]?$")  # native, all, ...
                set(MPIX_PTX_ARCHITECTURE 90)
            endif()
        endif()
    endif()
endif()
