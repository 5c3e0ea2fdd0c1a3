// SPDX-License-Identifier: BSD-3-Clause
//
// The work queue without a network: kernels post entries as Pready does, the software HCA, a thread of this process,
// executes them in page-locked memory of the host, and the kernel sees the flag there.
#ifndef MPIX_TESTS_BENCH_QUEUE_ALONE_CUH
#define MPIX_TESTS_BENCH_QUEUE_ALONE_CUH

#include <cstring>
#include <memory>
#include <mpix/impl/work_queue/post.cuh>
#include <utility>

#include "tests/bench/grid.cuh"
#include "tests/bench/pair.cuh"
#include "transport/workqueue/software_hca.h"
#include "transport/wqe/wqe.h"

namespace bench {

// What a kernel needs; rings, payload, target and flags are the host's, the rest the GPU's own.
struct posting_port {
    const mpix_posting *posting;
    const char *source;  // GPU memory
    char *payload;
    const uint64_t *flags;
    uint64_t bytes;

    // One thread.
    __device__ bool post(uint64_t partition, uint64_t epoch) const {
        using namespace mpix::detail;
        const uint64_t end = bench::now_ns() + patience_ns;
        while (post_prebuilt(posting->queue, partition_blocks(posting, partition), posting->payload_blocks + 1, 1,
                             epoch) == 0)
            if (load_relaxed(&posting->queue->error) != 0 || bench::now_ns() > end) return false;
        return true;
    }
};

// A block's partition into staging memory, posted, and its flag seen: again and again.
static __global__ void post_and_wait(const posting_port port, int count, times *out) {
    bool good = true;
    for (int i = 1; i <= count; ++i) {
        for (uint64_t at = 8 * threadIdx.x; at < port.bytes; at += uint64_t{8} * blockDim.x)
            *reinterpret_cast<uint64_t *>(port.payload + at) = *reinterpret_cast<const uint64_t *>(port.source + at);
        __syncthreads();
        if (threadIdx.x == 0) {
            const auto epoch = static_cast<uint64_t>(i);
            good = port.post(0, epoch) && poll_flag(port.flags, epoch);
            if (i == 1) out->start = now_ns();
        }
        if (__syncthreads_or(!good)) break;
    }
    if (threadIdx.x == 0) {
        out->stop = now_ns();
        if (!good) atomicAdd(&out->errors, 1ull);
    }
}

// Every thread posts a partition of its own `count` times, and then waits for its last flag. The first time, in which
// the blocks meet, is not in the time.
static __global__ void post_many(const posting_port port, int count, unsigned *arrived, times *out) {
    const uint64_t mine = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const bool leads = mine == 0;
    bool good = true;
    for (int i = 0; i <= count; ++i) {
        good = good && port.post(mine, static_cast<uint64_t>(i + 1));
        if (i != 0) continue;
        good = good && poll_flag(port.flags + mine, 1);
        if (!grid_barrier(arrived, gridDim.x)) good = false;
        if (leads) out->start = now_ns();
    }
    good = good && poll_flag(port.flags + mine, static_cast<uint64_t>(count + 1));
    if (!grid_barrier(arrived, 2 * gridDim.x)) good = false;
    if (leads) out->stop = now_ns();
    if (!good) atomicAdd(&out->errors, 1ull);
}

class queue_alone {
public:
    static constexpr uint32_t log_blocks = 10;  // as between nodes

    queue_alone(pair &c, uint64_t partitions, uint64_t bytes)
        : c_(c),
          partitions_(partitions),
          total_(partitions * bytes),
          payload_(locked(total_)),
          target_(locked(total_)),
          flags_(reinterpret_cast<uint64_t *>(locked(8 * partitions))),
          rings_(reinterpret_cast<rings_part *>(locked(sizeof(rings_part)))),
          backend_(remote_) {
        using namespace mpix::transport;
        check(cudaMalloc(&own_, sizeof(own_part)), "cudaMalloc");
        check(cudaMalloc(&source_, total_), "cudaMalloc");
        const mpix_queue_rings rings{
            rings_->sq, rings_->cq, &rings_->sq_record, &rings_->cq_record, nullptr, log_blocks, log_blocks, 1, 0};
        const auto image = std::make_unique<own_part>();
        image->queue = make_queue(rings, image->filled, &rings_->report);
        image->queue.filled = own_->filled;
        check(cudaMemcpy(own_, image.get(), sizeof *image, cudaMemcpyDefault), "cudaMemcpy");
        const auto place = [](const void *at, uint32_t key) { return std::pair(reinterpret_cast<uint64_t>(at), key); };
        const auto [from, from_key] = place(payload_, local_.add(payload_, total_, may_read_locally));
        const auto [to, to_key] = place(target_, remote_.add(target_, total_, may_write_remotely));
        const auto [flag, flag_key] = place(flags_, remote_.add(flags_, 8 * partitions, may_write_remotely));
        const partition_layout layout{1,     static_cast<uint32_t>(partitions),
                                      bytes, {from, from_key},
                                      bytes, {to, to_key},
                                      bytes, {flag, flag_key}};
        const auto built = make_blocks(layout);
        check(cudaMalloc(&blocks_, built.size() * sizeof built[0]), "cudaMalloc");
        check(cudaMemcpy(blocks_, built.data(), built.size() * sizeof built[0], cudaMemcpyDefault), "cudaMemcpy");
        const mpix_posting posting = describe_posting(layout, &own_->queue, blocks_);
        check(cudaMalloc(&posting_, sizeof posting), "cudaMalloc");
        check(cudaMemcpy(posting_, &posting, sizeof posting, cudaMemcpyDefault), "cudaMemcpy");
        served_ = std::make_shared<hca_queue>(rings, local_, backend_);
        hca_.add(served_);
    }
    ~queue_alone() {
        hca_.remove(served_.get());
        for (void *memory : {static_cast<void *>(own_), static_cast<void *>(source_), static_cast<void *>(blocks_),
                             static_cast<void *>(posting_)})
            check(cudaFree(memory), "cudaFree");
        for (void *memory : {static_cast<void *>(payload_), static_cast<void *>(target_), static_cast<void *>(flags_),
                             static_cast<void *>(rings_)})
            check(cudaFreeHost(memory), "cudaFreeHost");
    }
    queue_alone(const queue_alone &) = delete;
    queue_alone &operator=(const queue_alone &) = delete;

