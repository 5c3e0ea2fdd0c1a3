// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a launcher has started this process, and whether it belongs to this MPI library.
#ifndef MPIX_HOST_INFO_FOREIGN_LAUNCHER_H
#define MPIX_HOST_INFO_FOREIGN_LAUNCHER_H

#include <string>

namespace mpix {

// The MPI library that this program was built for.
std::string built_for();
// By an environment variable of any launcher that is known.
bool started_by_launcher();
// On stderr, where a job of one rank is not enough for that argument of mpix_info.
void tell_too_few_ranks(const char *argument);

}  // namespace mpix

#endif  // MPIX_HOST_INFO_FOREIGN_LAUNCHER_H
