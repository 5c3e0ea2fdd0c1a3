// SPDX-License-Identifier: BSD-3-Clause
//
// How many small partitions a second: rows for each number of blocks and of partitions that a block marks ready in a
// round, by its threads, its warps or as a whole (flood.cuh). A round ends with an answer, which is in the time: few
// partitions show how long that takes, many the rate.
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/flood.cuh"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

struct options {
    std::vector<int> blocks = {1, 2, 4, 8, 16, 32, 64, 128}, partitions = {1, 16, 128, 512};
    uint64_t bytes = 8;
    int threads = 256, epochs = 5;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line("mpirun -n 2 ",
                      "[--blocks 1..128] [--partitions 1..4096] [--bytes 8..4096] [--threads N]\n"
                      "           [--epochs N] [--csv FILE|-]\n"
                      "--partitions: of each block in a round.");
    line.only("blocks", o.blocks);
    line.only("partitions", o.partitions);
    line.value("bytes", o.bytes);
    line.value("threads", o.threads);
    line.value("epochs", o.epochs);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        return o.blocks[0] >= 1 && o.blocks.back() <= 128 && o.partitions[0] >= 1 && o.partitions.back() <= 4096 &&
               o.bytes >= 8 && o.bytes <= 4096 && o.bytes % 8 == 0 && whole_warps(o.threads) && o.epochs >= 1;
    });
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (without_gpu()) return 77;
    if (!parse(argc, argv, o)) return 2;
    pair c(argc, argv);
    std::optional<table> t;
    if (c.rank == 0)
        t.emplace("partitions a second, in millions, by blocks and partitions of each", o.csv,
                  std::vector<column>{"size", "blocks", "partitions", "threads", "thread_M/s", "warp_M/s", "block_M/s",
                                      "thread_us", "warp_us", "block_us"},
                  machine_names, machine_columns(c.device));
    for (const int blocks : o.blocks)
        for (const int partitions : o.partitions) {
            const int all = blocks * partitions;
            const uint64_t total = o.bytes * static_cast<uint64_t>(all) * flood_rounds;
            char *out = nullptr, *in = nullptr;
            check(cudaMalloc(&out, total), "cudaMalloc");
            check(cudaMalloc(&in, total), "cudaMalloc");
            std::vector<std::string> rates, times_us;
            for (const scope by : {scope::thread, scope::warp, scope::block}) {
                const double us = flood_us(c, o.epochs, {by, blocks, o.threads, o.bytes, all, 1}, out, in);
                rates.push_back(cell(all / us, 2));
                times_us.push_back(cell(us, 2));
            }
            check(cudaFree(in), "cudaFree");
            check(cudaFree(out), "cudaFree");
            if (t)
                t->row({cell(o.bytes), cell(blocks), cell(partitions), cell(o.threads), rates[0], rates[1], rates[2],
                        times_us[0], times_us[1], times_us[2]});
        }
    return 0;
}
