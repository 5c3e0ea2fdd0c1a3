// SPDX-License-Identifier: BSD-3-Clause
//
// What a call costs the kernel that makes it: the time until pready, pready_contribute, parrived and wait_arrived
// return, by one thread, warp or block that is alone on its GPU; pready by 1 to 2048 callers of one request at the same
// time; and how much longer a kernel of 10 us takes that asks parrived once in each block.
//
// `prepared`: with what prepare_send or prepare_receive has found out before. `load`: one acquired load of a word in
// the GPU's memory, the least that asking can take.
//
// The way is looked up, not assumed. To have small partitions go direct, the receive is not exported: then it has no
// inline buffer, though the sender has to find that out.
#include <getopt.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/cost_kernels.cuh"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

constexpr int partitions = 1024, most_callers = 2048, calls_at_once = 1 << 14;
constexpr double computing_us = 10;
constexpr scope scopes[] = {scope::thread, scope::warp, scope::block};
constexpr const char *way_names[] = {"direct", "inline", "deferred"};

struct options {
    int threads = 512, epochs = 7, most_callers = ::most_callers;
    double seconds = 0;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    static const option known[] = {{"threads", required_argument, nullptr, 't'},
                                   {"epochs", required_argument, nullptr, 'e'},
                                   {"callers", required_argument, nullptr, 'n'},
                                   {"seconds", required_argument, nullptr, 's'},
                                   {"quick", no_argument, nullptr, 'q'},
                                   {"csv", required_argument, nullptr, 'c'},
                                   {nullptr, 0, nullptr, 0}};
    for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        if (c == 't')
            o.threads = std::atoi(optarg);
        else if (c == 'e')
            o.epochs = std::atoi(optarg);
        else if (c == 'n')
            o.most_callers = std::atoi(optarg);
        else if (c == 's')
            o.seconds = std::strtod(optarg, nullptr);
        else if (c == 'q')
            o.epochs = 2, o.most_callers = 64;
        else if (c == 'c')
            o.csv = optarg;
        else
            return false;
    }
    return o.threads >= 32 && o.threads <= 512 && o.threads % 32 == 0 && o.epochs >= 1 && o.most_callers >= 1 &&
           o.most_callers <= most_callers && optind == argc;
}

// ---- figures --------------------------------------------------------------------------------------------------------

struct quartiles {
    double low = 0, middle = 0, high = 0;
};
quartiles quartiles_of(std::vector<double> all) {
    if (all.empty()) return {};
    std::sort(all.begin(), all.end());
    return {all[all.size() / 4], all[all.size() / 2], all[all.size() * 3 / 4]};
}

// Of one kind of call, over all epochs, in nanoseconds.
struct figures {
    std::vector<double> all, first, last;  // of an epoch's
    void add(const std::vector<double> &epoch) {
        all.insert(all.end(), epoch.begin(), epoch.end());
        first.push_back(epoch.front());
        last.push_back(epoch.back());
    }
};

// ---- two requests ---------------------------------------------------------------------------------------------------

// One end of a message: the sender's or the receiver's.
class end_of_message {
public:
    end_of_message(const pair &c, bool sends, char *buffer, int parts, uint64_t bytes, bool exported,
                   int contributors = 1) {
        const auto each = static_cast<MPI_Count>(bytes);
        if (sends)
            must(MPI_Psend_init(buffer, parts, each, MPI_BYTE, c.peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request_),
                 "MPI_Psend_init");
        else
            must(MPI_Precv_init(buffer, parts, each, MPI_BYTE, c.peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request_),
                 "MPI_Precv_init");
        if (!exported) return;
        MPI_Info info;
        must(MPI_Info_create(&info), "MPI_Info_create");
        must(MPI_Info_set(info, "mpix_contributors", std::to_string(contributors).c_str()), "MPI_Info_set");
        must(MPIX_Prequest_create(request_, info, &handle), "MPIX_Prequest_create");
        must(MPI_Info_free(&info), "MPI_Info_free");
    }
    ~end_of_message() {
        must(MPIX_Prequest_free(&handle), "MPIX_Prequest_free");
        must(MPI_Request_free(&request_), "MPI_Request_free");
        MPI_Barrier(MPI_COMM_WORLD);  // the peer has let go of the memory
    }
    end_of_message(const end_of_message &) = delete;
    end_of_message &operator=(const end_of_message &) = delete;

