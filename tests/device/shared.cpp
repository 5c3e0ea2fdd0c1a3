// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions of one epoch that are marked ready by the host and by kernels, in any order and at once; and the same
// partition by both, which is an error.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

const int threads = executor::is_gpu ? 64 : 2;

enum class order { host_first, kernel_first, at_once, count };
constexpr const char *order_names[] = {"the host first", "a kernel first", "host and kernel at once"};

struct fill_body {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        p.fill(block, 0, p.bytes);
    }
};

// Marks [first, last] ready; the data is there already.
struct mark_body {
    port p;
    int first, last;
    int twice;  // a partition that the host has marked: to host threads that is an error at once, a GPU cannot know
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int blocks) const {
        for (int i = first + index; i <= last; i += blocks)
            p.expect(i, i == twice && !executor::is_gpu ? MPI_ERR_ARG : MPI_SUCCESS, mpix::pready(block, i, p.send));
    }
};

void host_marks(exchange &x, int first, int last) {
    for (int i = first; i <= last; ++i) must(MPI_Pready(i, x.requests[0]), "MPI_Pready");
}

// The host has partitions [low, high], kernels the others.
void share(session &s, exchange &x, const shape &shape, order who, int low, int high) {
    s.what = order_names[static_cast<int>(who)];
    x.start();
    s.run(1, threads, fill_body{x.view()});
    const mark_body below{x.view(), 0, low - 1, -1}, above{x.view(), high + 1, shape.sends - 1, -1};
    if (who == order::host_first) host_marks(x, low, high);
    s.run(2, threads, below);
    if (who == order::at_once) s.device->launch(2, threads, above);
    if (who != order::host_first) host_marks(x, low, high);
    if (who == order::at_once)
        s.settle();
    else
        s.run(2, threads, above);
    s.run(2, threads, transfer{x.view(), scope::block, false, true});
    x.wait();
}

void both_mark(session &s, exchange &x, const shape &shape, bool host_first) {
    const int which = shape.sends / 2;
    s.what = "one partition by both";
    x.start();
    s.run(1, threads, fill_body{x.view()});
    // Of a GPU's mark the host's call cannot know either: then the completion call says so.
    const bool told = !host_first && !executor::is_gpu;
    if (host_first) host_marks(x, which, which);
    s.run(1, threads, mark_body{x.view(), 0, shape.sends - 1, host_first ? which : -1});
    if (told) must_refuse(MPI_Pready(which, x.requests[0]), MPI_ERR_ARG, "MPI_Pready");
    if (!host_first && !told) host_marks(x, which, which);
    s.run(1, threads, transfer{x.view(), scope::block, false, true});
    if (!told) {
        const int code = MPI_Wait(&x.requests[0], MPI_STATUS_IGNORE);
        must_refuse(code, MPI_ERR_ARG, "MPI_Wait of the send");
        const std::string text = error_name(code), expected = "partition " + std::to_string(which) + ":";
        REQUIRE(text.find(expected) != std::string::npos, "no word of %s in: %s", expected.c_str(), text.c_str());
    }
    x.wait();
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device shared");
    const shape shapes[] = {{.sends = 1, .receives = 1, .bytes = 64},
                            {.sends = 5, .receives = 3, .bytes = 15 * 1000},
                            {.sends = 16, .receives = 16, .bytes = 16 * 40000, .receive_skew = 4}};
    const int rounds = s.epochs != 0 ? static_cast<int>(s.epochs) : s.quick ? 2 : 10;
    int tag = 0;
    for (const shape &shape : shapes) {
        exchange x(s, shape, ++tag);
        for (int i = 0; i < rounds; ++i) {
            for (int who = 0; who < static_cast<int>(order::count); ++who) {
                const int a = static_cast<int>(mix(s.seed + static_cast<std::uint64_t>(i)) % 97) % shape.sends;
                const int b = static_cast<int>(mix(s.seed - static_cast<std::uint64_t>(i)) % 89) % shape.sends;
                share(s, x, shape, static_cast<order>(who), a < b ? a : b, a < b ? b : a);
                share(s, x, shape, static_cast<order>(who), 0, shape.sends - 1);  // the host alone
                share(s, x, shape, static_cast<order>(who), 0, -1);               // kernels alone
            }
            both_mark(s, x, shape, i % 2 == 0);
        }
        x.check_guards();
    }
    return s.finish();
}
