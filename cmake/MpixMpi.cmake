# SPDX-License-Identifier: BSD-3-Clause
#
# Finds MPI, tells which library it is (MPIX_MPI_VENDOR: openmpi, mpich, standard-abi, which is that of MPI 5, or other)
# and what it has of MPI-4 (MPIX_MPI_HAS_...), and refuses a mixture: one library's compiler with the other's mpirun
# starts n programs of one rank each.

find_package(MPI 3.1 REQUIRED COMPONENTS C CXX)

# Names without a path ("mpicc.mpich") are good for FindMPI, but not for what we install and run.
foreach(mpix_program MPI_C_COMPILER MPI_CXX_COMPILER MPIEXEC_EXECUTABLE)
    if(${mpix_program} AND NOT IS_ABSOLUTE "${${mpix_program}}")
        find_program(${mpix_program}_PATH NAMES "${${mpix_program}}" REQUIRED)
        mark_as_advanced(${mpix_program}_PATH)
        set(${mpix_program} "${${mpix_program}_PATH}")
    endif()
endforeach()

include(CheckCSourceCompiles)

function(mpix_check_vendor condition out)
    set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
    set(CMAKE_REQUIRED_QUIET ON)
    check_c_source_compiles("#include <mpi.h>\n#if !(${condition})\n#error\n#endif\nint main(void){return 0;}" ${out})
    set(${out} "${${out}}" PARENT_SCOPE)
endfunction()

mpix_check_vendor("defined(OPEN_MPI)" MPIX_MPI_IS_OPENMPI)
mpix_check_vendor("defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5" MPIX_MPI_IS_OPENMPI_5)
mpix_check_vendor("defined(MPICH_VERSION)" MPIX_MPI_IS_MPICH)
mpix_check_vendor("defined(MPI_ABI_VERSION)" MPIX_MPI_IS_STANDARD_ABI)
if(MPIX_MPI_IS_OPENMPI)
    set(MPIX_MPI_VENDOR openmpi)
elseif(MPIX_MPI_IS_MPICH)
    set(MPIX_MPI_VENDOR mpich)
elseif(MPIX_MPI_IS_STANDARD_ABI)
    set(MPIX_MPI_VENDOR standard-abi)
else()
    set(MPIX_MPI_VENDOR other)
endif()

foreach(header_dir IN LISTS MPI_CXX_INCLUDE_DIRS)
    if(NOT header_dir IN_LIST MPI_C_INCLUDE_DIRS)
        message(FATAL_ERROR "MPI_C_COMPILER (${MPI_C_COMPILER}) and MPI_CXX_COMPILER (${MPI_CXX_COMPILER}) "
            "have different headers: they belong to two MPI libraries. Set both, and "
            "MPIEXEC_EXECUTABLE, in a fresh build directory.")
    endif()
endforeach()

if(MPIEXEC_EXECUTABLE)
    execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version
        OUTPUT_VARIABLE launcher ERROR_VARIABLE launcher RESULT_VARIABLE launcher_status)
    if((MPIX_MPI_VENDOR STREQUAL "openmpi" AND launcher MATCHES "HYDRA")
        OR (MPIX_MPI_VENDOR STREQUAL "mpich" AND launcher MATCHES "Open MPI|OpenRTE|open-mpi"))
        message(FATAL_ERROR "MPIEXEC_EXECUTABLE (${MPIEXEC_EXECUTABLE}) does not belong to the MPI library "
            "of MPI_C_COMPILER (${MPI_C_COMPILER}), which is ${MPIX_MPI_VENDOR}. Set all of MPI_C_COMPILER, "
            "MPI_CXX_COMPILER and MPIEXEC_EXECUTABLE, in a fresh build directory.")
    endif()
endif()

include(CheckSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
# Open MPI 5 and older Intel MPI have some of MPI-4, and call themselves MPI-3.1.
check_symbol_exists(MPI_Session_init mpi.h MPIX_MPI_HAS_SESSIONS)
check_symbol_exists(MPI_Intercomm_create_from_groups mpi.h MPIX_MPI_HAS_INTERCOMM_CREATE_FROM_GROUPS)
check_symbol_exists(MPI_Comm_idup_with_info mpi.h MPIX_MPI_HAS_COMM_IDUP_WITH_INFO)
unset(CMAKE_REQUIRED_LIBRARIES)
