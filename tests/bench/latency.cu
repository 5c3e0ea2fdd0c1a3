// SPDX-License-Identifier: BSD-3-Clause
//
// One-way latency between two GPUs, from a kernel's pready to the data's use after wait_arrived: half of a round trip,
// over many partitions of one epoch, inside one kernel a rank. In the same run, with the same numbers of threads: what
// the hardware allows by hand (floor.cuh, line_port.cuh, rget_port.cuh), NVSHMEM, the device interfaces of NCCL and UCX, and
// what a program does that knows none of these: kernel, copy to the host, MPI_Send, MPI_Recv, copy to the device.
//
// A row is of one size, one scope and one number of threads of a block; of several numbers (--threads) the best one is
// for the reader of the rows to choose, each way its own. Scopes: a block, a warp or a thread sends, and the same
// waits; "thread-block": one thread of a block sends, all the block waits; "blocks", of large messages: the blocks of
// the sender mark a partition each ready, and each block of the receiver waits for the whole message, which is one
// partition there. Of several numbers of blocks, each way shows the one that is best for it.
//
// prepared_us: by what prepare_send and prepare_receive found out when the kernel began. sole_us: with "mpix_waiters" =
// 1; sole_prepared_us: both. bulk_us: with 8 KiB of shared memory lent to pready. floor_us: stores, fence, flag by
// hand, or a counter of several blocks. ratio: mpix_us by the shortest of those by hand. ucx_device_fenced_us: with a
// fence between the payload and UCX's counter (ucx_device_pair.cuh).
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/floor.cuh"
#include "tests/bench/host_send.cuh"
#include "tests/bench/line_port.cuh"
#include "tests/bench/mpix_port.cuh"
#include "tests/bench/nccl_device_pair.cuh"
#include "tests/bench/nvshmem_pair.cuh"
#include "tests/bench/rget_port.cuh"
#include "tests/bench/table.hpp"
#include "tests/bench/ucx_device_pair.cuh"

using namespace bench;

namespace {

// What a group can move within reasonable time, by scope: payloads, bytes and messages in one epoch.
constexpr uint64_t least_payload[] = {8, 8, 8, 64};
constexpr uint64_t most_payload[] = {4 << 10, 256 << 10, 64 << 20, 1 << 20};
constexpr uint64_t volume[] = {1 << 20, 32 << 20, 256 << 20, 32 << 20};
constexpr int most_messages[] = {1000, 1000, 1000, 200};
constexpr uint64_t most_volume = 256 << 20, most_in_data = 256 << 10, least_of_blocks = 16 << 10;
constexpr int block_counts[] = {1, 2, 4, 8, 16, 32, 64, 128};

struct options {
    uint64_t least = 8, most = 64 << 20;
    int step = 2, epochs = 7;
    std::vector<int> threads = {usual_threads};
    std::vector<scope> scopes;
    bool blocks = false;
    bool prepared = true, sole = true, bulk = true, floor = true, in_data = true, lines = true, rget = true,
         nvshmem = true, nccl = true, ucx = true, host = true;
    const char *csv = nullptr;

