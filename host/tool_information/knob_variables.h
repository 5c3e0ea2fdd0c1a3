// SPDX-License-Identifier: BSD-3-Clause
//
// The knobs of host/config.def as control variables: their names, types and values.
#ifndef MPIX_HOST_TOOL_INFORMATION_KNOB_VARIABLES_H
#define MPIX_HOST_TOOL_INFORMATION_KNOB_VARIABLES_H

#include <mpi.h>

#include <string>
#include <vector>

#include "host/config.h"

namespace mpix::tool_information {

// The names of an MPI_INT's values; a pointer to it is an MPI_T_enum.
struct value_names {
    std::string name;
    std::vector<const char *> values;  // by value, from 0 on
};

struct knob_variable {
    std::string name;  // mpix_eager_bytes of MPIX_EAGER_BYTES
    const char *variable;
    std::string meaning;
    MPI_Datatype type;
    const value_names *names;  // null: it has none
    int scope;
    int elements;  // of `type`; of a text the room for it
    void (*read)(const configuration &from, void *buffer, int elements);
    // The value as the environment would have it; false if the buffer's is none. set_knob says what else is wrong.
    bool (*written)(const void *buffer, int elements, std::string &value);
};

// In the order of host/config.def.
const std::vector<knob_variable> &knob_variables();

// One of ours, or null.
const value_names *as_value_names(MPI_T_enum names);
inline MPI_T_enum as_enum(const value_names *names) {
    return names == nullptr ? MPI_T_ENUM_NULL : reinterpret_cast<MPI_T_enum>(const_cast<value_names *>(names));
}

}  // namespace mpix::tool_information

#endif  // MPIX_HOST_TOOL_INFORMATION_KNOB_VARIABLES_H
