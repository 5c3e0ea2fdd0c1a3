# SPDX-License-Identifier: BSD-3-Clause
#
# mpix_options: an interface target with the project's own warnings and the chosen sanitizer. Everything
# that we compile links it; nothing that we install shows it.
# mpix_fuzz_options: libFuzzer's instrumentation, for the library and the fuzzers.

add_library(mpix_options INTERFACE)

# Where source files are compiled together, a local name would shadow what another one has in its unnamed namespace.
set(warnings -Wall -Wextra "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>")
target_compile_options(mpix_options INTERFACE
    "$<$<COMPILE_LANGUAGE:C,CXX>:${warnings};-Wpedantic>"
    # GCC takes MPICH's MPI_STATUSES_IGNORE, which is (MPI_Status *)1, for an array that is too short.
    "$<$<COMPILE_LANG_AND_ID:C,GNU>:-Wno-stringop-overflow>"
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow>"
    # nvcc's generated code is full of line directives that -Wpedantic takes for an extension.
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler -Wall,-Wextra,-Wshadow>")
# Not with GCC and a sanitizer: the instrumentation makes it see uses of uninitialised memory, in the standard
# library too, that are not there.
if(MPIX_WERROR AND NOT (MPIX_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
    target_compile_options(mpix_options INTERFACE
        "$<$<COMPILE_LANGUAGE:C,CXX>:-Werror>"
        "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
endif()

if(MPIX_SANITIZE)
    if(NOT MPIX_SANITIZE MATCHES "^(address|undefined|thread|address,undefined|undefined,address)$")
        message(FATAL_ERROR "MPIX_SANITIZE=${MPIX_SANITIZE}: must be address, undefined, thread or "
            "address,undefined")
    endif()
    set(sanitize -fsanitize=${MPIX_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(mpix_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${sanitize}>")
    target_link_options(mpix_options INTERFACE -fsanitize=${MPIX_SANITIZE})
endif()

add_library(mpix_fuzz_options INTERFACE)
if(MPIX_FUZZ)
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "MPIX_FUZZ=ON needs clang, for libFuzzer; the compiler is ${CMAKE_CXX_COMPILER_ID}")
    endif()
    target_compile_options(mpix_fuzz_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>")
endif()
