// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: a line that tells how far a long run is.
#ifndef MPIX_HALO_STEP_REPORT_HPP
#define MPIX_HALO_STEP_REPORT_HPP

#include <cstdint>
#include <memory>

#include <mpix/halo/grid.hpp>

namespace mpix::halo {

struct step_report_options {
    /** Steps of the run, the same on all ranks; 0: not known, and then the line has no percentage and no time left. */
    std::int64_t steps = 0;
    /** Bytes that this rank sends in a step, such as bytes_sent() of an exchange; 0 on all ranks: none are told. */
    std::int64_t bytes_sent = 0;
};

struct step_report_state;

/**
 * Tells on rank 0, by a line on standard error, how far a loop of steps is:
 *
 *     step 1200 of 10000 (12 %), 345 steps/s, 1.20 Gcells/s, 3.40 GB/s, 26 s left
 *
 * There is at most one line in a second, and one more at the end, of the whole run. A terminal's line is written over;
 * otherwise, as in a file or behind mpirun, each is a line of its own. The rates are those since the line before, of all
 * ranks: rank 0's steps stand for all, and the bytes are what its step_report_options and those of the others say. The
 * time left is by the rate since the beginning.
 *
 * Thread safety: one thread at a time.
 */
class MPIX_HALO_API step_report {
public:
    /**
     * Collective over the grid's ranks. The time begins. The grid need not live on.
     *
     * Errors: MPI_ERR_ARG (steps < 0, bytes_sent < 0, other steps than rank 0).
     */
    explicit step_report(const grid &g, const step_report_options &options = {});
    /** Prints the last line, if a step was done. */
    ~step_report();
    /** What is moved from may only be destroyed or assigned to. */
    step_report(step_report &&) noexcept;
    step_report &operator=(step_report &&) noexcept;

    /** So many steps more are done. Local; on rank 0 it takes as long as a look at the clock, on others nothing.
        Errors: MPI_ERR_ARG (steps < 0). */
    void done(std::int64_t steps = 1);

private:
    friend struct step_report_internals;
    explicit step_report(std::unique_ptr<step_report_state> made);

    std::unique_ptr<step_report_state> state_;
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_STEP_REPORT_HPP
