// SPDX-License-Identifier: BSD-3-Clause
//
// Fields of the C interface in the C++ interface's terms.
#ifndef MPIX_HOST_HALO_C_EXCHANGE_H
#define MPIX_HOST_HALO_C_EXCHANGE_H

#include <string>
#include <vector>

#include <mpix/halo.h>
#include <mpix/halo.hpp>

#include "host/halo/gather.h"
#include "transport/status.h"

namespace mpix::halo {

// A failure begins with the member that is wrong.
status convert(const MPIX_Halo_field &f, field &made);
status convert(int count, const MPIX_Halo_field *fields, std::vector<field> &made);

// MPIX_Halo_gather; `given` and `check` as of gather_checked().
int gather_with(const status &given, const check_of_array &check, MPIX_Halo_grid grid, const MPIX_Halo_field *from,
                void *global, int root);

// A report for the caller's `size` bytes, a zero at the end included. Throws an error that names the argument.
void give_text(const std::string &all, char *text, int size);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_C_EXCHANGE_H
