// SPDX-License-Identifier: BSD-3-Clause
//
// A device's context is current for a time, and no other device gets one. CUDA is played (tests/fake_cuda).
#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <thread>
#include <vector>

#include "tests/catch.hpp"

using mpix::detail::device_scope;

namespace {

constexpr int relaxed = 2;

// A new thread has no context. From now on it is noted which ones are made.
template <class Body>
void in_new_thread(const Body &body) {
    for (fake_cuda::context &c : fake_cuda::contexts) c.made = false;
    std::thread(body).join();
}
std::vector<int> current() {
    std::vector<int> devices;
    for (const fake_cuda::context *c : fake_cuda::current) devices.push_back(fake_cuda::device_of(c));
    return devices;
}

}  // namespace

TEST_CASE("a thread without a context has none again after a scope, and its own device has got none") {
    std::vector<int> inside, afterwards;
    int mode_inside = -1, mode_afterwards = -1;
    in_new_thread([&] {
        fake_cuda::capture_mode = 0;
        {
            const device_scope scope(3);
            inside = current();
            mode_inside = fake_cuda::capture_mode;
        }
        afterwards = current();
        mode_afterwards = fake_cuda::capture_mode;
    });
    CHECK(inside == std::vector<int>{3});
    CHECK(mode_inside == relaxed);
    CHECK(afterwards.empty());
    CHECK(mode_afterwards == 0);
    CHECK(fake_cuda::contexts[3].made);
    CHECK_FALSE(fake_cuda::contexts[0].made);
}

TEST_CASE("scopes within each other: a context that is current already is left alone") {
    std::vector<std::vector<int>> seen;
    in_new_thread([&] {
        fake_cuda::current = {&fake_cuda::contexts[1]};
        const auto see = [&] { seen.push_back(current()); };
        {
            const device_scope own(1);
            see();
            const device_scope other(2);
            see();
            {
                const device_scope again(1);
                see();
            }
            see();
        }
        see();
    });
    CHECK(seen == std::vector<std::vector<int>>{{1}, {1, 2}, {1, 2, 1}, {1, 2}, {1}});
}

TEST_CASE("where an allocation lies is known to threads without a context, too") {
    fake_cuda::memory = {{0x3000, {0x200, fake_cuda::plain, false, 1, 2}}};
    std::uint64_t start = 0, bytes = 0;
    std::string why = "not asked", unknown;
    in_new_thread([&] {
        why = mpix::detail::find_allocation(0x3100, start, bytes);
        unknown = mpix::detail::find_allocation(0x9999, start, bytes);
    });
    CHECK(why.empty());
    CHECK(start == 0x3000);
    CHECK(bytes == 0x200);
    CHECK_FALSE(unknown.empty());
    CHECK_FALSE(fake_cuda::contexts[0].made);
    fake_cuda::memory.clear();
}
