// SPDX-License-Identifier: BSD-3-Clause
//
// Compiled with MPIX_FAKE_GPU, and with another name for the namespace mpix, for the library has functions of the same
// names.
#include "tests/fake_gpu/rget_kernels.hpp"

#include <mpi.h>
#include <mpix/device.cuh>
#include <mpix/host_group.hpp>

#include <atomic>
#include <random>
#include <thread>

namespace fake_kernels {

using namespace mpix::detail;

namespace {

bool is_wanted_soon(const mpix_prequest *r, int p, std::uint64_t epoch) {
    for (const std::uint64_t end = now_ns() + 30'000'000; now_ns() < end; give_way())
        if (is_wanted(r, p, epoch, r->partition_bytes)) return true;
    return false;
}

}  // namespace

bool send_all(mpix_prequest *send, std::uint64_t epoch, std::uint64_t seed) {
    std::mt19937_64 random(seed + 1000 * epoch);
    const mpix_prequest *const r = request_of(send);
    for (int n = 0; n < r->partitions; ++n) {
        const int p = epoch % 2 == 0 ? n : r->partitions - 1 - n;
        if (random() % 4 != 0) is_wanted_soon(r, p, epoch);
        if (mpix::pready(mpix::this_thread(), p, send) != MPI_SUCCESS) return false;
    }
    return true;
}

bool send_first(mpix_prequest *send, std::uint64_t epoch) {
    mpix_prequest *const r = request_of(send);
    for (const std::uint64_t end = now_ns() + 60'000'000'000u; load_pointer(&r->wanted) == nullptr; give_way())
        if (now_ns() > end) return false;
    tell_would_offer(r, epoch);
    for (int p = 0; p < r->partitions; ++p)
        if (mpix::pready(mpix::this_thread(), p, send) != MPI_SUCCESS) return false;
    return true;
}

bool send_wanted(mpix_prequest *send, int partition, std::uint64_t epoch, std::uint64_t later_ns) {
    const std::uint64_t end = now_ns() + 60'000'000'000u;
    while (!is_wanted(request_of(send), partition, epoch, request_of(send)->partition_bytes)) {
        if (now_ns() > end) return false;
        give_way();
    }
    for (const std::uint64_t then = now_ns() + later_ns; now_ns() < then;) give_way();
    return mpix::pready(mpix::this_thread(), partition, send) == MPI_SUCCESS;
}

bool receive_all(mpix_prequest *receive, int groups, int threads, const std::function<bool(int)> &right) {
    std::atomic<bool> good{true};
    mpix::host_launch(groups, threads, [&](const mpix::host_group &group) {
        for (int j = 0; j < request_of(receive)->partitions; ++j) {
            if (mpix::wait_arrived(group, receive, j) != MPI_SUCCESS || !right(j)) good = false;
            if (!mpix::parrived(mpix::this_thread(), receive, j)) good = false;
        }
    });
    return good;
}

bool receive_one(mpix_prequest *receive, int partition, std::uint64_t limit_ns) {
    std::atomic<bool> came{false};
    mpix::host_launch(1, 2, [&](const mpix::host_group &group) {
        const int code = mpix::wait_arrived(group, receive, partition, limit_ns);
        if (group.thread_rank() == 0) came = code == MPI_SUCCESS;
    });
    return came;
}

bool somebody_waits(mpix_prequest *request, int partition, std::uint64_t epoch) {
    return is_wanted(request_of(request), partition, epoch, request_of(request)->partition_bytes);
}

bool refuses_again(mpix_prequest *send, int partition) {
    return mpix::pready(mpix::this_thread(), partition, send) == MPI_ERR_ARG;
}

offered offered_of(const mpix_prequest *send, std::uint64_t epoch) {
    const mpix_prequest *const r = request_of(const_cast<mpix_prequest *>(send));
    offered all{0, 0, 0, 0};
    for (int n = 0; n < r->partitions; ++n) {
        const std::uint64_t entry = load_acquire(&r->ring[n]), p = entry & (MPIX_RING_RTS - 1);
        if (entry >> 32 != epoch || (entry & MPIX_RING_RTS) == 0) continue;
        const std::uint64_t answer = load_relaxed(r->ring + static_cast<std::uint64_t>(r->partitions) + p);
        ++all.in_all;
        all.read += answer == 2 * epoch;
        all.refused += answer == 2 * epoch + 1;
        all.later += answer > 2 * epoch + 1;
    }
    return all;
}

}  // namespace fake_kernels
