// SPDX-License-Identifier: BSD-3-Clause
//
// A ping-pong between two GPUs of which every message is an epoch of its own, started and ended inside one kernel a
// rank: half of a round trip. Beside it, in the same run, the same by hand, over one buffer and one flag for all
// messages, where the answer itself says that the buffer may be written again; NVSHMEM; and epochs of the host, one
// kernel each, as programs without epochs in kernels run them.
//
// kernel_us: wait_arrived, then pready of the answer, then next_epoch of both requests. early_us: the receive is started
// again before the answer is sent. two_us: two requests each way that take turns, so that clear-to-send is given a
// message ahead. prepared_us: as kernel_us, with epoch handles. host_us: MPI_Startall, kernel, MPI_Waitall for each
// message and its answer, half of it. stream_us: the same with MPIX_Startall_enqueue and MPIX_Waitall_enqueue, for which
// the host waits once. graph_us: without kernels of the program's, MPIX_Pready_enqueue and MPIX_Wait_enqueue in a graph.
// ratio: the shortest of the kernel's ways by the shorter of those by hand.
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/floor.cuh"
#include "tests/bench/mpix_port.cuh"
#include "tests/bench/nvshmem_pair.cuh"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

constexpr uint64_t most_in_data = 64 << 10;

struct options {
    uint64_t least = 8, most = 1 << 20;
    int step = 2, epochs = 5, messages = 1000;
    std::vector<int> threads = {usual_threads};
    bool nvshmem = true, host = true, stream = true;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line(
        "mpirun -n 2 ",
        "[--min BYTES] [--max BYTES] [--step FACTOR] [--threads N,...] [--epochs N] [--messages N]\n"
        "           [--csv FILE] [--without-nvshmem] [--without-host] [--without-stream]\n"
        "BYTES from 8 to 64 MiB, powers of two. --epochs: kernels, of which the median counts; --messages:\n"
        "epochs in each. --csv -: CSV instead of text on the standard output.");
    line.value("min", o.least);
    line.value("max", o.most);
    line.value("step", o.step);
    line.list("threads", o.threads);
    line.value("epochs", o.epochs);
    line.value("messages", o.messages);
    line.without("without-nvshmem", o.nvshmem);
    line.without("without-host", o.host);
    line.without("without-stream", o.stream);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        return power_of_two(o.least, 8, 64 << 20) && power_of_two(o.most, 8, 64 << 20) &&
               power_of_two(o.step, 2, 1 << 30) &&
               std::all_of(o.threads.begin(), o.threads.end(), [](int n) { return whole_warps(n, most_threads); }) &&
               o.epochs >= 1 && o.messages >= 2 && o.messages <= 1 << 20;
    });
}

// ---- by hand: all messages over one buffer and one flag ------------------------------------------------------------

struct fence_again {
    floor_end end;
    static constexpr uint64_t box_bytes(uint64_t) { return 0; }
    __device__ floor_end numbered(int i) const {
        floor_end e = end;
        e.epoch = end.epoch * (uint64_t{1} << 20) + static_cast<uint64_t>(i) + 1;
        return e;
    }
    template <class Group>
    __device__ void put(const Group &group, int i) const {
        fence_port{numbered(i)}.put(group, 0);
    }
    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        return fence_port{numbered(i)}.await(group, 0);
    }
};
// The two slots of the inline buffer take turns; the payload is the same.
struct inline_again {
    floor_end end;
    static constexpr uint64_t box_bytes(uint64_t bytes) { return 4 * bytes; }
    __device__ inline_port numbered(int i) const {
        floor_end e = end;
        e.out -= static_cast<uint64_t>(i) * end.bytes;
        e.in -= static_cast<uint64_t>(i) * end.bytes;
        e.count = 1 << 20;
        return {e};
    }
    template <class Group>
    __device__ void put(const Group &group, int i) const {
        numbered(i).put(group, i);
    }
    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        return numbered(i).await(group, i);
    }
};

