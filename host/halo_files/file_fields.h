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
#include "transport/status.h"

namespace mpix::halo {

struct file_field {
    std::string name;
    field_view view;
};

// A failure names the member that is wrong, as "fields[1].name".
status make_file_fields(const grid_state &g, const std::vector<named_field> &fields, std::vector<file_field> &made);
// What all ranks give alike.
void append_fields(std::vector<argument> &to, const std::vector<file_field> &fields);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FILES_FILE_FIELDS_H
