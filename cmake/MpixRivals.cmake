# SPDX-License-Identifier: BSD-3-Clause
#
# What the benches compare mpix with, and what the 'before' programs of docs/migration.md are for. Where one is not
# found, the benches say so.
#
# MPIX_HAVE_NVSHMEM, target mpix_nvshmem; MPIX_HAVE_NCCL, target mpix_nccl; MPIX_HAVE_NCCL_DEVICE if that NCCL has a
# device interface that the bench is written for (nccl_devices): it changes from one minor version to the next.
# MPIX_HAVE_UCX_DEVICE, target mpix_ucx_device: a UCX with the device interface of 1.22, in UCX_ROOT or where libraries
# usually are.
# MPIX_HAVE_MPI_ACX: the header of mpi-acx. Searched in NVSHMEM_ROOT, NCCL_ROOT and MPI_ACX_ROOT (CMake's or the
# environment's), in Python's packages nvidia-nvshmem and nvidia-nccl, and where libraries usually are.

function(mpix_find_rival name header)
    string(TOUPPER ${name} upper)
    set(MPIX_HAVE_${upper} OFF PARENT_SCOPE)
    find_program(MPIX_PYTHON3 python3)
    set(package "")
    if(MPIX_PYTHON3)
        execute_process(COMMAND "${MPIX_PYTHON3}" -c "import nvidia.${name} as m; print(list(m.__path__)[0])"
            OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    set(hints "${${upper}_ROOT}" "$ENV{${upper}_ROOT}" "${package}")
    find_path(MPIX_${upper}_INCLUDE_DIR ${header} HINTS ${hints} PATH_SUFFIXES include)
    # Python's packages have no name for the linker.
    foreach(library IN LISTS ARGN)
        string(MAKE_C_IDENTIFIER "${library}" id)
        find_library(MPIX_RIVAL_${id} NAMES ${library} HINTS ${hints} PATH_SUFFIXES lib)
        if(NOT MPIX_RIVAL_${id})
            return()
        endif()
        list(APPEND found "${MPIX_RIVAL_${id}}")
    endforeach()
    if(NOT MPIX_${upper}_INCLUDE_DIR)
        return()
    endif()
    add_library(mpix_${name} INTERFACE)
    target_include_directories(mpix_${name} SYSTEM INTERFACE "${MPIX_${upper}_INCLUDE_DIR}")
    target_link_libraries(mpix_${name} INTERFACE ${found})
    set(MPIX_HAVE_${upper} ON PARENT_SCOPE)
endfunction()

mpix_find_rival(nvshmem nvshmem.h libnvshmem_device.a libnvshmem_host.so.3)
if(MPIX_HAVE_NVSHMEM)
    # From 3.8 on the device library names a variable that the host library of earlier releases lacks. As a weak symbol it
    # keeps no program from starting with such a library; the bench then says which releases do not fit.
    set(device "${CMAKE_CURRENT_BINARY_DIR}/libnvshmem_device.a")
    execute_process(COMMAND "${CMAKE_OBJCOPY}" --weaken-symbol=nvshmem_selected_device_transport
        "${MPIX_RIVAL_libnvshmem_device_a}" "${device}" RESULT_VARIABLE failed)
    if(NOT failed)
        set_target_properties(mpix_nvshmem PROPERTIES
            INTERFACE_LINK_LIBRARIES "${device};${MPIX_RIVAL_libnvshmem_host_so_3}")
    endif()
endif()
mpix_find_rival(nccl nccl.h libnccl.so.2)
mpix_find_rival(mpi_acx mpi-acx.h)
set(nccl_devices 2.28 2.32)
set(MPIX_HAVE_NCCL_DEVICE OFF)
if(MPIX_HAVE_NCCL AND EXISTS "${MPIX_NCCL_INCLUDE_DIR}/nccl_device.h")
    file(STRINGS "${MPIX_NCCL_INCLUDE_DIR}/nccl.h" version REGEX "^#define NCCL_(MAJOR|MINOR) ")
    string(REGEX REPLACE "[^0-9]*([0-9]+);[^0-9]*([0-9]+)" "\\1.\\2" version "${version}")
    if(version IN_LIST nccl_devices)
        set(MPIX_HAVE_NCCL_DEVICE ON)
    else()
        message(STATUS "The benches leave NCCL's device interface of ${version} out: they know those of ${nccl_devices}")
    endif()
endif()
set(MPIX_HAVE_UCX_DEVICE OFF)
find_path(MPIX_UCX_DEVICE_INCLUDE_DIR ucp/api/device/ucp_host.h HINTS "${UCX_ROOT}" "$ENV{UCX_ROOT}" PATH_SUFFIXES include)
find_library(MPIX_UCX_DEVICE_UCP NAMES libucp.so.0 HINTS "${MPIX_UCX_DEVICE_INCLUDE_DIR}/../lib" NO_DEFAULT_PATH)
find_library(MPIX_UCX_DEVICE_UCS NAMES libucs.so.0 HINTS "${MPIX_UCX_DEVICE_INCLUDE_DIR}/../lib" NO_DEFAULT_PATH)
set(calls "")
if(MPIX_UCX_DEVICE_INCLUDE_DIR)  # the calls had other names before 1.22
    file(STRINGS "${MPIX_UCX_DEVICE_INCLUDE_DIR}/ucp/api/device/ucp_host.h" calls REGEX "ucp_device_remote_mem_list_create")
endif()
if(calls AND MPIX_UCX_DEVICE_UCP AND MPIX_UCX_DEVICE_UCS)
    add_library(mpix_ucx_device INTERFACE)
    target_include_directories(mpix_ucx_device SYSTEM BEFORE INTERFACE "${MPIX_UCX_DEVICE_INCLUDE_DIR}")
    target_link_libraries(mpix_ucx_device INTERFACE "${MPIX_UCX_DEVICE_UCP}" "${MPIX_UCX_DEVICE_UCS}")
    set(MPIX_HAVE_UCX_DEVICE ON)
endif()
message(STATUS "Rivals for the benches: NVSHMEM: ${MPIX_HAVE_NVSHMEM}; NCCL: ${MPIX_HAVE_NCCL}, "
    "device interface: ${MPIX_HAVE_NCCL_DEVICE}; UCX's device interface: ${MPIX_HAVE_UCX_DEVICE}")
