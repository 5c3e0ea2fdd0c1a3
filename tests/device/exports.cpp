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
    must(MPI_Send_init(nullptr, 0, MPI_BYTE, s.peer, 9, s.comm, &ordinary), "MPI_Send_init");
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

// ---- gaps --------------------------------------------------------------------------------------------------

// Rows of `row` bytes, `pitch` apart; `rows` of them an element.
struct rows_of {
    int row, pitch, rows;
    MPIX_FN std::uint64_t place(std::uint64_t byte) const {
        const auto r = static_cast<std::uint64_t>(row);
        return byte / r * static_cast<std::uint64_t>(pitch) + byte % r;
    }
    MPI_Datatype type() const {
        MPI_Datatype one, out;
        must(MPI_Type_vector(rows, row, pitch, MPI_BYTE, &one), "MPI_Type_vector");
        must(MPI_Type_create_resized(one, 0, static_cast<MPI_Aint>(rows) * pitch, &out), "MPI_Type_create_resized");
        must(MPI_Type_commit(&out), "MPI_Type_commit");
        must(MPI_Type_free(&one), "MPI_Type_free");
        return out;
    }
    std::uint64_t room(std::uint64_t bytes) const {
        return bytes / static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(pitch);
    }
};

struct gaps_body {
    MPIX_Prequest send, receive;
    char *out;
    const char *in;
    rows_of out_rows, in_rows;
    int sends, receives;
    std::uint64_t bytes, epoch, out_key, in_key;
    bool typed, by_host;
    report *errors;

    static DEVICE_FN unsigned char value(std::uint64_t key, std::uint64_t n) {
        return static_cast<unsigned char>((key + n * 0x9e3779b97f4a7c15u) >> 40);
    }
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        const auto first = static_cast<std::uint64_t>(block.thread_rank());
        const auto step = static_cast<std::uint64_t>(block.num_threads());
        const std::uint64_t mine = bytes / static_cast<std::uint64_t>(sends);
        for (int i = block_index; i < sends; i += blocks) {
            const std::uint64_t begin = static_cast<std::uint64_t>(i) * mine;
            for (std::uint64_t n = begin + first; n < begin + mine; n += step)
                out[out_rows.place(n)] = static_cast<char>(value(out_key, n));
            if (by_host) continue;
            expect_code(errors, epoch, i, MPI_SUCCESS,
                        typed ? mpix::pready_typed(block, i, send) : mpix::pready(block, i, send));
        }
        if (by_host) return;
        const std::uint64_t theirs = bytes / static_cast<std::uint64_t>(receives);
        for (int j = block_index; j < receives; j += blocks) {
            expect_code(errors, epoch, j, MPI_SUCCESS, mpix::wait_arrived(block, receive, j, patience_ns));
            const std::uint64_t begin = static_cast<std::uint64_t>(j) * theirs;
            for (std::uint64_t n = begin + first; n < begin + theirs; n += step) {
                const auto found = static_cast<unsigned char>(in[in_rows.place(n)]);
                if (found != value(in_key, n)) complain(errors, wrong::byte, epoch, j, n, value(in_key, n), found);
            }
        }
    }
};