    bool add(const std::string &which) {
        if (which == "all") {
            scopes = {scope::block, scope::warp, scope::thread, scope::thread_block};
            return blocks = true;
        }
        if (which == "blocks") return blocks = true;
        for (const scope s : {scope::thread, scope::warp, scope::block, scope::thread_block})
            if (which == scope_names[static_cast<int>(s)]) return scopes.push_back(s), true;
        return false;
    }
};

bool parse(int argc, char **argv, options &o) {
    o.add("all");
    command_line line(
        "mpirun -n 2 ",
        "[--min BYTES] [--max BYTES] [--step FACTOR] [--threads N,...] [--epochs N]\n"
        "           [--scope all|block|warp|thread|thread-block|blocks,...] [--csv FILE]\n"
        "           [--without-prepared] [--without-sole] [--without-bulk] [--without-floor]\n"
        "           [--without-flag-in-data] [--without-ll128] [--without-rget] [--without-nvshmem]\n"
        "           [--without-nccl] [--without-ucx] [--without-host]\n"
        "BYTES from 8 to 64 MiB, powers of two. --threads: of a block, up to 1024; a row for each number, of\n"
        "which every way has its own best. --csv -: CSV instead of text on the standard output.");
    line.value("min", o.least);
    line.value("max", o.most);
    line.value("step", o.step);
    line.list("threads", o.threads);
    line.value("epochs", o.epochs);
    line.without("without-prepared", o.prepared);
    line.without("without-sole", o.sole);
    line.without("without-bulk", o.bulk);
    line.without("without-floor", o.floor);
    line.without("without-flag-in-data", o.in_data);
    line.without("without-ll128", o.lines);
    line.without("without-rget", o.rget);
    line.without("without-nvshmem", o.nvshmem);
    line.without("without-nccl", o.nccl);
    line.without("without-ucx", o.ucx);
    line.without("without-host", o.host);
    line.value("csv", o.csv);
    line.words(
        "scope", [&o] { o.scopes.clear(), o.blocks = false; }, [&o](const std::string &which) { return o.add(which); });
    return line.read(argc, argv, [&o] {
        return power_of_two(o.least, 8, 64 << 20) && power_of_two(o.most, 8, 64 << 20) &&
               power_of_two(o.step, 2, 1 << 30) &&
               std::all_of(o.threads.begin(), o.threads.end(), [](int n) { return whole_warps(n, most_threads); }) &&
               o.epochs >= 1;
    });
}

// ---- by hand -------------------------------------------------------------------------------------------

template <class Port>
double push_us(pair &c, const exchange_shape &s, char *out, const char *what) {
    const floor_channel channel(c.peer, s.bytes, s.count, Port::box_bytes(s.bytes));
    return c.measure(s.epochs, what, out, channel.payloads(), s.total(),
                     [&](int e) { return ping_pong_us(c, s, Port{channel.end(out, e)}, what); });
}

// The mapped payloads are those that are sent.
double rget_us(pair &c, const exchange_shape &s, char *in) {
    const floor_channel channel(c.peer, s.bytes, s.count, 0);
    return c.measure(s.epochs, "rget", channel.payloads(), in, s.total(), [&](int e) {
        const floor_end end = channel.end(nullptr, e);
        const rget_port port{in, end.peer_in, end.flags, end.peer_flags, s.bytes, end.epoch};
        return ping_pong_us(c, s, port, "rget");
    });
}

// ---- the table -------------------------------------------------------------------------------------------

struct best {
    double us = 0;
    int blocks = 0;  // 0: not measured
    void offer(double candidate, int by) {
        if (blocks == 0 || candidate < us) us = candidate, blocks = by;
    }
};

// What a row has, as far as it has been measured.
struct figures {
    best mpix, prepared, floor, nvshmem;
    std::optional<double> sole, sole_prepared, bulk, in_data, lines, rget, nccl, ucx, ucx_fenced;
    std::string path;
};

const std::vector<column> columns = {"size",
                                     "scope",
                                     "threads",
                                     "mpix_us",
                                     "mpix_blocks",
                                     "prepared_us",
                                     "prepared_blocks",
                                     "sole_us",
                                     "sole_prepared_us",
                                     "bulk_us",
                                     "floor_us",
                                     "floor_blocks",
                                     "flag_in_data_us",
                                     "ll128_us",
                                     "rget_us",
                                     "ratio",
                                     "nvshmem_us",
                                     "nvshmem_blocks",
                                     "nccl_device_us",
                                     "ucx_device_us",
                                     "ucx_device_fenced_us",
                                     "host_send_us",
                                     "mpix_GB/s",
                                     "path"};

int messages(uint64_t all, uint64_t bytes, int most) {
    return static_cast<int>(std::clamp<uint64_t>(all / bytes, 4, static_cast<uint64_t>(most)));
}

std::string cell_of(const std::optional<double> &us) { return us ? cell(*us) : unmeasured; }

class run {
public:
    run(pair &c, const options &o, table *t)
        : c_(c), o_(o), table_(t), nvshmem_(o.nvshmem ? nvshmem_pair::open(c, most_volume, 1000) : nullptr) {
        check(cudaMalloc(&buffer_, most_volume), "cudaMalloc");
        const bool one_group = std::any_of(o.scopes.begin(), o.scopes.end(), by_one_group);
        if (o.nccl && one_group) nccl_ = nccl_device_pair::open(c, most_volume, buffer_, nccl_missing_);
        if (o.ucx && one_group) ucx_ = ucx_device_pair::open(c, most_volume, buffer_, ucx_missing_);
    }
    ~run() {
        MPI_Barrier(MPI_COMM_WORLD);  // the peer's kernels store to UCX's memory no more
        ucx_ = nullptr;               // which has buffer_ registered
        check(cudaFree(buffer_), "cudaFree");
    }
    run(const run &) = delete;
    run &operator=(const run &) = delete;