    // From before the payload is staged to the flag, in microseconds; the median.
    double round_trip_us(int epochs, int threads, int count) {
        return measure(
            epochs,
            [&] { post_and_wait<<<1, static_cast<unsigned>(threads), 0, c_.stream>>>(port(), count, c_.result); },
            count - 1);
    }
    // Between two postings, of all threads together.
    double posting_us(int epochs, int blocks, int threads, int count) {
        unsigned *arrived = nullptr;
        check(cudaMalloc(&arrived, sizeof *arrived), "cudaMalloc");
        const double us = measure(
            epochs,
            [&] {
                check(cudaMemsetAsync(arrived, 0, sizeof *arrived, c_.stream), "cudaMemsetAsync");
                post_many<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, c_.stream>>>(
                    port(), count, arrived, c_.result);
            },
            count * blocks * threads);
        check(cudaFree(arrived), "cudaFree");
        return us;
    }

private:
    struct rings_part {
        alignas(64) uint32_t sq_record;
        alignas(64) uint32_t cq_record;
        alignas(64) mpix_queue_report report;
        alignas(64) mpix::detail::wqe sq[1 << log_blocks];
        mpix::detail::cqe cq[1 << log_blocks];
    };
    struct own_part {
        mpix_work_queue queue;
        uint64_t filled[1 << log_blocks];
    };

    static char *locked(uint64_t bytes) {
        void *memory = nullptr;
        check(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
        std::memset(memory, 0, bytes);
        return static_cast<char *>(memory);
    }
    posting_port port() const { return {posting_, source_, payload_, flags_, total_}; }

    // Fresh payload each time, and all of it checked: kernels that do not stage it find it staged.
    template <class Launch>
    double measure(int epochs, const Launch &launch, int steps) {
        std::vector<double> all;
        for (int e = 0; e <= epochs; ++e) {
            std::vector<uint64_t> fresh(total_ / 8);
            for (uint64_t &word : fresh) word = next_ = next_ * 6364136223846793005u + 1442695040888963407u;
            check(cudaMemcpy(source_, fresh.data(), total_, cudaMemcpyDefault), "cudaMemcpy");
            std::memcpy(payload_, fresh.data(), total_);
            std::memset(target_, 0x5a, total_);
            std::memset(flags_, 0, 8 * partitions_);
            check(cudaMemsetAsync(c_.result, 0, sizeof(times), c_.stream), "cudaMemsetAsync");
            launch();
            check(cudaGetLastError(), "queue");
            const times t = c_.outcome("queue");
            if (std::memcmp(target_, fresh.data(), total_) != 0) {
                std::fprintf(stderr, "queue: wrong bytes\n");
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
            if (e > 0) all.push_back(static_cast<double>(t.stop - t.start) * 1e-3 / steps);
        }
        return median(all);
    }

    pair &c_;
    const uint64_t partitions_, total_;
    char *payload_, *target_;
    uint64_t *flags_;
    rings_part *rings_;
    own_part *own_ = nullptr;
    char *source_ = nullptr;
    mpix::detail::wqe *blocks_ = nullptr;
    mpix_posting *posting_ = nullptr;
    mpix::transport::key_table local_, remote_;
    mpix::transport::memory_backend backend_;
    std::shared_ptr<mpix::transport::hca_queue> served_;
    uint64_t next_ = 1;
    mpix::transport::software_hca hca_;
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_QUEUE_ALONE_CUH
