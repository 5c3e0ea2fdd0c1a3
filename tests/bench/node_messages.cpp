// SPDX-License-Identifier: BSD-3-Clause
//
// Would a halo exchange gain if all messages from one node to another were a single one? Plain MPI, without mpix: each
// rank of a node exchanges messages with some ranks of the other node,
//   standard  a persistent message to each rank
//   2-step    each rank sends one message to the rank at its own place of the other node, into shared memory, where the ranks there
//             take out what is theirs
//   3-step    the ranks gather their messages in shared memory; the node's first rank sends them as one, and the other node's first
//             rank receives it into shared memory
// Flags and copies are all that shared memory takes here, so both are the best that they can be.
//
//   mpirun -n 2N --bind-to core node_messages [--rounds N] [--csv FILE]
//
// Ranks 0 to N - 1 are one "node", the others another. All run on one machine, so only what MPI sends is to go by a
// network: for Open MPI, --mca btl tcp,self --mca pml ob1.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/bench/median.hpp"

namespace {

struct machine {
    int rank, ranks, per_node, here;  // here: the position in the node
    bool upper;
    int other(int position) const { return (upper ? 0 : per_node) + position; }
};

// A flag of its own cache line.
struct alignas(64) flag {
    std::atomic<std::uint64_t> epoch;
};
void await(const flag &f, std::uint64_t epoch) {
    for (unsigned looks = 1; f.epoch.load(std::memory_order_acquire) < epoch; ++looks)
        if (looks % 1000 == 0) std::this_thread::yield();
}

// `count` messages of `bytes` to the other node from each rank, and as many from there.
struct pattern {
    int count;
    std::size_t bytes;
};

class standard_messages {
public:
    standard_messages(const machine &m, const pattern &p) : out_(p.count * p.bytes), in_(out_.size()) {
        for (int i = 0; i < p.count; ++i) {
            const std::size_t at = static_cast<std::size_t>(i) * p.bytes;
            // The i-th message of a rank goes to the rank i places behind its own.
            MPI_Send_init(out_.data() + at, static_cast<int>(p.bytes), MPI_BYTE, m.other((m.here + i) % m.per_node), i,
                          MPI_COMM_WORLD, &requests_.emplace_back());
            MPI_Recv_init(in_.data() + at, static_cast<int>(p.bytes), MPI_BYTE,
                          m.other((m.here + m.per_node - i % m.per_node) % m.per_node), i, MPI_COMM_WORLD,
                          &requests_.emplace_back());
        }
    }
    ~standard_messages() {
        for (MPI_Request &r : requests_) MPI_Request_free(&r);
    }
    void exchange(const char *from, char *to) {
        std::memcpy(out_.data(), from, out_.size());
        MPI_Startall(static_cast<int>(requests_.size()), requests_.data());
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        std::memcpy(to, in_.data(), in_.size());
    }

private:
    std::vector<char> out_, in_;
    std::vector<MPI_Request> requests_;
};

// Memory of a node, zeroed: two flags for each rank, and room for all messages twice.
class node_memory {
public:
    node_memory(const machine &m, std::size_t all_bytes) {
        const std::size_t flag_bytes = 2 * static_cast<std::size_t>(m.per_node) * sizeof(flag);
        void *memory = nullptr;
        MPI_Comm_split(MPI_COMM_WORLD, m.upper, m.here, &node_);
        MPI_Win_allocate_shared(m.here == 0 ? static_cast<MPI_Aint>(flag_bytes + 2 * all_bytes) : 0, 1, MPI_INFO_NULL,
                                node_, &memory, &window_);
        MPI_Aint size = 0;
        int unit = 0;
        MPI_Win_shared_query(window_, 0, &size, &unit, &memory);
        if (m.here == 0) std::memset(memory, 0, flag_bytes + 2 * all_bytes);
        MPI_Barrier(node_);
        flags = static_cast<flag *>(memory);
        out = static_cast<char *>(memory) + flag_bytes;
        in = out + all_bytes;
    }
    ~node_memory() {
        MPI_Win_free(&window_);
        MPI_Comm_free(&node_);
    }
    node_memory(const node_memory &) = delete;
    node_memory &operator=(const node_memory &) = delete;