template <class Port>
double by_hand_us(pair &c, const exchange_shape &s, char *out, const char *what) {
    const floor_channel channel(c.peer, s.bytes, 1, Port::box_bytes(s.bytes));
    return c.measure(s.epochs, what, out, channel.payloads(), s.bytes,
                     [&](int e) { return ping_pong_us(c, s, Port{channel.end(out, e)}, what); });
}

// ---- by mpix -------------------------------------------------------------------------------------------------------

// `Sets` of requests take turns.
template <int Sets, bool Early>
struct epoch_port {
    MPIX_Prequest send[Sets], receive[Sets];
    int count;  // of all messages

    template <class Group>
    __device__ void put(const Group &group, int i) const {
        mpix::pready(as_mpix(group), 0, send[i % Sets]);
    }
    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        if (mpix::wait_arrived(as_mpix(group), receive[i % Sets], 0, patience_ns) != MPI_SUCCESS) return false;
        return !Early || i + Sets >= count ||
               mpix::next_epoch(as_mpix(group), receive[i % Sets], patience_ns) == MPI_SUCCESS;
    }
    template <class Group>
    __device__ void next(const Group &group, int i) const {
        if (i + Sets >= count) return;
        const MPIX_Prequest both[] = {send[i % Sets], receive[i % Sets]};
        mpix::next_epoch(as_mpix(group), Early ? 1 : 2, both, patience_ns);
    }
};
struct prepared_epoch_port {
    MPIX_Prequest send[1], receive[1];
    int count;

    struct ready {
        mpix::prepared_send send;
        mpix::prepared_receive receive;
        int count;

        template <class Group>
        __device__ void put(const Group &group, int) {
            mpix::pready(as_mpix(group), 0, send);
        }
        template <class Group>
        __device__ bool await(const Group &group, int) {
            return mpix::wait_arrived(as_mpix(group), receive, 0, patience_ns) == MPI_SUCCESS;
        }
        template <class Group>
        __device__ void next(const Group &group, int i) {
            if (i + 1 < count) mpix::next_epoch(as_mpix(group), send, receive, patience_ns);
        }
    };
    template <class Group>
    __device__ ready begin(const Group &group) const {
        return {mpix::prepare_send(as_mpix(group), send[0]), mpix::prepare_receive(as_mpix(group), receive[0]), count};
    }
};

// Requests of one partition each, exported.
class requests {
public:
    requests(pair &c, uint64_t bytes, char *out, char *in, int sets) {
        const auto count = static_cast<MPI_Count>(bytes);
        for (int k = 0; k < sets; ++k) {
            all.resize(all.size() + 2);
            must(MPI_Psend_init(out, 1, count, MPI_BYTE, c.peer, k, MPI_COMM_WORLD, MPI_INFO_NULL, &all[2 * k]),
                 "MPI_Psend_init");
            must(MPI_Precv_init(in + bytes * static_cast<uint64_t>(k), 1, count, MPI_BYTE, c.peer, k, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &all[2 * k + 1]),
                 "MPI_Precv_init");
        }
        handles.resize(all.size());
        for (std::size_t i = 0; i < all.size(); ++i)
            must(MPIX_Prequest_create(all[i], MPI_INFO_NULL, &handles[i]), "MPIX_Prequest_create");
    }
    ~requests() {
        for (std::size_t i = 0; i < all.size(); ++i) {
            must(MPIX_Prequest_free(&handles[i]), "MPIX_Prequest_free");
            must(MPI_Request_free(&all[i]), "MPI_Request_free");
        }
        MPI_Barrier(MPI_COMM_WORLD);  // the peer has let go of the buffers
    }
    requests(const requests &) = delete;
    requests &operator=(const requests &) = delete;

    void start() {
        must(MPI_Startall(static_cast<int>(all.size()), all.data()), "MPI_Startall");
        must(MPIX_Pbuf_prepare_all(static_cast<int>(all.size()), all.data()), "MPIX_Pbuf_prepare_all");
    }
    void wait() { must(MPI_Waitall(static_cast<int>(all.size()), all.data(), MPI_STATUSES_IGNORE), "MPI_Waitall"); }

