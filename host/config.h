// SPDX-License-Identifier: BSD-3-Clause
//
// The knobs, read from the environment once, in MPI_Init. Before that, a tool may set them (MPI_T).
#ifndef MPIX_HOST_CONFIG_H
#define MPIX_HOST_CONFIG_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
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
enum class halo_stream { kernels, packed, plain };
// How the values of each are written, in their order.
constexpr std::array<const char *, 3> names_of(progress_mode) { return {"auto", "always", "never"}; }
constexpr std::array<const char *, 3> names_of(pack_mode) { return {"auto", "kernel", "copy"}; }
constexpr std::array<const char *, 4> names_of(halo_transfer) { return {"program", "packed", "datatype", "plain"}; }
constexpr std::array<const char *, 3> names_of(halo_stream) { return {"kernels", "packed", "plain"}; }
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

// Reads the environment of this process into it, and what tools have set, and lets the transports know what they are
// restricted to.
status read_environment();
// Whether that has been done: nothing changes any more, but for what may_change_later.
bool environment_is_read();
// What config() has, or will have after MPI_Init.
configuration configuration_so_far();
// By a tool, before the environment is read: a value in place of the environment's. Of a malformed one, and of one that
// comes too late, the failure says so, and nothing changes. `variable`: its name in the environment.
status set_knob(const char *variable, const std::string &value);
// The same afterwards, for a knob that is only read where setup_mutex is held, as it is here.
bool may_change_later(std::string_view variable);
status change_knob(const char *variable, const std::string &value);

}  // namespace mpix

#endif  // MPIX_HOST_CONFIG_H
