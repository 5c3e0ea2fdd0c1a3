// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions of all sizes, at all alignments of both buffers, with equal, unequal and non-dividing numbers of
// partitions on the two sides.
#include <algorithm>
#include <iterator>

#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

constexpr int skews[] = {0, 1, 2, 4, 8};
struct counts {
    int sends, receives;
};
constexpr counts pairs[] = {{1, 1}, {3, 3}, {2, 5}, {7, 3}, {4, 1}, {1, 6}, {4, 8}};

// `size`: of the smaller side's partitions where the numbers are equal, else the unit that both divide by.
void one(session &s, std::uint64_t size, const counts &c, int send_skew, int receive_skew, int epochs) {
    const auto sends = static_cast<std::uint64_t>(c.sends), receives = static_cast<std::uint64_t>(c.receives);
    const std::uint64_t bytes = c.sends == c.receives ? size * sends : size * sends * receives;
    s.what = std::to_string(c.sends) + " partitions of " + std::to_string(bytes / sends) + " bytes to " +
             std::to_string(c.receives) + ", buffers misaligned by " + std::to_string(send_skew) + " and " +
             std::to_string(receive_skew);
    exchange x(s, {c.sends, c.receives, bytes, send_skew, receive_skew}, c.sends * 16 + c.receives);
    const int threads = executor::is_gpu ? 256 : 3;
    for (int e = 0; e < epochs; ++e) {
        x.start();
        s.run(std::min(2 + e, 3), threads, transfer{x.view()});
        x.wait();
        x.verify_received(2, threads);
        x.check_guards();
    }
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device sizes");
    std::vector<std::uint64_t> sizes = {0, 1, 3, 4, 8, 15, 16, 17, 4095, 8192, 65537, 1 << 20};
    if (s.quick) sizes = {0, 1, 15, 17, 4095, 8192};
    const int epochs = s.epochs != 0 ? static_cast<int>(s.epochs) : 3;
    std::size_t turn = 0;
    for (const std::uint64_t size : sizes)
        for (const int send_skew : skews)
            for (const int receive_skew : skews) {
                // The large ones at a few alignments only: by 0, 1 and 8.
                if (size > 8192 && (send_skew + receive_skew) % 8 > 1) continue;
                ++turn;
                if (s.quick && turn % 2 == 0) continue;
                counts c = pairs[turn % std::size(pairs)];
                if (size > 65537 && c.sends != c.receives) c = {3, 3};
                one(s, size, c, send_skew, receive_skew, epochs);
            }
    for (const counts &c : pairs) one(s, 1000, c, 0, 0, epochs);
    if ((executor::is_gpu || s.large) && !s.quick) one(s, 64 << 20, {2, 2}, 0, 1, 2);
    if ((executor::is_gpu || s.large) && !s.quick) one(s, 64 << 20, {2, 2}, 0, 0, 2);
    return s.finish();
}
