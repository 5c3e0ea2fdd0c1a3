// SPDX-License-Identifier: BSD-3-Clause
//
// device_scope makes a device's context current for its lifetime, and makes none on another device. Against tests/fake_cuda.
#include <cuda_runtime.h>
#include <mpix/detail/cuda_host.h>

#include <thread>
#include <vector>

#include "tests/catch.hpp"

using mpix::detail::device_scope;

namespace {

constexpr int relaxed = 2;

// A new thread has no context.
template <class Body>
void in_new_thread(const Body &body) {
    for (fake_cuda::context &c : fake_cuda::contexts) c = {};
    std::thread(body).join();
}
std::vector<int> current() {
    std::vector<int> devices;
    for (const fake_cuda::context *c : fake_cuda::current) devices.push_back(fake_cuda::device_of(c));
    return devices;
}
// How often the context of each device became current.
std::vector<int> pushed() {
    std::vector<int> times;
    for (const fake_cuda::context &c : fake_cuda::contexts) times.push_back(c.pushed);
    return times;
}
using devices = std::vector<int>;

}  // namespace

TEST_CASE("a thread without a context has none again after a scope, and its own device has got none") {
    devices inside, afterwards;
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
    CHECK(inside == devices{3});
    CHECK(mode_inside == relaxed);
    CHECK(afterwards.empty());
    CHECK(mode_afterwards == 0);
    CHECK(pushed() == std::vector<int>{0, 0, 0, 1});
}

TEST_CASE("scopes within each other: a context that is current already is left alone") {
    std::vector<devices> seen;
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
    CHECK(seen == std::vector<devices>{{1}, {1, 2}, {1, 2, 1}, {1, 2}, {1}});
}

TEST_CASE("a thread of the library's keeps the first context that it gets") {
    std::vector<devices> seen;
    in_new_thread([&] {
        mpix::detail::library_thread = true;
        for (const int device : {2, 1, 2, 1}) {
            const device_scope scope(device);
            seen.push_back(current());
        }
        seen.push_back(current());
    });
    CHECK(seen == std::vector<devices>{{2}, {2, 1}, {2}, {2, 1}, {2}});
}

TEST_CASE("without a context the scope says why, and another device is not current in its place") {
    std::string problem, later;
    devices inside, afterwards;
    in_new_thread([&] {
        fake_cuda::contexts[2].refused = fake_cuda::contexts[2].stale = true;
        {
            const device_scope scope(2);
            problem = scope.problem();
            inside = current();
        }
        afterwards = current();
        fake_cuda::contexts[2].refused = false;
        const device_scope scope(2);
        later = scope.problem();
    });
    CHECK(problem.find("GPU 2") != std::string::npos);
    CHECK(inside.empty());
    CHECK(afterwards.empty());
    CHECK(later.empty());
}

TEST_CASE("a context that was made anew is retained anew") {
    std::string problem = "not asked";
    devices inside;
    in_new_thread([&] {
        { const device_scope before(1); }
        fake_cuda::contexts[1].stale = true;  // as after cudaDeviceReset
        const device_scope scope(1);
        problem = scope.problem();
        inside = current();
    });
    CHECK(problem.empty());
    CHECK(inside == devices{1});
}

TEST_CASE("a thread without a context is told where an allocation lies, too") {
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
    CHECK(pushed() == std::vector<int>{0, 0, 1, 0});
    fake_cuda::memory.clear();
}
