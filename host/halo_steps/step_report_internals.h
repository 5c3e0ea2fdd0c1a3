// SPDX-License-Identifier: BSD-3-Clause
//
// Reports of steps for callers who have checked something before.
#ifndef MPIX_HOST_HALO_STEPS_STEP_REPORT_INTERNALS_H
#define MPIX_HOST_HALO_STEPS_STEP_REPORT_INTERNALS_H

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

struct step_report_internals {
    // Collective. `given`: what was wrong on this rank before; then all ranks throw.
    static step_report make(const grid &g, const step_report_options &options, const status &given);
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_STEPS_STEP_REPORT_INTERNALS_H
