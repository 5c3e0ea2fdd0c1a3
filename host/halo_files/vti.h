// SPDX-License-Identifier: BSD-3-Clause
//
// Fields in files of VTK.
#ifndef MPIX_HOST_HALO_FILES_VTI_H
#define MPIX_HOST_HALO_FILES_VTI_H

#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

// write_vti(). `given`: what was wrong on this rank before; then all ranks throw.
void write_vti_checked(const grid &g, const std::string &path, const std::vector<named_field> &fields,
                       const vti_options &options, const status &given);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FILES_VTI_H
