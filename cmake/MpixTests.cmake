# SPDX-License-Identifier: BSD-3-Clause
#
# How tests are added. Programs follow one convention: exit 0 = passed, 77 = skipped, anything else = failed.
#
#   mpix_add_unit_test(<name> SOURCES <file>... [FAKE_MPI | PLAYED_GPU | MPI | ALONE] [...as mpix_add_mpi_test])
#       The Catch2 cases (#include "tests/catch.hpp") of these files, whose names end in _test.cpp; others may be
#       beside them. All of a kind are one program, the target unit.tests[.<kind>], of which each test runs its own
#       files' cases; by hand: unit.tests -# "[#packet_test]". Labels: unit, and no_mpi, for what a build for another MPI
#       library need not repeat.
#           no kind      sees the library's insides
#           FAKE_MPI     the same, with the fuzzers' MPI library in place of the real one
#           MPI          the same, and asks the real one; run by mpirun on one rank, without the label no_mpi
#           PLAYED_GPU   on the public headers alone, whose device functions go the ways of GPU threads
#           ALONE        a program of its own, the target <name>, for what defines a macro that changes a header
#
#   mpix_add_mpi_test(<name> NP <n>... SOURCE <file>... [ARGS <arg>...] [ENV <NAME=value>...]
#                     [LABELS <label>...] [TIMEOUT <seconds>] [LIBRARIES <target>...])
#       One program, C or C++, on the public interface, run by mpirun on <n> ranks. Label: np<n>. Several <n>
#       give several tests of the same program, named <name>.np<n>.
#
#   mpix_add_program(<name> <file>...)
#       Such a program without a test, for mpix_add_mpi_run and mpix_add_expected_run.
#
#   mpix_add_mpi_run(<name> TARGET <program> NP <n>... [ARGS ...] [ENV ...] [LABELS ...] [TIMEOUT ...] [BY <program>])
#       One more run of a program made by any of the others; the program of mpix_add_mpi_test(<name>) is the
#       target <name>. BY: is given the command line to run.
#
#   mpix_add_network_runs(<group> NP <n>... NAMES <name>... [SUFFIX <suffix>] [VARIANT <word>] [...as mpix_add_mpi_run])
#       Once more, over the network in place of shared memory: for each name the program <group>.<name><suffix>, as the
#       test <group>.<name>.ucx[.<word>].np<n>. None without UCX. Nor under ThreadSanitizer, which does not see how UCX, built
#       without it, orders what it stores.
#   mpix_add_rdma_runs(<group> ...)
#       The same over libibverbs: <group>.<name>.verbs[.<word>].np<n>, label verbs. Skipped where there is no RDMA device;
#       scripts/test-rdma has one.
#
#   mpix_add_device_test(<name> NP <n>... SOURCE <file>.cpp [BESIDE <file>...] [...as mpix_add_mpi_test])
#       The same source twice: as C++, with host threads for blocks and warps (<name>.host, label device),
#       and, where there is an nvcc, as CUDA (<name>.cuda, label gpu; exits 77 where there is no GPU). In
#       CUDA code __CUDACC__ is defined. The files BESIDE it are C++ in both. Where CUDA tests are not run
#       (MPIX_CUDA_TESTS), <name>.cuda is an object library, compiled to PTX, and no test of label gpu is there.
#
#   mpix_add_bench(<name> NP <n>... SOURCE <file>... [ARGS ...] [LIBRARIES ...])
#       Not a test: `scripts/bench` runs it and keeps what it prints, as CSV. A .cu source is left out
#       where there is no nvcc. It is built with the tests; as mpix_add_device_test does, for PTX only where CUDA
#       tests are not run. Several <n> as in mpix_add_mpi_test.
#
#   mpix_write_run_lists()
#       Once, at the end: writes the lists that scripts/gpu runs from, gpu_tests.txt and benches.txt, one
#       "<name> <n> <command>" a line.

find_package(Catch2 QUIET)
if(NOT Catch2_FOUND)
    message(FATAL_ERROR "Catch2 was not found. Install it (Debian, Ubuntu: catch2), or leave the tests out "
        "with -DBUILD_TESTING=OFF.")
