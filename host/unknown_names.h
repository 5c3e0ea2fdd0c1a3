// SPDX-License-Identifier: BSD-3-Clause
//
// Environment variables and info keys that look like ours and are not: most likely misspelt. A warning, once a process, from
// world rank 0; never an error.
#ifndef MPIX_HOST_UNKNOWN_NAMES_H
#define MPIX_HOST_UNKNOWN_NAMES_H

#include <mpi.h>

#include <string>
#include <string_view>
#include <vector>

namespace mpix {

// The one of `known` that takes the fewest insertions, deletions and replacements of a character; empty if all are far from
// `name`.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view> &known);

// The warnings about the environment, given as main() gets it: a line for each variable.
std::vector<std::string> unknown_variables(const char *const *environment);

// After MPI_Init.
void warn_of_unknown_variables();

// About keys beginning with mpix_ that `call` does not know; it knows `known`.
void warn_of_unknown_keys(const char *call, MPI_Info info, const std::vector<std::string_view> &known);

}  // namespace mpix

#endif  // MPIX_HOST_UNKNOWN_NAMES_H
