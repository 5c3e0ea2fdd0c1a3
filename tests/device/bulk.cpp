// SPDX-License-Identifier: BSD-3-Clause
//
// pready with shared memory that the caller lends for bulk asynchronous copies: sizes around those of the buffer and of
// its pieces, by threads, warps and blocks, also misaligned, and calls that are errors.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

// As `transfer`, but one group of each block sends, since one at a time may use the buffer; all the block waits.
template <unsigned Bytes>
struct lent {
    port p;
    scope by;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
#ifdef __CUDACC__
        __shared__ mpix::bulk_buffer<Bytes> shared;
#else
        mpix::bulk_buffer<Bytes> shared;
#endif
        as_group(block, by, [&](const auto &group, int index, int) {
            if (index != 0) return;
            for (int i = block_index; i < p.sends; i += blocks) {
                p.fill(group, i);
                p.expect(i, MPI_SUCCESS, mpix::pready(group, i, p.send, shared));
            }
        });
        block.sync();
        for (int j = block_index; j < p.receives; j += blocks) {
            p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
            p.verify(block, j);
        }
    }
};

// Partition 0 by two calls, an index that does not exist, a receive and no request.
struct wrong_calls {
    port p;

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int i = 0; i < p.sends; ++i) p.fill(block, i);
#ifdef __CUDACC__
        __shared__ mpix::bulk_buffer<8192> shared;
#else
        mpix::bulk_buffer<8192> shared;
#endif
        p.expect(0, MPI_SUCCESS, mpix::pready(block, 0, p.send, shared));
        p.expect(0, MPI_ERR_ARG, mpix::pready(block, 0, p.send, shared));
        p.expect(p.sends, MPI_ERR_ARG, mpix::pready(block, p.sends, p.send, shared));
        p.expect(0, MPI_ERR_REQUEST, mpix::pready(block, 0, p.receive, shared));
        p.expect(0, MPI_ERR_REQUEST, mpix::pready(block, 0, static_cast<MPIX_Prequest>(MPIX_PREQUEST_NULL), shared));
        for (int i = 1; i < p.sends; ++i) p.expect(i, MPI_SUCCESS, mpix::pready(block, i, p.send, shared));
    }
};

template <unsigned Bytes>
void sizes(session &s, int sends, std::uint64_t size, int skew, scope by, int threads = 96) {
    s.what = std::to_string(sends) + " partitions of " + std::to_string(size) + " bytes by a " + scope_name(by) +
             ", misaligned by " + std::to_string(skew) + ", lent " + std::to_string(Bytes) + " bytes";
    exchange x(s, {sends, sends, static_cast<std::uint64_t>(sends) * size, skew, skew}, sends);
    for (int e = 0; e < 4; ++e) {
        x.start();
        s.run(2, executor::is_gpu ? (by == scope::warp ? 96 : threads) : 2, lent<Bytes>{x.view(), by});
        x.wait();
        x.check_guards();
    }
}

// Each request's Wait tells of the first error, and completes it.
void errors(session &s) {
    s.what = "calls that are errors";
    exchange x(s, {3, 3, 3 * 32768}, 3);
    for (int e = 0; e < 3; ++e) {
        x.start();
        s.run(1, executor::is_gpu ? 32 : 2, wrong_calls{x.view()});
        for (int i = 0; i < 2; ++i) {
            const int expected = i == 0 ? MPI_ERR_ARG : MPI_ERR_REQUEST;
            must_refuse(MPI_Wait(&x.requests[i], MPI_STATUS_IGNORE), expected, "MPI_Wait");
        }
        x.verify_received(1, 32);
        x.check_guards();
    }
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device bulk");
    for (const scope by : {scope::thread, scope::warp, scope::block}) {
        if (!executor::is_gpu && by == scope::warp) continue;
        for (const std::uint64_t size : {16, 240, 256, 272, 1008, 1024, 2048, 4112, 16384, 16400, 20000}) {
            sizes<1024>(s, 5, size, 0, by);
            if (!s.quick) sizes<8192>(s, 5, size, 0, by);
        }
        // The last one has 16 bytes more than goes that way. A block of 20 threads, too.
        for (const std::uint64_t size : {32768, 40976, 65536, 65552})
            for (const int threads : {96, 20}) sizes<8192>(s, 5, size, 0, by, threads);
        sizes<1024>(s, 3, 4099, 0, by);
        sizes<1024>(s, 3, 4096, 8, by);
    }
    errors(s);
    return s.finish();
}
