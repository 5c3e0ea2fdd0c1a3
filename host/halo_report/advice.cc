// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_report/advice.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace mpix::halo {
namespace {

// Median seconds of an exchange without computing, on two H100 that NVLink joins: docs/results/halo_gpu_h100.csv.
struct measured {
    double bytes, kernel, stream;
};
constexpr measured points[] = {{65536, 11.11e-6, 21.56e-6},
                               {262144, 16.15e-6, 24.15e-6},
                               {1048576, 32.20e-6, 31.33e-6},
                               {4194304, 86.31e-6, 84.99e-6}};

// The segment of the broken line through the points in which so many bytes lie; beyond its ends the nearest one.
const measured *segment_of(double bytes) {
    const measured *const next =
        std::upper_bound(std::begin(points), std::end(points), bytes,
                         [](double value, const measured &point) { return value < point.bytes; });
    return std::clamp(next - 1, std::begin(points), std::end(points) - 2);
}

// Where the stream's line crosses the kernel's, which begins below it.
std::int64_t crossover() {
    for (const measured *p = std::begin(points); p + 1 != std::end(points); ++p) {
        const double ahead = p->stream - p->kernel, later = p[1].stream - p[1].kernel;
        if (later < 0) return std::llround(p->bytes + (p[1].bytes - p->bytes) * ahead / (ahead - later));
    }
    return 0;
}

}  // namespace

exchange_advice advise(bool on_gpu, std::int64_t bytes_sent) {
    exchange_advice a;
    a.bytes = bytes_sent;
    if (!on_gpu) return a;
    a.crossover_bytes = crossover();
    a.kind = bytes_sent < a.crossover_bytes ? exchange_kind::kernel : exchange_kind::stream;
    // Fewer bytes than measured take as long as the fewest.
    const auto bytes = std::max(static_cast<double>(bytes_sent), points[0].bytes);
    const measured *const p = segment_of(bytes);
    const double part = (bytes - p->bytes) / (p[1].bytes - p->bytes);
    a.kernel_seconds = p->kernel + part * (p[1].kernel - p->kernel);
    a.stream_seconds = p->stream + part * (p[1].stream - p->stream);
    return a;
}

}  // namespace mpix::halo
