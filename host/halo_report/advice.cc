// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_report/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace mpix::halo {
namespace {

// Median seconds of an exchange of one field without computing, on two H200 that NVLink joins, with copies of the rank's own
// cells along two periodic axes; in a stream by start() and finish(), inside a kernel by the tiles that are best for
// it: docs/results/halo_gpu_h200.csv.
struct measured {
    double bytes, kernel, stream;
};
using measured_points = std::array<measured, 4>;
constexpr measured_points of_faces = {{{65536, 13.88e-6, 18.78e-6},
                                       {262144, 16.84e-6, 20.20e-6},
                                       {1048576, 26.87e-6, 23.41e-6},
                                       {4194304, 78.20e-6, 50.31e-6}}};
constexpr measured_points of_all_neighbours = {{{74240, 28.96e-6, 19.49e-6},
                                                {279040, 36.57e-6, 23.16e-6},
                                                {1081856, 47.70e-6, 24.85e-6},
                                                {4327424, 113.65e-6, 52.94e-6}}};

// The segment of the broken line through the points in which so many bytes lie; beyond its ends the nearest one.
const measured &segment_of(const measured_points &points, double bytes) {
    std::size_t next = 1;
    while (next + 1 < points.size() && points[next].bytes <= bytes) ++next;
    return points[next - 1];
}

// Where the stream's line crosses the kernel's; 0 if it begins below it.
std::int64_t crossover(const measured_points &points) {
    if (points.front().stream <= points.front().kernel) return 0;
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        const measured &p = points[i], &next = points[i + 1];
        const double ahead = p.stream - p.kernel, later = next.stream - next.kernel;
        if (later < 0) return std::llround(p.bytes + (next.bytes - p.bytes) * ahead / (ahead - later));
    }
    return std::numeric_limits<std::int64_t>::max();
}

}  // namespace

exchange_advice advise(bool on_gpu, std::int64_t bytes_sent, bool beyond_faces) {
    exchange_advice a;
    a.bytes = bytes_sent;
    if (!on_gpu) return a;
    const measured_points &points = beyond_faces ? of_all_neighbours : of_faces;
    a.crossover_bytes = crossover(points);
    a.kind = bytes_sent < a.crossover_bytes ? exchange_kind::kernel : exchange_kind::stream;
    // Fewer bytes than measured take as long as the fewest.
    const auto bytes = std::max(static_cast<double>(bytes_sent), points.front().bytes);
    const measured *const p = &segment_of(points, bytes);
    const double part = (bytes - p->bytes) / (p[1].bytes - p->bytes);
    a.kernel_seconds = p->kernel + part * (p[1].kernel - p->kernel);
    a.stream_seconds = p->stream + part * (p[1].stream - p->stream);
    return a;
}

}  // namespace mpix::halo
