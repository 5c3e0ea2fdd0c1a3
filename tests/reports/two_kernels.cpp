// SPDX-License-Identifier: BSD-3-Clause
//
// Two kernels per step, as in a stencil code: the first sends this rank's data and waits for the neighbour's, the
// second computes with it. No kernel is loaded or run beforehand.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

constexpr int partitions = 8, steps = 5;

// The message's bytes, each with one added, to `out`.
struct compute {
    port p;
    char *out;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        const std::uint64_t all = static_cast<std::uint64_t>(blocks) * static_cast<std::uint64_t>(block.num_threads());
        for (std::uint64_t i =
                 static_cast<std::uint64_t>(block_index) * static_cast<std::uint64_t>(block.num_threads()) +
                 static_cast<std::uint64_t>(block.thread_rank());
             i < p.bytes; i += all)
            out[i] = static_cast<char>(p.in[i] + 1);
    }
};

void steps_of(session &s, std::uint64_t bytes) {
    exchange x(s, {.sends = partitions, .receives = partitions, .bytes = bytes}, 1);
    char *const computed = static_cast<char *>(s.device->allocate(bytes));
    std::vector<unsigned char> found(bytes);
    for (int step = 1; step <= steps; ++step) {
        s.what = std::to_string(bytes) + " bytes, step " + std::to_string(step);
        x.start();
        s.device->launch(partitions, 32, transfer{x.view()});
        s.device->launch(partitions, 32, compute{x.view(), computed});
        x.wait();
        s.settle();
        s.device->download(found.data(), computed, bytes);
        for (std::uint64_t i = 0; i < bytes; ++i)
            REQUIRE(found[i] == static_cast<unsigned char>(message_byte(x.view().in_key, i) + 1),
                    "%s: byte %llu is wrong", s.what.c_str(), session::as_ull(i));
        x.check_guards();
    }
    s.device->release(computed);
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "two kernels a step");
    steps_of(s, 8 * 640);
    steps_of(s, 8 * 65536);
    return s.finish();
}
