// SPDX-License-Identifier: BSD-3-Clause
//
// What this process has counted since MPI_Init: the performance variables of the tool information interface, and the
// figures of the report in MPI_Finalize.
#ifndef MPIX_HOST_STATISTICS_COUNTERS_H
#define MPIX_HOST_STATISTICS_COUNTERS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mpix {

enum class counter_kind {
    events,  // one more each time
    sum,     // several more each time
    timer,   // nanoseconds, which are measured only while time_waits() is asked for
    level    // as many as there are now
};

struct counter {
    std::string name;   // of the performance variable
    std::string label;  // in the report
    std::string meaning;
    counter_kind kind;
};

// All of them, in the order of the values.
const std::vector<counter> &counters();
// The values now. Looks at all requests, and takes locks that setup and progress take.
std::vector<std::uint64_t> read_counters();
// One of them. That of waits and stalls takes no lock.
std::uint64_t read_counter(std::size_t index);

}  // namespace mpix

#endif  // MPIX_HOST_STATISTICS_COUNTERS_H
