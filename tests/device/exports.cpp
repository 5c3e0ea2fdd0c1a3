// SPDX-License-Identifier: BSD-3-Clause
//
// Exporting requests: what is refused, requests that the host and kernels use in turn and at the same time, and
// the host's view of what kernels do.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

const int threads = executor::is_gpu ? 64 : 2;

// ---- refused -------------------------------------------------------------------------------------------

int create_with(MPI_Request request, const char *key, const char *value, MPIX_Prequest *handle) {
    MPI_Info info;
    must(MPI_Info_create(&info), "MPI_Info_create");
    must(MPI_Info_set(info, key, value), "MPI_Info_set");
    const int code = MPIX_Prequest_create(request, info, handle);
    must(MPI_Info_free(&info), "MPI_Info_free");
    return code;
}

void refusals(session &s) {
    s.what = "refusals";
    exchange x(s, {}, 1, exchange::made::unexported);
    MPIX_Prequest handle = MPIX_PREQUEST_NULL;
    const char *const create = "MPIX_Prequest_create";
    for (const MPI_Request r : x.requests) {
        must_refuse(MPIX_Prequest_create(r, MPI_INFO_NULL, nullptr), MPI_ERR_ARG, create);
        must_refuse(create_with(r, "mpix_device", "x", &handle), MPI_ERR_INFO_VALUE, create);
        must_refuse(create_with(r, "mpix_device", "-2", &handle), MPI_ERR_INFO_VALUE, create);
        must_refuse(create_with(r, "mpix_device", "99", &handle), MPI_ERR_BUFFER, create);
        if (executor::is_gpu) must_refuse(create_with(r, "mpix_device", "host", &handle), MPI_ERR_BUFFER, create);
        must_refuse(create_with(r, "mpix_contributors", "0", &handle), MPI_ERR_INFO_VALUE, create);
        must_refuse(create_with(r, "mpix_contributors", "2x", &handle), MPI_ERR_INFO_VALUE, create);
        REQUIRE(handle == MPIX_PREQUEST_NULL, "a refused MPIX_Prequest_create changed the handle");
        must(create_with(r, "unknown_key", "x", &handle), create);
        MPIX_Prequest second = MPIX_PREQUEST_NULL;
        must_refuse(MPIX_Prequest_create(r, MPI_INFO_NULL, &second), MPI_ERR_REQUEST, create);
        MPI_Request copy = r;
        must_refuse(MPI_Request_free(&copy), MPI_ERR_REQUEST, "MPI_Request_free of an exported request");
        MPIX_Prequest freed = handle;
        must(MPIX_Prequest_free(&handle), "MPIX_Prequest_free");
        REQUIRE(handle == MPIX_PREQUEST_NULL, "MPIX_Prequest_free left the handle");
        must(MPIX_Prequest_free(&handle), "MPIX_Prequest_free of the null handle");
        must_refuse(MPIX_Prequest_free(&freed), MPI_ERR_REQUEST, "MPIX_Prequest_free of a freed handle");
        must_refuse(MPIX_Pbuf_prepare(r), MPI_ERR_REQUEST, "MPIX_Pbuf_prepare of an inactive request");
    }
    must_refuse(MPIX_Prequest_free(nullptr), MPI_ERR_ARG, "MPIX_Prequest_free");
    must_refuse(MPIX_Prequest_create(MPI_REQUEST_NULL, MPI_INFO_NULL, &handle), MPI_ERR_REQUEST, create);
    MPI_Request ordinary;
    must(MPI_Send_init(nullptr, 0, MPI_BYTE, s.peer, 9, MPI_COMM_WORLD, &ordinary), "MPI_Send_init");
    must_refuse(MPIX_Prequest_create(ordinary, MPI_INFO_NULL, &handle), MPI_ERR_REQUEST, create);
    must(MPI_Request_free(&ordinary), "MPI_Request_free");

    // An active request: neither exported nor taken back.
    x.start();
    must_refuse(MPIX_Prequest_create(x.requests[0], MPI_INFO_NULL, &handle), MPI_ERR_REQUEST, create);
    must_refuse(MPIX_Prequest_create(x.requests[1], MPI_INFO_NULL, &handle), MPI_ERR_REQUEST, create);
    must(MPI_Pready_range(0, 3, x.requests[0]), "MPI_Pready_range");
    x.wait();
    x.export_both();
    x.start();
    MPIX_Prequest still = x.send;
    must_refuse(MPIX_Prequest_free(&still), MPI_ERR_REQUEST, "MPIX_Prequest_free of an active request");
    must(MPI_Pready_range(0, 3, x.requests[0]), "MPI_Pready_range");
    x.wait();
}

