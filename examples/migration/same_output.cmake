# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DPROGRAMS=<program>;... -P same_output.cmake -- <launcher> <argument>...: runs each program; all print the same.

set(launcher "")
set(found OFF)
foreach(i RANGE 1 ${CMAKE_ARGC})
    if(found AND i LESS CMAKE_ARGC)
        list(APPEND launcher "${CMAKE_ARGV${i}}")
    elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
        set(found ON)
    endif()
endforeach()

unset(first)
foreach(program IN LISTS PROGRAMS)
    execute_process(COMMAND ${launcher} "${program}" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
    string(STRIP "${output}" output)
    if(NOT DEFINED first)
        set(first "${output}")
    elseif(NOT output STREQUAL first)
        message(FATAL_ERROR "${program} prints\n${output}\nand the first program\n${first}")
    endif()
endforeach()
message(STATUS "all print: ${first}")
