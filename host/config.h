// SPDX-License-Identifier: BSD-3-Clause
//
// The knobs, read from the environment once, in MPI_Init.
#ifndef MPIX_HOST_CONFIG_H
#define MPIX_HOST_CONFIG_H

#include <cstdint>
#include <string>
#include <vector>

#include "device/kernels/pack_choice.h"
#include "transport/status.h"

namespace mpix {

using count = std::uint64_t;
using on_off = bool;
using seconds = double;
using text = std::string;
enum class progress_mode { automatic, always, never };
using gpu::pack_mode;
enum class halo_transfer { program, packed, datatype, plain };
// A number, or what the library works out for itself.
struct count_or_auto {
    bool automatic = false;
    std::uint64_t number = 0;
};

struct configuration {
#define MPIX_KNOB(member, type, variable, initial, meaning) type member{};
#include "host/config.def"
#undef MPIX_KNOB
};

// Reads the environment through `lookup` (which returns null for an unset variable). Of a malformed value the message
// names the variable.
status read_configuration(const char *(*lookup)(const char *), configuration &out);

// "3,8-11" to {3, 8, 9, 10, 11}; false if malformed.
bool parse_cpu_list(const std::string &list, std::vector<int> &cpus);

// The configuration of this process; defaults before MPI_Init.
configuration &config();

// Reads the environment of this process into it, and lets the transports know what they are restricted to.
status read_environment();

}  // namespace mpix

#endif  // MPIX_HOST_CONFIG_H
