# SPDX-License-Identifier: BSD-3-Clause
#
# Configures the project in fetching/ with mpix's sources as they are here, and, if BUILD says so, builds and runs it: all of
# the library once more.

string(REPLACE "|" ";" MPIRUN "${MPIRUN}")
file(REMOVE_RECURSE "${WORK_DIR}")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE_DIR}/fetching" -B "${WORK_DIR}" -G "${GENERATOR}"
    "-DFETCHCONTENT_SOURCE_DIR_MPIX=${MPIX_SOURCE_DIR}" "-DRING=${SOURCE_DIR}/consumer/ring.c"
    "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" "-DMPI_C_COMPILER=${MPI_C_COMPILER}"
    "-DMPI_CXX_COMPILER=${MPI_CXX_COMPILER}" "-DMPIEXEC_EXECUTABLE=${MPIEXEC}"
    -DMPIX_CUDA=OFF -DMPIX_UCX=OFF -DMPIX_VERBS=OFF -DMPIX_SCOTCH=OFF -DMPIX_PNG=OFF -DMPIX_FORTRAN=OFF
    COMMAND_ERROR_IS_FATAL ANY)
if(BUILD)
    execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK_DIR}" --target ring COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${MPIRUN} "${WORK_DIR}/ring" COMMAND_ERROR_IS_FATAL ANY)
endif()
