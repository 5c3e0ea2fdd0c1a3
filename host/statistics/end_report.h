// SPDX-License-Identifier: BSD-3-Clause
//
// What MPIX_REPORT=1 prints: the counters of all ranks, on stderr, by world rank 0.
#ifndef MPIX_HOST_STATISTICS_END_REPORT_H
#define MPIX_HOST_STATISTICS_END_REPORT_H

#include <cstdint>
#include <string>
#include <vector>

namespace mpix {

// In MPI_Init, collective: all ranks learn from world rank 0 whether there will be one.
void agree_on_report();
// In MPI_Finalize, collective: makes it, if it was agreed on.
void report_at_end();

// The table: what is not zero, of `ranks` ranks.
struct counters_of_ranks {
    std::vector<std::uint64_t> sum, least, most;
};
std::string report_table(const counters_of_ranks &values, int ranks);

}  // namespace mpix

#endif  // MPIX_HOST_STATISTICS_END_REPORT_H
