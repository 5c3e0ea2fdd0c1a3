// SPDX-License-Identifier: BSD-3-Clause
//
// What an epoch between two ranks of one node costs on the host: through mpix, through the MPI library's own
// partitioned calls (where it has them), and as one persistent send and receive per partition. Both ranks send and
// receive. The same program, in the same run: mpix answers to the MPI_ names, the library to the PMPI_ names.
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/host_machine.hpp"

namespace {

using wall = std::chrono::steady_clock;

double ns_since(wall::time_point start) {
    return std::chrono::duration<double, std::nano>(wall::now() - start).count();
}

struct options {
    int threads = 1, repeats = 7;
    double seconds = 0.05;  // of one repeat, about
    int partitions = 0;     // 0: all of the list
    std::int64_t bytes = 0;
    const char *csv = nullptr;
};

struct shape {
    int partitions;
    std::int64_t bytes;  // of one partition
    std::size_t total() const { return static_cast<std::size_t>(partitions) * static_cast<std::size_t>(bytes); }
};

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "mpix_host: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}
void must(int code, const char *call) {
    if (code != MPI_SUCCESS) fail(call);
}

// ---- the ways to do it --------------------------------------------------------------------------------

class way {
public:
    virtual ~way() = default;
    virtual const char *name() const = 0;
    virtual void make(const shape &s, char *out, char *in, int peer) = 0;
    virtual void start() = 0;
    virtual void ready(int partition) = 0;
    virtual bool arrived(int partition) = 0;
    virtual void wait() = 0;
    virtual void free() = 0;
};

// The names that mpix answers to, or those of the library behind it.
struct partitioned_calls {
    const char *name;
    decltype(&MPI_Psend_init) psend_init;
    decltype(&MPI_Precv_init) precv_init;
    decltype(&MPI_Startall) startall;
    decltype(&MPI_Pready) pready;
    decltype(&MPI_Parrived) parrived;
    decltype(&MPI_Waitall) waitall;
    decltype(&MPI_Request_free) request_free;
};
constexpr partitioned_calls mpix_calls = {"mpix",     MPI_Psend_init, MPI_Precv_init, MPI_Startall,
                                          MPI_Pready, MPI_Parrived,   MPI_Waitall,    MPI_Request_free};
#if MPI_VERSION >= 4
constexpr partitioned_calls library_calls = {"library",   PMPI_Psend_init, PMPI_Precv_init, PMPI_Startall,
                                             PMPI_Pready, PMPI_Parrived,   PMPI_Waitall,    PMPI_Request_free};
#endif

class by_partitions final : public way {
public:
    explicit by_partitions(const partitioned_calls &calls) : calls_(calls) {}
    const char *name() const override { return calls_.name; }
    void make(const shape &s, char *out, char *in, int peer) override {
        must(calls_.psend_init(out, s.partitions, s.bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &both_[0]),
             "Psend_init");
        must(calls_.precv_init(in, s.partitions, s.bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &both_[1]),
             "Precv_init");
    }
    void start() override { must(calls_.startall(2, both_), "Startall"); }
    void ready(int partition) override { must(calls_.pready(partition, both_[0]), "Pready"); }
    bool arrived(int partition) override {
        int flag = 0;
        must(calls_.parrived(both_[1], partition, &flag), "Parrived");
        return flag != 0;
    }
    void wait() override { must(calls_.waitall(2, both_, MPI_STATUSES_IGNORE), "Waitall"); }
    void free() override {
        for (MPI_Request &r : both_) must(calls_.request_free(&r), "Request_free");
    }

private:
    const partitioned_calls &calls_;
    MPI_Request both_[2];
};

// One message per partition. Ready is MPI_Start of a send, arrived MPI_Test of a receive.
class by_messages final : public way {
    const char *name() const override { return "messages"; }
    void make(const shape &s, char *out, char *in, int peer) override {
        sends_.resize(static_cast<std::size_t>(s.partitions));
        receives_.resize(sends_.size());
        for (int p = 0; p < s.partitions; ++p) {
            const auto i = static_cast<std::size_t>(p);
            const int bytes = static_cast<int>(s.bytes);
            must(PMPI_Send_init(out + p * s.bytes, bytes, MPI_BYTE, peer, p, MPI_COMM_WORLD, &sends_[i]),
                 "MPI_Send_init");
            must(PMPI_Recv_init(in + p * s.bytes, bytes, MPI_BYTE, peer, p, MPI_COMM_WORLD, &receives_[i]),
                 "MPI_Recv_init");
        }
    }
    void start() override { must(PMPI_Startall(static_cast<int>(receives_.size()), receives_.data()), "MPI_Startall"); }
    void ready(int partition) override { must(PMPI_Start(&sends_[static_cast<std::size_t>(partition)]), "MPI_Start"); }
    bool arrived(int partition) override {
        int flag = 0;
        must(PMPI_Request_get_status(receives_[static_cast<std::size_t>(partition)], &flag, MPI_STATUS_IGNORE),
             "MPI_Request_get_status");
        return flag != 0;
    }
    void wait() override {
        must(PMPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        must(PMPI_Waitall(static_cast<int>(receives_.size()), receives_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }
    void free() override {
        for (auto *all : {&sends_, &receives_})
            for (MPI_Request &r : *all) must(PMPI_Request_free(&r), "MPI_Request_free");
    }
    std::vector<MPI_Request> sends_, receives_;
};

// ---- threads that mark partitions ready ----------------------------------------------------------------

// Thread t of n takes partitions t, t + n, ... Gives the time that the slowest thread spent.
class team {
public:
    explicit team(int threads) : gate_(threads), spent_(static_cast<std::size_t>(threads)) {
        for (int t = 1; t < threads; ++t)
            others_.emplace_back([this, t] {
                for (;;) {
                    gate_.arrive_and_wait();
                    if (way_ == nullptr) return;
                    work(t);
                    gate_.arrive_and_wait();
                }
            });
    }
    ~team() {
        way_ = nullptr;
        gate_.arrive_and_wait();
        for (auto &t : others_) t.join();
    }
    double ready_all(way &w, int partitions) {
        way_ = &w;
        partitions_ = partitions;
        if (spent_.size() > 1) gate_.arrive_and_wait();
        work(0);
        if (spent_.size() > 1) gate_.arrive_and_wait();
        return *std::max_element(spent_.begin(), spent_.end());
    }

private:
    void work(int t) {
        const auto start = wall::now();
        const int step = static_cast<int>(spent_.size());
        for (int p = t; p < partitions_; p += step) way_->ready(p);
        spent_[static_cast<std::size_t>(t)] = ns_since(start);
    }
    std::barrier<> gate_;
    std::vector<double> spent_;
    std::vector<std::thread> others_;
    way *way_ = nullptr;
    int partitions_ = 0;
};

// ---- one shape, one way ----------------------------------------------------------------------------------

struct figures {
    double epoch_us, ready_ns, arrived_ns;
};

void fill(std::vector<char> &out, unsigned key) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>((i * 2654435761u + key) >> 7);
}
void verify(const std::vector<char> &in, unsigned key) {
    for (std::size_t i = 0; i < in.size(); ++i)
        if (in[i] != static_cast<char>((i * 2654435761u + key) >> 7)) fail("wrong bytes");
}

figures measure(way &w, const shape &s, const options &o, int rank) {
    std::vector<char> out(s.total()), in(s.total());
    team threads(o.threads);
    w.make(s, out.data(), in.data(), 1 - rank);
    double ready = 0, arrived = 0;
    const auto epoch = [&](bool ask) {
        w.start();
        ready += threads.ready_all(w, s.partitions);
        if (ask) {
            for (int p = 0; p < s.partitions; ++p)
                while (!w.arrived(p)) {
                }
            const auto start = wall::now();
            for (int p = 0; p < s.partitions; ++p)
                if (!w.arrived(p)) fail("a partition has gone again");
            arrived += ns_since(start);
        }
        w.wait();
    };
    const auto checked = [&](unsigned key) {
        fill(out, key + static_cast<unsigned>(rank));
        std::fill(in.begin(), in.end(), '\x5a');
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        epoch(false);
        verify(in, key + static_cast<unsigned>(1 - rank));
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    };
    checked(1);
    // How many epochs fill the time: rank 0 says.
    const auto trial = wall::now();
    for (int e = 0; e < 5; ++e) epoch(false);
    int count = static_cast<int>(std::clamp(o.seconds * 1e9 * 5 / ns_since(trial), 5.0, 1e6));
    must(MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
    std::vector<double> times, readies, arrivals;
    for (int r = 0; r < o.repeats; ++r) {
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        ready = 0;
        const auto start = wall::now();
        for (int e = 0; e < count; ++e) epoch(false);
        times.push_back(ns_since(start) * 1e-3 / count);
        readies.push_back(ready / count / s.partitions * o.threads);
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        arrived = 0;
        const int asked = std::max(1, count / 10);
        for (int e = 0; e < asked; ++e) epoch(true);
        arrivals.push_back(arrived / asked / s.partitions);
    }
    checked(77);
    w.free();
    const auto median = [](std::vector<double> &v) {
        std::sort(v.begin(), v.end());
        return v[v.size() / 2];
    };
    return {median(times), median(readies), median(arrivals)};
}

bool parse(int argc, char **argv, options &o) {
    bench::command_line line("mpirun -n 2 ",
                             "[--partitions N] [--bytes N] [--threads N] [--repeats N] [--seconds S]\n"
                             "           [--csv FILE|-]");
    line.value("threads", o.threads);
    line.value("repeats", o.repeats);
    line.value("seconds", o.seconds);
    line.value("partitions", o.partitions);
    line.value("bytes", o.bytes);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        return o.threads >= 1 && o.repeats >= 1 && o.seconds > 0 && o.partitions >= 0 && o.bytes >= 0;
    });
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, o)) return 2;
    int provided = 0, rank = 0, size = 0;
    MPI_Init_thread(&argc, &argv, o.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) fail("two ranks are needed");
    if (o.threads > 1 && provided < MPI_THREAD_MULTIPLE) fail("no MPI_THREAD_MULTIPLE");

