// SPDX-License-Identifier: BSD-3-Clause
//
// One way between two ranks of two hosts: through mpix, and by the MPI library's own messages, in the same program and
// run, by turns. (mpix answers to the MPI_ names, the library to the PMPI_ names.) Latency is half a ping-pong. For
// bandwidth a message goes as a whole, as partitions that are readied one by one, or as a window of messages; several
// follow each other before an answer, which goes the same way. scripts/bench-network runs it.
#include <dlfcn.h>
#include <mpi.h>
#include <mpix/mpix.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"

namespace {

using wall = std::chrono::steady_clock;

constexpr int in_a_row = 8;  // messages before an answer, for bandwidth
constexpr int rounds = 10;   // turns that each way gets

struct options {
    double seconds = 0.5;  // for each way and size, about
    std::size_t largest = std::size_t{4} << 20;
    const char *over = "unknown";  // what the library's messages go by: it does not say
    const char *csv = nullptr;
};

int rank;

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "bench.network: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}
void must(int code, const char *call) {
    if (code != MPI_SUCCESS) fail(call);
}

// ---- the ways to do it -------------------------------------------------------------------------------------

// A message each way, in pieces of one length.
class way {
public:
    virtual ~way() = default;
    virtual const char *name() const = 0;
    virtual void make(char *out, char *in, int piece, int pieces, int tag) = 0;
    virtual void expect() = 0;    // from here on it may come
    virtual void send() = 0;      // ready from its first piece to its last
    virtual void received() = 0;  // waits
    virtual void sent() = 0;      // waits
    virtual void free() = 0;
};

class by_partitions final : public way {
public:
    const char *name() const override { return "mpix"; }
    void make(char *out, char *in, int piece, int pieces, int tag) override {
        pieces_ = pieces;
        must(MPI_Psend_init(out, pieces, piece, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &out_),
             "MPI_Psend_init");
        must(MPI_Precv_init(in, pieces, piece, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &in_),
             "MPI_Precv_init");
    }
    void expect() override { must(MPI_Start(&in_), "MPI_Start"); }
    void send() override {
        must(MPI_Start(&out_), "MPI_Start");
        for (int p = 0; p < pieces_; ++p) must(MPI_Pready(p, out_), "MPI_Pready");
    }
    void received() override { must(MPI_Wait(&in_, MPI_STATUS_IGNORE), "MPI_Wait"); }
    void sent() override { must(MPI_Wait(&out_, MPI_STATUS_IGNORE), "MPI_Wait"); }
    void free() override {
        must(MPI_Request_free(&out_), "MPI_Request_free");
        must(MPI_Request_free(&in_), "MPI_Request_free");
    }
    std::string path() const {
        char path[16] = "";
        must(MPIX_Request_path(out_, path, sizeof path), "MPIX_Request_path");
        return path;
    }

private:
    MPI_Request out_ = MPI_REQUEST_NULL, in_ = MPI_REQUEST_NULL;
    int pieces_ = 0;
};

class by_send final : public way {
public:
    const char *name() const override { return "send"; }
    void make(char *out, char *in, int piece, int pieces, int tag) override {
        out_ = out, in_ = in, bytes_ = piece * pieces, tag_ = tag;
    }
    void expect() override {}
    void send() override { must(PMPI_Send(out_, bytes_, MPI_BYTE, 1 - rank, tag_, MPI_COMM_WORLD), "MPI_Send"); }
    void received() override {
        must(PMPI_Recv(in_, bytes_, MPI_BYTE, 1 - rank, tag_, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    }
    void sent() override {}
    void free() override {}

private:
    char *out_ = nullptr, *in_ = nullptr;
    int bytes_ = 0, tag_ = 0;
};

class by_persistent final : public way {
public:
    const char *name() const override { return "persistent"; }
    void make(char *out, char *in, int piece, int pieces, int tag) override {
        must(PMPI_Send_init(out, piece * pieces, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, &out_), "MPI_Send_init");
        must(PMPI_Recv_init(in, piece * pieces, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, &in_), "MPI_Recv_init");
    }
    void expect() override { must(PMPI_Start(&in_), "MPI_Start"); }
    void send() override { must(PMPI_Start(&out_), "MPI_Start"); }
    void received() override { must(PMPI_Wait(&in_, MPI_STATUS_IGNORE), "MPI_Wait"); }
    void sent() override { must(PMPI_Wait(&out_, MPI_STATUS_IGNORE), "MPI_Wait"); }
    void free() override {
        must(PMPI_Request_free(&out_), "MPI_Request_free");
        must(PMPI_Request_free(&in_), "MPI_Request_free");
    }

private:
    MPI_Request out_ = MPI_REQUEST_NULL, in_ = MPI_REQUEST_NULL;
};

class by_window final : public way {
public:
    const char *name() const override { return "isend"; }
    void make(char *out, char *in, int piece, int pieces, int tag) override {
        out_ = out, in_ = in, piece_ = piece, tag_ = tag;
        sends_.resize(static_cast<std::size_t>(pieces));
        receives_.resize(sends_.size());
    }
    void expect() override {
        char *next = in_;
        for (MPI_Request &r : receives_) {
            must(PMPI_Irecv(next, piece_, MPI_BYTE, 1 - rank, tag_, MPI_COMM_WORLD, &r), "MPI_Irecv");
            next += piece_;
        }
    }
    void send() override {
        const char *next = out_;
        for (MPI_Request &r : sends_) {
            must(PMPI_Isend(next, piece_, MPI_BYTE, 1 - rank, tag_, MPI_COMM_WORLD, &r), "MPI_Isend");
            next += piece_;
        }
    }
    void received() override { wait(receives_); }
    void sent() override { wait(sends_); }
    void free() override {}

private:
    static void wait(std::vector<MPI_Request> &all) {
        must(PMPI_Waitall(static_cast<int>(all.size()), all.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }
    std::vector<MPI_Request> sends_, receives_;
    char *out_ = nullptr, *in_ = nullptr;
    int piece_ = 0, tag_ = 0;
};

// ---- one measurement ---------------------------------------------------------------------------------------

// A way, its buffers, and an answer that goes the same way.
class contestant {
public:
    template <class Way>
    static contestant of(std::size_t bytes, int pieces) {
        return {std::make_unique<Way>(), std::make_unique<Way>(), bytes, pieces};
    }
    void make(int tag) {
        out_.resize(bytes_);
        in_.resize(bytes_);
        message_->make(out_.data(), in_.data(), static_cast<int>(bytes_) / pieces_, pieces_, tag);
        answer_->make(word_, word_ + 8, 8, 1, tag + 1);
    }
    void free() {
        message_->free();
        answer_->free();
    }
    void verify(unsigned key) {
        const auto byte = [&](std::size_t i, int from) {
            return static_cast<char>((i * 2654435761u + key + static_cast<unsigned>(from)) >> 7);
        };
        for (std::size_t i = 0; i < bytes_; ++i)
            out_[i] = byte(i, rank), in_[i] = static_cast<char>(~byte(i, 1 - rank));
        must(PMPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
        ping_pong();
        for (std::size_t i = 0; i < bytes_; ++i)
            if (in_[i] != byte(i, 1 - rank)) fail("wrong bytes");
        must(PMPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    }
    void ping_pong() { there_and_back(*message_, *message_, 1); }
    void stream() { there_and_back(*message_, *answer_, in_a_row); }

    const way &message() const { return *message_; }
    int pieces() const { return pieces_; }

    int repeats = 1;              // of a turn
    std::vector<double> us = {};  // each one way

private:
    contestant(std::unique_ptr<way> message, std::unique_ptr<way> answer, std::size_t bytes, int pieces)
        : message_(std::move(message)), answer_(std::move(answer)), bytes_(bytes), pieces_(pieces) {}
    static void there_and_back(way &there, way &back, int times) {
        if (rank == 0) {
            back.expect();
            for (int i = 0; i < times; ++i) {
                there.send();
                if (&there != &back) there.sent();
            }
            back.received();
            if (&there == &back) there.sent();
        } else {
            for (int i = 0; i < times; ++i) {
                there.expect();
                there.received();
            }
            back.send();
            back.sent();
        }
    }
    std::unique_ptr<way> message_, answer_;
    std::size_t bytes_;
    int pieces_;
    std::vector<char> out_ = {}, in_ = {};
    char word_[16] = {};
};

void take_turns(std::vector<contestant> &all, bool latency, const options &o) {
    const auto once = [&](contestant &c) {
        const auto start = wall::now();
        latency ? c.ping_pong() : c.stream();
        const double us = std::chrono::duration<double, std::micro>(wall::now() - start).count();
        c.us.push_back(us / (latency ? 2 : in_a_row));
    };
    int tag = 1;
    for (contestant &c : all) {
        c.make(tag);
        tag += 2;
        c.verify(1);
        // How often fills the time: rank 0 says, after as many to get warm. Not by the mean: others may run in between.
        for (int i = 0; i < 11; ++i) once(c);
        std::nth_element(c.us.begin(), c.us.begin() + 5, c.us.end());
        c.repeats =
            static_cast<int>(std::clamp(o.seconds / rounds * 1e6 / (c.us[5] * (latency ? 2 : in_a_row)), 2.0, 1000.0));
        must(PMPI_Bcast(&c.repeats, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
        c.us.clear();
    }
    for (int r = 0; r < rounds; ++r)
        for (contestant &c : all) {
            must(PMPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
            for (int i = 0; i < c.repeats; ++i) once(c);
        }
    for (contestant &c : all) c.verify(77);
}

// ---- output ------------------------------------------------------------------------------------------------

std::string ucx_version() {
    std::string version = "none";
    if (void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL)) {
        if (void *function = dlsym(library, "ucp_get_version_string"))
            version = reinterpret_cast<const char *(*)()>(function)();
        dlclose(library);
    }
    return version;
}

class report {
public:
    explicit report(const options &o) : file_(rank == 0 ? o.csv : nullptr), over_(o.over) {
        if (rank != 0) return;
        if (csv_ != nullptr)
            std::fprintf(csv_,
                         "test,bytes,pieces,way,by,q1_us,median_us,q3_us,MB/s,samples,progress,mpi,ucx,cpu,cores,"
                         "kernel,load,date\n");
        const char *progress = std::getenv("MPIX_PROGRESS");
        end_ = std::string(progress == nullptr ? "auto" : progress) + "," + bench::library_name() + "," +
               ucx_version() + "," + bench::cpu_model() + "," + std::to_string(std::thread::hardware_concurrency()) +
               "," + bench::kernel_release() + "," + bench::load() + "," + bench::today();
        if (text_ != nullptr)
            std::fprintf(text_, "# %s by %s\n# %-10s %10s %7s %12s %12s %12s %12s %12s %8s\n", end_.c_str(), over_,
                         "test", "bytes", "pieces", "way", "q1 us", "median us", "q3 us", "MB/s", "samples");
    }

    void row(const char *test, std::size_t bytes, contestant &c) {
        if (rank != 0) return;
        std::sort(c.us.begin(), c.us.end());
        const auto at = [&](std::size_t quarters) { return c.us[(c.us.size() - 1) * quarters / 4]; };
        const double rate = static_cast<double>(bytes) / at(2);
        const auto *ours = dynamic_cast<const by_partitions *>(&c.message());
        const std::string by = ours != nullptr ? ours->path() : over_;
        if (text_ != nullptr)
            std::fprintf(text_, "%-12s %10zu %7d %12s %12.2f %12.2f %12.2f %12.2f %8zu\n", test, bytes, c.pieces(),
                         c.message().name(), at(1), at(2), at(3), rate, c.us.size());
        if (csv_ != nullptr)
            std::fprintf(csv_, "%s,%zu,%d,%s,%s,%.3f,%.3f,%.3f,%.3f,%zu,%s\n", test, bytes, c.pieces(),
                         c.message().name(), by.c_str(), at(1), at(2), at(3), rate, c.us.size(), end_.c_str());
        std::fflush(nullptr);
    }

private:
    const bench::csv_file file_;
    std::FILE *const text_ = file_.text(), *const csv_ = file_.get();
    const char *over_;
    std::string end_ = {};
};

bool parse(int argc, char **argv, options &o) {
    bench::command_line line("mpirun -n 2 ", "[--seconds S] [--largest BYTES] [--over TEXT] [--csv FILE|-]");
    line.value("seconds", o.seconds);
    line.value("largest", o.largest);
    line.value("over", o.over);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] { return o.seconds > 0 && o.largest >= 8 && o.largest <= std::size_t{1} << 30; });
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, o)) return 2;
    int size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) fail("two ranks are needed");
    {
        report table(o);
        std::vector<std::size_t> sizes = {8};
        for (std::size_t bytes = 64; bytes <= o.largest; bytes *= 4) sizes.push_back(bytes);
        for (const bool latency : {true, false})
            for (const std::size_t bytes : sizes) {
                std::vector<contestant> all;
                all.push_back(contestant::of<by_partitions>(bytes, 1));
                all.push_back(contestant::of<by_send>(bytes, 1));
                if (latency) all.push_back(contestant::of<by_persistent>(bytes, 1));
                for (const int pieces : {16, 64})
                    if (!latency && bytes >= 1024) {
                        all.push_back(contestant::of<by_partitions>(bytes, pieces));
                        all.push_back(contestant::of<by_window>(bytes, pieces));
                    }
                take_turns(all, latency, o);
                for (contestant &c : all) {
                    table.row(latency ? "latency" : "bandwidth", bytes, c);
                    c.free();
                }
            }
    }
    MPI_Finalize();
    return 0;
}
