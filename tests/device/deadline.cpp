// SPDX-License-Identifier: BSD-3-Clause
//
// mpix::wait_arrived with the default timeout, MPIX_STALL_SECONDS: run with a short one.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

struct hopeless {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        const int code = mpix::wait_arrived(block, p.receive, 1);
        if (code != MPI_ERR_PENDING)
            complain(p.errors, wrong::code, p.epoch, 1, 0, MPI_ERR_PENDING, static_cast<std::uint64_t>(code));
    }
};

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device deadline");
    const int threads = executor::is_gpu ? 64 : 2;
    {
        exchange x(s, {.sends = 2, .receives = 2, .bytes = 200});
        x.start();
        s.run(1, threads, hopeless{x.view()});
        s.meet();
        s.run(1, threads, transfer{x.view()});
        x.wait_send();
        const int code = MPI_Wait(&x.requests[1], MPI_STATUS_IGNORE);
        must_refuse(code, MPI_ERR_PENDING, "MPI_Wait");
        for (const char *part : {"partition 1: wait_arrived ran into its deadline", "receive from rank ", "tag "})
            REQUIRE(error_name(code).find(part) != std::string::npos, "MPI_Wait does not say \"%s\": %s", part,
                    error_name(code).c_str());
        x.wait_receive();
        x.start();
        s.run(1, threads, transfer{x.view()});
        x.wait();
    }
    return s.finish();
}
