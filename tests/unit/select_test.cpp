// SPDX-License-Identifier: BSD-3-Clause
//
// Which transport carries a pair, and what is said of the others.
#include "transport/select.h"

#include <string>

#include "tests/catch.hpp"

using namespace mpix::transport;
using mpix::failure;
using mpix::status;

namespace {

const means all{};  // as on a machine with GPUs; nothing here is asked of them

std::string taken(const choice &c) { return c.taken == id_none ? "none: " + c.why_not.message() : c.name; }

std::string why(const choice &c, const std::string &name) {
    for (const candidate &one : c.candidates())
        if (one.name == name) return one.why.text();
    return "no such candidate";
}

}  // namespace

TEST_CASE("each pair has its transport, and every other one a reason") {
    ends host, by_network, gpu;
    by_network.by_network = true;
    gpu.receiver_on_gpu = gpu.sender_has_devices = true;
    const choice shared = choose(host, all), remote = choose(by_network, all), direct = choose(gpu, all);
    CHECK(taken(shared) == "shm");
    CHECK(why(shared, "shm") == "both processes map the same memory");
    CHECK(why(shared, "cuda_ipc") == "the receive buffer is host memory");
    CHECK(why(shared, "ucx") == "the processes share memory");
    CHECK(taken(remote) == "ucx");
    CHECK(why(remote, "shm").find("cannot map each other's memory") != std::string::npos);
    CHECK(taken(choose(by_network, {true, {}, id_verbs})) == "verbs");
    CHECK(why(remote, "verbs") == "one network carries all pairs of a process, and it is another");
    CHECK(taken(direct) == "cuda_ipc");
    CHECK(why(direct, "shm").find("the receive buffer is GPU memory") == 0);
    CHECK(why(direct, "ucx") == "the processes share memory");
    CHECK(&shared.landing() == &node_memory());
    CHECK(&remote.landing() == &node_memory());
}

TEST_CASE("the choice is the first candidate that works, and never a second one") {
    for (unsigned bits = 0; bits < 256; ++bits) {
        CAPTURE(bits);
        ends pair;
        pair.by_network = (bits & 1) != 0;
        pair.receiver_on_gpu = (bits & 2) != 0;
        pair.sender_on_gpu = (bits & 4) != 0;
        pair.sender_has_devices = (bits & 8) != 0;
        if ((bits & 16) != 0) pair.unreached = failure("out of reach");
        const means here{(bits & 32) == 0, (bits & 64) != 0 ? failure("no GPU") : status{},
                         (bits & 128) != 0 ? id_verbs : id_ucx};
        const choice c = choose(pair, here);
        int working = 0;
        for (const candidate &one : c.candidates()) {
            working += one.works;
            CHECK_FALSE(one.why.empty());
        }
        CHECK(working <= 1);
        CHECK((c.taken == id_none) == (working == 0));
        CHECK(c.why_not.ok() == (working == 1));
        if (!pair.unreached.ok()) CHECK(working == 0);
    }
}

TEST_CASE("a pair without a transport is told why") {
    ends pair;
    pair.receiver_on_gpu = true;
    CHECK(taken(choose(pair, all)) == "none: the receive buffer is GPU memory, and the sending process can use no GPU");
    ends unreached;
    unreached.unreached = failure("the network is down");
    const choice c = choose(unreached, {false, failure("no GPU")});
    CHECK(taken(c) == "none: the network is down");
    CHECK(why(c, "shm") == "MPIX_TRANSPORTS leaves shm out");
    CHECK(why(c, "cuda_ipc") == "no GPU");
}

TEST_CASE("MPIX_TRANSPORTS is given as the reason") {
    REQUIRE(use_only("cuda_ipc").ok());
    const auto left_out = available();
    REQUIRE(left_out.size() == 4);
    CHECK(left_out[0].why_not.message() == "MPIX_TRANSPORTS leaves shm out");
    CHECK(left_out[2].why_not.message() == "MPIX_TRANSPORTS leaves ucx out");
    CHECK(left_out[3].why_not.message() == "MPIX_TRANSPORTS leaves verbs out");
    CHECK_FALSE(means_here().shm);
    REQUIRE(use_only("shm").ok());
    CHECK(available()[0].why_not.ok());
    CHECK_FALSE(available()[1].why_not.ok());  // left out, or not built in
    REQUIRE(use_only("").ok());
    CHECK(means_here().shm);
}
