# SPDX-License-Identifier: BSD-3-Clause

string(REPLACE "|" ";" MPIRUN "${MPIRUN}")

function(step)
    list(JOIN ARGN " " line)
    message(STATUS "${line}")
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")

# Installed to one place and used from another.
step("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${WORK_DIR}/packed" --config "${CONFIG}")
file(RENAME "${WORK_DIR}/packed" "${WORK_DIR}/prefix")

# The MPI compiler is not named: the package must know its own.
set(programs ring ring_mpi_first standard standard_mpi_first device_ring)
if(PKG_CONFIG)
    list(APPEND programs ring_imported)
endif()
if(FORTRAN_COMPILER)
    list(APPEND programs fortran_ring fortran_halo)
    set(halo_sources mpix_halo_types.f90 mpix_halo_fields.f90 mpix_halo_grids.f90 mpix_halo_exchanges.f90
        mpix_halo_files.f90 mpix_halo_gpu.f90 mpix_halo.f90)
endif()
step("${CMAKE_COMMAND}" -S "${SOURCE_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}"
    "-DCMAKE_Fortran_COMPILER=${FORTRAN_COMPILER}"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix"
    "-DSTANDARD_SOURCE=${STANDARD_SOURCE}"
    "-DCMAKE_C_COMPILER=${C_COMPILER}"
    "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
step("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
foreach(program IN LISTS programs)
    step(${MPIRUN} "${WORK_DIR}/build/${program}")
endforeach()

step("${WORK_DIR}/prefix/bin/mpix_info")
# The Python package beside it, without mpi4py (-S: no site-packages), which may be for another MPI library.
step("${CMAKE_COMMAND}" -E env "PYTHONPATH=${WORK_DIR}/prefix/${LIBDIR}/mpix/python" "${PYTHON}" -S -m mpix info)
execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${WORK_DIR}/prefix/${LIBDIR}/mpix/python"
    "${PYTHON}" -S -m mpix library OUTPUT_VARIABLE library COMMAND_ERROR_IS_FATAL ANY)
if(NOT library STREQUAL "${WORK_DIR}/prefix/${LIBDIR}/libmpix.so.0\n")
    message(FATAL_ERROR "python -m mpix library: ${library}")
endif()
foreach(command mpix_info mpixcc mpixcxx mpixfort)
    if(NOT EXISTS "${WORK_DIR}/prefix/${DATADIR}/bash-completion/completions/${command}")
        message(FATAL_ERROR "the completion of ${command} is not installed")
    endif()
endforeach()
foreach(page man7/mpix-environment.7 man7/mpix.7 man3/MPIX_Prequest_create.3mpix man3/MPI_Psend_init.3mpix)
    if(NOT EXISTS "${WORK_DIR}/prefix/${MANDIR}/${page}")
        message(FATAL_ERROR "the man page ${page} is not installed")
    endif()
endforeach()

if(PKG_CONFIG)
    set(ENV{PKG_CONFIG_PATH} "${WORK_DIR}/prefix/${LIBDIR}/pkgconfig")
    execute_process(COMMAND "${PKG_CONFIG}" --cflags --libs mpix
        OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    set(compile_flags ${flags})
    list(FILTER compile_flags INCLUDE REGEX "^-I")
    step("${MPI_C_COMPILER}" "${SOURCE_DIR}/ring.c" -o "${WORK_DIR}/ring_pkg_config" ${flags})
    step(${MPIRUN} "${WORK_DIR}/ring_pkg_config")
    step("${MPI_C_COMPILER}" -Werror=implicit-function-declaration "${STANDARD_SOURCE}"
        -o "${WORK_DIR}/standard_pkg_config" ${flags})
    step(${MPIRUN} "${WORK_DIR}/standard_pkg_config")
    # As on Ubuntu, where the linker leaves out a library that the program's own files do not refer to.
    step("${MPI_C_COMPILER}" -shared -fPIC -Dmain=ring "${SOURCE_DIR}/ring.c" ${compile_flags}
        -o "${WORK_DIR}/libring.so")
    step("${MPI_C_COMPILER}" -Wl,--as-needed "${SOURCE_DIR}/caller.c" -o "${WORK_DIR}/caller_pkg_config" ${flags} -ldl)
    step(${MPIRUN} "${WORK_DIR}/caller_pkg_config" "${WORK_DIR}/libring.so")
    step("${WORK_DIR}/prefix/bin/mpixcc" -Wl,--as-needed "${SOURCE_DIR}/caller.c" -o "${WORK_DIR}/caller_mpixcc" -ldl)
    step(${MPIRUN} "${WORK_DIR}/caller_mpixcc" "${WORK_DIR}/libring.so")
    if(MESON)
        set(ENV{CC} "${MPI_C_COMPILER}")
        step("${MESON}" setup "${WORK_DIR}/meson" "${SOURCE_DIR}"
            --pkg-config-path "${WORK_DIR}/prefix/${LIBDIR}/pkgconfig")
        step("${MESON}" compile -C "${WORK_DIR}/meson")
        step(${MPIRUN} "${WORK_DIR}/meson/ring")
    else()
        message(STATUS "there is no meson: consumer/meson.build is not tried")
    endif()
    if(FORTRAN_COMPILER)
        execute_process(COMMAND "${PKG_CONFIG}" --cflags --libs mpix-fortran
            OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
        separate_arguments(flags UNIX_COMMAND "${flags}")
        foreach(name fortran_ring fortran_halo)
            step("${MPI_Fortran_COMPILER}" "${SOURCE_DIR}/${name}.f90" -o "${WORK_DIR}/${name}_pkg_config" ${flags})
            step(${MPIRUN} "${WORK_DIR}/${name}_pkg_config")
            step("${WORK_DIR}/prefix/bin/mpixfort" "${SOURCE_DIR}/${name}.f90" -o "${WORK_DIR}/${name}_mpixfort")
            step(${MPIRUN} "${WORK_DIR}/${name}_mpixfort")
        endforeach()
        foreach(way mpi mpif)
            set(handle_ring -Wl,--as-needed "${SOURCE_DIR}/handle_ring.F90")
            if(way STREQUAL "mpif")
                list(APPEND handle_ring -DINCLUDE_MPIF)
            endif()
            step("${MPI_Fortran_COMPILER}" ${handle_ring} -o "${WORK_DIR}/${way}_ring_pkg_config" ${flags})
            step(${MPIRUN} "${WORK_DIR}/${way}_ring_pkg_config")
            step("${WORK_DIR}/prefix/bin/mpixfort" ${handle_ring} -o "${WORK_DIR}/${way}_ring_mpixfort")
            step(${MPIRUN} "${WORK_DIR}/${way}_ring_mpixfort")
        endforeach()
        # For another compiler: the module's sources, in the order of docs/fortran.md.
        file(MAKE_DIRECTORY "${WORK_DIR}/modules")
        list(TRANSFORM halo_sources PREPEND "${WORK_DIR}/prefix/${INCLUDEDIR}/mpix/fortran/")
        execute_process(COMMAND "${PKG_CONFIG}" --libs mpix
            OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
        separate_arguments(flags UNIX_COMMAND "${flags}")
        execute_process(COMMAND "${MPI_Fortran_COMPILER}" ${halo_sources} "${SOURCE_DIR}/fortran_halo.f90" -o fortran_halo ${flags}
            WORKING_DIRECTORY "${WORK_DIR}/modules" COMMAND_ERROR_IS_FATAL ANY)
        step(${MPIRUN} "${WORK_DIR}/modules/fortran_halo")
    endif()
endif()

if(MAKE)
    file(MAKE_DIRECTORY "${WORK_DIR}/make")
    step("${MAKE}" -C "${WORK_DIR}/make" -f "${SOURCE_DIR}/Makefile" "VPATH=${SOURCE_DIR}" "MPIX=${WORK_DIR}/prefix" ring)
    step(${MPIRUN} "${WORK_DIR}/make/ring")
endif()
