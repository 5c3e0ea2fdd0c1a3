// SPDX-License-Identifier: BSD-3-Clause
//
// With lazy loading, the stall report of an exported request and the error of a kernel's timed-out wait say so. For a
// GPU, with CUDA_MODULE_LOADING=LAZY and a short MPIX_STALL_SECONDS.
#include <unistd.h>

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

void expect_advice(const std::string &said, const char *call) {
    for (const char *part : {"lazy loading may be why (CUDA_MODULE_LOADING=LAZY, from the environment)", "EAGER"})
        REQUIRE(!executor::is_gpu || said.find(part) != std::string::npos, "%s does not say \"%s\": %s", call, part,
                said.c_str());
}

// A wait that does not end, whose report goes to stderr: longer than an error string may be.
void stalls(MPI_Request &request, const char *call) {
    std::FILE *const file = std::tmpfile();
    const int kept = dup(STDERR_FILENO);
    REQUIRE(file != nullptr && kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0, "stderr into a file");
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    dup2(kept, STDERR_FILENO);
    close(kept);
    std::rewind(file);
    std::string said;
    for (int c; (c = std::fgetc(file)) != EOF;) said += static_cast<char>(c);
    std::fclose(file);
    must_refuse(code, MPI_ERR_PENDING, call);
    expect_advice(said, call);
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "lazy loading");
    const int threads = executor::is_gpu ? 32 : 2;
    {
        exchange x(s, {.sends = 1, .receives = 1, .bytes = 100});
        // The host's wait, and a kernel's.
        x.start();
        stalls(x.requests[1], "MPI_Wait");
        s.run(1, threads, hopeless{x.view()});
        stalls(x.requests[1], "MPI_Wait after a kernel's");
        s.meet();
        s.run(1, threads, transfer{x.view()});
        x.wait();
        // A kernel's, and what it has waited for comes all the same.
        x.start();
        s.run(1, threads, hopeless{x.view()});
        s.meet();
        s.run(1, threads, transfer{x.view()});
        x.wait_send();
        const int code = MPI_Wait(&x.requests[1], MPI_STATUS_IGNORE);
        must_refuse(code, MPI_ERR_PENDING, "MPI_Wait of what has come");
        expect_advice(error_name(code), "MPI_Wait of what has come");
    }
    return s.finish();
}