// From one layout to another; each byte, and those between them.
void gaps(session &s, const rows_of &from, const rows_of &to, int sends, int receives, std::uint64_t bytes, int tag) {
    s.what = "gaps, from rows of " + std::to_string(from.row) + " to rows of " + std::to_string(to.row);
    const std::uint64_t out_room = from.room(bytes), in_room = to.room(bytes);
    char *const out = static_cast<char *>(s.device->allocate(out_room));
    char *const in = static_cast<char *>(s.device->allocate(in_room));
    MPI_Datatype types[] = {from.type(), to.type()};
    MPI_Request requests[2];
    const auto count = [&](const rows_of &r, int partitions) {
        return static_cast<MPI_Count>(bytes / static_cast<std::uint64_t>(partitions * r.row * r.rows));
    };
    must(MPI_Psend_init(out, sends, count(from, sends), types[0], s.peer, tag, s.comm, MPI_INFO_NULL, &requests[0]),
         "MPI_Psend_init");
    must(MPI_Precv_init(in, receives, count(to, receives), types[1], s.peer, tag, s.comm, MPI_INFO_NULL, &requests[1]),
         "MPI_Precv_init");
    for (MPI_Datatype &type : types) must(MPI_Type_free(&type), "MPI_Type_free");  // the requests keep them
    MPIX_Prequest send, receive;
    must(MPIX_Prequest_create(requests[0], MPI_INFO_NULL, &send), "MPIX_Prequest_create");
    must(MPIX_Prequest_create(requests[1], MPI_INFO_NULL, &receive), "MPIX_Prequest_create");
    if (s.match_first) await_match(requests[0]);
    std::vector<unsigned char> memory(in_room);
    for (std::uint64_t epoch = 1; epoch <= 6; ++epoch) {
        s.device->set(out, 0x11, out_room);
        s.device->set(in, 0x22, in_room);
        must(MPI_Startall(2, requests), "MPI_Startall");
        const bool by_host = epoch % 3 == 0;
        const gaps_body body{send,
                             receive,
                             out,
                             in,
                             from,
                             to,
                             sends,
                             receives,
                             bytes,
                             epoch,
                             message_key(s.seed, s.rank, tag, epoch),
                             message_key(s.seed, s.peer, tag, epoch),
                             epoch % 3 == 1,
                             by_host,
                             s.errors};
        s.run(2, threads, body);
        if (by_host) must(MPI_Pready_range(0, sends - 1, requests[0]), "MPI_Pready_range");
        must(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
        std::vector<unsigned char> expected(in_room, 0x22);
        for (std::uint64_t n = 0; n < bytes; ++n)
            expected[to.place(n)] = static_cast<unsigned char>((body.in_key + n * 0x9e3779b97f4a7c15u) >> 40);
        s.device->download(memory.data(), in, in_room);
        for (std::uint64_t n = 0; n < in_room; ++n)
            REQUIRE(memory[n] == expected[n], "%s, epoch %d: byte %llu of the memory is %#x, not %#x", s.what.c_str(),
                    static_cast<int>(epoch), session::as_ull(n), memory[n], expected[n]);
    }
    must(MPIX_Prequest_free(&send), "MPIX_Prequest_free");
    must(MPIX_Prequest_free(&receive), "MPIX_Prequest_free");
    for (MPI_Request &r : requests) must(MPI_Request_free(&r), "MPI_Request_free");
    s.meet();
    s.device->release(out);
    s.device->release(in);
}

// A host buffer with gaps to GPU memory, with gaps or without.
void gaps_of_the_host(session &s, const rows_of &from, const rows_of &to, int tag) {
    s.what = "gaps of a host buffer";
    constexpr std::uint64_t bytes = 12 * 500;
    std::vector<char> out(from.room(bytes));
    char *const in = static_cast<char *>(s.device->allocate(to.room(bytes)));
    MPI_Datatype types[] = {from.type(), to.type()};
    MPI_Request both[2];
    must(MPI_Psend_init(out.data(), 4, static_cast<MPI_Count>(bytes) / (4 * from.row * from.rows), types[0], s.peer,
                        tag, s.comm, MPI_INFO_NULL, &both[0]),
         "MPI_Psend_init");
    must(MPI_Precv_init(in, 2, static_cast<MPI_Count>(bytes) / (2 * to.row * to.rows), types[1], s.peer, tag, s.comm,
                        MPI_INFO_NULL, &both[1]),
         "MPI_Precv_init");
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        const std::uint64_t own = message_key(s.seed, s.rank, tag, epoch),
                            theirs = message_key(s.seed, s.peer, tag, epoch);
        s.device->set(in, 0x22, to.room(bytes));
        must(MPI_Startall(2, both), "MPI_Startall");
        for (std::uint64_t n = 0; n < bytes; ++n) out[from.place(n)] = static_cast<char>(own >> (n % 57));
        must(MPI_Pready_range(0, 3, both[0]), "MPI_Pready_range");
        must(MPI_Waitall(2, both, MPI_STATUSES_IGNORE), "MPI_Waitall");
        std::vector<unsigned char> expected(to.room(bytes), 0x22), found(to.room(bytes));
        for (std::uint64_t n = 0; n < bytes; ++n)
            expected[to.place(n)] = static_cast<unsigned char>(theirs >> (n % 57));
        s.device->download(found.data(), in, found.size());
        REQUIRE(found == expected, "%s, epoch %d: wrong bytes", s.what.c_str(), static_cast<int>(epoch));
    }
    for (MPI_Request &r : both) must(MPI_Request_free(&r), "MPI_Request_free");
    for (MPI_Datatype &type : types) must(MPI_Type_free(&type), "MPI_Type_free");
    s.meet();
    s.device->release(in);
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
    bool shares;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        const std::uint64_t slice = p.send_bytes() / static_cast<std::uint64_t>(blocks);
        for (int i = 0; i < p.sends; ++i) {
            const std::uint64_t begin = static_cast<std::uint64_t>(block_index) * slice;
            p.fill(block, static_cast<std::uint64_t>(i) * p.send_bytes() + begin, slice);
            p.expect(i, MPI_SUCCESS,
                     shares ? mpix::pready_contribute(block, i, p.send, begin, slice)
                            : mpix::pready_contribute(block, i, p.send));
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
        for (int e = 0; e < 4; ++e) {
            x.start();
            s.run(shape.contributors, threads, contribute_body{x.view(), e % 2 == 1});
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
                for (;; host_poll_pause()) {
                    must(MPI_Parrived(x.requests[1], j, &flag), "MPI_Parrived");
                    if (!expected || flag || MPI_Wtime() - start >= 20) break;
                }
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

// What a request had mapped of the peer's GPU does not keep the waiting kernel from its data, which the host is to
// send.
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

// With nothing exported a peer's memory is not kept from being freed.
void memory_comes_back(session &s, int tag) {
    if (!executor::is_gpu) return;
    s.what = "memory after requests are freed";
    constexpr std::uint64_t size = 64u << 20;
    std::size_t first = 0;
    for (int n = 0; n < 12; ++n) {
        {
            exchange x(s, {.sends = 2, .receives = 2, .bytes = size}, tag, exchange::made::unexported);
            x.start();
            must(MPI_Pready_range(0, 1, x.requests[0]), "MPI_Pready_range");
            x.wait();
        }
        s.meet();
        const std::size_t now = s.device->free_bytes();
        if (n == 2) first = now;
        REQUIRE(n < 2 || now + 3 * size > first, "%llu bytes of GPU memory are gone after %d rounds",
                session::as_ull(first - now), n - 2);
    }
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device exports");
    refusals(s);
    gaps(s, {8, 24, 3}, {16, 40, 2}, 4, 3, 96 * 100, 12);
    gaps(s, {16, 16, 1}, {1, 3, 6}, 2, 4, 96 * 50, 13);
    gaps(s, {5, 11, 4}, {20, 20, 1}, 6, 5, 600 * 20, 14);
    gaps(s, {64, 1024, 16}, {256, 512, 8}, 4, 8, 1 << 20, 15);
    gaps_of_the_host(s, {1, 2, 50}, {20, 20, 5}, 16);
    gaps_of_the_host(s, {12, 30, 5}, {4, 16, 25}, 17);
    memory_comes_back(s, 20);
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
