// SPDX-License-Identifier: BSD-3-Clause
//
// Faces of arrays from one GPU's memory to another's, from gaps into gaps, by partitioned communication. A face is
// rows of `run` bytes, `pitch` apart, the same on both sides; each rank has one to send and one to receive, and they
// take turns. Half of a round trip:
//
//   MPI_Pready            from the host: both requests started, each partition readied, both waited for; wall clock
//   mpix::pready_typed    one kernel a rank, one block a partition: the blocks move the bytes; device clock, without
//                         the launch; the reply begins when the whole face is there
//   mpix::pready          the same, but the progress engine moves what has gaps (what has none the blocks move)
//   cudaMemcpy2D + MPI    what a program does that maps the peer's memory by hand: copy engine, wait, empty message;
//                         wall clock
//
// One way, by events, without telling the peer: cudaMemcpy2DAsync into the mapped memory, and of as many bytes without
// gaps a kernel of 16-byte stores. That kernel's rate with 256 MiB is the link's write bandwidth, which the others are
// compared with. What arrives is checked, and that gaps are left alone.
#include <cooperative_groups.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <mpix/device.cuh>
#include <string>
#include <vector>

#include "tests/bench/event_clock.cuh"
#include "tests/bench/grid.cuh"
#include "tests/bench/pair.cuh"

namespace cg = cooperative_groups;
using namespace bench;

namespace {

constexpr int threads = 512;
constexpr int64_t large = int64_t{256} << 20;          // shows the link's bandwidth
constexpr int64_t most_bytes = int64_t{3} << 29;       // of an array: three of the largest faces
constexpr int64_t most_face_bytes = int64_t{1} << 29;  // of one face with its gaps

struct face {
    int64_t bytes, run, pitch;
    face(int64_t all, int64_t row)
        : bytes(all), run(row == 0 ? all : row), pitch(row == 0 ? all : std::max<int64_t>(4 * row, 256)) {}
    bool strided() const { return run != pitch; }
    int64_t rows() const { return bytes / run; }
    int64_t span() const { return rows() * pitch; }
};

struct result {
    times t;
    unsigned arrived;  // blocks, at the barrier
};

struct context {
    int rank, peer;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    result *outcome;  // on the device
    char *out, *in;
    double write_rate;  // of the link, bytes per us
    std::string columns;
};

// ---- kernels -----------------------------------------------------------------------------------------------------

template <bool Typed>
__global__ void __launch_bounds__(threads)
    take_turns(MPIX_Prequest send, MPIX_Prequest receive, int rounds, bool first, result *out) {
    const auto block = cg::this_thread_block();
    bool good = true;
    const auto put = [&](int p) {
        const int code = Typed ? mpix::pready_typed(block, p, send) : mpix::pready(block, p, send);
        good = good && code == MPI_SUCCESS;
    };
    for (int i = 0; i < rounds; ++i) {
        const int p = i * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
        if (first) put(p);
        // After a failure the rest is not worth its time.
        good = mpix::wait_arrived(block, receive, p, good ? patience_ns : 0) == MPI_SUCCESS && good;
        good = grid_barrier(&out->arrived, (static_cast<unsigned>(i) + 1) * gridDim.x) && good;
        if (!first) put(p);
        if (i == 0 && blockIdx.x == 0 && threadIdx.x == 0) out->t.start = now_ns();
    }
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) out->t.stop = now_ns();
    if (!good) atomicAdd(reinterpret_cast<unsigned long long *>(&out->t.errors), 1ull);
}

constexpr uint64_t poison = 0x5a5a5a5a5a5a5a5au;

__global__ void prepare_faces(uint64_t *out, uint64_t *in, int64_t words, uint64_t key) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step) {
        out[i] = payload_word(key, static_cast<uint64_t>(i));
        in[i] = poison;
    }
}

// Of each `pitch` words the first `run` are the payload, and the others as they were.
__global__ void verify_faces(const uint64_t *in, int64_t words, int64_t run, int64_t pitch, uint64_t key, result *out) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words; i += step) {
        const uint64_t expected = i % pitch < run ? payload_word(key, static_cast<uint64_t>(i)) : poison;
        if (in[i] != expected) atomicAdd(reinterpret_cast<unsigned long long *>(&out->t.errors), 1ull);
    }
}

