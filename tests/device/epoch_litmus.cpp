// SPDX-License-Identifier: BSD-3-Clause
//
// The memory order of epochs that kernels run, tried very often: clear-to-send from one kernel to the other, and the end of an
// epoch. Each block has a send and a receive of its own, whose partner is the same block of the peer's kernel, and runs their
// epochs alone, so many pairs of blocks are at different points at any time. A block waits for nothing but its messages.
//
// What is counted is an *epoch* of a block: the sender wrote fresh data to all bytes of the message, the receiver waited for all
// partitions and found every byte right. Before an epoch starts each byte of the receive buffer is the complement of what is to
// come, so no byte of an earlier epoch can pass; and a sender that comes too early overwrites what is being compared.
//
// Without --quick there are ten million epochs, over all cases. With MPIX_INLINE_BYTES=0, MPIX_RGET_BYTES or MPIX_ENGINE_BYTES
// in the environment the same on other paths.
#include "tests/device/harness.hpp"

#include <memory>

using namespace device_test;

namespace {

constexpr int most_blocks = 96;

// How a block goes from one epoch to the next.
enum class by : unsigned { list, handles, one_by_one, last };

struct run_epochs {
    const port *ports;  // of each block, in memory that the device reads
    report *errors;
    std::uint64_t seed;
    int rank, peer;
    long epochs;

    DEVICE_FN port at(const port &mine, int index, std::uint64_t epoch) const {
        port now = mine;
        now.epoch = epoch;
        now.out_key = message_key(seed, rank, index, epoch);
        now.in_key = message_key(seed, peer, index, epoch);
        return now;
    }

    template <class Block>
    DEVICE_FN void next(const Block &block, const port &now, by how, mpix::prepared_send &send,
                        mpix::prepared_receive &receive) const {
        const MPIX_Prequest both[] = {now.receive, now.send};
        if (how == by::handles) {
            now.expect(300, MPI_SUCCESS, mpix::next_epoch(block, send, receive, patience_ns));
        } else if (how == by::list) {
            now.expect(400, MPI_SUCCESS, mpix::next_epoch(block, 2, both, patience_ns));
        } else {
            now.expect(100, MPI_SUCCESS, mpix::wait(block, now.send, patience_ns));
            now.expect(101, MPI_SUCCESS, mpix::wait(block, now.receive, patience_ns));
            now.expect(200, MPI_SUCCESS, mpix::start(block, 2, both));
        }
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int) const {
        const port mine = ports[index];
        const std::uint64_t threads = static_cast<std::uint64_t>(block.num_threads());
        mpix::prepared_send send{};
        mpix::prepared_receive receive{};
        bool known = false;  // the handles are of this epoch
        for (long k = 0; k < epochs; ++k) {
            const port now = at(mine, index, mine.epoch + static_cast<std::uint64_t>(k));
            const std::uint64_t chance = mix(now.in_key ^ now.out_key);
            const by how = static_cast<by>(chance % static_cast<unsigned>(by::last));
            const bool prepared = known || how == by::handles || (chance & 256) != 0;
            if (prepared && !known) {
                send = mpix::prepare_send(block, now.send);
                receive = mpix::prepare_receive(block, now.receive);
            }
            for (int i = 0; i < now.sends; ++i) {
                const int part = (i + static_cast<int>(chance >> 60)) % now.sends;
                now.fill(block, part);
                now.expect(part, MPI_SUCCESS,
                           prepared ? mpix::pready(block, part, send) : mpix::pready(block, part, now.send));
            }
            for (int i = 0; i < now.receives; ++i) {
                const int part = (i + static_cast<int>(chance >> 50 & 15)) % now.receives;
                now.expect(part, MPI_SUCCESS,
                           prepared ? mpix::wait_arrived(block, receive, part, patience_ns)
                                    : mpix::wait_arrived(block, now.receive, part, patience_ns));
                now.verify(block, part);
            }
            block.sync();  // all members have compared
            if (k + 1 == epochs) return;
            // One looks, so that all members go the same way; the peer's block runs out of time.
            const bool failed = block.thread_rank() == 0 && mpix::detail::load_relaxed(&errors->errors) != 0;
            if (mpix::detail::broadcast_bool(block, failed)) return;
            const port later = at(mine, index, now.epoch + 1);
            for (std::uint64_t i = static_cast<std::uint64_t>(block.thread_rank()); i < mine.bytes; i += threads)
                mine.in[i] = static_cast<char>(~static_cast<unsigned>(message_byte(later.in_key, i)));
            block.sync();  // the leader gives clear-to-send for all members
            next(block, now, how, send, receive);
            known = how == by::handles;
        }
    }
};

struct trial {
    int threads, sends, receives;
    std::uint64_t bytes;  // of a message
};

std::vector<trial> trials() {
    if (!executor::is_gpu) return {{2, 1, 1, 8}, {2, 3, 3, 120}, {2, 2, 4, 4096}};
    return {{32, 1, 1, 8},      {64, 4, 4, 32},    {128, 2, 2, 1024},  {128, 1, 2, 2000},
            {256, 3, 3, 12288}, {256, 2, 1, 8192}, {128, 2, 2, 20000}, {512, 1, 1, 65536}};
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device epoch litmus");
    const std::vector<trial> all = trials();
    const long usual = executor::is_gpu && !s.quick ? 10'000'000 : 20'000;
    const long wanted = (s.epochs != 0 ? s.epochs : usual) / static_cast<long>(all.size()) + 1;
    const int blocks = executor::is_gpu ? most_blocks : 3;
    constexpr long activations = 4;
    long total = 0;
    for (const trial &t : all) {
        s.what = std::to_string(t.bytes) + " bytes in " + std::to_string(t.sends) + " and " +
                 std::to_string(t.receives) + " partitions";
        std::vector<std::unique_ptr<exchange>> pairs;
        for (int b = 0; b < blocks; ++b)
            pairs.push_back(
                std::make_unique<exchange>(s, shape{.sends = t.sends, .receives = t.receives, .bytes = t.bytes}, b));
        auto *const ports = static_cast<port *>(s.device->allocate(sizeof(port) * pairs.size()));
        // Of both ranks' blocks.
        const long each = (s.alone() ? 1 : 2) * blocks * activations, epochs = std::max((wanted + each - 1) / each, 2L);
        const double begin = MPI_Wtime();
        for (long a = 0; a < activations; ++a) {
            std::vector<port> now;
            for (auto &x : pairs) {
                x->start();
                now.push_back(x->view());
            }
            s.device->upload(ports, now.data(), sizeof(port) * now.size());
            s.device->launch_cooperative(blocks, t.threads,
                                         run_epochs{ports, s.errors, s.seed, s.rank, s.peer, epochs});
            s.settle();
            for (auto &x : pairs) {
                x->wait();
                x->epoch += static_cast<std::uint64_t>(epochs - 1);
                x->check_guards();
            }
        }
        char path[64] = "";
        must(MPIX_Request_path(pairs.front()->requests[0], path, sizeof path), "MPIX_Request_path");
        const long its = (s.alone() ? 1 : 2) * blocks * activations * epochs;
        total += its;
        if (s.rank == 0)
            std::printf("%-48s path %-10s %10ld epochs, 0 wrong bytes, %.1f s\n", s.what.c_str(), path, its,
                        MPI_Wtime() - begin);
        pairs.clear();
        s.device->release(ports);
    }
    if (s.rank == 0) std::printf("%ld epochs, 0 wrong bytes\n", total);
    return s.finish();
}
