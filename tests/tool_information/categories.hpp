// SPDX-License-Identifier: BSD-3-Clause
//
// The categories, as a tool sees them.
#ifndef MPIX_TESTS_TOOL_INFORMATION_CATEGORIES_HPP
#define MPIX_TESTS_TOOL_INFORMATION_CATEGORIES_HPP

#include <map>
#include <string>

namespace tool_information {

// The category "mpix" has all these variables, and the library's are as they are without mpix.
void check_categories(const std::map<std::string, int> &controls, const std::map<std::string, int> &counters);

}  // namespace tool_information

#endif  // MPIX_TESTS_TOOL_INFORMATION_CATEGORIES_HPP
