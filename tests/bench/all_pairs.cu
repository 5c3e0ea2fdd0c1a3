// SPDX-License-Identifier: BSD-3-Clause
//
// The GPUs of a host, one rank each: every pair of them alone, and each with all others at once. Two ranks exchange a
// message each way in every round; a round begins, at either end, when the message of the round before has come. So at
// 8 bytes a round takes the one-way latency, and of large messages it tells the bandwidth each way while both ways are
// used.
//
// By mpix, and by hand (stores, a fence and a flag for each part). Each block has one peer and its share of that
// message's parts, of each of which it marks its own ready, and then waits for the peer's. Both have the same blocks.
//
// ratio: mpix_us by hand_us. The rates are of what one GPU sends.
#include <mpix/device.cuh>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/by_hand.cuh"
#include "tests/bench/command_line.hpp"
#include "tests/bench/machine.hpp"
#include "tests/bench/median.hpp"
#include "tests/bench/pair.cuh"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

constexpr int most_peers = 15, threads = 512, most_blocks = 96;
constexpr uint64_t least_part = 64 << 10, most_bytes = 64 << 20, volume = 256 << 20;

struct options {
    std::vector<int> sizes = {8, 8 << 10, 1 << 20, 64 << 20};
    int epochs = 5;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line("mpirun -n RANKS ",
                      "[--sizes BYTES,...] [--epochs N] [--csv FILE]\n"
                      "2 to 16 ranks, each with a GPU of its own. BYTES from 8 to 64 MiB, powers of two. --csv -: CSV\n"
                      "instead of text on the standard output.");
    line.list("sizes", o.sizes);
    line.value("epochs", o.epochs);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        return o.epochs >= 1 && std::all_of(o.sizes.begin(), o.sizes.end(), [](int bytes) {
                   return bytes > 0 && power_of_two(static_cast<uint64_t>(bytes), 8, most_bytes);
               });
    });
}

// ---- kernels -------------------------------------------------------------------------------------------------------

// Of a round: a message to each peer, `parts` parts of as many bytes. Partitions, and flags, are those of all rounds.
struct shape {
    int peers, parts, blocks_of_peer, rounds;
    uint64_t bytes;  // of a message

    __host__ __device__ uint64_t part_bytes() const { return bytes / static_cast<uint64_t>(parts); }
    __host__ __device__ uint64_t total() const { return bytes * static_cast<uint64_t>(rounds); }
};

// Calls play(peer, part, sends) for the block's parts, round after round, until one fails. The first round, in which the
// kernels meet, is not counted.
template <class Play>
__device__ void exchange(const shape &s, times *out, const Play &play) {
    const int peer = static_cast<int>(blockIdx.x) % s.peers, first = static_cast<int>(blockIdx.x) / s.peers;
    for (int r = 0; r < s.rounds; ++r) {
        bool good = true;
        for (const bool sends : {true, false})
            for (int i = first; good && i < s.parts; i += s.blocks_of_peer) good = play(peer, r * s.parts + i, sends);
        if (!good) {
            if (threadIdx.x == 0) atomicAdd(&out->errors, 1ull);
            return;
        }
        if (r == 0 && threadIdx.x == 0) atomicMin(reinterpret_cast<unsigned long long *>(&out->start), now_ns());
    }
    if (threadIdx.x == 0) atomicMax(reinterpret_cast<unsigned long long *>(&out->stop), now_ns());
}

struct requests {
    MPIX_Prequest send[most_peers], receive[most_peers];
};

__global__ void __launch_bounds__(threads, 1)
    exchange_by_mpix(const __grid_constant__ requests all, const __grid_constant__ shape s, times *out) {
    const auto block = cooperative_groups::this_thread_block();
    const int mine = static_cast<int>(blockIdx.x) % s.peers;
    const mpix::prepared_send send = mpix::prepare_send(block, all.send[mine]);
    const mpix::prepared_receive receive = mpix::prepare_receive(block, all.receive[mine]);
    exchange(s, out, [&](int, int partition, bool sends) {
        return (sends ? mpix::pready(block, partition, send)
                      : mpix::wait_arrived(block, receive, partition, patience_ns)) == MPI_SUCCESS;
    });
}

struct mapped_peers {
    char *to[most_peers];
    const char *from;  // of the first peer; the others' follow at `total` bytes each
    uint64_t *flags_there[most_peers];
    const uint64_t *flags[most_peers];
    uint64_t part_bytes, epoch;
};

