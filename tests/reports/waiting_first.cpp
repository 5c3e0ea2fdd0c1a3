// SPDX-License-Identifier: BSD-3-Clause
//
// Three streams; the kernel that waits is launched first. The kernel that sends is launched for the first time while
// the other waits, and a third one computes meanwhile.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

constexpr int partitions = 4, steps = 5;

struct wait_and_verify {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        for (int j = block_index; j < p.receives; j += blocks) {
            p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
            p.verify(block, j);
        }
    }
};

struct fill_and_send {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        for (int i = block_index; i < p.sends; i += blocks) {
            p.fill(block, i);
            p.expect(i, MPI_SUCCESS, mpix::pready(block, i, p.send));
        }
    }
};

struct compute {
    std::uint64_t *out;
    std::uint64_t key;
    int words;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int i = static_cast<int>(block.thread_rank()); i < words; i += static_cast<int>(block.num_threads()))
            out[i] = mix(key + static_cast<std::uint64_t>(i));
    }
};

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "the waiting kernel first");
    {
        MPI_Comm node;
        int local_rank = 0;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_rank(node, &local_rank);
        MPI_Comm_free(&node);
        executor second(local_rank), third(local_rank);  // a stream each
        exchange x(s, {.sends = partitions, .receives = partitions, .bytes = 4 * 4096}, 1);
        constexpr int words = 1000;
        auto *const out = static_cast<std::uint64_t *>(third.allocate(words * sizeof(std::uint64_t)));
        std::vector<std::uint64_t> found(words);
        for (int step = 1; step <= steps; ++step) {
            s.what = "step " + std::to_string(step);
            const std::uint64_t key = mix(s.seed + static_cast<std::uint64_t>(step));
            third.set(out, 0x5a, words * sizeof(std::uint64_t));
            x.start();
            s.device->launch(2, 32, wait_and_verify{x.view()});
            second.launch(2, 32, fill_and_send{x.view()});
            third.launch(1, 32, compute{out, key, words});
            third.synchronise();
            x.wait();
            second.synchronise();
            s.settle();
            third.download(found.data(), out, words * sizeof(std::uint64_t));
            for (int i = 0; i < words; ++i)
                REQUIRE(found[static_cast<std::size_t>(i)] == mix(key + static_cast<std::uint64_t>(i)),
                        "%s: word %d is wrong", s.what.c_str(), i);
            x.check_guards();
        }
        third.release(out);
    }
    return s.finish();
}
