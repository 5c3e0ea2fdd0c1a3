// SPDX-License-Identifier: BSD-3-Clause
//
// One-way latency between two GPUs, from a kernel's pready to the data's use after wait_arrived: half of a round
// trip, over many partitions of one epoch, inside one kernel a rank. In the same run, with the same numbers of threads:
// what the hardware allows (floor.cuh), NVSHMEM, and what a program does that knows none of these: kernel, copy to the
// host, MPI_Send, MPI_Recv, copy to the device.
//
// By one block, warp or thread, and, of large messages, by several blocks: the blocks of the sender mark a partition each
// ready, and each block of the receiver waits for the whole message, which is one partition there. Of several numbers of
// blocks, each way shows the one that is best for it. sole_us: with "mpix_waiters" = 1.
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/floor.cuh"
#include "tests/bench/host_send.cuh"
#include "tests/bench/mpix_port.cuh"
#include "tests/bench/nvshmem_pair.cuh"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

// What a group can move within reasonable time: largest payload, bytes in one epoch.
constexpr uint64_t scope_payload[] = {4 << 10, 256 << 10, 64 << 20};
constexpr uint64_t scope_volume[] = {1 << 20, 32 << 20, 256 << 20};
constexpr uint64_t most_volume = 256 << 20, most_inline = 256 << 10, least_of_blocks = 16 << 10;
constexpr int most_messages = 1000;
constexpr int block_counts[] = {1, 2, 4, 8, 16, 32, 64, 128};

struct options {
    uint64_t least = 8, most = 64 << 20;
    int step = 2, threads = 512, epochs = 7;
    std::vector<scope> scopes = {scope::block, scope::warp, scope::thread};
    bool blocks = true, nvshmem = true;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line("mpirun -n 2 ",
                      "[--min BYTES] [--max BYTES] [--step FACTOR] [--threads N] [--epochs N]\n"
                      "           [--scope block|warp|thread|blocks|all] [--without-nvshmem] [--csv FILE]\n"
                      "BYTES from 8 to 64 MiB, powers of two. --csv -: CSV instead of text on the standard output.");
    line.value("min", o.least);
    line.value("max", o.most);
    line.value("step", o.step);
    line.value("threads", o.threads);
    line.value("epochs", o.epochs);
    line.without("without-nvshmem", o.nvshmem);
    line.value("csv", o.csv);
    line.word("scope", [&o](const std::string &which) {
        if (which == "all") return true;
        o.scopes.clear();
        o.blocks = which == "blocks";
        for (const scope s : {scope::thread, scope::warp, scope::block})
            if (which == scope_names[static_cast<int>(s)]) o.scopes = {s};
        return o.blocks || !o.scopes.empty();
    });
    return line.read(argc, argv, [&o] {
        return power_of_two(o.least, 8, 64 << 20) && power_of_two(o.most, 8, 64 << 20) &&
               power_of_two(o.step, 2, 1 << 30) && whole_warps(o.threads) && o.epochs >= 1;
    });
}

// ---- floors --------------------------------------------------------------------------------------------

double measure_fence(pair &c, const options &o, scope by, uint64_t bytes, int count, char *out) {
    const floor_channel channel(c.peer, bytes, count);
    return c.measure(o.epochs, "fence", out, channel.in(), bytes * static_cast<uint64_t>(count), [&](int e) {
        return group_us(c, by, o.threads, fence_port{channel.end(out, e)}, count, "fence");
    });
}

double measure_inline(pair &c, const options &o, scope by, uint64_t bytes, int count, char *out) {
    const floor_channel channel(c.peer, bytes, count);
    return c.measure(o.epochs, "flag-in-data", out, channel.in(), bytes * static_cast<uint64_t>(count), [&](int e) {
        return group_us(c, by, o.threads, inline_port{channel.end(out, e)}, count, "flag-in-data");
    });
}

double measure_counter(pair &c, const options &o, int blocks, uint64_t bytes, int count, char *out) {
    const floor_channel channel(c.peer, bytes, count);
    return c.measure(o.epochs, "counter", out, channel.in(), bytes * static_cast<uint64_t>(count), [&](int e) {
        return blocks_us(c, blocks, o.threads, counter_port{channel.end(out, e)}, count, "counter");
    });
}

// ---- the table -------------------------------------------------------------------------------------------

struct best {
    double us = 0;
    int blocks = 0;
    void offer(double candidate, int by) {
        if (blocks == 0 || candidate < us) us = candidate, blocks = by;
    }
};

int messages(uint64_t volume, uint64_t bytes, int most) {
    return static_cast<int>(std::clamp<uint64_t>(volume / bytes, 4, static_cast<uint64_t>(most)));
}

class run {
public:
    run(pair &c, const options &o, table *t)
        : c_(c), o_(o), table_(t), nvshmem_(o.nvshmem ? nvshmem_pair::open(c, most_volume, most_messages) : nullptr) {
        check(cudaMalloc(&out_, most_volume), "cudaMalloc");
    }
    ~run() { check(cudaFree(out_), "cudaFree"); }
    run(const run &) = delete;
    run &operator=(const run &) = delete;

