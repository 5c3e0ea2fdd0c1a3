// SPDX-License-Identifier: BSD-3-Clause
//
// The ping-pong by mpix: pready and wait_arrived inside one kernel a rank, many partitions of one epoch.
#ifndef MPIX_TESTS_BENCH_MPIX_PORT_CUH
#define MPIX_TESTS_BENCH_MPIX_PORT_CUH

#include <mpix/device.cuh>
#include <string>

#include "tests/bench/ping_pong.cuh"

namespace bench {

template <class Group>
__device__ const Group &as_mpix(const Group &group) {
    return group;
}
__device__ inline mpix::thread_group as_mpix(const lone_thread &) { return mpix::this_thread(); }

// By the requests, or by what has been prepared of them. A partition of each block's at the sender, one of all blocks'
// at the receiver.
template <class Send, class Receive>
struct mpix_way {
    Send send;
    Receive receive;

    template <class Group>
    __device__ void put(const Group &group, int i) const {
        const int partition = i * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
        mpix::pready(as_mpix(group), partition, send);  // of a failure the receiver hears
    }
    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        return mpix::wait_arrived(as_mpix(group), receive, i, patience_ns) == MPI_SUCCESS;
    }
};
using mpix_port = mpix_way<MPIX_Prequest, MPIX_Prequest>;

// With shared memory lent for bulk copies.
struct mpix_bulk_port : mpix_port {
    template <class Group>
    __device__ void put(const Group &group, int i) const {
        __shared__ mpix::bulk_buffer<8192> shared;
        mpix::pready(as_mpix(group), i * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x), send, shared);
    }
};

struct mpix_prepared_port {
    MPIX_Prequest send, receive;

    template <class Group>
    __device__ auto begin(const Group &group) const {
        return mpix_way<mpix::prepared_send, mpix::prepared_receive>{mpix::prepare_send(as_mpix(group), send),
                                                                     mpix::prepare_receive(as_mpix(group), receive)};
    }
};

// Half a round trip in microseconds, the median of the epochs; a message is a partition of each block of the sender.
// `sole_waiter`: told to mpix; true of these kernels where one block waits. `path`: what MPIX_Request_path says.
template <class Port = mpix_port>
double measure_mpix(pair &c, const exchange_shape &s, char *out, std::string &path, bool sole_waiter = false) {
    const int count = s.count;
    char *in = nullptr;
    check(cudaMalloc(&in, s.total()), "cudaMalloc");
    MPI_Request r[2];
    MPIX_Prequest p[2];
    const auto all = static_cast<MPI_Count>(s.bytes), share = all / s.blocks;
    must(MPI_Psend_init(out, count * s.blocks, share, MPI_BYTE, c.peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]),
         "MPI_Psend_init");
    must(MPI_Precv_init(in, count, all, MPI_BYTE, c.peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]), "MPI_Precv_init");
    MPI_Info info = MPI_INFO_NULL;
    if (sole_waiter) {
        must(MPI_Info_create(&info), "MPI_Info_create");
        must(MPI_Info_set(info, "mpix_waiters", "1"), "MPI_Info_set");
    }
    for (int i = 0; i < 2; ++i) must(MPIX_Prequest_create(r[i], info, &p[i]), "MPIX_Prequest_create");
    if (info != MPI_INFO_NULL) must(MPI_Info_free(&info), "MPI_Info_free");
    const double us = c.measure(s.epochs, "mpix", out, in, s.total(), [&](int) {
        must(MPI_Startall(2, r), "MPI_Startall");
        must(MPIX_Pbuf_prepare_all(2, r), "MPIX_Pbuf_prepare_all");  // so that nothing is deferred
        const Port port{p[0], p[1]};
        const double t = ping_pong_us(c, s, port, "mpix");
        must(MPI_Waitall(2, r, MPI_STATUSES_IGNORE), "MPI_Waitall");
        return t;
    });
    char name[64] = "";
    must(MPIX_Request_path(r[0], name, sizeof name), "MPIX_Request_path");
    path = name;
    for (int i = 0; i < 2; ++i) {
        must(MPIX_Prequest_free(&p[i]), "MPIX_Prequest_free");
        must(MPI_Request_free(&r[i]), "MPI_Request_free");
    }
    MPI_Barrier(MPI_COMM_WORLD);  // the peer has let go of `in`
    check(cudaFree(in), "cudaFree");
    return us;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_MPIX_PORT_CUH