    void start() {
        ++epoch;
        must(MPI_Start(&request_), "MPI_Start");
        must(MPIX_Pbuf_prepare(request_), "MPIX_Pbuf_prepare");  // nothing is deferred
    }
    void wait() { must(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait"); }

    MPIX_Prequest handle = MPIX_PREQUEST_NULL;
    uint64_t epoch = 0;

private:
    MPI_Request request_ = MPI_REQUEST_NULL;
};

class costs {
public:
    costs(pair &c, const options &o, table *t) : c_(c), o_(o), table_(t) {
        check(cudaMalloc(&notes_, sizeof(notes)), "cudaMalloc");
        check(cudaMalloc(&arrived_, sizeof *arrived_), "cudaMalloc");
        check(cudaMalloc(&way_, sizeof *way_), "cudaMalloc");
        check(cudaMalloc(&sink_, sizeof *sink_), "cudaMalloc");
        check(cudaMalloc(&word_, sizeof *word_), "cudaMalloc");
        check(cudaMemset(word_, 1, sizeof *word_), "cudaMemset");
        check(cudaMalloc(&out_, room), "cudaMalloc");
        check(cudaMalloc(&in_, room), "cudaMalloc");
        check(cudaMemset(c.result, 0, sizeof(times)), "cudaMemset");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, c.device), "cudaDeviceGetAttribute");
        for (const scope by : scopes) {
            std::vector<double> &all = empty_[static_cast<int>(by)];
            for (int i = 0; i < 3; ++i) all = alone(by, nothing{}, partitions);
            row("nothing", unmeasured, unmeasured, by, quartiles_of(all));
        }
        for (const scope by : scopes) base_[static_cast<int>(by)] = quartiles_of(empty_[static_cast<int>(by)]).middle;
    }
    ~costs() {
        for (void *memory : {static_cast<void *>(notes_), static_cast<void *>(arrived_), static_cast<void *>(way_),
                             static_cast<void *>(sink_), static_cast<void *>(word_), static_cast<void *>(out_),
                             static_cast<void *>(in_)})
            check(cudaFree(memory), "cudaFree");
    }
    costs(const costs &) = delete;
    costs &operator=(const costs &) = delete;

    // Rank 0 sends.
    template <class Call = ready>
    void send(scope by, uint64_t bytes, bool exported, const std::string &state = unmeasured) {
        figures of;
        int how = 0;
        const bool sends = c_.rank == 0;
        end_of_message m(c_, sends, sends ? out_ : in_, partitions, bytes, sends || exported);
        repeat("pready", bytes * partitions, !sends, [&](bool counts) {
            m.start();
            if (sends) {
                const std::vector<double> took = alone(by, Call{m.handle}, partitions);
                if (counts) of.add(took);
                how = way_of_send(m, threads(by));
            }
            m.wait();
        });
        row("pready", state, way_names[how], by, bytes, of);
    }

    // Two contributions to each partition.
    void contributions(scope by, uint64_t bytes) {
        figures first, last;
        int how = 0;
        const bool sends = c_.rank == 0;
        end_of_message m(c_, sends, sends ? out_ : in_, partitions, bytes, true, 2);
        repeat("pready_contribute", bytes * partitions, !sends, [&](bool counts) {
            m.start();
            if (sends) {
                const std::vector<double> one = alone(by, contribute{m.handle}, partitions);
                const std::vector<double> two = alone(by, contribute{m.handle}, partitions);
                if (counts) first.add(one), last.add(two);
                how = way_of_send(m, threads(by));
            }
            m.wait();
        });
        row("contribute", "first", way_names[how], by, bytes, first);
        row("contribute", "last", way_names[how], by, bytes, last);
    }