    void group(scope by) {
        const int s = static_cast<int>(by), threads = by == scope::block ? o_.threads : by == scope::warp ? 32 : 1;
        std::size_t row = 0;
        for (uint64_t bytes = o_.least; bytes <= std::min(o_.most, scope_payload[s]); bytes *= step(), ++row) {
            const int count = messages(scope_volume[s], bytes, most_messages);
            std::string path;
            const double mpix = measure_mpix(c_, {by, 1, o_.threads, bytes, count, o_.epochs}, out_, path);
            const double sole = measure_mpix(c_, {by, 1, o_.threads, bytes, count, o_.epochs, true}, out_, path);
            const double fence = measure_fence(c_, o_, by, bytes, count, out_);
            std::optional<double> in_data, nvshmem;
            if (bytes <= most_inline) in_data = measure_inline(c_, o_, by, bytes, count, out_);
            if (nvshmem_) nvshmem = nvshmem_->measure(c_, o_.epochs, by, 1, threads, bytes, count);
            print(bytes, scope_names[s], threads, {mpix, 1}, sole, {fence, 1}, in_data, nvshmem, 1, host(row, bytes),
                  path);
        }
    }

    void several_blocks() {
        std::size_t row = 0;
        for (uint64_t bytes = o_.least; bytes <= o_.most; bytes *= step(), ++row) {
            if (bytes < least_of_blocks) continue;
            const int count = messages(most_volume, bytes, 200);
            best mpix, floor, nvshmem;
            std::string path;
            for (const int blocks : block_counts) {
                if (!resident_together<mpix_port>(c_, blocks, o_.threads)) break;
                mpix.offer(measure_mpix(c_, {scope::block, blocks, o_.threads, bytes, count, o_.epochs}, out_, path),
                           blocks);
                floor.offer(measure_counter(c_, o_, blocks, bytes, count, out_), blocks);
                if (nvshmem_)
                    nvshmem.offer(nvshmem_->measure(c_, o_.epochs, scope::block, blocks, o_.threads, bytes, count),
                                  blocks);
            }
            print(bytes, "blocks", o_.threads, mpix, std::nullopt, floor, std::nullopt,
                  nvshmem_ ? std::optional<double>(nvshmem.us) : std::nullopt, nvshmem.blocks, host(row, bytes), path);
        }
    }

private:
    uint64_t step() const { return static_cast<uint64_t>(o_.step); }

    // The same whatever the scope.
    double host(std::size_t row, uint64_t bytes) {
        host_us_.resize(std::max(host_us_.size(), row + 1));
        if (!host_us_[row]) {
            const int count = messages(32 << 20, bytes, 100);
            host_us_[row] = host_send_us(c_, o_.epochs, bytes, count, out_);
        }
        return *host_us_[row];
    }

    void print(uint64_t bytes, const char *scope_name, int threads, const best &mpix, std::optional<double> sole,
               const best &floor, std::optional<double> in_data, std::optional<double> nvshmem, int nvshmem_blocks,
               double host_us, const std::string &path) {
        if (table_ == nullptr) return;
        const double least = in_data ? std::min(floor.us, *in_data) : floor.us;
        table_->row({cell(bytes), scope_name, cell(threads), cell(mpix.us), cell(mpix.blocks),
                     sole ? cell(*sole) : unmeasured, cell(floor.us), cell(floor.blocks),
                     in_data ? cell(*in_data) : unmeasured, cell(mpix.us / least),
                     nvshmem ? cell(*nvshmem) : nvshmem_missing(), nvshmem ? cell(nvshmem_blocks) : unmeasured,
                     cell(host_us), cell(static_cast<double>(bytes) / mpix.us * 1e-3), path});
    }
    const std::string &nvshmem_missing() const { return o_.nvshmem ? absent : unmeasured; }

    pair &c_;
    const options &o_;
    table *table_;
    std::unique_ptr<nvshmem_pair> nvshmem_;
    char *out_ = nullptr;
    std::vector<std::optional<double>> host_us_;
};

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (without_gpu()) return 77;
    if (!parse(argc, argv, o)) return 2;
    pair c(argc, argv);
    std::optional<table> t;
    if (c.rank == 0)
        t.emplace("one-way latency from pready to wait_arrived (us), best number of blocks", o.csv,
                  std::vector<column>{"size", "scope", "threads", "mpix_us", "mpix_blocks", "sole_us", "floor_us",
                                      "floor_blocks", "flag_in_data_us", "ratio", "nvshmem_us", "nvshmem_blocks",
                                      "host_send_us", "mpix_GB/s", "path"},
                  machine_names, machine_columns(c.device));
    run all(c, o, t ? &*t : nullptr);
    for (const scope by : o.scopes) all.group(by);
    if (o.blocks) all.several_blocks();
    return 0;
}
