# SPDX-License-Identifier: BSD-3-Clause
#
# mpix_format: how the library formats text. std::format where the compiler has it, otherwise fmt, whose
# headers alone are used (host/format.cc) so that libmpix.so neither needs nor exports anything of it.

include(CheckCXXSourceCompiles)
add_library(mpix_format INTERFACE)

check_cxx_source_compiles(
    "#include <format>\nint main() { return static_cast<int>(std::format(\"{}\", 1).size()) - 1; }"
    MPIX_HAVE_STD_FORMAT)
if(MPIX_HAVE_STD_FORMAT)
    set(MPIX_FORMAT std::format)
    target_compile_definitions(mpix_format INTERFACE MPIX_HAVE_FMT=0)
else()
    find_package(fmt QUIET)
    if(NOT TARGET fmt::fmt-header-only)
        message(FATAL_ERROR "This compiler has no std::format (GCC 13 and later have it), and fmt was not "
            "found. Install fmt (Debian, Ubuntu: libfmt-dev) or use a newer compiler.")
    endif()
    set(MPIX_FORMAT "fmt ${fmt_VERSION}")
    target_compile_definitions(mpix_format INTERFACE MPIX_HAVE_FMT=1)
    # Not what the target defines: only host/format.cc compiles what is behind the declarations.
    target_include_directories(mpix_format SYSTEM INTERFACE
        $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
endif()