    // Rank 0 receives: it asks when nothing is there, when all but the last partition is, and when all is.
    void receive(uint64_t bytes) {
        figures missing[3], set[3], known[3], load[3], there[3], whole[3];
        std::vector<double> idle[3], asking[3], idle_known[3], asking_known[3], idle_load[3], loading[3],
            asking_whole[3];
        int how = 0;
        const bool sends = c_.rank == 1;
        const auto meet = [] { MPI_Barrier(MPI_COMM_WORLD); };
        const auto threads = static_cast<unsigned>(o_.threads);
        end_of_message m(c_, sends, sends ? out_ : in_, partitions, bytes, true);
        repeat("parrived", bytes * partitions, !sends, [&](bool counts) {
            m.start();
            const auto for_each_scope = [&](figures *to, const auto &call, int count) {
                for (int s = 0; !sends && s < 3; ++s) {
                    const std::vector<double> took = alone(scopes[s], call, count);
                    if (counts) to[s].add(took);
                }
            };
            const auto move = [&](int begin, int end) {
                meet();
                if (sends) {
                    for_all<<<64, threads, 0, c_.stream>>>(ready{m.handle}, begin, end, c_.result);
                    check(cudaGetLastError(), "send");
                    c_.outcome("send");
                }
                meet();
                if (!sends) {
                    for_all<<<64, threads, 0, c_.stream>>>(take{m.handle}, begin, end, c_.result);
                    check(cudaGetLastError(), "take");
                    c_.outcome("take");
                }
            };
            for_each_scope(missing, look{m.handle, false}, partitions);
            move(0, partitions - 1);
            if (!sends) how = way_of_receive(m);
            for_each_scope(set, look{m.handle, true}, partitions - 1);
            for_each_scope(known, prepared_look{m.handle}, partitions - 1);
            for_each_scope(load, one_load{word_}, partitions - 1);
            for_each_scope(there, take{m.handle}, partitions - 1);
            for (int s = 0; !sends && s < 3; ++s) {
                compute(scopes[s], look{m.handle, true}, idle[s], asking[s], counts);
                compute(scopes[s], prepared_look{m.handle}, idle_known[s], asking_known[s], counts);
                compute(scopes[s], one_load{word_}, idle_load[s], loading[s], counts);
            }
            move(partitions - 1, partitions);
            for_each_scope(whole, look{m.handle, true}, partitions);
            for (int s = 0; !sends && s < 3; ++s)
                compute(scopes[s], look{m.handle, true}, idle[s], asking_whole[s], counts);
            m.wait();
        });
        for (int s = 0; s < 3; ++s) {
            row("parrived", "missing", way_names[how], scopes[s], bytes, missing[s]);
            row("parrived", "set", way_names[how], scopes[s], bytes, set[s]);
            row("parrived", "set-prepared", way_names[how], scopes[s], bytes, known[s]);
            row("load", unmeasured, unmeasured, scopes[s], bytes, load[s]);
            row("parrived", "all-set", way_names[how], scopes[s], bytes, whole[s]);
            row("wait_arrived", "set", way_names[how], scopes[s], bytes, there[s]);
        }
        for (int s = 0; s < 3; ++s) {
            const quartiles without = quartiles_of(idle[s]);
            row("computing", unmeasured, way_names[how], scopes[s], bytes, without, std::nullopt);
            row("computing", "set", way_names[how], scopes[s], bytes, quartiles_of(asking[s]), without.middle);
            row("computing", "set-prepared", way_names[how], scopes[s], bytes, quartiles_of(asking_known[s]),
                quartiles_of(idle_known[s]).middle);
            row("computing", "load", unmeasured, scopes[s], bytes, quartiles_of(loading[s]),
                quartiles_of(idle_load[s]).middle);
            row("computing", "all-set", way_names[how], scopes[s], bytes, quartiles_of(asking_whole[s]),
                without.middle);
        }
    }