__global__ void __launch_bounds__(threads, 1)
    exchange_by_hand(const __grid_constant__ mapped_peers all, const __grid_constant__ shape s, times *out) {
    const auto block = cooperative_groups::this_thread_block();
    exchange(s, out, [&](int peer, int part, bool sends) {
        if (!sends) {
            const bool came = threadIdx.x != 0 || poll_flag(all.flags[peer] + part, all.epoch);
            return __syncthreads_and(came) != 0;
        }
        const uint64_t at = static_cast<uint64_t>(part) * all.part_bytes;
        const char *const from = all.from + static_cast<uint64_t>(peer) * s.total() + at;
        if (all.part_bytes < sizeof(uint4))
            copy_by_hand<uint64_t>(block, all.to[peer] + at, from, all.part_bytes);
        else
            copy_by_hand<uint4>(block, all.to[peer] + at, from, all.part_bytes);
        __syncthreads();
        // All members' bytes before the flag; pairs with the acquire in poll_flag.
        if (threadIdx.x == 0)
            asm volatile("fence.acq_rel.sys; st.relaxed.sys.global.u64 [%0], %1;" ::"l"(all.flags_there[peer] + part),
                         "l"(all.epoch)
                         : "memory");
        return true;
    });
}

// ---- ranks ---------------------------------------------------------------------------------------------------------

// All ranks, and their memory. Some exchange messages, and the others wait for them.
class machine_test {
public:
    machine_test(int argc, char **argv) {
        int provided;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
        device = rank % devices;
        check(cudaSetDevice(device), "cudaSetDevice");
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        check(cudaMalloc(&result_, sizeof(times)), "cudaMalloc");
        check(cudaMalloc(&out_, bytes_of_buffers()), "cudaMalloc");
        check(cudaMalloc(&in_, bytes_of_buffers()), "cudaMalloc");
        check(cudaMalloc(&flags_, flag_bytes()), "cudaMalloc");
        check(cudaMemset(flags_, 0, flag_bytes()), "cudaMemset");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        in_of_.resize(static_cast<std::size_t>(size));
        flags_of_.resize(static_cast<std::size_t>(size));
        map(in_, in_of_);
        map(reinterpret_cast<char *>(flags_), flags_of_);
    }
    ~machine_test() {
        for (const std::vector<char *> &all : {in_of_, flags_of_})
            for (int r = 0; r < size; ++r)
                if (r != rank) check(cudaIpcCloseMemHandle(all[static_cast<std::size_t>(r)]), "cudaIpcCloseMemHandle");
        MPI_Barrier(MPI_COMM_WORLD);  // freed only when all have let go
        for (void *p : {static_cast<void *>(flags_), static_cast<void *>(in_), static_cast<void *>(out_),
                        static_cast<void *>(result_)})
            check(cudaFree(p), "cudaFree");
        check(cudaStreamDestroy(stream_), "cudaStreamDestroy");
        MPI_Finalize();
    }
    machine_test(const machine_test &) = delete;
    machine_test &operator=(const machine_test &) = delete;

