// SPDX-License-Identifier: BSD-3-Clause
//
// Text formatting: the standard library's where the compiler has it, otherwise the fmt library, which it
// was made from.
#ifndef MPIX_HOST_FORMAT_H
#define MPIX_HOST_FORMAT_H

#if MPIX_HAVE_FMT
#include <fmt/format.h>
namespace mpix {
using fmt::format;
}
#else
#include <format>
namespace mpix {
using std::format;
}
#endif

#endif  // MPIX_HOST_FORMAT_H
