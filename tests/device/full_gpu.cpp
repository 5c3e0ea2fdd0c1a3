// SPDX-License-Identifier: BSD-3-Clause
//
// A grid that fills the GPU waits, all of it, for what the host marks ready meanwhile: nothing that the library does to
// deliver it may need room on that GPU.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

struct fills {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int blocks) const {
        for (int i = index; i < p.sends; i += blocks) p.fill(block, i);
    }
};

// Each block tells that it is there, and waits for its share of the partitions.
struct waits {
    port p;
    std::uint64_t *there;  // by block, in memory that the host reads, too
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int blocks) const {
        if (block.thread_rank() == 0) mpix::detail::store_relaxed(&there[index], p.epoch);
        for (int j = index; j < p.receives; j += blocks) {
            p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
            p.verify(block, j);
        }
    }
};

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device full_gpu");
    constexpr int threads = executor::is_gpu ? 64 : 1;
    const int blocks = s.device->most_resident<waits>(threads);
    auto *const there = static_cast<std::uint64_t *>(
        s.device->allocate_shared(static_cast<std::size_t>(blocks) * sizeof(std::uint64_t)));
    for (const std::uint64_t each : {std::uint64_t{8}, std::uint64_t{4096}}) {
        exchange x(s, {.sends = blocks, .receives = blocks, .bytes = each * static_cast<std::uint64_t>(blocks)},
                   static_cast<int>(each), exchange::made::unexported);
        x.export_one(x.requests[1], x.receive);
        await_match(x.requests[0]);
        s.device->load<waits>();
        for (int epoch = 0; epoch < 10; ++epoch) {
            x.start();
            s.run(16, threads, fills{x.view()});
            s.device->launch(blocks, threads, waits{x.view(), there});
            for (int block = 0; block < blocks; ++block)
                while (mpix::detail::load_relaxed(&there[block]) != x.epoch) host_poll_pause();
            must(MPI_Pready_range(0, blocks - 1, x.requests[0]), "MPI_Pready_range");
            s.settle();
            x.wait();
            x.check_guards();
        }
    }
    s.device->release_shared(there);
    return s.finish();
}
