// SPDX-License-Identifier: BSD-3-Clause
//
// The time from the init calls of a pair of requests to its first bytes at the receiver: of a process's first pair, of
// further ones, and of many made together. Rank 0 sends and rank 1 receives.
#ifndef MPIX_TESTS_BENCH_SETUP_CLOCK_HPP
#define MPIX_TESTS_BENCH_SETUP_CLOCK_HPP

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/median.hpp"
#include "tests/bench/table.hpp"
#include "tests/bench/usage.hpp"

namespace bench {

struct setup_options {
    std::vector<int> bytes = {8, 64 << 10};
    int further = 200;
    int together = 1000;
    int turns = 5;
    std::vector<std::string> ways;  // none: all
    const char *csv = nullptr;

    bool wants(const std::string &way) const {
        return ways.empty() || std::find(ways.begin(), ways.end(), way) != ways.end();
    }
};

inline constexpr const char *setup_usage =
    "[--bytes N,N,...] [--further N] [--together N] [--turns N] [--ways NAME,NAME,...]\n"
    "           [--csv FILE|-]\n"
    "  --bytes N,...    of a message (8,65536)\n"
    "  --further N      pairs, one after the other, once the ranks have met (200)\n"
    "  --together N     pairs at once (1000), in so many --turns (5)\n"
    "  --ways NAME,...  of those that there are; the order stays (all)";

inline bool read_setup(int argc, char **argv, setup_options &o) {
    command_line line("mpirun -n 2 ", setup_usage);
    line.list("bytes", o.bytes);
    line.value("further", o.further);
    line.value("together", o.together);
    line.value("turns", o.turns);
    line.words(
        "ways", [&o] { o.ways.clear(); }, [&o](const std::string &way) { return o.ways.push_back(way), true; });
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        return o.further >= 1 && o.together >= 1 && o.turns >= 1 && !o.bytes.empty() &&
               std::all_of(o.bytes.begin(), o.bytes.end(), [](int n) { return n >= 8; });
    });
}

inline const std::vector<column> setup_columns = {{"way", 11}, "bytes",    {"pairs", 8}, "count",       "us_per_pair",
                                                  "total_us",  "init_us",  "export_us",  "start_us",    "arrive_us",
                                                  "heap_B",    "shared_B", "private_B",  "descriptors", "mappings"};

// What a way's steps took, in microseconds: each on the slower rank, as is the whole.
struct setup_steps {
    double init, exported, start, arrive, whole;
};

// `count` pairs from the `first` on. A way has
//   make(first, count)       the init calls, or what stands for them
//   export_to_kernels(first, count)   what makes them usable where they are used (on a GPU), or nothing
//   start(first, count)
//   deliver(first, count)    until the bytes are there, and the requests complete
template <class Way>
setup_steps set_up(Way &way, int first, int count, MPI_Comm comm) {
    using clock = std::chrono::steady_clock;
    const auto us = [](clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); };
    MPI_Barrier(comm);
    const auto begin = clock::now();
    way.make(first, count);
    const auto made = clock::now();
    way.export_to_kernels(first, count);
    const auto handed_out = clock::now();
    way.start(first, count);
    const auto started = clock::now();
    way.deliver(first, count);
    const auto end = clock::now();
    setup_steps steps{us(made - begin), us(handed_out - made), us(started - handed_out), us(end - started),
                      us(end - begin)};
    MPI_Allreduce(MPI_IN_PLACE, &steps, 5, MPI_DOUBLE, MPI_MAX, comm);
    return steps;
}

// Of each step.
inline setup_steps median(const std::vector<setup_steps> &all) {
    const auto of = [&all](double setup_steps::*step) {
        std::vector<double> values;
        for (const setup_steps &s : all) values.push_back(s.*step);
        return median(values);
    };
    return {of(&setup_steps::init), of(&setup_steps::exported), of(&setup_steps::start), of(&setup_steps::arrive),
            of(&setup_steps::whole)};
}

class setup_clock {
public:
    // `out`: null on rank 1.
    setup_clock(const setup_options &o, MPI_Comm comm, table *out) : options_(o), comm_(comm), out_(out) {}

    // Besides what set_up wants of it, a way has a name and
    //   prepare(count, bytes)    buffers for so many, filled; not timed
    //   check(first, count)      that the bytes are right; not timed
    //   release(first, count)    frees the pairs; not timed
    //   unprepare()
    //   most                     pairs that it can have at once
    template <class Way>
    void measure(Way &way) {
        if (!options_.wants(way.name)) return;
        bool met = false;
        for (const int bytes : options_.bytes) {
            const int together = std::min(options_.together, way.most), further = std::min(options_.further, way.most);
            way.prepare(std::max(together, further), bytes);
            if (!met) {
                const usage before = look();
                const setup_steps s = once(way, 0, 1);
                row(way.name, bytes, "first", 1, s, look() - before);
                way.release(0, 1);
                met = true;
            }
            {
                std::vector<setup_steps> all;
                const usage before = look();
                usage held;
                for (int turn = 0; turn < options_.turns; ++turn) {
                    all.push_back(once(way, 0, together));
                    if (turn == 0) held = look() - before;
                    way.release(0, together);
                }
                row(way.name, bytes, "together", together, median(all), held / together);
            }
            std::vector<setup_steps> all;
            const usage before = look();
            for (int i = 0; i < further; ++i) all.push_back(once(way, i, 1));
            const usage held = look() - before;
            row(way.name, bytes, "further", 1, median(all), held / further);
            way.release(0, further);
            MPI_Barrier(comm_);  // before the buffers go
            way.unprepare();
        }
    }

    // A way that is not there.
    void without(const char *way) {
        if (out_ == nullptr || !options_.wants(way)) return;
        std::vector<std::string> cells(setup_columns.size(), unmeasured);
        cells[0] = way;
        cells[4] = absent;
        out_->row(cells);
    }

private:
    template <class Way>
    setup_steps once(Way &way, int first, int count) {
        const setup_steps s = set_up(way, first, count, comm_);
        way.check(first, count);
        return s;
    }
    // Memory: of both ranks, per pair.
    void row(const char *way, int bytes, const char *pairs, int count, const setup_steps &s, usage held) {
        MPI_Allreduce(MPI_IN_PLACE, &held, usage_figures, MPI_DOUBLE, MPI_SUM, comm_);
        if (out_ == nullptr) return;
        const auto each = [count](double us) { return cell(us / count, 2); };
        out_->row({way, cell(bytes), pairs, cell(count), each(s.whole), cell(s.whole, 1), each(s.init),
                   each(s.exported), each(s.start), each(s.arrive), cell(held.heap, 0), cell(held.shared, 0),
                   cell(held.resident, 0), cell(held.descriptors, 2), cell(held.mappings, 2)});
    }

    const setup_options options_;
    MPI_Comm comm_;
    table *out_;
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_SETUP_CLOCK_HPP
