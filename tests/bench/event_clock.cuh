// SPDX-License-Identifier: BSD-3-Clause
//
// Time by events in a stream.
#ifndef MPIX_TESTS_BENCH_EVENT_CLOCK_CUH
#define MPIX_TESTS_BENCH_EVENT_CLOCK_CUH

#include <cuda_runtime.h>

#include <vector>

#include "tests/bench/machine.hpp"
#include "tests/bench/median.hpp"

namespace bench {

inline double between_us(cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
    return static_cast<double>(ms) * 1e3;
}

// Of `work`, which is put on that stream. `wait` returns once it has ended.
template <class Work, class Wait>
double event_us(cudaEvent_t begin, cudaEvent_t end, cudaStream_t stream, const Work &work, const Wait &wait) {
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    work();
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    wait();
    return between_us(begin, end);
}

// The median of so many times, after one that does not count. By the context's stream and events.
template <class Context, class Work>
double median_event_us(const Context &c, int times, const Work &work) {
    std::vector<double> all;
    for (int i = 0; i <= times; ++i) {
        const double us = event_us(c.begin, c.end, c.stream, work,
                                   [&] { check(cudaEventSynchronize(c.end), "cudaEventSynchronize"); });
        if (i > 0) all.push_back(us);
    }
    return median(all);
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_EVENT_CLOCK_CUH