    std::vector<MPI_Request> all;
    std::vector<MPIX_Prequest> handles;
};

// One message each way, in an epoch of the host.
__global__ void __launch_bounds__(usual_threads) one_round(mpix_port port, bool first, times *out) {
    const whole_block block = cooperative_groups::this_thread_block();
    if (first) port.put(block, 0);
    if (!port.await(block, 0) && threadIdx.x == 0) atomicAdd(&out->errors, 1ull);
    if (!first) port.put(block, 0);
}

class run {
public:
    run(pair &c, const options &o, table *t)
        : c_(c), o_(o), table_(t), nvshmem_(o.nvshmem ? nvshmem_pair::open(c, 256 << 20, 1 << 20) : nullptr) {
        check(cudaMalloc(&out_, 2 * o.most), "cudaMalloc");
        check(cudaMalloc(&in_, 2 * o.most), "cudaMalloc");
    }
    ~run() {
        check(cudaFree(in_), "cudaFree");
        check(cudaFree(out_), "cudaFree");
    }
    run(const run &) = delete;
    run &operator=(const run &) = delete;

    void row(uint64_t bytes, int threads) {
        const exchange_shape s{scope::block, 1, threads, bytes, o_.messages, o_.epochs};
        const double fence = by_hand_us<fence_again>(c_, s, out_, "fence");
        std::optional<double> in_data, nvshmem, host, stream, graph;
        if (bytes <= most_in_data) in_data = by_hand_us<inline_again>(c_, s, out_, "flag-in-data");
        const double one = kernels_us<1, epoch_port<1, false>>(s), early = kernels_us<1, epoch_port<1, true>>(s),
                     two = kernels_us<2, epoch_port<2, false>>(s), prepared = kernels_us<1, prepared_epoch_port>(s);
        if (nvshmem_ != nullptr) {
            exchange_shape few = s;
            few.count = static_cast<int>(std::clamp<uint64_t>((256 << 20) / bytes, 4, 1000));
            nvshmem = nvshmem_->measure(c_, few);
        }
        if (o_.host) host = host_us(s);
        if (o_.stream) stream = stream_us(s, false), graph = stream_us(s, true);
        if (table_ == nullptr) return;
        const double least = in_data ? std::min(fence, *in_data) : fence;
        table_->row({cell(bytes), cell(threads), cell(one), cell(early), cell(two), cell(prepared), cell(fence),
                     in_data ? cell(*in_data) : unmeasured, cell(std::min({one, early, two, prepared}) / least),
                     nvshmem ? cell(*nvshmem) : absent, host ? cell(*host) : unmeasured,
                     stream ? cell(*stream) : unmeasured, graph ? cell(*graph) : unmeasured});
    }

private:
    template <int Sets, class Port>
    double kernels_us(const exchange_shape &s) {
        requests r(c_, s.bytes, out_, in_, Sets);
        // The first epoch of all has to find the peer.
        r.start();
        Port port{};
        port.count = s.count;
        for (int k = 0; k < Sets; ++k) {
            one_round<<<1, usual_threads, 0, c_.stream>>>({r.handles[2 * k], r.handles[2 * k + 1]}, c_.rank == 0,
                                                          c_.result);
            port.send[k] = r.handles[2 * k];
            port.receive[k] = r.handles[2 * k + 1];
        }
        c_.finish("first epoch");
        r.wait();
        return c_.measure(s.epochs, "epochs in the kernel", out_, in_, s.bytes, [&](int) {
            r.start();
            const double us = ping_pong_us(c_, s, port, "epochs in the kernel");
            r.wait();
            return us;
        });
    }