    by_partitions ours(mpix_calls);
    by_messages messages;
    std::vector<way *> ways = {&ours, &messages};
#if MPI_VERSION >= 4
    by_partitions library(library_calls);
    ways.insert(ways.begin() + 1, &library);
#endif
    std::FILE *csv = nullptr;
    if (rank == 0 && o.csv != nullptr) {
        csv = std::string(o.csv) == "-" ? stdout : std::fopen(o.csv, "w");
        if (csv == nullptr) fail("the CSV file cannot be written");
        std::fprintf(csv, "partitions,bytes,threads,way,epoch_us,ready_ns,arrived_ns,mpi,date\n");
    }
    const bool text = rank == 0 && (o.csv == nullptr || std::string(o.csv) != "-");
    if (text)
        std::printf("%10s %8s %10s %12s %10s %10s\n", "partitions", "bytes", "way", "epoch us", "ready ns",
                    "arrived ns");
    std::vector<std::int64_t> sizes = {8, 8192, 262144};
    std::vector<int> counts = {1, 8, 64, 512};
    if (o.bytes != 0) sizes = {o.bytes};
    if (o.partitions != 0) counts = {o.partitions};
    for (const std::int64_t bytes : sizes)
        for (const int partitions : counts)
            for (way *w : ways) {
                const figures f = measure(*w, {partitions, bytes}, o, rank);
                if (text)
                    std::printf("%10d %8lld %10s %12.2f %10.1f %10.1f\n", partitions, static_cast<long long>(bytes),
                                w->name(), f.epoch_us, f.ready_ns, f.arrived_ns);
                if (csv != nullptr)
                    std::fprintf(csv, "%d,%lld,%d,%s,%.3f,%.1f,%.1f,%s,%s\n", partitions, static_cast<long long>(bytes),
                                 o.threads, w->name(), f.epoch_us, f.ready_ns, f.arrived_ns,
                                 bench::library_name().c_str(), bench::today().c_str());
                std::fflush(stdout);
            }
    if (csv != nullptr && csv != stdout) std::fclose(csv);
    MPI_Finalize();
    return 0;
}