// Pieces with gaps between them cannot be exported.
void gaps(session &s) {
    MPI_Datatype pieces;
    must(MPI_Type_vector(4, 8, 16, MPI_BYTE, &pieces), "MPI_Type_vector");
    must(MPI_Type_commit(&pieces), "MPI_Type_commit");
    void *const memory = s.device->allocate(1024);
    MPI_Request r = MPI_REQUEST_NULL;
    const int code = MPI_Psend_init(memory, 2, 1, pieces, s.peer, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    if (executor::is_gpu && code != MPI_SUCCESS) {
        must_refuse(code, MPI_ERR_TYPE, "MPI_Psend_init of GPU memory with gaps");
    } else {
        must(code, "MPI_Psend_init");
        MPIX_Prequest handle = MPIX_PREQUEST_NULL;
        must_refuse(MPIX_Prequest_create(r, MPI_INFO_NULL, &handle), MPI_ERR_TYPE, "MPIX_Prequest_create");
        must(MPI_Request_free(&r), "MPI_Request_free");
    }
    must(MPI_Type_free(&pieces), "MPI_Type_free");
    s.meet();
    s.device->release(memory);
}

// ---- by turns ------------------------------------------------------------------------------------------

struct fill_body {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        for (int i = block_index; i < p.sends; i += blocks) p.fill(block, i);
    }
};

void host_epoch(session &s, exchange &x, int sends) {
    x.start();
    s.run(1, threads, fill_body{x.view()});
    for (int i = sends - 1; i >= 0; --i) must(MPI_Pready(i, x.requests[0]), "MPI_Pready");
    x.wait();
    x.verify_received(1, threads);
}

void kernel_epoch(session &s, exchange &x) {
    x.start();
    s.run(2, threads, transfer{x.view()});
    x.wait();
}

struct contribute_body {
    port p;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        const std::uint64_t slice = p.send_bytes() / static_cast<std::uint64_t>(blocks);
        for (int i = 0; i < p.sends; ++i) {
            p.fill(block,
                   static_cast<std::uint64_t>(i) * p.send_bytes() + static_cast<std::uint64_t>(block_index) * slice,
                   slice);
            p.expect(i, MPI_SUCCESS, mpix::pready_contribute(block, i, p.send));
        }
    }
};

void by_turns(session &s, const shape &shape, int tag) {
    exchange x(s, shape, tag, exchange::made::unexported);
    for (int cycle = 0; cycle < 3; ++cycle) {
        s.what = "host epochs";
        for (int e = 0; e < 3; ++e) host_epoch(s, x, shape.sends);
        x.export_both();
        s.what = "kernel epochs after host epochs";
        for (int e = 0; e < 3; ++e) kernel_epoch(s, x);
        for (int e = 0; e < 2; ++e) {
            x.start();
            s.run(shape.contributors, threads, contribute_body{x.view()});
            x.wait();
            x.verify_received(1, threads);
        }
        if (cycle == 1) {  // taken back within the cycle, with no epoch in between
            x.unexport_both();
            x.export_both();
            kernel_epoch(s, x);
        }
        x.unexport_both();
    }
    s.what = "host epochs after kernel epochs";
    host_epoch(s, x, shape.sends);
    x.check_guards();
}

// ---- at the same time ------------------------------------------------------------------------------------

// The partitions that belong to the kernel in this epoch.
struct share_body {
    port p;
    std::uint64_t mask;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        for (int i = block_index; i < p.sends; i += blocks)
            if (mask >> i & 1) p.expect(i, MPI_SUCCESS, mpix::pready(block, i, p.send));
        for (int j = block_index; j < p.receives; j += blocks) {
            p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
            p.verify(block, j);
        }
    }
};

