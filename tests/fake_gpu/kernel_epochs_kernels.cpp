// SPDX-License-Identifier: BSD-3-Clause
//
// Compiled as rget_kernels.cpp is.
#include "tests/fake_gpu/kernel_epochs_kernels.hpp"

#include <mpi.h>
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <atomic>

#include "device/enqueue/stream_epochs.cuh"
#include "tests/backoff.hpp"

namespace fake_kernels {

using namespace mpix::detail;

namespace {

// In one call or in two.
int go_on(const mpix::host_group &group, mpix_prequest *request, std::uint64_t next) {
    if (next % 2 == 0) return mpix::next_epoch(group, request);
    const int code = mpix::wait(group, request);
    return code != MPI_SUCCESS ? code : mpix::start(group, request);
}

void await_clear_to_send(const mpix_prequest *send, std::uint64_t epoch) {
    for (backoff wait; load_acquire(&send->words->clear_to_send) < epoch; wait.pause()) {
        const std::uint64_t *const by_kernels = load_pointer(&send->kernel_clear_to_send);
        if (by_kernels != nullptr && load_acquire(by_kernels) >> 1 >= epoch) return;
    }
}

}  // namespace

bool run(const sending_kernel &k, mpix_prequest *send, const std::function<void(std::uint64_t)> &fill) {
    std::atomic<bool> good{true};
    const auto check = [&](int code) {
        if (code != MPI_SUCCESS) good = false;
    };
    mpix::host_launch(1, k.threads, [&](const mpix::host_group &group) {
        for (std::uint64_t epoch = k.first; epoch <= k.last; ++epoch) {
            if (epoch != k.first) check(go_on(group, send, epoch));
            if (group.thread_rank() == 0) {
                fill(epoch);
                if (k.patient) await_clear_to_send(request_of(send), epoch);
            }
            group.sync();
            for (int p = 0; p < request_of(send)->partitions; ++p)
                if (epoch != k.last || (k.not_in_last >> p & 1) == 0) check(mpix::pready(group, p, send));
        }
        if (k.waits_for_last) check(mpix::wait(group, send));
    });
    return good;
}

bool run(const receiving_kernel &k, mpix_prequest *receive, const std::function<bool(std::uint64_t)> &right,
         const std::function<void()> &poison) {
    std::atomic<bool> good{true};
    const auto check = [&](int code) {
        if (code != MPI_SUCCESS) good = false;
    };
    mpix::host_launch(1, k.threads, [&](const mpix::host_group &group) {
        for (std::uint64_t epoch = k.first; epoch < k.last || (epoch == k.last && k.asks_in_last); ++epoch) {
            for (int j = 0; j < request_of(receive)->partitions; ++j) check(mpix::wait_arrived(group, receive, j));
            if (group.thread_rank() == 0) {
                if (!right(epoch)) good = false;
                if (epoch != k.last) poison();
            }
            group.sync();
            if (epoch != k.last) check(go_on(group, receive, epoch + 1));
        }
        if (k.waits_for_last) check(mpix::wait(group, receive));
    });
    return good;
}

bool run_empty(mpix_prequest *request, int epochs) {
    if (mpix::gpu::start_in_order(request_of(request)) != MPI_SUCCESS) return false;
    for (int n = 0; n < epochs; ++n)
        if (mpix::next_epoch(mpix::this_thread(), request) != MPI_SUCCESS) return false;
    return true;
}

bool is_quiet_end(mpix_prequest *send, std::uint64_t epoch) {
    const mpix_prequest *const r = request_of(send);
    return load_acquire(&r->told_epoch) >> 1 == epoch && load_acquire(&r->words->all_ready) < epoch;
}

}  // namespace fake_kernels