    flag *flags = nullptr;
    char *out = nullptr, *in = nullptr;

private:
    MPI_Comm node_ = MPI_COMM_NULL;
    MPI_Win window_ = MPI_WIN_NULL;
};

// A send and a receive.
class message_pair {
public:
    message_pair(char *out, char *in, std::size_t bytes, int peer) {
        MPI_Send_init(out, static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests_[0]);
        MPI_Recv_init(in, static_cast<int>(bytes), MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests_[1]);
    }
    ~message_pair() {
        for (MPI_Request &r : requests_) MPI_Request_free(&r);
    }
    message_pair(const message_pair &) = delete;
    message_pair &operator=(const message_pair &) = delete;
    void exchange() {
        MPI_Startall(2, requests_);
        MPI_Waitall(2, requests_, MPI_STATUSES_IGNORE);
    }

private:
    MPI_Request requests_[2];
};

class two_step_messages {
public:
    two_step_messages(const machine &m, const pattern &p)
        : m_(m),
          p_(p),
          mine_(p.count * p.bytes),
          memory_(m, mine_ * static_cast<std::size_t>(m.per_node) * 2),
          out_(mine_) {
        for (int half = 0; half < 2; ++half)
            messages_[half] = std::make_unique<message_pair>(out_.data(), room(m.here, half), mine_, m.other(m.here));
    }
    void exchange(const char *from, char *to) {
        // Two buffers in turn: one is received into again only after all ranks have taken out what it held two
        // exchanges ago.
        const int half = static_cast<int>(++epoch_ % 2);
        std::memcpy(out_.data(), from, mine_);
        for (int i = 0; i < m_.per_node; ++i) await(memory_.flags[m_.per_node + i], epoch_ < 2 ? 0 : epoch_ - 2);
        messages_[half]->exchange();
        memory_.flags[m_.here].epoch.store(epoch_, std::memory_order_release);
        for (int i = 0; i < p_.count; ++i) {
            const int through = (m_.here + m_.per_node - i % m_.per_node) % m_.per_node;
            const std::size_t at = static_cast<std::size_t>(i) * p_.bytes;
            await(memory_.flags[through], epoch_);
            std::memcpy(to + at, room(through, half) + at, p_.bytes);
        }
        memory_.flags[m_.per_node + m_.here].epoch.store(epoch_, std::memory_order_release);
    }

private:
    char *room(int position, int half) { return memory_.in + static_cast<std::size_t>(2 * position + half) * mine_; }