    // Rank 0 sends; powers of two.
    void contention(scope by, int callers, uint64_t bytes) {
        const int rounds = std::clamp(calls_at_once / callers, 8, 256), parts = rounds * callers;
        const int group = by == scope::thread ? 1 : by == scope::warp ? 32 : 64;
        const int a_block = by == scope::block ? 1 : std::min(callers, by == scope::warp ? 8 : 64);
        const unsigned blocks = static_cast<unsigned>(callers / a_block),
                       block = static_cast<unsigned>(a_block * group);
        const auto kernel = by == scope::thread ? at_once<scope::thread>
                            : by == scope::warp ? at_once<scope::warp>
                                                : at_once<scope::block>;
        MPIX_Occupancy occupancy;
        check(mpix::get_occupancy(kernel, dim3(block), 0, &occupancy), "mpix::get_occupancy");
        int fits = occupancy.blocks >= static_cast<int>(blocks);
        must(MPI_Bcast(&fits, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
        if (!fits) return;  // they would not all be there
        std::vector<double> each, rates;
        int how = 0;
        const bool sends = c_.rank == 0;
        end_of_message m(c_, sends, sends ? out_ : in_, parts, bytes, true);
        repeat("pready at once", bytes * static_cast<uint64_t>(parts), !sends, [&](bool counts) {
            m.start();
            if (sends) {
                check(cudaMemsetAsync(arrived_, 0, sizeof *arrived_, c_.stream), "cudaMemsetAsync");
                clear_notes();
                kernel<<<blocks, block, 0, c_.stream>>>(m.handle, callers, rounds, arrived_, notes_, c_.result);
                check(cudaGetLastError(), "at_once");
                const std::vector<double> took = samples("at_once", parts);
                if (counts) {
                    each.insert(each.end(), took.begin(), took.end());
                    rates.push_back(parts * 1e3 / static_cast<double>(host_notes_.last - host_notes_.first));
                }
                how = way_of_send(m, static_cast<unsigned>(group));
            }
            m.wait();
        });
        if (table_ == nullptr) return;
        quartiles q = quartiles_of(each);
        q = less_empty(q, by);
        print("pready", "at-once", way_names[how], by, group, cell(bytes), callers, q, unmeasured, unmeasured,
              cell(quartiles_of(rates).middle, 2), unmeasured);
    }

private:
    static constexpr uint64_t room = 64 << 20;

    unsigned threads(scope by) const {
        return by == scope::thread ? 1 : by == scope::warp ? 32 : static_cast<unsigned>(o_.threads);
    }

    // Epochs by c_.measure, until there are enough and the time is over. Each is told whether it counts.
    void repeat(const char *what, uint64_t total, bool receives, const std::function<void(bool)> &epoch) {
        const double start = MPI_Wtime();
        int go_on = 1;
        while (go_on != 0) {
            c_.measure(
                o_.epochs, what, out_, in_, total,
                [&](int number) {
                    epoch(number > 1);
                    return 0.0;
                },
                receives);
            go_on = MPI_Wtime() - start < o_.seconds;
            must(MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
        }
    }

    void clear_notes() {
        check(cudaMemsetAsync(notes_, 0, sizeof(notes), c_.stream), "cudaMemsetAsync");
        check(cudaMemsetAsync(&notes_->first, 0xff, sizeof notes_->first, c_.stream), "cudaMemsetAsync");
    }
    // Of the kernel that has been launched last, in nanoseconds.
    std::vector<double> samples(const char *what, int count) {
        c_.outcome(what);
        check(cudaMemcpyAsync(&host_notes_, notes_,
                              offsetof(notes, samples) + sizeof(unsigned) * static_cast<size_t>(count),
                              cudaMemcpyDeviceToHost, c_.stream),
              "cudaMemcpyAsync");
        c_.finish(what);
        const double tick = static_cast<double>(host_notes_.ns) / static_cast<double>(host_notes_.ticks);
        std::vector<double> all;
        for (int i = 0; i < count; ++i) all.push_back(tick * host_notes_.samples[i]);
        return all;
    }

    template <class Call>
    std::vector<double> alone(scope by, const Call &call, int count) {
        clear_notes();
        if (by == scope::thread)
            bench::alone<scope::thread><<<1, 1, 0, c_.stream>>>(call, count, notes_, c_.result);
        else if (by == scope::warp)
            bench::alone<scope::warp><<<1, 32, 0, c_.stream>>>(call, count, notes_, c_.result);
        else
            bench::alone<scope::block><<<1, threads(by), 0, c_.stream>>>(call, count, notes_, c_.result);
        check(cudaGetLastError(), "alone");
        return samples("alone", count);
    }

    // A kernel's mean over its blocks.
    template <class Call>
    double busy_ns(scope by, const Call &call, bool asks, int iterations) {
        const int blocks = std::min(processors_, partitions - 1);
        const auto kernel = by == scope::thread ? busy<scope::thread, Call>
                            : by == scope::warp ? busy<scope::warp, Call>
                                                : busy<scope::block, Call>;
        clear_notes();
        kernel<<<static_cast<unsigned>(blocks), 256, 0, c_.stream>>>(call, asks, iterations, sink_, notes_, c_.result);
        check(cudaGetLastError(), "busy");
        double sum = 0;
        for (const double ns : samples("busy", blocks)) sum += ns;
        return sum / blocks;
    }
    // Turn about, so that both have the same clock.
    template <class Call>
    void compute(scope by, const Call &call, std::vector<double> &without, std::vector<double> &with, bool counts) {
        if (iterations_ == 0) {
            busy_ns(by, call, false, 1000);
            const double few = busy_ns(by, call, false, 1000), many = busy_ns(by, call, false, 11000);
            iterations_ = static_cast<int>(computing_us * 1e3 / ((many - few) / 10000));
        }
        for (int i = 0; i < 21; ++i)
            for (const bool asks : {false, true}) {
                const double ns = busy_ns(by, call, asks, iterations_);
                if (counts) (asks ? with : without).push_back(ns);
            }
    }

    int way_of_send(const end_of_message &m, unsigned group_threads) {
        way_out<<<1, 1, 0, c_.stream>>>(m.handle, group_threads, m.epoch, way_);
        return read_way();
    }
    int way_of_receive(const end_of_message &m) {
        way_in<<<1, 1, 0, c_.stream>>>(m.handle, m.epoch, way_);
        return read_way();
    }
    int read_way() {
        check(cudaGetLastError(), "way");
        int how = 0;
        check(cudaMemcpyAsync(&how, way_, sizeof how, cudaMemcpyDeviceToHost, c_.stream), "cudaMemcpyAsync");
        c_.finish("way");
        return how;
    }

    // ---- rows ----

    quartiles less_empty(quartiles q, scope by) const {
        for (double *x : {&q.low, &q.middle, &q.high}) *x -= base_[static_cast<int>(by)];
        return q;
    }
    void row(const char *call, const std::string &state, const std::string &path, scope by, const quartiles &q) {
        if (table_ != nullptr)
            print(call, state, path, by, static_cast<int>(threads(by)), unmeasured, 1, q, unmeasured, unmeasured,
                  unmeasured, unmeasured);
    }
    void row(const char *call, const std::string &state, const std::string &path, scope by, uint64_t bytes,
             const figures &f) {
        if (table_ == nullptr) return;
        const double base = base_[static_cast<int>(by)];
        print(call, state, path, by, static_cast<int>(threads(by)), cell(bytes), 1, less_empty(quartiles_of(f.all), by),
              cell(quartiles_of(f.first).middle - base, 1), cell(quartiles_of(f.last).middle - base, 1), unmeasured,
              unmeasured);
    }
    // Of a block that computes.
    void row(const char *call, const std::string &state, const std::string &path, scope by, uint64_t bytes,
             const quartiles &q, std::optional<double> without) {
        if (table_ != nullptr)
            print(call, state, path, by, 256, cell(bytes), std::min(processors_, partitions - 1), q, unmeasured,
                  unmeasured, unmeasured, without ? cell((q.middle / *without - 1) * 100, 2) : unmeasured);
    }
    void print(const char *call, const std::string &state, const std::string &path, scope by, int group,
               const std::string &bytes, int callers, const quartiles &q, const std::string &first,
               const std::string &last, const std::string &rate, const std::string &percent) {
        table_->row({call, state, path, scope_names[static_cast<int>(by)], cell(group), bytes, cell(callers),
                     cell(q.middle, 1), cell(q.low, 1), cell(q.high, 1), first, last, rate, percent});
    }

    pair &c_;
    const options &o_;
    table *table_;
    int processors_ = 0, iterations_ = 0;
    notes *notes_ = nullptr, host_notes_{};
    unsigned *arrived_ = nullptr;
    int *way_ = nullptr;
    float *sink_ = nullptr;
    uint64_t *word_ = nullptr;
    char *out_ = nullptr, *in_ = nullptr;
    std::vector<double> empty_[3];
    double base_[3] = {};
};

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (without_gpu()) return 77;
    if (!parse(argc, argv, o)) {
        std::fprintf(stderr,
                     "usage: mpirun -n 2 %s [--threads N] [--epochs N] [--callers 1..%d] [--seconds N] [--quick]\n"
                     "           [--csv FILE|-]\n"
                     "--threads: of a block. --callers: at most at once. --seconds: at least, for each row.\n",
                     argv[0], most_callers);
        return 2;
    }
    pair c(argc, argv);
    std::optional<table> t;
    if (c.rank == 0)
        t.emplace("nanoseconds until a call in a kernel returns", o.csv,
                  std::vector<column>{"call", "state", "path", "scope", "threads", "size", "callers", "ns", "q1_ns",
                                      "q3_ns", "first_ns", "last_ns", "M/s", "percent"},
                  machine_names, machine_columns(c.device));
    const auto all = std::make_unique<costs>(c, o, t ? &*t : nullptr);
    for (const scope by : scopes) {
        all->send(by, 8, true);
        all->send<prepared_ready>(by, 8, true, "prepared");
        all->send(by, 8, false);
        if (by == scope::block) all->send(by, 4096, true);
        all->send(by, 4096, false);
    }
    for (const scope by : scopes) all->contributions(by, 8);
    for (const uint64_t bytes : {8, 16384}) all->receive(bytes);
    for (const scope by : scopes)
        for (int callers = 1; callers <= o.most_callers; callers *= 2) all->contention(by, callers, 8);
    return 0;
}