void mixed(session &s, const shape &shape, int tag) {
    exchange x(s, shape, tag);
    const int epochs = s.epochs != 0 ? static_cast<int>(s.epochs) : s.quick ? 20 : 300;
    for (int e = 0; e < epochs; ++e) {
        const std::uint64_t all = (std::uint64_t{1} << shape.sends) - 1;
        const std::uint64_t mask = e % 7 == 0   ? all
                                   : e % 7 == 1 ? 0
                                                : mix(s.seed + static_cast<std::uint64_t>(e)) & all;
        s.what = "partitions of the kernel: mask " + std::to_string(mask);
        x.start();
        s.run(1, threads, fill_body{x.view()});
        const bool host_first = e % 3 == 0;
        if (!host_first) s.device->launch(2, threads, share_body{x.view(), mask});
        for (int i = 0; i < shape.sends; ++i)
            if (!(mask >> i & 1)) must(MPI_Pready(i, x.requests[0]), "MPI_Pready");
        if (host_first) s.device->launch(2, threads, share_body{x.view(), mask});
        s.settle();
        x.wait();
    }
    x.check_guards();
}

// ---- the host's MPI_Parrived ------------------------------------------------------------------------------

void host_asks(session &s, const shape &shape, int tag) {
    exchange x(s, shape, tag);
    for (int e = 0; e < 3; ++e) {
        x.start();
        std::vector<bool> ready(static_cast<std::size_t>(shape.sends));
        for (int k = 0; k < shape.sends; ++k) {
            const int part = (k * 3 + e) % shape.sends;  // the same order on both sides
            s.run(1, threads, transfer{x.view(), scope::block, true, false, part, part});
            ready[static_cast<std::size_t>(part)] = true;
            s.meet();
            for (int j = 0; j < shape.receives; ++j) {
                // Of the sender's partitions, those that share a byte with j.
                bool expected = true;
                for (int i = 0; i < shape.sends; ++i)
                    if (i * shape.receives < (j + 1) * shape.sends && j * shape.sends < (i + 1) * shape.receives)
                        expected = expected && ready[static_cast<std::size_t>(i)];
                int flag = 0;
                const double start = MPI_Wtime();
                do must(MPI_Parrived(x.requests[1], j, &flag), "MPI_Parrived");
                while (expected && !flag && MPI_Wtime() - start < 20);
                REQUIRE((flag != 0) == expected, "host's MPI_Parrived of %d of %d after %d of %d: %d", j,
                        shape.receives, k + 1, shape.sends, flag);
            }
            s.meet();
        }
        int flag = 0;
        must(MPI_Test(&x.requests[1], &flag, MPI_STATUS_IGNORE), "MPI_Test");
        REQUIRE(flag, "all partitions have arrived, and MPI_Test says no");
        x.wait();
        x.verify_received(1, threads);
    }
}

// ---- freed while a kernel waits ---------------------------------------------------------------------------

// What a request had mapped of the peer's GPU does not keep the waiting kernel from its data, which the host is to send.
void freed_beside(session &s, const shape &shape, int tag) {
    s.what = "a request freed beside a waiting kernel";
    exchange waited(s, shape, tag), other(s, shape, tag + 1, exchange::made::unexported);
    for (int e = 0; e < 3; ++e) {
        host_epoch(s, other, shape.sends);
        waited.start();
        s.run(1, threads, fill_body{waited.view()});
        s.meet();
        s.device->launch(1, threads, transfer{waited.view(), scope::block, false, true});
        for (MPI_Request &r : other.requests) must(MPI_Request_free(&r), "MPI_Request_free");
        s.meet();  // the peer's kernel waits, too
        for (int i = 0; i < shape.sends; ++i) must(MPI_Pready(i, waited.requests[0]), "MPI_Pready");
        s.settle();
        waited.wait();
        other.init_send();
        other.init_receive();
    }
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device exports");
    refusals(s);
    gaps(s);
    by_turns(s, {.sends = 4, .receives = 4, .bytes = 4 * 900, .contributors = 3}, 3);
    by_turns(s, {.sends = 3, .receives = 2, .bytes = 6 * 150000, .contributors = 2}, 4);
    mixed(s, {.sends = 6, .receives = 6, .bytes = 6 * 500}, 5);
    mixed(s, {.sends = 5, .receives = 3, .bytes = 15 * 30000, .send_skew = 4}, 6);
    host_asks(s, {.sends = 4, .receives = 4, .bytes = 4 * 100}, 7);
    host_asks(s, {.sends = 5, .receives = 3, .bytes = 15 * 100}, 8);
    host_asks(s, {.sends = 2, .receives = 7, .bytes = 14 * 1000}, 9);
    freed_beside(s, {.sends = 3, .receives = 3, .bytes = 3 * 2000}, 10);
    return s.finish();
}
