// SPDX-License-Identifier: BSD-3-Clause
//
// Bandwidth from one GPU to another: a window of messages before an answer of 8 bytes, as OSU's osu_bw. By mpix inside
// running kernels (flood.cuh), of several numbers of blocks the best one; where a message is large its sender cuts it
// into partitions of at least 64 KiB, so that several blocks share it. In the same run NCCL's send and receive, one
// group a window, by events around windows that follow each other in a stream, and the copy engine by hand, one way, by
// events and without an answer.
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/event_clock.cuh"
#include "tests/bench/flood.cuh"
#include "tests/bench/nccl_pair.cuh"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

constexpr uint64_t most_bytes = 64 << 20, most_window = 128 << 20, least_piece = 64 << 10;
constexpr int block_counts[] = {1, 4, 16, 32, 64, 128};

struct options {
    uint64_t least = 16, most = most_bytes;
    int step = 4, threads = 512, epochs = 5, window = 64;
    bool nccl = true;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line("mpirun -n 2 ",
                      "[--min BYTES] [--max BYTES] [--step FACTOR] [--threads N] [--epochs N]\n"
                      "           [--window N] [--without-nccl] [--csv FILE|-]\n"
                      "BYTES from 8 to 64 MiB, powers of two. Windows are cut to 128 MiB.");
    line.value("min", o.least);
    line.value("max", o.most);
    line.value("step", o.step);
    line.value("threads", o.threads);
    line.value("epochs", o.epochs);
    line.value("window", o.window);
    line.without("without-nccl", o.nccl);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        return power_of_two(o.least, 8, most_bytes) && power_of_two(o.most, 8, most_bytes) &&
               power_of_two(o.step, 2, 1 << 30) && whole_warps(o.threads) && o.epochs >= 1 && o.window >= 2 &&
               o.window <= 1024;
    });
}

class events {
public:
    events() {
        check(cudaEventCreate(&begin_), "cudaEventCreate");
        check(cudaEventCreate(&end_), "cudaEventCreate");
    }
    ~events() {
        check(cudaEventDestroy(begin_), "cudaEventDestroy");
        check(cudaEventDestroy(end_), "cudaEventDestroy");
    }
    events(const events &) = delete;
    events &operator=(const events &) = delete;

    // Of `work`, which is put on the pair's stream.
    template <class Work>
    double us(const pair &c, const char *what, const Work &work) const {
        return event_us(begin_, end_, c.stream, work, [&] { c.finish(what); });
    }

private:
    cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (without_gpu()) return 77;
    if (!parse(argc, argv, o)) return 2;
    pair c(argc, argv);
    std::optional<table> t;
    if (c.rank == 0)
        t.emplace("bandwidth of windows of messages (GB/s), best number of blocks", o.csv,
                  std::vector<column>{"size", "window", "mpix_GB/s", "mpix_blocks", "mpix_split", "nccl_GB/s",
                                      "copy_engine_GB/s"},
                  machine_names, machine_columns(c.device));
    std::optional<nccl_pair> nccl;
    if (o.nccl) nccl.emplace(c);
    const events clock;
    const mapped_memory mapped(c.peer, most_window);
    char *out = nullptr, *in = nullptr, *words = nullptr;
    check(cudaMalloc(&out, most_window * flood_rounds), "cudaMalloc");
    check(cudaMalloc(&in, most_window * flood_rounds), "cudaMalloc");
    check(cudaMalloc(&words, 8), "cudaMalloc");
    for (uint64_t bytes = o.least; bytes <= o.most; bytes *= static_cast<uint64_t>(o.step)) {
        const int window = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(o.window), most_window / bytes));
        const uint64_t all = bytes * static_cast<uint64_t>(window);
        const auto rate = [&](double us) { return static_cast<double>(all) / us * 1e-3; };
        double best_us = 0;
        int best_blocks = 0, best_split = 0;
        for (const int blocks : block_counts) {
            const int split =
                static_cast<int>(std::clamp<uint64_t>(bytes / least_piece, 1, static_cast<uint64_t>(blocks)));
            const double us = flood_us(c, o.epochs, {scope::block, blocks, o.threads, bytes, window, split}, out, in);
            if (best_blocks == 0 || us < best_us) best_us = us, best_blocks = blocks, best_split = split;
        }
        std::string by_nccl = o.nccl ? absent : unmeasured;
        if (nccl && nccl->present()) {
            constexpr int windows = 4;
            const double us = c.measure(
                o.epochs, "nccl", out, in, all,
                [&](int) {
                    return clock.us(c, "nccl", [&] {
                        for (int w = 0; w < windows; ++w) nccl->flood(c, out, in, bytes, window, words);
                    }) / windows;
                },
                c.rank == 1);
            by_nccl = cell(rate(us), 3);
        }
        const double engine_us = c.measure(
            o.epochs, "copy engine", out, mapped.own(), all,
            [&](int) {
                if (c.rank != 0) return 0.0;
                return clock.us(c, "copy engine", [&] {
                    for (uint64_t at = 0; at < all; at += bytes)
                        check(cudaMemcpyAsync(mapped.peer() + at, out + at, bytes, cudaMemcpyDeviceToDevice, c.stream),
                              "cudaMemcpyAsync");
                });
            },
            c.rank == 1);
        if (t)
            t->row({cell(bytes), cell(window), cell(rate(best_us), 3), cell(best_blocks), cell(best_split), by_nccl,
                    cell(rate(engine_us), 3)});
    }
    for (char *p : {words, in, out}) check(cudaFree(p), "cudaFree");
    return 0;
}