    // Microseconds of a round, of the slowest rank, the median of the epochs; `peers`: of this rank, in the order of the
    // ranks; none: it only looks on.
    double by_mpix(const std::vector<int> &peers, const shape &s, int epochs) {
        std::vector<MPI_Request> r;
        requests all{};
        for (std::size_t i = 0; i < peers.size(); ++i) {
            MPI_Request both[2];
            const auto at = static_cast<uint64_t>(i) * s.total();
            const int parts = s.rounds * s.parts;
            const auto each = static_cast<MPI_Count>(s.part_bytes());
            must(MPI_Psend_init(out_ + at, parts, each, MPI_BYTE, peers[i], 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]),
                 "MPI_Psend_init");
            must(MPI_Precv_init(in_ + at, parts, each, MPI_BYTE, peers[i], 0, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]),
                 "MPI_Precv_init");
            must(MPIX_Prequest_create(both[0], MPI_INFO_NULL, &all.send[i]), "MPIX_Prequest_create");
            must(MPIX_Prequest_create(both[1], MPI_INFO_NULL, &all.receive[i]), "MPIX_Prequest_create");
            r.insert(r.end(), both, both + 2);
        }
        const int count = static_cast<int>(r.size());
        const double us = measure("mpix", peers, s, epochs, [&] {
            must(MPI_Startall(count, r.data()), "MPI_Startall");
            must(MPIX_Pbuf_prepare_all(count, r.data()), "MPIX_Pbuf_prepare_all");
            exchange_by_mpix<<<blocks(s), threads, 0, stream_>>>(all, s, result_);
            check(cudaGetLastError(), "exchange_by_mpix");
            finish("mpix");
            must(MPI_Waitall(count, r.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        });
        for (std::size_t i = 0; i < peers.size(); ++i)
            for (MPIX_Prequest *p : {&all.send[i], &all.receive[i]}) must(MPIX_Prequest_free(p), "MPIX_Prequest_free");
        for (MPI_Request &one : r) must(MPI_Request_free(&one), "MPI_Request_free");
        return us;
    }

    // `theirs`: this rank's place among the peers of each peer.
    double by_hand(const std::vector<int> &peers, const std::vector<int> &theirs, const shape &s, int epochs) {
        mapped_peers all{};
        all.from = out_;
        all.part_bytes = s.part_bytes();
        const uint64_t flags = static_cast<uint64_t>(s.rounds) * static_cast<uint64_t>(s.parts);
        for (std::size_t i = 0; i < peers.size(); ++i) {
            const auto peer = static_cast<std::size_t>(peers[i]);
            const auto there = static_cast<uint64_t>(theirs[i]);
            all.to[i] = in_of_[peer] + there * s.total();
            all.flags_there[i] = reinterpret_cast<uint64_t *>(flags_of_[peer]) + there * flags;
            all.flags[i] = flags_ + static_cast<uint64_t>(i) * flags;
        }
        return measure("by hand", peers, s, epochs, [&] {
            all.epoch = static_cast<uint64_t>(data_);  // which every rank counts
            exchange_by_hand<<<blocks(s), threads, 0, stream_>>>(all, s, result_);
            check(cudaGetLastError(), "exchange_by_hand");
            finish("by hand");
        });
    }

    int rank = 0, size = 1, devices = 0, device = 0;

private:
    uint64_t bytes_of_buffers() const { return volume * static_cast<uint64_t>(size - 1); }
    static constexpr uint64_t most_flags = 1 << 13;  // of a peer: of the parts of all rounds
    uint64_t flag_bytes() const { return static_cast<uint64_t>(size - 1) * most_flags * sizeof(uint64_t); }
    static unsigned blocks(const shape &s) { return static_cast<unsigned>(s.peers * s.blocks_of_peer); }

    // All ranks' memory, as it is seen here.
    void map(char *own, std::vector<char *> &all) {
        cudaIpcMemHandle_t mine;
        check(cudaIpcGetMemHandle(&mine, own), "cudaIpcGetMemHandle");
        std::vector<cudaIpcMemHandle_t> handles(static_cast<std::size_t>(size));
        MPI_Allgather(&mine, sizeof mine, MPI_BYTE, handles.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
        for (int r = 0; r < size; ++r) {
            void *base = own;
            const auto at = static_cast<std::size_t>(r);
            if (r != rank)
                check(cudaIpcOpenMemHandle(&base, handles[at], cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
            all[at] = static_cast<char *>(base);
        }
    }

    // Until the stream is done, or the end of the program: a kernel that waits must not keep the machine.
    void finish(const char *what) const {
        const double since = MPI_Wtime();
        cudaError_t state;
        while ((state = cudaStreamQuery(stream_)) == cudaErrorNotReady)
            if (MPI_Wtime() - since > 2e-9 * static_cast<double>(patience_ns)) {
                std::fprintf(stderr, "rank %d: %s: no end within 20 s\n", rank, what);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        check(state, what);
    }

    static uint64_t key(int epoch, int from, int to) {
        return (static_cast<uint64_t>(epoch) << 16 | static_cast<uint64_t>(from) << 8 | static_cast<uint64_t>(to)) + 1;
    }

    // Fresh data in all that is sent, poison where it goes, and every byte that has come checked.
    template <class Epoch>
    double measure(const char *what, const std::vector<int> &peers, const shape &s, int epochs, const Epoch &epoch) {
        std::vector<double> all;
        const uint64_t words = s.total() / sizeof(uint64_t);
        for (int e = 0; e <= epochs; ++e) {
            ++data_;
            const auto at = [&](char *buffer, std::size_t i) {
                return reinterpret_cast<uint64_t *>(buffer) + i * words;
            };
            for (std::size_t i = 0; i < peers.size(); ++i)
                prepare<<<264, 512, 0, stream_>>>(at(out_, i), at(in_, i), words, key(data_, rank, peers[i]));
            const times none{~uint64_t{0}, 0, 0};
            check(cudaMemcpyAsync(result_, &none, sizeof none, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
            finish("prepare");
            MPI_Barrier(MPI_COMM_WORLD);
            if (!peers.empty()) epoch();
            MPI_Barrier(MPI_COMM_WORLD);
            for (std::size_t i = 0; i < peers.size(); ++i)
                verify<<<264, 512, 0, stream_>>>(at(in_, i), words, key(data_, peers[i], rank), result_);
            check(cudaGetLastError(), "verify");
            times t;
            check(cudaMemcpyAsync(&t, result_, sizeof t, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
            finish(what);
            if (t.errors != 0) {
                std::fprintf(stderr, "rank %d: %s: %llu wrong words or failed calls\n", rank, what, t.errors);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
            double us = peers.empty() ? 0 : static_cast<double>(t.stop - t.start) * 1e-3 / (s.rounds - 1), slowest = 0;
            MPI_Allreduce(&us, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (e > 0) all.push_back(slowest);
        }
        return median(all);
    }

    cudaStream_t stream_ = nullptr;
    times *result_ = nullptr;
    char *out_ = nullptr, *in_ = nullptr;
    uint64_t *flags_ = nullptr;
    std::vector<char *> in_of_, flags_of_;
    int data_ = 0;
};

// As many rounds as the buffers hold.
shape shape_of(int peers, int most_peers_of_any, uint64_t bytes) {
    shape s{};
    s.peers = peers;
    s.bytes = bytes;
    const uint64_t room = static_cast<uint64_t>(most_blocks / most_peers_of_any);
    s.blocks_of_peer = static_cast<int>(std::clamp<uint64_t>(bytes / least_part, 1, room));
    s.parts = static_cast<int>(std::clamp<uint64_t>(bytes / least_part, 1, 4 * room));
    while (bytes % static_cast<uint64_t>(s.parts) != 0 || bytes / static_cast<uint64_t>(s.parts) % 16 != 0) {
        if (s.parts == 1) break;
        --s.parts;
    }
    s.rounds = static_cast<int>(std::min<uint64_t>(volume / bytes, 1000));
    return s;
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, o)) return 2;
    if (without_gpu()) return 77;
    machine_test m(argc, argv);
    if (m.size < 2 || m.size > most_peers + 1 || m.size > m.devices) {
        if (m.rank == 0) std::printf("skipped: %d ranks, %d GPUs\n", m.size, m.devices);
        return 77;
    }
    std::optional<table> t;
    if (m.rank == 0)
        t.emplace(
            "exchanges of pairs of GPUs, and of all GPUs at once", o.csv,
            std::vector<column>{"gpus", "bytes", "blocks", "mpix_us", "hand_us", "ratio", "mpix_GB/s", "hand_GB/s"},
            machine_names, machine_columns(m.device));
    // `peers`, `theirs` as by_hand takes them; `most`: peers of the rank that has most.
    const auto row = [&](const std::string &name, const std::vector<int> &peers, const std::vector<int> &theirs,
                         int most, uint64_t bytes) {
        const shape s = shape_of(static_cast<int>(peers.size()), most, bytes);
        const double us = m.by_mpix(peers, s, o.epochs), hand = m.by_hand(peers, theirs, s, o.epochs);
        const double sent = static_cast<double>(bytes) * most * 1e-3;
        if (t)
            t->row({name, cell(bytes), cell(s.blocks_of_peer * most), cell(us, 2), cell(hand, 2), cell(us / hand, 2),
                    cell(sent / us, 2), cell(sent / hand, 2)});
    };
    for (const int size : o.sizes) {
        const auto bytes = static_cast<uint64_t>(size);
        for (int a = 0; a < m.size; ++a)
            for (int b = a + 1; b < m.size; ++b) {
                std::vector<int> peers;
                if (m.rank == a || m.rank == b) peers.push_back(m.rank == a ? b : a);
                row(std::to_string(a) + "-" + std::to_string(b), peers, std::vector<int>(peers.size(), 0), 1, bytes);
            }
        if (m.size == 2) continue;
        std::vector<int> peers, theirs;
        for (int r = 0; r < m.size; ++r)
            if (r != m.rank) {
                peers.push_back(r);
                theirs.push_back(m.rank < r ? m.rank : m.rank - 1);
            }
        row("all", peers, theirs, m.size - 1, bytes);
    }
    return 0;
}