    const machine &m_;
    const pattern p_;
    const std::size_t mine_;
    node_memory memory_;
    std::vector<char> out_;
    std::unique_ptr<message_pair> messages_[2];
    std::uint64_t epoch_ = 0;
};

class three_step_messages {
public:
    three_step_messages(const machine &m, const pattern &p)
        : m_(m), p_(p), mine_(p.count * p.bytes), memory_(m, mine_ * static_cast<std::size_t>(m.per_node)) {
        if (m.here == 0)
            messages_ = std::make_unique<message_pair>(memory_.out, memory_.in,
                                                       mine_ * static_cast<std::size_t>(m.per_node), m.other(0));
    }
    void exchange(const char *from, char *to) {
        ++epoch_;
        // By receiver, then by message, so that each rank's part of the buffer is one piece there.
        for (int i = 0; i < p_.count; ++i)
            std::memcpy(memory_.out + static_cast<std::size_t>((m_.here + i) % m_.per_node) * mine_ +
                            static_cast<std::size_t>(i) * p_.bytes,
                        from + static_cast<std::size_t>(i) * p_.bytes, p_.bytes);
        flag &arrived = memory_.flags[m_.per_node];
        if (m_.here == 0) {
            for (int i = 1; i < m_.per_node; ++i) await(memory_.flags[i], epoch_);
            messages_->exchange();
            arrived.epoch.store(epoch_, std::memory_order_release);
        } else {
            memory_.flags[m_.here].epoch.store(epoch_, std::memory_order_release);
            await(arrived, epoch_);
        }
        std::memcpy(to, memory_.in + static_cast<std::size_t>(m_.here) * mine_, mine_);
    }

private:
    const machine &m_;
    const pattern p_;
    const std::size_t mine_;
    node_memory memory_;
    std::unique_ptr<message_pair> messages_;
    std::uint64_t epoch_ = 0;
};

// What the sender's byte is in an exchange.
char value(int rank, int message, int epoch) { return static_cast<char>(rank * 31 + message * 7 + epoch * 101 + 1); }

// Microseconds of the slowest rank; aborts if a message has other bytes than were sent.
template <class Way>
double time_of(Way &way, const machine &m, const pattern &p, int count) {
    std::vector<char> from(p.count * p.bytes), to(from.size());
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = 0;
    for (int epoch = 0; epoch < count; ++epoch) {
        for (int i = 0; i < p.count; ++i)
            std::memset(from.data() + static_cast<std::size_t>(i) * p.bytes, value(m.rank, i, epoch), p.bytes);
        std::memset(to.data(), 0, to.size());
        const double begin = MPI_Wtime();
        way.exchange(from.data(), to.data());
        seconds += MPI_Wtime() - begin;
        for (int i = 0; i < p.count; ++i) {
            const int sender = m.other((m.here + m.per_node - i % m.per_node) % m.per_node);
            const char *const first = to.data() + static_cast<std::size_t>(i) * p.bytes;
            if (std::any_of(first, first + p.bytes, [&](char c) { return c != value(sender, i, epoch); })) {
                std::fprintf(stderr, "rank %d: message %d of rank %d is wrong\n", m.rank, i, sender);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
    double mine = seconds * 1e6 / count, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

void measure(std::FILE *csv, const machine &m, const pattern &p, int rounds) {
    standard_messages standard(m, p);
    two_step_messages two_step(m, p);
    three_step_messages three_step(m, p);
    const int count = p.bytes * static_cast<std::size_t>(p.count) > 100000 ? 100 : 500;
    std::vector<double> us[3];
    for (int round = -1; round < rounds; ++round) {
        const double times[] = {time_of(standard, m, p, count), time_of(two_step, m, p, count),
                                time_of(three_step, m, p, count)};
        for (int i = 0; round >= 0 && i < 3; ++i) us[i].push_back(times[i]);
    }
    if (m.rank != 0) return;
    const double a = bench::median(us[0]), b = bench::median(us[1]), c = bench::median(us[2]);
    if (csv != nullptr)
        std::fprintf(csv, "%d,%d,%zu,%.2f,%.2f,%.2f,%s,%s,%s,%s\n", m.per_node, p.count, p.bytes, a, b, c,
                     bench::library_name().c_str(), bench::cpu_model().c_str(), bench::load().c_str(),
                     bench::today().c_str());
    std::printf("%2d ranks a node, %d messages of %6zu bytes: standard %8.2f us, 2-step %8.2f us, 3-step %8.2f us\n",
                m.per_node, p.count, p.bytes, a, b, c);
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rounds = 5;
    const char *path = nullptr;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::string(argv[i]) == "--rounds") rounds = std::atoi(argv[i + 1]);
        if (std::string(argv[i]) == "--csv") path = argv[i + 1];
    }
    machine m{};
    MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m.ranks);
    m.per_node = m.ranks / 2;
    if (m.ranks % 2 != 0) {
        std::fprintf(stderr, "an even number of ranks is needed\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    m.upper = m.rank >= m.per_node;
    m.here = m.rank % m.per_node;
    const bench::csv_file file(m.rank == 0 ? path : nullptr);
    if (file.get() != nullptr)
        std::fprintf(
            file.get(),
            "ranks_per_node,messages_per_rank,bytes,standard_us,two_step_us,three_step_us,mpi,cpu,load,date\n");
    for (const int count : {1, 4})
        for (const std::size_t bytes : {std::size_t{64}, std::size_t{512}, std::size_t{4096}, std::size_t{32768}})
            measure(file.get(), m, {count, bytes}, rounds);
    MPI_Finalize();
    return 0;
}
