// SPDX-License-Identifier: BSD-3-Clause
//
// A grid with more blocks than the GPU holds at a time, all of which wait for what the last one sends: the waits time
// out, the host's completion call says why, and mpix::launch_cooperative refuses the grid. With a short
// MPIX_STALL_SECONDS. Host threads are all there, and nothing is refused.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

struct last_sends {
    port p;
    std::uint64_t *late;  // how many blocks have timed out
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int blocks) const {
        if (index == blocks - 1) {
            p.fill(block, 0);
            p.expect(0, MPI_SUCCESS, mpix::pready(block, 0, p.send));
            return;
        }
        const int code = mpix::wait_arrived(block, p.receive, 0);
        if (code != MPI_ERR_PENDING)
            p.expect(0, MPI_SUCCESS, code);
        else if (block.thread_rank() == 0)
            add_one(late);
    }
};

constexpr int threads = executor::is_gpu ? 1024 : 2;

int blocks_too_many() {
#ifdef __CUDACC__
    MPIX_Occupancy occupancy;
    check_cuda(mpix::get_occupancy(run_body<last_sends>, threads, 0, &occupancy), "mpix::get_occupancy");
    return occupancy.multiprocessors * 2 + 8;  // of 1024 threads, a multiprocessor holds at most two
#else
    return 3;
#endif
}

void expect_refusal(const last_sends &body, int blocks) {
#ifdef __CUDACC__
    const mpix::launch_status launch = mpix::launch_cooperative(
        run_body<last_sends>, dim3(static_cast<unsigned>(blocks)), threads, 0, cudaStreamPerThread, body);
    std::printf("%s\n", launch.message.c_str());
    REQUIRE(launch.error == cudaErrorCooperativeLaunchTooLarge, "the launch has returned %d", launch.error);
    REQUIRE(launch.message.find("the grid has " + std::to_string(blocks) + " blocks of 1024 threads, of which ") == 0,
            "it says \"%s\"", launch.message.c_str());
#else
    (void)body, (void)blocks;
#endif
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "blocks that are not resident");
    {
        exchange x(s, {.sends = 1, .receives = 1, .bytes = 100});
        auto *const late = static_cast<std::uint64_t *>(s.device->allocate(sizeof(std::uint64_t)));
        const int blocks = blocks_too_many();
        expect_refusal({x.view(), late}, blocks);
        s.device->set(late, 0, sizeof *late);
        x.start();
        s.run(blocks, threads, last_sends{x.view(), late});
        std::uint64_t were_late = 0;
        s.device->download(&were_late, late, sizeof were_late);
        REQUIRE((were_late != 0) == executor::is_gpu, "%llu blocks have timed out", session::as_ull(were_late));
        x.wait_send();
        const int code = MPI_Wait(&x.requests[1], MPI_STATUS_IGNORE);
        if (executor::is_gpu) {
            must_refuse(code, MPI_ERR_PENDING, "MPI_Wait of the receive");
            const std::string said = error_name(code);
            REQUIRE(said.find("in a grid with more blocks than the GPU holds at a time") != std::string::npos,
                    "it says \"%s\"", said.c_str());
        } else {
            must(code, "MPI_Wait of the receive");
        }
        s.device->release(late);
    }
    return s.finish();
}
