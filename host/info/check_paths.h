// SPDX-License-Identifier: BSD-3-Clause
//
// mpix_info --check by itself: a job of two ranks for each path that this node has.
#ifndef MPIX_HOST_INFO_CHECK_PATHS_H
#define MPIX_HOST_INFO_CHECK_PATHS_H

#include <string>
#include <vector>

#include "host/info/node.h"

namespace mpix {

// `launcher`: words such as "srun --mpi=pmix", to which "-n 2 mpix_info ..." is added. Prints a line for each path. An
// exit status: 0 if all paths work that the node has.
int check_paths(const std::vector<ability> &abilities, const std::string &launcher);

}  // namespace mpix

#endif  // MPIX_HOST_INFO_CHECK_PATHS_H
