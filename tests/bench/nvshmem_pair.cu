// SPDX-License-Identifier: BSD-3-Clause
#include "tests/bench/nvshmem_pair.cuh"

#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdlib>

#include "tests/bench/rival_release.hpp"

namespace bench {
namespace {

// Its device code is in this program; another release's host library may know other structures, and ends the process.
bool is_of_this_release() {
    int major = 0, minor = 0, patch = 0;
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    return both_of_one_release("NVSHMEM", {NVSHMEM_VENDOR_MAJOR_VERSION, NVSHMEM_VENDOR_MINOR_VERSION}, {major, minor});
}

struct nvshmem_port {
    char *in, *out;
    uint64_t *signals;
    uint64_t bytes, epoch;
    int peer;

    __device__ void put(const lone_thread &, int i) const {
        const uint64_t at = static_cast<uint64_t>(i) * bytes;
        nvshmem_putmem_signal_nbi(in + at, out + at, bytes, signals + i, epoch, NVSHMEM_SIGNAL_SET, peer);
    }
    __device__ void put(const whole_warp &, int i) const {
        const uint64_t at = static_cast<uint64_t>(i) * bytes;
        nvshmemx_putmem_signal_nbi_warp(in + at, out + at, bytes, signals + i, epoch, NVSHMEM_SIGNAL_SET, peer);
    }
    __device__ void put(const whole_block &, int i) const {
        const uint64_t at = static_cast<uint64_t>(i) * bytes;
        nvshmemx_putmem_signal_nbi_block(in + at, out + at, bytes, signals + i, epoch, NVSHMEM_SIGNAL_SET, peer);
    }
    template <class Group>
    __device__ bool await(const Group &group, int i) const {
        if (group.thread_rank() == 0) nvshmem_signal_wait_until(signals + i, NVSHMEM_CMP_EQ, epoch);
        group.sync();
        return true;
    }
};

// Of several blocks: a share each, one added to the signal each.
struct nvshmem_shares {
    nvshmem_port all;

    __device__ void put(const whole_block &, int i) const {
        const uint64_t share = all.bytes / gridDim.x;
        const uint64_t at = static_cast<uint64_t>(i) * all.bytes + blockIdx.x * share;
        nvshmemx_putmem_signal_nbi_block(all.in + at, all.out + at, share, all.signals + i, 1, NVSHMEM_SIGNAL_ADD,
                                         all.peer);
    }
    __device__ bool await(const whole_block &block, int i) const {
        if (block.thread_rank() == 0) nvshmem_signal_wait_until(all.signals + i, NVSHMEM_CMP_EQ, all.epoch * gridDim.x);
        block.sync();
        return true;
    }
};

class nvshmem_session final : public nvshmem_pair {
public:
    nvshmem_session(const pair &c, uint64_t most_bytes, int most_count) : count_(most_count) {
        // No multicast, no NCCL, which it would find in this process; no search for network cards; what the user has
        // set stays.
        setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
        setenv("NVSHMEM_DISABLE_NCCL", "1", 1);
        setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
        setenv("NVSHMEM_SYMMETRIC_SIZE", "2G", 0);
        nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
        if (c.rank == 0) must(nvshmemx_get_uniqueid(&id), "nvshmemx_get_uniqueid");
        MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
        nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
        must(nvshmemx_set_attr_uniqueid_args(c.rank, 2, &id, &attributes), "nvshmemx_set_attr_uniqueid_args");
        must(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes), "nvshmemx_init_attr");
        in_ = allocate(most_bytes);
        out_ = allocate(most_bytes);
        signals_ = reinterpret_cast<uint64_t *>(allocate(static_cast<uint64_t>(most_count) * sizeof(uint64_t)));
    }
    ~nvshmem_session() override {
        nvshmem_free(signals_);
        nvshmem_free(out_);
        nvshmem_free(in_);
        nvshmem_finalize();
    }

    double measure(pair &c, const exchange_shape &s) override {
        check(cudaMemset(signals_, 0, static_cast<uint64_t>(count_) * sizeof(uint64_t)), "cudaMemset");
        check(cudaDeviceSynchronize(), "cudaMemset");  // measure() has a barrier before the first signal
        return c.measure(s.epochs, "nvshmem", out_, in_, s.total(), [&](int e) {
            const nvshmem_port port{in_, out_, signals_, s.bytes, static_cast<uint64_t>(e), c.peer};
            if (s.blocks > 1) return ping_pong_us(c, s, nvshmem_shares{port}, "nvshmem");
            return ping_pong_us(c, s, port, "nvshmem");
        });
    }

private:
    static void must(int code, const char *call) {
        if (code == 0) return;
        std::fprintf(stderr, "%s: %d\n", call, code);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    static char *allocate(uint64_t bytes) {
        void *const at = nvshmem_malloc(bytes);
        if (at == nullptr) must(1, "nvshmem_malloc");
        return static_cast<char *>(at);
    }

    int count_;
    char *in_, *out_;
    uint64_t *signals_;
};

}  // namespace

std::unique_ptr<nvshmem_pair> nvshmem_pair::open(const pair &c, uint64_t most_bytes, int most_count) {
    if (c.devices < 2 || !is_of_this_release()) return nullptr;
    return std::make_unique<nvshmem_session>(c, most_bytes, most_count);
}

}  // namespace bench
