# SPDX-License-Identifier: BSD-3-Clause
#
# mpix_format: how the library formats text. std::format where the compiler has it, otherwise fmt, whose
# headers alone are used so that libmpix.so neither needs nor exports anything of it.

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
    target_link_libraries(mpix_format INTERFACE fmt::fmt-header-only)
endif()
