// SPDX-License-Identifier: BSD-3-Clause
//
// The fields that a caller gives to a function of files, checked.
#ifndef MPIX_HOST_HALO_FILES_FILE_FIELDS_H
#define MPIX_HOST_HALO_FILES_FILE_FIELDS_H

#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"
#include "host/halo/collective.h"
#include "host/halo/grid_state.h"
#include "host/halo/host_field.h"
#include "transport/status.h"

namespace mpix::halo {

struct file_field {
    std::string name;
    field_view view;
    domain points;  // of the field, if it is staggered; otherwise its cells
    host_field memory{};
};

// What `path` and `fields` give, or throws error on all ranks. Collective. `given`: what was wrong on this rank before.
// `more`: other arguments that all ranks give alike.
std::vector<file_field> check_file_fields(const grid_state &g, const char *where, const std::string &path,
                                          const std::vector<named_field> &fields, const status &given,
                                          std::vector<argument> more);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FILES_FILE_FIELDS_H
