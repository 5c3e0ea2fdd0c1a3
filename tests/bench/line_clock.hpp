// SPDX-License-Identifier: BSD-3-Clause
//
// What a cache line takes from one rank's core to the other's: how far apart the two are, which a virtual machine does
// not say and may change, and on which all depends that they write for each other.
#ifndef MPIX_TESTS_BENCH_LINE_CLOCK_HPP
#define MPIX_TESTS_BENCH_LINE_CLOCK_HPP

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace bench {

// Of two ranks that share memory. All members are collective.
class line_clock {
public:
    explicit line_clock(MPI_Comm pair) : pair_(pair) {
        PMPI_Comm_rank(pair, &rank_);
        std::uint64_t *base = nullptr;
        PMPI_Win_allocate_shared(rank_ == 0 ? line : 0, 1, MPI_INFO_NULL, pair, static_cast<void *>(&base), &window_);
        MPI_Aint bytes = 0;
        int unit = 0;
        PMPI_Win_shared_query(window_, 0, &bytes, &unit, static_cast<void *>(&base));
        if (rank_ == 0) *base = 0;
        word_ = base;
        PMPI_Barrier(pair);
    }
    ~line_clock() { PMPI_Win_free(&window_); }
    line_clock(const line_clock &) = delete;
    line_clock &operator=(const line_clock &) = delete;

    // One way, in nanoseconds: half of a round trip, the mean of some.
    double ns() {
        constexpr std::uint64_t trips = 1000;
        const std::atomic_ref<std::uint64_t> word(*word_);
        PMPI_Barrier(pair_);
        const auto start = std::chrono::steady_clock::now();
        for (std::uint64_t trip = 0; trip < trips; ++trip, turn_ += 2) {
            if (rank_ == 0) word.store(turn_ + 1, std::memory_order_release);
            const std::uint64_t mine = rank_ == 0 ? turn_ + 2 : turn_ + 1;
            while (word.load(std::memory_order_acquire) != mine) {
            }
            if (rank_ == 1) word.store(turn_ + 2, std::memory_order_release);
        }
        return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / (2 * trips);
    }

private:
    static constexpr MPI_Aint line = 64;
    MPI_Comm pair_;
    MPI_Win window_ = MPI_WIN_NULL;
    int rank_ = 0;
    std::uint64_t *word_ = nullptr;
    std::uint64_t turn_ = 0;  // what stands in the word
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_LINE_CLOCK_HPP
