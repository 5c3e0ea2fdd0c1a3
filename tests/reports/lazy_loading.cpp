// SPDX-License-Identifier: BSD-3-Clause
//
// With lazy loading, the stall report of an exported request and the error of a kernel's timed-out wait say so. The
// deadlock itself: a kernel waits, and the one that sends is launched for the first time meanwhile. And the way out. For
// a GPU, with CUDA_MODULE_LOADING=LAZY and a short MPIX_STALL_SECONDS.
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

// Three kernels, of which each `Which` has its own, so that launching one does not load another.
template <int Which>
struct waiting {
    port p;
    std::uint64_t *code;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        const int found = mpix::wait_arrived(block, p.receive, 0);
        if (found == MPI_SUCCESS) p.verify(block, 0);
        if (block.thread_rank() == 0) *code = static_cast<std::uint64_t>(found);
    }
};
template <int Which>
struct sending {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        p.fill(block, 0);
        p.expect(0, MPI_SUCCESS, mpix::pready(block, 0, p.send));
    }
};
template <int Which>
struct computing {
    std::uint64_t *out;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        if (block.thread_rank() == 0) *out = 100 + Which;
    }
};

void expect_advice(const std::string &said, const char *call) {
    for (const char *part : {"lazy loading may be why (CUDA_MODULE_LOADING=LAZY, from the environment)", "EAGER"})
        REQUIRE(!executor::is_gpu || said.find(part) != std::string::npos, "%s does not say \"%s\": %s", call, part,
                said.c_str());
}

// A wait that fails. A sentence that is longer than an error string may be is whole on stderr.
void fails(MPI_Request &request, const char *call) {
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
    expect_advice(said + error_name(code), call);
}

// The kernel that waits first, on a stream of its own, as the others are. What the wait returned.
template <int Which>
int wait_first(session &s, exchange &x, executor &second, executor &third, int threads) {
    auto *const words = static_cast<std::uint64_t *>(s.device->allocate_shared(2 * sizeof(std::uint64_t)));
    x.start();
    s.device->launch(1, threads, waiting<Which>{x.view(), words});
    second.launch(1, threads, sending<Which>{x.view()});
    third.launch(1, threads, computing<Which>{words + 1});
    for (executor *one : {&third, &second}) one->synchronise();
    s.settle();
    REQUIRE(words[1] == 100 + Which, "the third kernel did not run");
    const int code = static_cast<int>(words[0]);
    s.device->release_shared(words);
    s.meet();  // all kernels have sent
    return code;
}

void deadlock(session &s, int threads) {
    executor second(s.rank), third(s.rank);
    exchange x(s, {.sends = 1, .receives = 1, .bytes = 100});
    int code = wait_first<0>(s, x, second, third, threads);
    x.wait_send();
    if (code == MPI_SUCCESS) {
        x.wait_receive();
    } else {
        REQUIRE(executor::is_gpu && code == MPI_ERR_PENDING, "the kernel's wait has returned %d", code);
        fails(x.requests[1], "MPI_Wait after a deadlock of kernels");
        x.wait_receive();  // all has come since
        if (s.rank == 0) std::printf("a kernel's first launch has waited for a running kernel\n");
    }
    s.device->load<waiting<1>>();
    s.device->load<sending<1>>();
    s.device->load<computing<1>>();
    code = wait_first<1>(s, x, second, third, threads);
    REQUIRE(code == MPI_SUCCESS, "the kernels were loaded, and a wait has returned %d", code);
    x.wait();
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "lazy loading");
    const int threads = executor::is_gpu ? 32 : 2;
    {
        exchange x(s, {.sends = 1, .receives = 1, .bytes = 100});
        // The host's wait, and a kernel's.
        x.start();
        fails(x.requests[1], "MPI_Wait");
        s.run(1, threads, hopeless{x.view()});
        fails(x.requests[1], "MPI_Wait after a kernel's");
        s.meet();
        s.run(1, threads, transfer{x.view()});
        x.wait();
        // A kernel's, and what it has waited for comes all the same.
        x.start();
        s.run(1, threads, hopeless{x.view()});
        s.meet();
        s.run(1, threads, transfer{x.view()});
        x.wait_send();
        fails(x.requests[1], "MPI_Wait of what has come");
    }
    deadlock(s, threads);
    return s.finish();
}