endif()

# Compiled once, and as fast as it goes: version 2 is one very large header.
add_library(mpix_catch_runner OBJECT EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tests/catch_runner.cpp")
target_include_directories(mpix_catch_runner PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(mpix_catch_runner PUBLIC Catch2::Catch2)
target_compile_options(mpix_catch_runner PRIVATE -O0 -g0)

set(mpix_sanitizer_sources "")
set(mpix_unit_environment "")
set(mpix_test_timeout 120)
set(mpix_test_environment
    # As root, as in a container, Open MPI wants to be told twice.
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # More ranks than cores, and waiting ranks let the others run.
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_mpi_yield_when_idle=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
    # Reading a peer's memory needs ptrace rights that containers do not give.
    OMPI_MCA_btl_vader_single_copy_mechanism=none
    OMPI_MCA_btl_base_warn_component_unused=0
    # Host threads that play kernels are started by the thousand. glibc keeps the stacks of five, and unmaps the rest: under
    # ThreadSanitizer that is half of the time.
    GLIBC_TUNABLES=glibc.pthread.stack_cache_size=1000000000)
if(MPIX_SANITIZE)
    set(mpix_test_timeout 300)
    set(suppressions "${PROJECT_SOURCE_DIR}/tests/sanitizers")
    # intercept_tls_get_addr: the runtimes of clang 16, GCC 13 and before take some blocks of thread-local memory for those of
    # glibc 2.19 and read what lies before them: now and then a program would crash in its search for leaks.
    set(asan_options detect_stack_use_after_return=1:intercept_tls_get_addr=0)
    list(APPEND mpix_test_environment
        "TSAN_OPTIONS=suppressions=${suppressions}/tsan.supp:history_size=7:halt_on_error=1:second_deadlock_stack=1"
        "ASAN_OPTIONS=${asan_options}:fast_unwind_on_malloc=0"
        "LSAN_OPTIONS=suppressions=${suppressions}/lsan.supp:print_suppressions=0"
        "UBSAN_OPTIONS=print_stacktrace=1")
    # Whose code allocates keeps frame pointers, other than the MPI libraries', whose leaks are told by the callers' names.
    # Without them it takes six times as long.
    set(mpix_unit_environment "ASAN_OPTIONS=${asan_options}:fast_unwind_on_malloc=1")
    if(MPIX_SANITIZE MATCHES "address")
        set(mpix_sanitizer_sources "${PROJECT_SOURCE_DIR}/tests/sanitizers/keep_loaded.c")
    elseif(MPIX_SANITIZE MATCHES "thread")
        set(mpix_sanitizer_sources "${PROJECT_SOURCE_DIR}/tests/sanitizers/quiet_library.c")
        # UCX's hooks into the memory functions crash where a thread ends. MPICH brings them along.
        list(APPEND mpix_test_environment UCX_MEM_EVENTS=n)
    endif()
endif()

# TIMEOUT: seconds within which the test ends on a machine that does nothing else but another test on each core. The limit, which
# is there for what hangs, is three times as much, for machines that are busy.
# PROGRAMS: files that the test needs, for scripts/test, which builds only the selected tests' programs. (ctest does not list the
# command of a test whose program has not been built.)
function(mpix_set_test_properties test)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "NP;TIMEOUT" "ENV;LABELS;PROGRAMS")
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT ${mpix_test_timeout})
    endif()
    if(NOT arg_NP)
        set(arg_NP 1)
    endif()
    # Open MPI's and MPICH's launcher end their ranks themselves; ctest would end the launcher only.
    math(EXPR limit "3 * ${arg_TIMEOUT}")
    math(EXPR launcher_timeout "${limit} - 5")
    set_tests_properties("${test}" PROPERTIES
        LABELS "${arg_LABELS}"
        PROCESSORS ${arg_NP}
        TIMEOUT ${limit}
        COST ${arg_TIMEOUT}  # what may take long begins first
        SKIP_RETURN_CODE 77
        REQUIRED_FILES "${arg_PROGRAMS}"
        ENVIRONMENT "${mpix_test_environment};MPIEXEC_TIMEOUT=${launcher_timeout};${arg_ENV}")
