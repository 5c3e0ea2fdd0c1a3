// SPDX-License-Identifier: BSD-3-Clause
//
// One kernel for many epochs: the host starts the next epoch while the kernel runs and tells it to go on through
// a word in shared memory, which says nothing of requests or epochs. The device functions have to find out.
#include "tests/device/workload.hpp"

using namespace device_test;

namespace {

constexpr int most_blocks = 16;
constexpr std::uint64_t stop = ~std::uint64_t{0};

// In memory that host and kernel share. Each word has one writer, for a GPU's atomics on host memory are not
// atomic against the host's.
struct inline_buffer {
    alignas(64) std::uint64_t turn;               // host: commands given so far, or stop
    alignas(64) std::uint64_t done[most_blocks];  // each block: commands carried out
};

// System-wide acquire and release of the tests' own, so that they do not lean on what they test.
DEVICE_FN std::uint64_t take(const std::uint64_t *word) {
#ifdef __CUDACC__
    std::uint64_t value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
#else
    return std::atomic_ref<std::uint64_t>(*const_cast<std::uint64_t *>(word)).load(std::memory_order_acquire);
#endif
}
DEVICE_FN void give(std::uint64_t *word, std::uint64_t value) {
#ifdef __CUDACC__
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
#else
    std::atomic_ref<std::uint64_t>(*word).store(value, std::memory_order_release);
#endif
}
DEVICE_FN std::uint64_t clock_ns() {
#ifdef __CUDACC__
    std::uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
#else
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
#endif
}

// Odd commands: poison the receive buffers, between two epochs. Even ones: the next epoch, which is running.
struct body {
    workload work;
    inline_buffer *box;
    std::uint64_t *received;  // per block: the command, for all its threads
    std::uint64_t seed;
    int rank, peer;

    template <class Block>
    DEVICE_FN void poison(const Block &block, int index, int blocks) const {
        for (int i = 0; i < work.count; ++i) {
            const port &p = work.ports[i];
            const std::uint64_t threads = static_cast<std::uint64_t>(block.num_threads());
            const std::uint64_t from = static_cast<std::uint64_t>(index) * threads;
            const std::uint64_t step = static_cast<std::uint64_t>(blocks) * threads;
            for (std::uint64_t at = from + static_cast<std::uint64_t>(block.thread_rank()); at < p.bytes; at += step)
                p.in[at] = static_cast<char>(exchange::fresh);
        }
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int blocks) const {
        const bool leader = block.thread_rank() == 0;
        for (std::uint64_t command = 1;; ++command) {
            if (leader) {
                const std::uint64_t start = clock_ns();
                std::uint64_t turn;
                while ((turn = take(&box->turn)) < command) {
                    if (clock_ns() - start > 2 * patience_ns) {
                        complain(work.ports[0].errors, wrong::timeout, command / 2, 0, 0, command, turn);
                        turn = stop;
                        break;
                    }
                    poll_pause();
                }
                received[index] = turn;
            }
            block.sync();
            const bool last = received[index] == stop;
            block.sync();
            if (last) return;
            if (command % 2 != 0) {
                poison(block, index, blocks);
            } else {
                port now[most_ports];
                for (int i = 0; i < work.count; ++i) {
                    now[i] = work.ports[i];
                    now[i].epoch = command / 2;
                    now[i].out_key = message_key(seed, rank, i, command / 2);
                    now[i].in_key = message_key(seed, peer, i, command / 2);
                }
                work.epoch(block, index, blocks, now);
            }
            block.sync();
            if (leader) give(&box->done[index], command);
        }
    }
};

std::uint64_t host_take(const std::uint64_t &word) {
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t &>(word)).load(std::memory_order_acquire);
}

void command(session &s, inline_buffer *box, std::uint64_t number, int blocks) {
    std::atomic_ref<std::uint64_t>(box->turn).store(number, std::memory_order_release);
    const double start = MPI_Wtime();
    for (int b = 0; b < blocks; ++b)
        while (host_take(box->done[b]) < number) {
            if (MPI_Wtime() - start < 60) {
                host_poll_pause();
                continue;
            }
            std::atomic_ref<std::uint64_t>(box->turn).store(stop, std::memory_order_release);
            s.settle();  // says what the kernel has seen
            fail("command %llu: block %d has not finished it", session::as_ull(number), b);
        }
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device persistent kernel");
    const long usual = executor::is_gpu ? 20000 : 2000;
    const long epochs = s.epochs != 0 ? s.epochs : s.quick ? 100 : usual;
    const int blocks = executor::is_gpu ? 13 : 2;
    {
        exchanges all(s);
        auto *const box = static_cast<inline_buffer *>(s.device->allocate_shared(sizeof(inline_buffer)));
        auto *const received = static_cast<std::uint64_t *>(s.device->allocate(most_blocks * sizeof(std::uint64_t)));
        s.device->launch_cooperative(blocks, executor::is_gpu ? 128 : 2,
                                     body{all.view(), box, received, s.seed, s.rank, s.peer});
        for (long e = 1; e <= epochs; ++e) {
            command(s, box, static_cast<std::uint64_t>(2 * e - 1), blocks);
            all.start_without_poison();
            command(s, box, static_cast<std::uint64_t>(2 * e), blocks);
            if (e % 2 == 0)
                all.wait();
            else
                all.poll();
        }
        std::atomic_ref<std::uint64_t>(box->turn).store(stop, std::memory_order_release);
        s.settle();
        s.device->release(received);
        s.device->release_shared(box);
    }
    return s.finish();
}
