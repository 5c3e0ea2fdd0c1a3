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

// Every call that may complete the receive says what became of the kernel's wait, though the epoch is not over.
struct way {
    const char *call;
    int (*ask)(MPI_Request *request);
};
const way ways[] = {
    {"MPI_Wait", [](MPI_Request *r) { return MPI_Wait(r, MPI_STATUS_IGNORE); }},
    {"MPI_Test",
     [](MPI_Request *r) {
         int flag = 0;
         return MPI_Test(r, &flag, MPI_STATUS_IGNORE);
     }},
    {"MPI_Testall",
     [](MPI_Request *r) {
         int flag = 0;
         return MPI_Testall(1, r, &flag, MPI_STATUSES_IGNORE);
     }},
    {"MPI_Testany",
     [](MPI_Request *r) {
         int flag = 0, index = 0;
         return MPI_Testany(1, r, &index, &flag, MPI_STATUS_IGNORE);
     }},
    {"MPI_Waitany",
     [](MPI_Request *r) {
         int index = 0;
         return MPI_Waitany(1, r, &index, MPI_STATUS_IGNORE);
     }},
    {"MPI_Testsome",
     [](MPI_Request *r) {
         int count = 0, index = 0;
         return MPI_Testsome(1, r, &count, &index, MPI_STATUSES_IGNORE);
     }},
    {"MPI_Waitsome",
     [](MPI_Request *r) {
         int count = 0, index = 0;
         return MPI_Waitsome(1, r, &count, &index, MPI_STATUSES_IGNORE);
     }},
};

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device deadline");
    const int threads = executor::is_gpu ? 64 : 2;
    {
        exchange x(s, {.sends = 2, .receives = 2, .bytes = 200});
        for (const way &w : ways) {
            x.start();
            s.run(1, threads, hopeless{x.view()});
            const int code = w.ask(&x.requests[1]);
            must_refuse(code, MPI_ERR_PENDING, w.call);
            for (const char *part : {"wait_arrived of partition 1: timed out", "receive from rank ", "tag "})
                REQUIRE(error_name(code).find(part) != std::string::npos, "%s does not say \"%s\": %s", w.call, part,
                        error_name(code).c_str());
            s.meet();
            s.run(1, threads, transfer{x.view()});
            x.wait();
        }
        x.start();
        s.run(1, threads, transfer{x.view()});
        x.wait();
    }
    return s.finish();
}