    // Rounds of which the host waits for the last one only; those of a graph are launched `rounds_of_graph` at a time.
    static constexpr int rounds_of_graph = 10;
    double stream_us(const exchange_shape &s, bool by_graph) {
        requests r(c_, s.bytes, out_, in_, 1);
        const mpix_port port{r.handles[0], r.handles[1]};
        const auto round = [&] {
            must(MPIX_Startall_enqueue(2, r.all.data(), c_.stream), "MPIX_Startall_enqueue");
            if (by_graph) {
                if (c_.rank != 0) must(MPIX_Pwait_enqueue(r.all[1], c_.stream), "MPIX_Pwait_enqueue");
                must(MPIX_Pready_enqueue(0, r.all[0], c_.stream), "MPIX_Pready_enqueue");
            } else {
                one_round<<<1, usual_threads, 0, c_.stream>>>(port, c_.rank == 0, c_.result);
            }
            must(MPIX_Pwaitall_enqueue(2, r.all.data(), c_.stream), "MPIX_Pwaitall_enqueue");
        };
        cudaGraph_t captured = nullptr;
        cudaGraphExec_t graph = nullptr;
        if (by_graph) {
            check(cudaStreamBeginCapture(c_.stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
            for (int i = 0; i < rounds_of_graph; ++i) round();
            check(cudaStreamEndCapture(c_.stream, &captured), "cudaStreamEndCapture");
            check(cudaGraphInstantiate(&graph, captured, 0), "cudaGraphInstantiate");
        }
        const int launches = std::max(1, std::min(s.count, 100) / (by_graph ? rounds_of_graph : 1));
        const int rounds = launches * (by_graph ? rounds_of_graph : 1);
        const double us = c_.measure(s.epochs, "epochs of the stream", out_, in_, s.bytes, [&](int) {
            r.start();
            MPI_Barrier(MPI_COMM_WORLD);
            const double since = MPI_Wtime();
            for (int i = 0; i < launches; ++i)
                if (by_graph)
                    check(cudaGraphLaunch(graph, c_.stream), "cudaGraphLaunch");
                else
                    round();
            check(cudaStreamSynchronize(c_.stream), "cudaStreamSynchronize");
            const double took = (MPI_Wtime() - since) * 1e6 / (2 * rounds);
            r.wait();
            return took;
        });
        if (by_graph) {
            check(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
            check(cudaGraphDestroy(captured), "cudaGraphDestroy");
        }
        return us;
    }

    double host_us(const exchange_shape &s) {
        requests r(c_, s.bytes, out_, in_, 1);
        const mpix_port port{r.handles[0], r.handles[1]};
        const int rounds = std::min(s.count, 100);
        return c_.measure(s.epochs, "epochs of the host", out_, in_, s.bytes, [&](int) {
            const double since = MPI_Wtime();
            for (int i = 0; i < rounds; ++i) {
                must(MPI_Startall(2, r.all.data()), "MPI_Startall");
                one_round<<<1, usual_threads, 0, c_.stream>>>(port, c_.rank == 0, c_.result);
                must(MPI_Waitall(2, r.all.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
                check(cudaStreamSynchronize(c_.stream), "cudaStreamSynchronize");
            }
            return (MPI_Wtime() - since) * 1e6 / (2 * rounds);
        });
    }

    pair &c_;
    const options &o_;
    table *table_;
    std::unique_ptr<nvshmem_pair> nvshmem_;
    char *out_ = nullptr, *in_ = nullptr;
};

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (without_gpu()) return 77;
    if (!parse(argc, argv, o)) return 2;
    pair c(argc, argv);
    std::optional<table> t;
    if (c.rank == 0)
        t.emplace("one-way latency of a message that is an epoch in the kernel (us)", o.csv,
                  std::vector<column>{"size", "threads", "kernel_us", "early_us", "two_us", "prepared_us", "floor_us",
                                      "flag_in_data_us", "ratio", "nvshmem_us", "host_us", "stream_us", "graph_us"},
                  machine_names, machine_columns(c.device));
    run all(c, o, t ? &*t : nullptr);
    for (uint64_t bytes = o.least; bytes <= o.most; bytes *= static_cast<uint64_t>(o.step))
        for (const int threads : o.threads) all.row(bytes, threads);
    return 0;
}