    // The first send that meets the peer has the library measure what it decides later ones by.
    void meet() {
        std::string path;
        measure_mpix(c_, {scope::block, 1, o_.threads.front(), 8, 4, 1}, buffer_, path);
    }

    void group(scope by) {
        const int s = static_cast<int>(by);
        const bool by_block = by == scope::block || by == scope::thread_block;
        for (uint64_t bytes = o_.least; bytes <= std::min(o_.most, most_payload[s]); bytes *= step()) {
            if (bytes < least_payload[s]) continue;
            const int count = messages(volume[s], bytes, most_messages[s]);
            for (const int threads : by_block ? o_.threads : std::vector<int>{players(by, 0)})
                print(bytes, by, threads, measured({by, 1, threads, bytes, count, o_.epochs}));
        }
    }

    void several_blocks() {
        for (uint64_t bytes = o_.least; bytes <= o_.most; bytes *= step())
            for (const int threads : o_.threads)
                if (bytes >= least_of_blocks) print(bytes, std::nullopt, threads, best_of_blocks(bytes, threads));
    }

private:
    static bool by_one_group(scope by) { return by != scope::thread_block; }
    uint64_t step() const { return static_cast<uint64_t>(o_.step); }

    figures measured(const exchange_shape &s) {
        // One thread cannot store much.
        const bool pushes = s.by != scope::thread_block || s.bytes <= most_payload[static_cast<int>(scope::thread)];
        const bool in_data = pushes && s.bytes <= most_in_data;
        figures f;
        f.mpix.offer(measure_mpix(c_, s, buffer_, f.path), 1);
        const bool prepares = o_.prepared && s.by != scope::thread_block;
        if (prepares) f.prepared.offer(measure_mpix<mpix_prepared_port>(c_, s, buffer_, f.path), 1);
        if (o_.sole) f.sole = measure_mpix(c_, s, buffer_, f.path, true);
        if (o_.sole && prepares) f.sole_prepared = measure_mpix<mpix_prepared_port>(c_, s, buffer_, f.path, true);
        if (o_.bulk) f.bulk = measure_mpix<mpix_bulk_port>(c_, s, buffer_, f.path);
        if (o_.floor && pushes) f.floor.offer(push_us<fence_port>(c_, s, buffer_, "fence"), 1);
        if (o_.in_data && in_data) f.in_data = push_us<inline_port>(c_, s, buffer_, "flag-in-data");
        if (o_.lines && in_data && (s.by == scope::block || s.by == scope::warp))
            f.lines = push_us<line_port>(c_, s, buffer_, "ll128");
        if (o_.rget && s.by == scope::thread_block) f.rget = rget_us(c_, s, buffer_);
        if (nvshmem_ && pushes) f.nvshmem.offer(nvshmem_->measure(c_, s), 1);
        if (nccl_ && by_one_group(s.by)) f.nccl = nccl_->measure(c_, s, buffer_);
        if (ucx_ && by_one_group(s.by)) {
            f.ucx = ucx_->measure(c_, s, false);
            f.ucx_fenced = ucx_->measure(c_, s, true);
        }
        return f;
    }

