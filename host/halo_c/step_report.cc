// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <memory>
#include <utility>

#include <mpix/halo.h>
#include <mpix/halo.hpp>

#include "host/halo_c/handles.h"
#include "host/halo_steps/step_report_internals.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"

using namespace mpix;
using namespace mpix::halo;

struct mpix_halo_step_report {
    step_report report;
    std::shared_ptr<const error_comm> errors;
};

MPIX_SYMBOL int MPIX_Halo_step_report_create(MPIX_Halo_grid grid, int64_t steps, int64_t bytes_sent,
                                             MPIX_Halo_step_report *report) try {
    MPIX_CHECK_THREAD("MPIX_Halo_step_report_create", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_step_report_create", errors_of(grid), [&] {
        if (report != nullptr) *report = MPIX_HALO_STEP_REPORT_NULL;
        const mpix_halo_grid &g = demand_handle(grid, "grid");
        const status bad = report == nullptr ? failure(MPI_ERR_ARG, "report is null") : status{};
        *report = new mpix_halo_step_report{
            step_report_internals::make(g.grid, {.steps = steps, .bytes_sent = bytes_sent}, bad), g.errors};
    });
}
MPIX_BOUNDARY("MPIX_Halo_step_report_create", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_step_report_done(int64_t steps, MPIX_Halo_step_report report) try {
    return answer("MPIX_Halo_step_report_done", errors_of(report),
                  [&] { demand_handle(report, "report").report.done(steps); });
}
MPIX_BOUNDARY("MPIX_Halo_step_report_done", of_comm(errors_of(report)))

MPIX_SYMBOL int MPIX_Halo_step_report_free(MPIX_Halo_step_report *report) try {
    return answer("MPIX_Halo_step_report_free", MPI_COMM_NULL, [&] {
        demand_argument(report, "report");
        delete std::exchange(*report, MPIX_HALO_STEP_REPORT_NULL);
    });
}
MPIX_BOUNDARY("MPIX_Halo_step_report_free", of_world())
