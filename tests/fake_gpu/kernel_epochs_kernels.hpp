// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernels of kernel_epochs.cpp do; see rget_kernels.hpp. The host has started the first of their epochs.
#ifndef MPIX_TESTS_FAKE_GPU_KERNEL_EPOCHS_KERNELS_HPP
#define MPIX_TESTS_FAKE_GPU_KERNEL_EPOCHS_KERNELS_HPP

#include <mpix/detail/abi.h>

#include <cstdint>
#include <functional>

namespace fake_kernels {

struct sending_kernel {
    std::uint64_t first, last;    // epochs
    int threads = 2;              // of its only group
    unsigned not_in_last = 0;     // bit p: partition p of the last epoch is left to the host
    bool waits_for_last = false;  // ends with mpix::wait
    bool patient = false;         // marks nothing ready before clear-to-send, so that nothing is left to the engine
};
// `fill` writes an epoch's bytes. False: an error.
bool run(const sending_kernel &k, mpix_prequest *send, const std::function<void(std::uint64_t)> &fill);

struct receiving_kernel {
    std::uint64_t first, last;
    int threads = 2;
    bool asks_in_last = true;     // otherwise it ends once it has started the last epoch
    bool waits_for_last = false;  // ends with mpix::wait
};
// `right`: whether an epoch's bytes are; `poison` destroys them before the next epoch. False: an error, or wrong bytes.
bool run(const receiving_kernel &k, mpix_prequest *receive, const std::function<bool(std::uint64_t)> &right,
         const std::function<void()> &poison);

// Starts so many more epochs one after another without any other call, of a request whose epochs are over at once;
// begins as MPIX_Start_enqueue's kernel does, of which the host's epoch is the first.
bool run_empty(mpix_prequest *request, int epochs);

// Whether all partitions of the epoch are ready and the sender's host was not told.
bool is_quiet_end(mpix_prequest *send, std::uint64_t epoch);

}  // namespace fake_kernels

#endif  // MPIX_TESTS_FAKE_GPU_KERNEL_EPOCHS_KERNELS_HPP
