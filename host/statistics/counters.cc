// SPDX-License-Identifier: BSD-3-Clause
#include "host/statistics/counters.h"

#include "host/format.h"
#include "host/progress.h"
#include "host/report.h"
#include "host/request/traffic.h"

namespace mpix {
namespace {

struct figure_of_traffic {
    const char *name, *label, *meaning;
    std::uint64_t traffic::*value;
    counter_kind kind = counter_kind::sum;
};
struct direction {
    const char *name;
    std::array<traffic, traffic_paths.size()> traffic_by_path::*by_path;
    std::vector<figure_of_traffic> figures;
};

const std::vector<direction> &directions() {
    static const auto *const all = new std::vector<direction>{
        {"sent",
         &traffic_by_path::sent,
         {{"messages", "messages", "epochs of partitioned sends that have ended", &traffic::messages,
           counter_kind::events},
          {"bytes", "bytes", "bytes of these messages, packed", &traffic::bytes},
          {"partitions", "partitions", "partitions of these messages", &traffic::partitions},
          {"deferred", "partitions, deferred",
           "partitions that the callers of MPI_Pready and kernels left to the progress engine, which moved them",
           &traffic::deferred}}},
        {"received",
         &traffic_by_path::received,
         {{"messages", "messages", "epochs of partitioned receives that have ended", &traffic::messages,
           counter_kind::events},
          {"bytes", "bytes", "bytes of these messages, packed", &traffic::bytes},
          {"partitions", "partitions", "partitions of these messages, as the receiver has cut them",
           &traffic::partitions}}},
    };
    return *all;
}

// Those that stand behind the figures of traffic.
std::array<std::uint64_t, 4> read_waits() {
    const waits_so_far waits = count_waits();
    const stalls_so_far stalls = count_stalls();
    return {waits.calls, waits.nanoseconds, stalls.notices, stalls.reports};
}
std::size_t first_of_waits() { return counters().size() - 1 - read_waits().size(); }

std::vector<counter> make_counters() {
    std::vector<counter> all;
    for (const char *const path : traffic_paths)
        for (const direction &way : directions())
            for (const figure_of_traffic &figure : way.figures)
                all.push_back({format("mpix_{}_{}_{}", path, way.name, figure.name),
                               format("{} {}: {}", path, way.name, figure.label),
                               format("by the path {}: {}", path, figure.meaning), figure.kind});
    all.push_back(
        {"mpix_waits", "waits", "calls that have had to wait for a partitioned request", counter_kind::events});
    all.push_back({"mpix_wait_time", "waits: ms", "time in such calls, of all threads together", counter_kind::timer});
    all.push_back({"mpix_notices", "notices (WAITING)", "notices that a wait lasts long (MPIX_STALL_SECONDS)",
                   counter_kind::events});
    all.push_back({"mpix_stalls", "stalls", "waits that were given up (MPIX_STALL_SECONDS)", counter_kind::events});
    all.push_back({"mpix_requests", "requests not freed", "partitioned requests that have been made and not been freed",
                   counter_kind::level});
    return all;
}

}  // namespace

const std::vector<counter> &counters() {
    static const auto *const all = new std::vector<counter>(make_counters());
    return *all;
}

std::vector<std::uint64_t> read_counters() {
    const traffic_by_path moved = traffic_so_far();
    std::vector<std::uint64_t> values;
    values.reserve(counters().size());
    for (std::size_t path = 0; path < traffic_paths.size(); ++path)
        for (const direction &way : directions())
            for (const figure_of_traffic &figure : way.figures)
                values.push_back((moved.*way.by_path)[path].*figure.value);
    for (const std::uint64_t value : read_waits()) values.push_back(value);
    values.push_back(moved.requests);
    return values;
}

std::uint64_t read_counter(std::size_t index) {
    const std::size_t first = first_of_waits();
    const auto waits = read_waits();
    return index >= first && index < first + waits.size() ? waits[index - first] : read_counters()[index];
}

}  // namespace mpix