struct grid_group {  // for copy_by_hand
    __device__ uint64_t num_threads() const { return uint64_t{gridDim.x} * blockDim.x; }
    __device__ uint64_t thread_rank() const { return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
};

__global__ void __launch_bounds__(threads) store(char *to, const char *from, uint64_t bytes) {
    copy_by_hand<uint4>(grid_group{}, to, from, bytes);
}

// ---- measuring ---------------------------------------------------------------------------------------------------

result read_result(const context &c, const char *what) {
    result r;
    // First: a copy into pageable memory behind a kernel keeps other threads, and so the progress engine, out of CUDA.
    check(cudaStreamSynchronize(c.stream), what);
    check(cudaMemcpyAsync(&r, c.outcome, sizeof r, cudaMemcpyDeviceToHost, c.stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(c.stream), what);
    return r;
}

void clear_result(const context &c) {
    check(cudaMemsetAsync(c.outcome, 0, sizeof(result), c.stream), "cudaMemsetAsync");
    check(cudaStreamSynchronize(c.stream), "cudaMemsetAsync");
}

void expect_no_errors(const context &c, const char *what) {
    const result r = read_result(c, what);
    if (r.t.errors == 0) return;
    std::fprintf(stderr, "rank %d: %s: %llu wrong words or failed calls\n", c.rank, what,
                 static_cast<unsigned long long>(r.t.errors));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Fresh faces to send, poison where they arrive; `turn`; all checked. `times_over` times and once more to warm up. The
// median of what `turn` returns, in microseconds. `receives`: to this rank something is sent.
double measure(const context &c, const face &f, int faces, const char *what, char *in, bool receives, int times_over,
               const std::function<double()> &turn) {
    static uint64_t key = 1;
    std::vector<double> all;
    const int64_t words = f.span() * faces / 8;
    for (int e = 0; e <= times_over; ++e) {
        key += 2;
        const auto mine = static_cast<uint64_t>(c.rank), theirs = static_cast<uint64_t>(c.peer);
        prepare_faces<<<1024, 512, 0, c.stream>>>(reinterpret_cast<uint64_t *>(c.out), reinterpret_cast<uint64_t *>(in),
                                                  words, key + mine);
        check(cudaGetLastError(), "prepare_faces");
        clear_result(c);
        MPI_Barrier(MPI_COMM_WORLD);
        const double us = turn();
        expect_no_errors(c, what);
        MPI_Barrier(MPI_COMM_WORLD);  // what came without a message is here now
        verify_faces<<<1024, 512, 0, c.stream>>>(reinterpret_cast<const uint64_t *>(in), words,
                                                 receives ? f.run / 8 : 0, f.pitch / 8, key + theirs, c.outcome);
        check(cudaGetLastError(), "verify_faces");
        expect_no_errors(c, what);
        MPI_Barrier(MPI_COMM_WORLD);
        if (e > 0) all.push_back(us);
    }
    return median(all);
}

template <class Work>
double event_us(const context &c, const Work &work) {
    return median_event_us(c, 10, work);
}

// Turns that the host takes: half of a round trip.
template <class Put, class Await>
double host_turns(const context &c, const Put &put, const Await &await) {
    std::vector<double> all;
    for (int e = 0; e < 23; ++e) {
        const double start = MPI_Wtime();
        if (c.rank == 0) put();
        await();
        if (c.rank != 0) put();
        if (e >= 3) all.push_back((MPI_Wtime() - start) * 1e6 / 2);
    }
    return median(all);
}

void print(const context &c, const face &f, const char *how, int partitions, const std::string &path, const char *clock,
           double us) {
    if (c.rank != 0) return;
    const auto bytes = static_cast<double>(f.bytes);
    std::printf("%lld,%lld,%lld,%s,%d,%s,%s,%.2f,%.2f,%.3f,%s\n", static_cast<long long>(f.bytes),
                static_cast<long long>(f.run), static_cast<long long>(f.pitch), how, partitions, path.c_str(), clock,
                us, us > 0 ? bytes / us / 1e3 : 0, us > 0 ? bytes / us / c.write_rate : 0, c.columns.c_str());
    std::fflush(stdout);
}

// ---- mpix --------------------------------------------------------------------------------------------------------

// A send and a receive of `faces` faces, one after another, in `partitions` each.
class requests {
public:
    requests(const context &c, const face &f, int partitions, int faces) {
        MPI_Datatype row = MPI_BYTE, bytes = MPI_DATATYPE_NULL;
        const int64_t count = (f.strided() ? f.rows() : f.bytes) / partitions;
        if (f.strided()) {
            MPI_Type_contiguous(static_cast<int>(f.run), MPI_BYTE, &bytes);
            MPI_Type_create_resized(bytes, 0, f.pitch, &row);
            MPI_Type_commit(&row);
        }
        MPI_Psend_init(c.out, partitions * faces, count, row, c.peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
        MPI_Precv_init(c.in, partitions * faces, count, row, c.peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
        if (f.strided()) {
            MPI_Type_free(&bytes);
            MPI_Type_free(&row);
        }
    }
    ~requests() {
        for (MPI_Request &r : both) MPI_Request_free(&r);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    requests(const requests &) = delete;
    requests &operator=(const requests &) = delete;

    std::string path() const {
        char text[32] = "";
        MPIX_Request_path(both[0], text, sizeof text);
        return text;
    }
    MPI_Request both[2];  // send, receive
};

void by_host(const context &c, const face &f, int partitions) {
    requests r(c, f, partitions, 1);
    const double us = measure(c, f, 1, "MPI_Pready", c.in, true, 1, [&] {
        // Both are started before anything is sent, as in a program that exchanges halos.
        bool started = false;
        const auto start = [&] {
            if (!started) MPI_Startall(2, r.both);
            started = true;
        };
        return host_turns(
            c,
            [&] {
                start();
                for (int p = 0; p < partitions; ++p) MPI_Pready(p, r.both[0]);
                if (c.rank != 0) {
                    MPI_Wait(&r.both[0], MPI_STATUS_IGNORE);
                    started = false;
                }
            },
            [&] {
                start();
                if (c.rank == 0) MPI_Wait(&r.both[0], MPI_STATUS_IGNORE);
                MPI_Wait(&r.both[1], MPI_STATUS_IGNORE);
                if (c.rank == 0) started = false;
            });
    });
    print(c, f, "MPI_Pready", partitions, r.path(), "wall round trip / 2", us);
}

template <bool Typed>
void by_kernel(const context &c, const face &f, int partitions) {
    // The first round is for the kernels to meet.
    const int rounds = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 30) / f.span(), 3, 17));
    const char *const how = Typed ? "mpix::pready_typed" : "mpix::pready";
    requests r(c, f, partitions, rounds);
    MPIX_Prequest send, receive;
    MPIX_Prequest_create(r.both[0], MPI_INFO_NULL, &send);
    MPIX_Prequest_create(r.both[1], MPI_INFO_NULL, &receive);
    const double us = measure(c, f, rounds, how, c.in, true, 5, [&] {
        MPI_Startall(2, r.both);
        MPIX_Pbuf_prepare_all(2, r.both);  // so that nothing is deferred for want of the receiver
        take_turns<Typed><<<static_cast<unsigned>(partitions), threads, 0, c.stream>>>(send, receive, rounds,
                                                                                       c.rank == 0, c.outcome);
        check(cudaGetLastError(), how);
        expect_no_errors(c, how);  // before something is waited for that will not come
        const times t = read_result(c, how).t;
        MPI_Waitall(2, r.both, MPI_STATUSES_IGNORE);
        return static_cast<double>(t.stop - t.start) * 1e-3 / (2.0 * (rounds - 1));
    });
    const std::string path = r.path();
    MPIX_Prequest_free(&send);
    MPIX_Prequest_free(&receive);
    print(c, f, how, partitions, path, "device round trip / 2", us);
}

// ---- by hand -----------------------------------------------------------------------------------------------------

void by_hand(const context &c, const face &f, char *in, char *peer_in) {
    const auto copy = [&] {
        check(cudaMemcpy2DAsync(peer_in, static_cast<std::size_t>(f.pitch), c.out, static_cast<std::size_t>(f.pitch),
                                static_cast<std::size_t>(f.run), static_cast<std::size_t>(f.rows()),
                                cudaMemcpyDeviceToDevice, c.stream),
              "cudaMemcpy2DAsync");
    };
    const double one_way =
        measure(c, f, 1, "cudaMemcpy2D", in, c.rank != 0, 1, [&] { return c.rank == 0 ? event_us(c, copy) : 0; });
    print(c, f, "cudaMemcpy2D", 1, "mapped by hand", "events one way", one_way);
    const double turns = measure(c, f, 1, "cudaMemcpy2D + MPI", in, true, 1, [&] {
        return host_turns(
            c,
            [&] {
                copy();
                check(cudaStreamSynchronize(c.stream), "cudaMemcpy2DAsync");
                MPI_Send(nullptr, 0, MPI_BYTE, c.peer, 2, MPI_COMM_WORLD);
            },
            [&] { MPI_Recv(nullptr, 0, MPI_BYTE, c.peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); });
    });
    print(c, f, "cudaMemcpy2D + MPI", 1, "mapped by hand", "wall round trip / 2", turns);
    if (f.strided()) return;
    const auto blocks = static_cast<unsigned>(std::clamp<int64_t>(f.bytes / (threads * 16), 1, 1056));
    const double stores = measure(c, f, 1, "store kernel", in, c.rank != 0, 1, [&] {
        if (c.rank != 0) return 0.0;
        return event_us(c, [&] {
            store<<<blocks, threads, 0, c.stream>>>(peer_in, c.out, static_cast<uint64_t>(f.bytes));
            check(cudaGetLastError(), "store");
        });
    });
    print(c, f, "store kernel", 1, "mapped by hand", "events one way", stores);
}

// Sets c.write_rate on both ranks.
void link_bandwidth(context &c, char *in, char *peer_in) {
    const face f(large, 0);
    constexpr unsigned grids[] = {132, 264, 528, 1056};
    double us[std::size(grids)] = {};
    for (std::size_t g = 0; g < std::size(grids); ++g)
        us[g] = measure(c, f, 1, "store kernel", in, c.rank != 0, 1, [&] {
            if (c.rank != 0) return 0.0;
            return event_us(c, [&] {
                store<<<grids[g], threads, 0, c.stream>>>(peer_in, c.out, static_cast<uint64_t>(large));
                check(cudaGetLastError(), "store");
            });
        });
    MPI_Bcast(us, std::size(grids), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    c.write_rate = static_cast<double>(large) / *std::min_element(std::begin(us), std::end(us));
    for (std::size_t g = 0; g < std::size(grids); ++g)
        print(c, f, ("store kernel of " + std::to_string(grids[g]) + " blocks").c_str(), 1, "mapped by hand",
              "events one way", us[g]);
}

// Last of all, since it may make a context of ours on the peer's GPU. No time where it is refused.
void peer_copy(const context &c, int device, char *peer_in) {
    const face f(large, 0);
    cudaPointerAttributes at{};
    check(cudaPointerGetAttributes(&at, peer_in), "cudaPointerGetAttributes");
    double us = 0;
    if (c.rank == 0) {
        const auto copy = [&] {
            return cudaMemcpyPeerAsync(peer_in, at.device, c.out, device, static_cast<std::size_t>(large), c.stream);
        };
        if (copy() == cudaSuccess && cudaStreamSynchronize(c.stream) == cudaSuccess)
            us = event_us(c, [&] { check(copy(), "cudaMemcpyPeerAsync"); });
        (void)cudaGetLastError();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    print(c, f, us > 0 ? "cudaMemcpyPeerAsync" : "cudaMemcpyPeerAsync (refused)", 1, "mapped by hand", "events one way",
          us);
}

}  // namespace

int main(int argc, char **argv) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) {
        std::puts("skipped: fewer than two GPUs");
        return 77;
    }
    const pair both(argc, argv);
    MPI_Comm node;
    int beside, reaches = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &beside);
    MPI_Comm_free(&node);
    if (beside == 2) check(cudaDeviceCanAccessPeer(&reaches, both.device, 1 - both.device), "cudaDeviceCanAccessPeer");
    MPI_Allreduce(MPI_IN_PLACE, &reaches, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (reaches == 0) {
        if (both.rank == 0) std::puts("skipped: not two ranks with GPUs that can map each other");
        return 77;
    }
    context c{};
    c.rank = both.rank;
    c.peer = both.peer;
    c.stream = both.stream;
    check(cudaEventCreate(&c.begin), "cudaEventCreate");
    check(cudaEventCreate(&c.end), "cudaEventCreate");
    check(cudaMalloc(&c.outcome, sizeof(result)), "cudaMalloc");
    check(cudaMalloc(&c.out, most_bytes), "cudaMalloc");
    check(cudaMalloc(&c.in, most_bytes), "cudaMalloc");
    c.columns = machine_columns(both.device);
    c.write_rate = 1;
    if (c.rank == 0)
        std::printf("face,run,pitch,how,partitions,path,clock,us,GB/s,of_write_bandwidth,gpu,driver,cuda,date,mpi\n");
    {
        const mapped_memory channel(c.peer, most_face_bytes);  // of its own: mpix maps c.in
        char *const peer_in = channel.peer();
        link_bandwidth(c, channel.own(), peer_in);
        for (const int64_t bytes : {int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20})
            for (const int64_t run : {8, 64, 256, 1024, 4096, 0}) {
                const face f(bytes, run);
                const auto cut = [&](int parts) { return (f.strided() ? f.rows() : f.bytes) % parts == 0; };
                by_hand(c, f, channel.own(), peer_in);
                for (const int n : {1, 16})
                    if (cut(n)) by_host(c, f, n);
                for (const int n : {1, 16, 128})
                    if (cut(n)) by_kernel<true>(c, f, n);
                for (const int n : {1, 16})
                    if (cut(n)) by_kernel<false>(c, f, n);
            }
        peer_copy(c, both.device, peer_in);
    }
    for (void *p : {static_cast<void *>(c.outcome), static_cast<void *>(c.out), static_cast<void *>(c.in)})
        check(cudaFree(p), "cudaFree");
    check(cudaEventDestroy(c.begin), "cudaEventDestroy");
    check(cudaEventDestroy(c.end), "cudaEventDestroy");
    return 0;
}
