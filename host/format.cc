// SPDX-License-Identifier: BSD-3-Clause
#if MPIX_HAVE_FMT
#define FMT_HEADER_ONLY 1  // here alone, so that libmpix.so neither needs nor exports anything of fmt
#include <fmt/format.h>
#endif

#include "host/format.h"

namespace mpix {

std::string format_values(std::string_view how, formatting::format_args values) {
    return formatting::vformat({how.data(), how.size()}, values);
}

}  // namespace mpix
