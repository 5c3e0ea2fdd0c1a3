# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DSTATUS=success|failure|any -DOUTPUT=<regex>|... -DKEPT=<folder> -P expect.cmake -- <command>...
# Runs the command; checks whether it succeeded, and that what it printed matches each expression (they are
# separated by "&&", for a ";" would be lost on the way). -DNOT=<regex>: and does not match this one.
# What it printed: what the launcher did, then what each process left in the folder (keep_output.sh).

set(command "")
set(found FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
    if(found)
        list(APPEND command "${CMAKE_ARGV${i}}")
    elseif(CMAKE_ARGV${i} STREQUAL "--")
        set(found TRUE)
    endif()
endforeach()

file(REMOVE_RECURSE "${KEPT}")
file(MAKE_DIRECTORY "${KEPT}")
execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
file(GLOB files LIST_DIRECTORIES FALSE "${KEPT}/*")
foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(APPEND printed "${text}")
endforeach()
message("${printed}")
if(STATUS STREQUAL "success" AND NOT result EQUAL 0)
    message(FATAL_ERROR "The command failed: ${result}")
elseif(STATUS STREQUAL "failure" AND result EQUAL 0)
    message(FATAL_ERROR "The command succeeded")
endif()
string(REPLACE "&&" ";" expressions "${OUTPUT}")
foreach(expression IN LISTS expressions)
    if(NOT printed MATCHES "${expression}")
        message(FATAL_ERROR "Nothing that was printed matches: ${expression}")
    endif()
endforeach()
if(NOT "${NOT}" STREQUAL "" AND printed MATCHES "${NOT}")
    message(FATAL_ERROR "Something that was printed matches: ${NOT}")
endif()