endfunction()

# The command that runs something on np ranks, as a list.
function(mpix_mpirun_command np out)
    set(flags ${MPIEXEC_PREFLAGS})
    if(MPIX_MPI_VENDOR STREQUAL "openmpi")
        list(APPEND flags --oversubscribe --bind-to none)
    endif()
    set(${out} "${MPIEXEC_EXECUTABLE}" ${MPIEXEC_NUMPROC_FLAG} ${np} ${flags} PARENT_SCOPE)
endfunction()

# Options of mpirun that let the other ranks run on when one dies.
if(MPIX_MPI_VENDOR STREQUAL "openmpi")
    if(MPIX_MPI_IS_OPENMPI_5)
        set(mpix_mpirun_survives_deaths --runtime-options continuous)
    else()
        set(mpix_mpirun_survives_deaths --mca orte_enable_recovery 1)
    endif()
endif()

# A program of Catch2 cases; see mpix_add_unit_test.
function(mpix_add_unit_program program kind alone)
    set(main "${PROJECT_SOURCE_DIR}/tests/catch_main.cpp")
    set(replaced ${mpix_sanitizer_sources})
    if(kind STREQUAL "MPI")
        set(main "${PROJECT_SOURCE_DIR}/tests/unit/mpi_main.cpp")
    elseif(kind STREQUAL "FAKE_MPI")
        # Without the MPI library the sanitizers need no suppressions for it.
        set(replaced "${PROJECT_SOURCE_DIR}/tests/fuzz/fake_mpi.cc")
    endif()
    add_executable(${program} "${main}" ${replaced})
    target_link_libraries(${program} PRIVATE mpix_catch_runner mpix_options)
    if(kind STREQUAL "PLAYED_GPU")
        target_link_libraries(${program} PRIVATE mpix::device)
        target_compile_definitions(${program} PRIVATE MPIX_FAKE_GPU MPIX_LEAST_READING_THREADS=2)
    else()
        target_link_libraries(${program} PRIVATE mpix_internal)
    endif()
    if(NOT alone)
        target_precompile_headers(${program} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/tests/catch.hpp>")
    endif()
    if(NOT alone AND NOT kind STREQUAL "PLAYED_GPU")
        # Takes less than half of the time to compile. The others contain device functions, which are tested with
        # optimisation, as they are used.
        target_compile_options(${program} PRIVATE -O0 -g1)
    endif()
endfunction()

function(mpix_add_unit_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "FAKE_MPI;PLAYED_GPU;MPI;ALONE" "TIMEOUT" "SOURCES;ENV;LABELS;LIBRARIES")
    set(program unit.tests)
    set(kind "")
    foreach(one FAKE_MPI PLAYED_GPU MPI)
        if(arg_${one})
            set(kind ${one})
            string(TOLOWER "unit.tests.${one}" program)
        endif()
    endforeach()
    if(arg_ALONE)
        set(program ${name})
    endif()
    if(NOT TARGET ${program})
        mpix_add_unit_program(${program} "${kind}" ${arg_ALONE})
    endif()
    target_sources(${program} PRIVATE ${arg_SOURCES})
    target_link_libraries(${program} PRIVATE ${arg_LIBRARIES})
    list(FILTER arg_SOURCES INCLUDE REGEX "_test[.]cpp$")
    list(TRANSFORM arg_SOURCES REPLACE "^(.*/)?([^/]*)[.]cpp$" "[#\\2]")
    list(JOIN arg_SOURCES "," files)
    set(arguments "-#" "${files}")
    if(Catch2_VERSION VERSION_LESS 3)
        list(APPEND arguments -w NoTests)  # an error, as it is by itself since version 3
    endif()
    if(arg_MPI)
        mpix_add_mpi_run(${name} TARGET ${program} NP 1 ARGS ${arguments}
            LABELS unit ${arg_LABELS} ENV ${mpix_unit_environment} ${arg_ENV} TIMEOUT "${arg_TIMEOUT}")
    else()
        add_test(NAME ${name} COMMAND ${program} ${arguments})
        mpix_set_test_properties(${name}
            LABELS unit no_mpi ${arg_LABELS} ENV ${mpix_unit_environment} ${arg_ENV} TIMEOUT "${arg_TIMEOUT}"
            PROGRAMS $<TARGET_FILE:${program}>)
    endif()
endfunction()

function(mpix_add_mpi_run name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TARGET;TIMEOUT;BY" "NP;ARGS;ENV;LABELS")
    list(LENGTH arg_NP runs)
    if(runs EQUAL 0 OR NOT arg_TARGET)
        message(FATAL_ERROR "mpix_add_mpi_run(${name}): NP and TARGET are needed")
    endif()
    get_target_property(type ${arg_TARGET} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY" OR ("gpu" IN_LIST arg_LABELS AND NOT MPIX_RUN_CUDA_TESTS))
        return()  # compiled only
    endif()
    foreach(np IN LISTS arg_NP)
        set(test ${name})
        if(runs GREATER 1)
            set(test ${name}.np${np})
        endif()
        mpix_mpirun_command(${np} mpirun)
        set(command $<TARGET_FILE:${arg_TARGET}> ${MPIEXEC_POSTFLAGS} ${arg_ARGS})
        add_test(NAME ${test} COMMAND ${arg_BY} ${mpirun} ${command})
        if("gpu" IN_LIST arg_LABELS)
            list(JOIN arg_ENV " " environment)
            list(JOIN command " " command)
            set_property(GLOBAL APPEND PROPERTY MPIX_GPU_TESTS "${test} ${np} env ${environment} ${command}")
        endif()
        mpix_set_test_properties(${test} NP ${np}
            LABELS np${np} ${arg_LABELS} ENV ${arg_ENV} TIMEOUT "${arg_TIMEOUT}"
            PROGRAMS $<TARGET_FILE:${arg_TARGET}> ${arg_BY})
    endforeach()
endfunction()

# A program on the public interface, of C or C++ sources; not a test by itself.
function(mpix_add_program name)
    add_executable(${name} ${ARGN} ${mpix_sanitizer_sources})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name} PRIVATE mpix::mpix mpix_options)
    target_compile_definitions(${name} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    if(MPIX_SANITIZE)
        # libmpix needs the part of clang's UBSan that is for C++, which only the C++ compiler links into a program.
        set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
    endif()
endfunction()

function(mpix_add_mpi_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "NP;SOURCE;ARGS;ENV;LABELS;LIBRARIES")
    mpix_add_program(${name} ${arg_SOURCE})
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
    mpix_add_mpi_run(${name} TARGET ${name} NP ${arg_NP}
        ARGS ${arg_ARGS} ENV ${arg_ENV} LABELS ${arg_LABELS} TIMEOUT "${arg_TIMEOUT}")
endfunction()

# mpix_add_runs_over(<transport> <label> <group> ...)
function(mpix_add_runs_over transport label group)
    cmake_parse_arguments(PARSE_ARGV 3 arg "" "SUFFIX;VARIANT;TIMEOUT;BY" "NP;ARGS;ENV;LABELS;NAMES")
    foreach(name IN LISTS arg_NAMES)
        foreach(np IN LISTS arg_NP)
            string(JOIN "." test ${group} ${name} ${transport} ${arg_VARIANT} np${np})
            string(JOIN "." target ${group} ${name})
            mpix_add_mpi_run(${test} TARGET ${target}${arg_SUFFIX} NP ${np} ARGS ${arg_ARGS} BY "${arg_BY}"
                ENV MPIX_TRANSPORTS=${transport} ${arg_ENV} LABELS ${label} ${arg_LABELS} TIMEOUT "${arg_TIMEOUT}")
        endforeach()
    endforeach()
endfunction()

function(mpix_add_network_runs group)
    if(MPIX_HAVE_UCX AND NOT MPIX_SANITIZE MATCHES "thread")
        mpix_add_runs_over(ucx network "${group}" ${ARGN})
    endif()
endfunction()

# Emulated machines are slow, and the MPI libraries' own messages, given the same device, give up there: so they get none.
function(mpix_add_rdma_runs group)
    if(MPIX_HAVE_VERBS AND NOT MPIX_SANITIZE)
        mpix_add_runs_over(verbs verbs "${group}" ${ARGN} BY "${PROJECT_SOURCE_DIR}/tests/with_rdma_device"
            ENV UCX_TLS=self,tcp OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp MPIX_STALL_SECONDS=120 TIMEOUT 300)
    endif()
endfunction()

# Compiles CUDA sources to PTX; nothing is linked.
function(mpix_compile_to_ptx name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
    add_library(${name} OBJECT ${arg_SOURCES})
    set_target_properties(${name} PROPERTIES CUDA_PTX_COMPILATION ON CUDA_ARCHITECTURES "${MPIX_PTX_ARCHITECTURE}-virtual")
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_compile_definitions(${name} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    target_link_libraries(${name} PRIVATE mpix_options ${arg_LIBRARIES})
endfunction()

function(mpix_add_device_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE;TIMEOUT" "NP;ARGS;ENV;LABELS;LIBRARIES;BESIDE")
    mpix_add_mpi_test(${name}.host SOURCE ${arg_SOURCE} ${arg_BESIDE} NP ${arg_NP} ARGS ${arg_ARGS} ENV ${arg_ENV}
        LABELS device ${arg_LABELS} LIBRARIES mpix::device ${arg_LIBRARIES} TIMEOUT "${arg_TIMEOUT}")
    if(MPIX_HAVE_NVCC)
        # A source file has one language per directory, so the CUDA program has a file of its own.
        cmake_path(ABSOLUTE_PATH arg_SOURCE BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" OUTPUT_VARIABLE source)
        set(cuda_source "${CMAKE_CURRENT_BINARY_DIR}/${name}.cu")
        file(CONFIGURE OUTPUT "${cuda_source}" CONTENT "#include \"${source}\"\n")
        if(NOT MPIX_RUN_CUDA_TESTS)
            mpix_compile_to_ptx(${name}.cuda SOURCES "${cuda_source}" LIBRARIES mpix::device ${arg_LIBRARIES})
            return()
        endif()
        mpix_add_mpi_test(${name}.cuda SOURCE ${cuda_source} ${arg_BESIDE} NP ${arg_NP} ARGS ${arg_ARGS} ENV ${arg_ENV}
            LABELS device gpu ${arg_LABELS} LIBRARIES mpix::device ${arg_LIBRARIES} TIMEOUT "${arg_TIMEOUT}")
    endif()
endfunction()

function(mpix_add_bench name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "NP;SOURCE;ARGS;LIBRARIES")
    if(arg_SOURCE MATCHES "\\.cu(;|$)" AND NOT MPIX_HAVE_NVCC)
        return()
    endif()
    if(arg_SOURCE MATCHES "\\.cu(;|$)" AND NOT MPIX_RUN_CUDA_TESTS)
        list(FILTER arg_SOURCE INCLUDE REGEX "\\.cu$")
        mpix_compile_to_ptx(${name} SOURCES ${arg_SOURCE} LIBRARIES mpix::device ${arg_LIBRARIES})
        return()
    endif()
    add_executable(${name} ${arg_SOURCE})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name} PRIVATE mpix::device mpix_options ${arg_LIBRARIES})
    list(JOIN arg_ARGS " " arguments)
    list(LENGTH arg_NP runs)
    foreach(np IN LISTS arg_NP)
        set(run ${name})
        if(runs GREATER 1)
            set(run ${name}.np${np})
        endif()
        set_property(GLOBAL APPEND PROPERTY MPIX_BENCHES "${run} ${np} $<TARGET_FILE:${name}> ${arguments}")
    endforeach()
endfunction()

function(mpix_write_run_lists)
    foreach(kind GPU_TESTS BENCHES)
        get_property(lines GLOBAL PROPERTY MPIX_${kind})
        list(JOIN lines "\n" text)
        string(TOLOWER "${kind}" file)
        file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/${file}.txt" CONTENT "${text}\n")
    endforeach()
endfunction()
