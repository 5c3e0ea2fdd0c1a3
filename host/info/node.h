// SPDX-License-Identifier: BSD-3-Clause
//
// What this node can do, each with a name for --require, and why not.
#ifndef MPIX_HOST_INFO_NODE_H
#define MPIX_HOST_INFO_NODE_H

#include <string>
#include <vector>

#include "transport/status.h"

namespace mpix {

struct ability {
    std::string name;
    std::string meaning;  // for those who have it
    status why_not;       // success: it has it
};

// Before this process has threads, and before it uses MPI; after read_environment(). Opens GPUs and networks.
std::vector<ability> node_abilities();

// Whether the node has all those named in a list with commas. Prints on stderr why not, and what name is unknown.
enum class answer { yes, no, unknown_name };
answer has_all(const std::vector<ability> &abilities, const std::string &names);

}  // namespace mpix

#endif  // MPIX_HOST_INFO_NODE_H
