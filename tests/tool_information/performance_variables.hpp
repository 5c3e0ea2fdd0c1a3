// SPDX-License-Identifier: BSD-3-Clause
//
// The performance variables, while messages go to and fro.
#ifndef MPIX_TESTS_TOOL_INFORMATION_PERFORMANCE_VARIABLES_HPP
#define MPIX_TESTS_TOOL_INFORMATION_PERFORMANCE_VARIABLES_HPP

#include <map>
#include <random>
#include <string>

namespace tool_information {

// `path`: what carries the messages. `shared`: the same numbers on both ranks.
void check_counters(const std::map<std::string, int> &all, const std::string &path, std::mt19937_64 &shared);
// What is written after MPI_Init has an effect on requests that are made from then on: room for one epoch, or for two.
void check_later_change(const std::map<std::string, int> &all);

}  // namespace tool_information

#endif  // MPIX_TESTS_TOOL_INFORMATION_PERFORMANCE_VARIABLES_HPP
