// SPDX-License-Identifier: BSD-3-Clause
//
// lazy_loading: where kernels are loaded at their first launch, the stall report of an exported request says so, and what a
// kernel that has waited too long leaves behind. For a GPU, with CUDA_MODULE_LOADING=LAZY and a short MPIX_STALL_SECONDS.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

struct hopeless {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        p.expect(0, MPI_ERR_PENDING, mpix::wait_arrived(block, p.receive, 0));
    }
};

void expect_advice(session &s, int code, const char *call) {
    must_refuse(code, MPI_ERR_PENDING, call);
    for (const char *part : {"CUDA_MODULE_LOADING=LAZY, from the environment", "set CUDA_MODULE_LOADING=EAGER"})
        REQUIRE(!executor::is_gpu || error_name(code).find(part) != std::string::npos, "%s does not say \"%s\": %s",
                call, part, error_name(code).c_str());
    (void)s;
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "lazy loading");
    const int threads = executor::is_gpu ? 32 : 2;
    {
        exchange x(s, {.sends = 1, .receives = 1, .bytes = 100});
        // The host's wait, and a kernel's.
        x.start();
        expect_advice(s, MPI_Wait(&x.requests[1], MPI_STATUS_IGNORE), "MPI_Wait");
        s.run(1, threads, hopeless{x.view()});
        expect_advice(s, MPI_Wait(&x.requests[1], MPI_STATUS_IGNORE), "MPI_Wait after a kernel's");
        s.meet();
        s.run(1, threads, transfer{x.view()});
        x.wait();
        // A kernel's, and what it has waited for comes all the same.
        x.start();
        s.run(1, threads, hopeless{x.view()});
        s.meet();
        s.run(1, threads, transfer{x.view()});
        x.wait_send();
        expect_advice(s, MPI_Wait(&x.requests[1], MPI_STATUS_IGNORE), "MPI_Wait of what has come");
    }
    return s.finish();
}
