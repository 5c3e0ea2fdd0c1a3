// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoints.
#ifndef MPIX_HOST_HALO_FILES_CHECKPOINT_H
#define MPIX_HOST_HALO_FILES_CHECKPOINT_H

#include <cstdint>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "host/halo_files/field_data.h"
#include "transport/status.h"

namespace mpix::halo {

// write_checkpoint() and read_checkpoint(). `given`: what was wrong on this rank before; then all ranks throw.
void write_checkpoint_checked(const grid &g, const std::string &path, const std::vector<named_field> &fields,
                              std::int64_t step, const status &given, std::int64_t piece_bytes = usual_piece_bytes);
std::int64_t read_checkpoint_checked(const grid &g, const std::string &path, const std::vector<named_field> &fields,
                                     const status &given, std::int64_t piece_bytes = usual_piece_bytes);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FILES_CHECKPOINT_H
