// SPDX-License-Identifier: BSD-3-Clause
//
// Which kind of exchange is advised.
#include "host/halo_report/advice.h"

#include <cmath>
#include <cstdint>

#include "tests/catch.hpp"

using namespace mpix::halo;

TEST_CASE("in GPU memory the kind is advised whose measured time is less") {
    const std::int64_t crossover = advise(true, 0, false).crossover_bytes;
    // Between the sizes at which each has been measured to be ahead.
    CHECK(crossover > 262144);
    CHECK(crossover < 1048576);
    double kernel = 0, stream = 0;
    for (const std::int64_t bytes :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{16384}, std::int64_t{100000}, std::int64_t{262144},
          crossover - 1, crossover, crossover + 1, std::int64_t{4194304}, std::int64_t{1} << 40}) {
        const exchange_advice a = advise(true, bytes, false);
        CHECK(a.bytes == bytes);
        CHECK(a.crossover_bytes == crossover);
        CHECK(a.kind == (bytes < crossover ? exchange_kind::kernel : exchange_kind::stream));
        // At the crossover they differ by less than a byte's time.
        if (bytes < crossover - 1) CHECK(a.kernel_seconds < a.stream_seconds);
        if (bytes > crossover + 1) CHECK(a.kernel_seconds > a.stream_seconds);
        CHECK(a.kernel_seconds >= kernel);
        CHECK(a.stream_seconds >= stream);
        kernel = a.kernel_seconds;
        stream = a.stream_seconds;
    }
    CHECK(std::abs(advise(true, 65536, false).kernel_seconds - 13.88e-6) < 1e-12);
    CHECK(std::abs(advise(true, 4194304, false).stream_seconds - 50.31e-6) < 1e-12);
}

TEST_CASE("with neighbours beyond edges and corners the stream is always ahead") {
    for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{100000}, std::int64_t{1} << 40}) {
        const exchange_advice a = advise(true, bytes, true);
        CHECK(a.crossover_bytes == 0);
        CHECK(a.kind == exchange_kind::stream);
        CHECK(a.kernel_seconds > a.stream_seconds);
    }
    CHECK(std::abs(advise(true, 279040, true).kernel_seconds - 36.57e-6) < 1e-12);
}

TEST_CASE("in host memory the host exchanges") {
    const exchange_advice a = advise(false, 1 << 20, false);
    CHECK(a.kind == exchange_kind::host);
    CHECK(a.crossover_bytes == 0);
    CHECK(a.kernel_seconds == 0);
}
