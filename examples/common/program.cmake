# SPDX-License-Identifier: BSD-3-Clause
#
# gpu_or_host_program(<name> <source>.cu TESTED_WITH <ranks>... PRINTS <regex>)
#
# The program for host threads, and with nvcc <name>_gpu for GPUs. Tests run it with each number of ranks, and compare
# what it prints; <ranks> in the regular expression stands for their number.

get_property(program_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
set(program_common "${CMAKE_CURRENT_LIST_DIR}")
include(CTest)

function(gpu_or_host_program name source)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "PRINTS" "TESTED_WITH")
    add_executable(${name} ${source})
    set_source_files_properties(${source} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
    set(executables ${name})
    if("CUDA" IN_LIST program_languages)
        set(gpu_source "${CMAKE_CURRENT_BINARY_DIR}/${name}_gpu.cu")
        file(CONFIGURE OUTPUT "${gpu_source}" CONTENT "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${source}\"\n")
        add_executable(${name}_gpu "${gpu_source}")
        target_compile_features(${name}_gpu PRIVATE cuda_std_20)
        # mpi.h's old C++ bindings need a library that a program linked by nvcc does not get.
        target_compile_definitions(${name}_gpu PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
        list(APPEND executables ${name}_gpu)
    endif()
    foreach(executable IN LISTS executables)
        target_include_directories(${executable} PRIVATE "${program_common}")
        target_link_libraries(${executable} PRIVATE mpix::device)
    endforeach()
    if(NOT BUILD_TESTING OR NOT MPIEXEC_EXECUTABLE)
        return()
    endif()
    if(NOT gpu_found)
        set(executables ${name})
    endif()
    foreach(executable IN LISTS executables)
        foreach(ranks IN LISTS arg_TESTED_WITH)
            add_test(NAME ${executable}_${ranks}
                COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS}
                        $<TARGET_FILE:${executable}> ${MPIEXEC_POSTFLAGS})
            string(REPLACE "<ranks>" "${ranks}" prints "${arg_PRINTS}")
            # As for jacobi3d.
            set_tests_properties(${executable}_${ranks} PROPERTIES PROCESSORS ${ranks} TIMEOUT 120
                PASS_REGULAR_EXPRESSION "${prints}" ENVIRONMENT
                "OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_hwloc_base_binding_policy=none;\
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe;PRTE_MCA_hwloc_default_binding_policy=none;\
OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
        endforeach()
    endforeach()
endfunction()
