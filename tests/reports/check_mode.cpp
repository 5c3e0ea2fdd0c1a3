// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels compiled with MPIX_CHECK print each erroneous call, with block and thread, and detect overlapping shares, waits
// outside an epoch and, with MPIX_CHECK=1 in the environment, freed handles. unit.check_mode has more.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

const int threads = executor::is_gpu ? 32 : 2;

struct outside {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int) const {
        if (index != 1) return;
        p.expect(0, MPI_ERR_REQUEST, mpix::pready(block, 0, p.send));
        p.expect(1, MPI_ERR_REQUEST, mpix::pready_contribute(block, 1, p.send));  // whoever is the last
        p.expect(1, MPI_ERR_REQUEST, mpix::wait_arrived(block, p.receive, 1));
        p.expect(0, MPI_ERR_REQUEST, mpix::wait(block, p.send));
        p.expect(0, MPI_ERR_REQUEST, mpix::wait(block, p.receive));
    }
};

struct inside {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int i = 0; i < p.sends; ++i) p.fill(block, i);
        p.expect(0, MPI_SUCCESS, mpix::pready(block, 0, p.send));
        p.expect(0, MPI_ERR_ARG, mpix::pready(block, 0, p.send));
        p.expect(7, MPI_ERR_ARG, mpix::pready(block, 7, p.send));
        p.expect(0, MPI_ERR_REQUEST, mpix::start(block, p.send));
        // Of 1000 bytes: the second and the third have some in common, and all have as many as the partition.
        p.expect(1, MPI_SUCCESS, mpix::pready_contribute(block, 1, p.send, 0, 300));
        p.expect(1, MPI_SUCCESS, mpix::pready_contribute(block, 1, p.send, 300, 400));
        p.expect(1, MPI_ERR_ARG, mpix::pready_contribute(block, 1, p.send, 600, 300));
        for (int j = 0; j < p.receives; ++j)
            p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
        p.verify(block, 0);
    }
};

// The same shares, without a gap between them: nothing is left of the epoch before.
struct right {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int i = 0; i < p.sends; ++i) p.fill(block, i);
        p.expect(0, MPI_SUCCESS, mpix::pready(block, 0, p.send));
        p.expect(1, MPI_SUCCESS, mpix::pready_contribute(block, 1, p.send, 0, 301));
        p.expect(1, MPI_SUCCESS, mpix::pready_contribute(block, 1, p.send, 600, 400));
        p.expect(1, MPI_SUCCESS, mpix::pready_contribute(block, 1, p.send, 301, 299));
        for (int j = 0; j < p.receives; ++j) {
            p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
            p.verify(block, j);
        }
    }
};

struct freed {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        p.expect(0, MPI_ERR_REQUEST, mpix::pready(block, 0, p.send));
        p.expect(0, MPI_ERR_REQUEST, mpix::pready_range(block, 0, 0, p.send));
        p.expect(0, MPI_ERR_REQUEST, mpix::wait_arrived(block, p.receive, 0));
        p.expect(0, MPI_ERR_REQUEST, mpix::wait_arrived(block, mpix::prepare_receive(block, p.receive), 0));
    }
};

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "check mode");
    {
        exchange x(s, {.sends = 2, .receives = 2, .bytes = 2000, .contributors = 2}, 1);
        s.what = "outside of an epoch";
        s.run(2, threads, outside{x.view()});
        for (MPI_Request &request : x.requests) must_refuse(MPI_Start(&request), MPI_ERR_REQUEST, "MPI_Start");
        for (int round = 0; round < 2; ++round) {
            s.what = "errors, round " + std::to_string(round);
            x.start();
            s.run(1, threads, inside{x.view()});
            must_refuse(MPI_Wait(&x.requests[0], MPI_STATUS_IGNORE), MPI_ERR_ARG, "MPI_Wait of the send");
            x.wait();
            s.what = "none, round " + std::to_string(round);
            x.start();
            s.run(1, threads, right{x.view()});
            x.wait();
        }
        s.what = "freed handles";
        const port old = x.view();
        x.unexport_both();
        for (MPI_Request &request : x.requests) must(MPI_Request_free(&request), "MPI_Request_free");
        s.run(1, threads, freed{old});
    }
    return s.finish();
}
