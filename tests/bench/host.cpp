// SPDX-License-Identifier: BSD-3-Clause
//
// What an epoch between two ranks of one node costs on the host: through mpix, through the MPI library's own
// partitioned calls (where it has them), and as one message per partition, by persistent sends and by MPI_Isend. Both
// ranks send and receive. The same program, in the same run, by turns: mpix answers to the MPI_ names, the library to
// the PMPI_ names.
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/bench/partitioned_calls.hpp"
#include "tests/bench/line_clock.hpp"

namespace {

using wall = std::chrono::steady_clock;

double ns_since(wall::time_point start) {
    return std::chrono::duration<double, std::nano>(wall::now() - start).count();
}

struct options {
    int threads = 1, repeats = 9;
    double seconds = 0.02;  // of one repeat, about
    int partitions = 0;     // 0: all of the list
    bool touch = false;
    std::int64_t bytes = 0;
    const char *ways = nullptr;  // null: all
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

// Each has a communicator of its own.
class way {
public:
    way() { must(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup"); }
    virtual ~way() { MPI_Comm_free(&comm_); }
    way(const way &) = delete;
    way &operator=(const way &) = delete;
    virtual const char *name() const = 0;
    virtual void make(const shape &s, char *out, char *in, int peer) = 0;
    virtual void start() = 0;
    virtual void ready(int partition) = 0;
    virtual bool arrived(int partition) = 0;
    virtual void wait() = 0;
    virtual void free() = 0;

protected:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

class by_partitions final : public way {
public:
    explicit by_partitions(const bench::partitioned_calls &calls) : calls_(calls) {}
    const char *name() const override { return calls_.name; }
    void make(const shape &s, char *out, char *in, int peer) override {
        must(calls_.psend_init(out, s.partitions, s.bytes, MPI_BYTE, peer, 1, comm_, MPI_INFO_NULL, &both_[0]),
             "Psend_init");
        must(calls_.precv_init(in, s.partitions, s.bytes, MPI_BYTE, peer, 1, comm_, MPI_INFO_NULL, &both_[1]),
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
    const bench::partitioned_calls &calls_;
    MPI_Request both_[2];
};

// One message per partition. Ready is MPI_Start of a send, arrived MPI_Test of a receive.
class by_messages : public way {
public:
    const char *name() const override { return "messages"; }
    void make(const shape &s, char *out, char *in, int peer) override {
        sends_.resize(static_cast<std::size_t>(s.partitions));
        receives_.resize(sends_.size());
        for (int p = 0; p < s.partitions; ++p) {
            const auto i = static_cast<std::size_t>(p);
            const int bytes = static_cast<int>(s.bytes);
            must(PMPI_Send_init(out + p * s.bytes, bytes, MPI_BYTE, peer, p, comm_, &sends_[i]), "MPI_Send_init");
            must(PMPI_Recv_init(in + p * s.bytes, bytes, MPI_BYTE, peer, p, comm_, &receives_[i]), "MPI_Recv_init");
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
            for (MPI_Request &r : *all)
                if (r != MPI_REQUEST_NULL) must(PMPI_Request_free(&r), "MPI_Request_free");
    }

protected:
    std::vector<MPI_Request> sends_, receives_;
};

// The same without requests that persist.
class by_isend final : public by_messages {
public:
    const char *name() const override { return "isend"; }
    void make(const shape &s, char *out, char *in, int peer) override {
        shape_ = s, out_ = out, in_ = in, peer_ = peer;
        sends_.assign(static_cast<std::size_t>(s.partitions), MPI_REQUEST_NULL);
        receives_ = sends_;
    }
    void start() override {
        for (int p = 0; p < shape_.partitions; ++p)
            must(PMPI_Irecv(in_ + p * shape_.bytes, static_cast<int>(shape_.bytes), MPI_BYTE, peer_, p, comm_,
                            &receives_[static_cast<std::size_t>(p)]),
                 "MPI_Irecv");
    }
    void ready(int p) override {
        must(PMPI_Isend(out_ + p * shape_.bytes, static_cast<int>(shape_.bytes), MPI_BYTE, peer_, p, comm_,
                        &sends_[static_cast<std::size_t>(p)]),
             "MPI_Isend");
    }

private:
    shape shape_{};
    char *out_ = nullptr, *in_ = nullptr;
    int peer_ = 0;
};

// ---- threads that mark partitions ready ----------------------------------------------------------------

// Writes to each cache line of a partition what is there, as a program writes what it has computed.
void write_lines(volatile char *at, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; i += 64) at[i] = at[i];
}
// Reads them.
void read_lines(const std::vector<char> &all) {
    char sum = 0;
    for (std::size_t i = 0; i < all.size(); i += 64) sum = static_cast<char>(sum + all[i]);
    [[maybe_unused]] volatile const char used = sum;
}

// Thread t of n takes partitions t, t + n, ... Gives the time that the slowest thread spent. `touched`: the partitions, of
// that size each, which are written to first; null: they are not.
class team {
public:
    team(int threads, char *touched, std::int64_t bytes)
        : gate_(threads), spent_(static_cast<std::size_t>(threads)), touched_(touched), bytes_(bytes) {
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
    std::size_t size() const { return spent_.size(); }
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
        for (int p = t; p < partitions_; p += step) {
            if (touched_ != nullptr) write_lines(touched_ + p * bytes_, bytes_);
            way_->ready(p);
        }
        spent_[static_cast<std::size_t>(t)] = ns_since(start);
    }
    std::barrier<> gate_;
    std::vector<double> spent_;
    std::vector<std::thread> others_;
    char *const touched_;
    const std::int64_t bytes_;
    way *way_ = nullptr;
    int partitions_ = 0;
};

// ---- one shape, all ways ---------------------------------------------------------------------------------

void fill(std::vector<char> &out, unsigned key) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>((i * 2654435761u + key) >> 7);
}
void verify(const std::vector<char> &in, unsigned key) {
    for (std::size_t i = 0; i < in.size(); ++i)
        if (in[i] != static_cast<char>((i * 2654435761u + key) >> 7)) fail("wrong bytes");
}

// The value that a part of all repeats does not exceed.
double quantile(std::vector<double> v, double part) {
    std::sort(v.begin(), v.end());
    return v[static_cast<std::size_t>(part * static_cast<double>(v.size() - 1) + 0.5)];
}

// One way, and what its repeats took.
class contender {
public:
    contender(way &w, const shape &s, team &threads, std::vector<char> &out, std::vector<char> &in, int rank,
              bool touch)
        : way_(w), shape_(s), threads_(threads), out_(out), in_(in), rank_(rank), touch_(touch) {
        w.make(s, out.data(), in.data(), 1 - rank);
        checked(1);
    }
    // How many epochs fill the time: rank 0 says.
    void choose_count(double seconds) {
        const auto trial = wall::now();
        for (int e = 0; e < 5; ++e) epoch(false);
        count_ = static_cast<int>(std::clamp(seconds * 1e9 * 5 / ns_since(trial), 1.0, 1e6));
        must(MPI_Bcast(&count_, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
    }
    void repeat() {
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        epoch(false);  // what another way has left in the caches
        ready_ = 0;
        const auto start = wall::now();
        for (int e = 0; e < count_; ++e) epoch(false);
        times_.push_back(ns_since(start) * 1e-3 / count_);
        readies_.push_back(ready_ / count_ / shape_.partitions * static_cast<double>(threads_.size()));
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        arrived_ = 0;
        const int asked = std::max(1, count_ / 10);
        for (int e = 0; e < asked; ++e) epoch(true);
        arrivals_.push_back(arrived_ / asked / shape_.partitions);
    }
    void end() {
        checked(77);
        way_.free();
    }
    const way &which() const { return way_; }
    double epoch_us(double part) const { return quantile(times_, part); }
    double ready_ns() const { return quantile(readies_, 0.5); }
    double arrived_ns() const { return quantile(arrivals_, 0.5); }

private:
    void epoch(bool ask) {
        way_.start();
        ready_ += threads_.ready_all(way_, shape_.partitions);
        if (ask) {
            for (int p = 0; p < shape_.partitions; ++p)
                while (!way_.arrived(p)) {
                }
            const auto start = wall::now();
            for (int p = 0; p < shape_.partitions; ++p)
                if (!way_.arrived(p)) fail("a partition has gone again");
            arrived_ += ns_since(start);
        }
        way_.wait();
        if (touch_) read_lines(in_);
    }
    void checked(unsigned key) {
        fill(out_, key + static_cast<unsigned>(rank_));
        std::fill(in_.begin(), in_.end(), '\x5a');
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        epoch(false);
        verify(in_, key + static_cast<unsigned>(1 - rank_));
        must(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    }

    way &way_;
    const shape shape_;
    team &threads_;
    std::vector<char> &out_, &in_;
    const int rank_;
    const bool touch_;
    int count_ = 1;
    double ready_ = 0, arrived_ = 0;
    std::vector<double> times_, readies_, arrivals_;
};

struct measured {
    std::vector<contender> all;
    double line_ns;  // meanwhile
};

measured measure(const std::vector<way *> &ways, const shape &s, const options &o, int rank, bench::line_clock &line) {
    std::vector<char> out(s.total()), in(s.total());
    team threads(o.threads, o.touch ? out.data() : nullptr, s.bytes);
    std::vector<contender> all;
    for (way *w : ways) all.emplace_back(*w, s, threads, out, in, rank, o.touch);
    for (contender &c : all) c.choose_count(o.seconds);
    std::vector<double> lines;
    for (int r = 0; r < o.repeats; ++r) {
        for (contender &c : all) c.repeat();
        lines.push_back(line.ns());
    }
    for (contender &c : all) c.end();
    return {std::move(all), quantile(std::move(lines), 0.5)};
}

bool parse(int argc, char **argv, options &o) {
    bench::command_line line("mpirun -n 2 ",
                             "[--partitions N] [--bytes N] [--threads N] [--repeats N] [--seconds S]\n"
                             "           [--touch] [--ways mpix,library,messages,isend] [--csv FILE|-]");
    line.value("threads", o.threads);
    line.value("repeats", o.repeats);
    line.value("seconds", o.seconds);
    line.value("partitions", o.partitions);
    line.value("bytes", o.bytes);
    line.value("ways", o.ways);
    line.value("csv", o.csv);
    line.with("touch", o.touch);
    return line.read(argc, argv, [&o] {
        return o.threads >= 1 && o.repeats >= 1 && o.seconds > 0 && o.partitions >= 0 && o.bytes >= 0;
    });
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, o)) return 2;
    int provided = 0, rank = 0, size = 0;
    MPI_Init_thread(&argc, &argv, o.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) fail("two ranks are needed");
    if (o.threads > 1 && provided < MPI_THREAD_MULTIPLE) fail("no MPI_THREAD_MULTIPLE");

    std::vector<std::unique_ptr<way>> made;
    made.push_back(std::make_unique<by_partitions>(bench::mpix_calls));
#if MPIX_LIBRARY_IS_PARTITIONED
    made.push_back(std::make_unique<by_partitions>(bench::library_calls));
#endif
    made.push_back(std::make_unique<by_messages>());
    made.push_back(std::make_unique<by_isend>());
    std::vector<way *> ways;
    for (const auto &w : made)
        if (o.ways == nullptr ||
            (std::string(",") + o.ways + ",").find(std::string(",") + w->name() + ",") != std::string::npos)
            ways.push_back(w.get());
    const bench::csv_file file(rank == 0 ? o.csv : nullptr);
    std::FILE *const csv = file.get();
    if (csv != nullptr)
        std::fprintf(csv,
                     "partitions,bytes,threads,way,q1_us,epoch_us,q3_us,ready_ns,arrived_ns,line_ns,mpi,cpu,cores,load,"
                     "date\n");
    const bool text = rank == 0 && file.text() != nullptr;
    if (text)
        std::printf("%10s %8s %10s %12s %12s %12s %10s %10s %8s\n", "partitions", "bytes", "way", "q1 us", "epoch us",
                    "q3 us", "ready ns", "arrived ns", "line ns");
    auto line = std::make_unique<bench::line_clock>(MPI_COMM_WORLD);
    std::vector<std::int64_t> sizes = {8, 8192, 262144};
    std::vector<int> counts = {1, 8, 64, 512};
    if (o.bytes != 0) sizes = {o.bytes};
    if (o.partitions != 0) counts = {o.partitions};
    for (const std::int64_t bytes : sizes)
        for (const int partitions : counts) {
            const measured m = measure(ways, {partitions, bytes}, o, rank, *line);
            for (const contender &c : m.all) {
                const double q1 = c.epoch_us(0.25), median = c.epoch_us(0.5), q3 = c.epoch_us(0.75);
                if (text)
                    std::printf("%10d %8lld %10s %12.2f %12.2f %12.2f %10.1f %10.1f %8.1f\n", partitions,
                                static_cast<long long>(bytes), c.which().name(), q1, median, q3, c.ready_ns(),
                                c.arrived_ns(), m.line_ns);
                if (csv != nullptr)
                    std::fprintf(csv, "%d,%lld,%d,%s,%.3f,%.3f,%.3f,%.1f,%.1f,%.1f,%s,%s,%u,%s,%s\n", partitions,
                                 static_cast<long long>(bytes), o.threads, c.which().name(), q1, median, q3,
                                 c.ready_ns(), c.arrived_ns(), m.line_ns, bench::library_name().c_str(),
                                 bench::cpu_model().c_str(), std::thread::hardware_concurrency(), bench::load().c_str(),
                                 bench::today().c_str());
                std::fflush(stdout);
            }
        }
    line.reset();
    made.clear();
    MPI_Finalize();
    return 0;
}
