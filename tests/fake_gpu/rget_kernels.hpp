// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernels of rget.cpp do. Their source is compiled apart, as a GPU's: the library's own goes the ways of host
// threads.
#ifndef MPIX_TESTS_FAKE_GPU_RGET_KERNELS_HPP
#define MPIX_TESTS_FAKE_GPU_RGET_KERNELS_HPP

#include <mpix/detail/abi.h>

#include <cstdint>
#include <functional>

namespace fake_kernels {

// A lone thread readies all partitions, most of them when somebody waits for them, or after a while. False: an error.
bool send_all(mpix_prequest *send, std::uint64_t epoch, std::uint64_t seed);
// The same, of an epoch in which nobody asks; once the route is there, it says that it would have offered them.
bool send_first(mpix_prequest *send, std::uint64_t epoch);
// One, so long after somebody waits for it.
bool send_wanted(mpix_prequest *send, int partition, std::uint64_t epoch, std::uint64_t later_ns);
// Groups that wait for all partitions in turn and look at each.
bool receive_all(mpix_prequest *receive, int groups, int threads, const std::function<bool(int)> &right);
// A group that waits for one partition, for so long: whether it came.
bool receive_one(mpix_prequest *receive, int partition, std::uint64_t limit_ns);

// Whether a group waits for it, of a send, or of a receive here; to be called until it does.
bool somebody_waits(mpix_prequest *request, int partition, std::uint64_t epoch);
// Marks it ready once more, which is an error: whether that was said.
bool refuses_again(mpix_prequest *send, int partition);

// Of an epoch that is over for the sender, how many partitions of a send were offered to the receiver's groups, and
// what these have answered; or that they are in a later epoch.
struct offered {
    int in_all, read, refused, later;
};
offered offered_of(const mpix_prequest *send, std::uint64_t epoch);

}  // namespace fake_kernels

#endif  // MPIX_TESTS_FAKE_GPU_RGET_KERNELS_HPP
