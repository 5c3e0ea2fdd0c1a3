// SPDX-License-Identifier: BSD-3-Clause
//
// Environment variables and info keys with the prefix of mpix that mpix does not know, and that are most likely
// misspelt. World rank 0 warns of each once; they are never errors.
#ifndef MPIX_HOST_UNKNOWN_NAMES_H
#define MPIX_HOST_UNKNOWN_NAMES_H

#include <mpi.h>

#include <string>
#include <string_view>
#include <vector>

namespace mpix {

// The name in `known` with the least edit distance; empty if none is near.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view> &known);

// The warnings about the environment, given as main() gets it: a line for each variable.
std::vector<std::string> unknown_variables(const char *const *environment);

// After MPI_Init.
void warn_of_unknown_variables();

// Warns of keys with the prefix mpix_ that are not in `known`, the keys that `call` reads.
void warn_of_unknown_keys(const char *call, MPI_Info info, const std::vector<std::string_view> &known);

}  // namespace mpix

#endif  // MPIX_HOST_UNKNOWN_NAMES_H