    figures best_of_blocks(uint64_t bytes, int threads) {
        const int count = messages(most_volume, bytes, 200);
        figures f;
        for (const int blocks : block_counts) {
            if (!resident_together<mpix_port>(c_, blocks, threads) ||
                !resident_together<mpix_prepared_port>(c_, blocks, threads))
                break;
            const exchange_shape s{scope::block, blocks, threads, bytes, count, o_.epochs};
            f.mpix.offer(measure_mpix(c_, s, buffer_, f.path), blocks);
            if (o_.prepared) f.prepared.offer(measure_mpix<mpix_prepared_port>(c_, s, buffer_, f.path), blocks);
            if (o_.floor) f.floor.offer(push_us<counter_port>(c_, s, buffer_, "counter"), blocks);
            if (nvshmem_) f.nvshmem.offer(nvshmem_->measure(c_, s), blocks);
        }
        return f;
    }

    // The same whatever the scope.
    double host(uint64_t bytes) {
        const auto known = host_us_.find(bytes);
        if (known != host_us_.end()) return known->second;
        return host_us_[bytes] = host_send_us(c_, o_.epochs, bytes, messages(32 << 20, bytes, 100), buffer_);
    }

    // `by`: nothing if by several blocks.
    void print(uint64_t bytes, std::optional<scope> by, int threads, const figures &f) {
        std::optional<double> host_us, least;
        if (o_.host) host_us = host(bytes);
        if (table_ == nullptr) return;
        if (f.floor.blocks != 0) least = f.floor.us;
        for (const std::optional<double> &us : {f.in_data, f.lines, f.rget})
            if (us) least = least ? std::min(*least, *us) : *us;
        const auto blocks = [](const best &b) { return b.blocks == 0 ? unmeasured : cell(b.blocks); };
        const auto us = [](const best &b) { return b.blocks == 0 ? unmeasured : cell(b.us); };
        table_->row({cell(bytes),
                     by ? scope_names[static_cast<int>(*by)] : "blocks",
                     cell(threads),
                     us(f.mpix),
                     blocks(f.mpix),
                     us(f.prepared),
                     blocks(f.prepared),
                     cell_of(f.sole),
                     cell_of(f.sole_prepared),
                     cell_of(f.bulk),
                     us(f.floor),
                     blocks(f.floor),
                     cell_of(f.in_data),
                     cell_of(f.lines),
                     cell_of(f.rget),
                     least ? cell(f.mpix.us / *least) : unmeasured,
                     nvshmem_ || !o_.nvshmem ? us(f.nvshmem) : absent,
                     blocks(f.nvshmem),
                     nccl_ ? cell_of(f.nccl) : nccl_missing_,
                     ucx_ ? cell_of(f.ucx) : ucx_missing_,
                     ucx_ ? cell_of(f.ucx_fenced) : ucx_missing_,
                     cell_of(host_us),
                     cell(static_cast<double>(bytes) / f.mpix.us * 1e-3),
                     f.path});
    }

    pair &c_;
    const options &o_;
    table *table_;
    std::unique_ptr<nvshmem_pair> nvshmem_;
    std::unique_ptr<nccl_device_pair> nccl_;
    std::string nccl_missing_ = unmeasured;
    std::unique_ptr<ucx_device_pair> ucx_;
    std::string ucx_missing_ = unmeasured;
    char *buffer_ = nullptr;
    std::map<uint64_t, double> host_us_;
};

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (without_gpu()) return 77;
    if (!parse(argc, argv, o)) return 2;
    pair c(argc, argv);
    std::optional<table> t;
    if (c.rank == 0)
        t.emplace("one-way latency from pready to wait_arrived (us), best number of blocks", o.csv, columns,
                  machine_names, machine_columns(c.device));
    run all(c, o, t ? &*t : nullptr);
    all.meet();
    for (const scope by : o.scopes) all.group(by);
    if (o.blocks) all.several_blocks();
    return 0;
}
