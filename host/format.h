// SPDX-License-Identifier: BSD-3-Clause
//
// Text formatting: the standard library's where the compiler has it, otherwise the fmt library, which it was made from.
// Of either only the checking of format strings is compiled into who includes this; the rest is in format.cc.
#ifndef MPIX_HOST_FORMAT_H
#define MPIX_HOST_FORMAT_H

#include <string>
#include <string_view>
#include <utility>

#if MPIX_HAVE_FMT
#if __has_include(<fmt/base.h>)
#include <fmt/base.h>
#else
#include <fmt/core.h>
#endif
namespace mpix {
namespace formatting = ::fmt;
inline std::string_view checked(fmt::string_view how) { return {how.data(), how.size()}; }
}  // namespace mpix
#else
#include <format>
namespace mpix {
namespace formatting = ::std;
std::string_view checked(const auto &how) { return how.get(); }
}  // namespace mpix
#endif

#include "transport/status.h"

namespace mpix {

std::string format_values(std::string_view how, formatting::format_args values);

// A failure is shown by its message.
template <class Value>
const Value &shown(const Value &value) {
    return value;
}
inline const std::string &shown(const status &value) { return value.message(); }

// An object and no function: beside a function std::format would be found by its arguments' namespace, and be as good.
struct formatter {
    template <class... Values>
    std::string operator()(formatting::format_string<decltype(shown(std::declval<Values>()))...> how,
                           Values &&...values) const {
        return format_values(checked(how), formatting::make_format_args(shown(values)...));
    }
};
inline constexpr formatter format;

}  // namespace mpix

#endif  // MPIX_HOST_FORMAT_H
