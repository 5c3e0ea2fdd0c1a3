// SPDX-License-Identifier: BSD-3-Clause
//
// A send request whose partitions go from one buffer to another through a work queue and the software HCA, step by
// step.
#ifndef MPIX_TESTS_UNIT_QUEUE_BENCH_HPP
#define MPIX_TESTS_UNIT_QUEUE_BENCH_HPP

#include <mpix/impl/work_queue/queue.cuh>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/queue_memory.hpp"
#include "transport/workqueue/software_hca.h"

namespace queue_test {

using namespace mpix::detail;
using namespace mpix::transport;

struct bench_shape {
    std::uint32_t log_sq = 3, log_cq = 3;
    std::uint64_t first_block = 0, first_entry = 0;
    std::uint32_t partitions = 4;
    std::uint64_t bytes = 40, gap = 0;  // of a partition, and behind it at the sender's end
};

struct bench {
    using shape = bench_shape;

    explicit bench(const shape &s = {}, hca_backend *other_backend = nullptr)
        : memory(std::aligned_alloc(64, (queue_memory::bytes(s.log_sq, s.log_cq) + 63) & ~std::size_t{63}), &std::free),
          queue_words(queue_memory::make(memory.get(), s.log_sq, s.log_cq, s.first_block, s.first_entry)),
          q(queue_words->queue),
          out(s.partitions * (s.bytes + s.gap)),
          in(s.partitions * s.bytes),
          flags(s.partitions + 1),
          from_key(local.add(out.data(), out.size(), may_read_locally)),
          to_key(remote.add(in.data(), in.size(), may_write_remotely)),
          flags_key(remote.add(flags.data(), 8 * s.partitions, may_write_remotely)),
          layout{queue_memory::qpn, s.partitions,
                 s.bytes,           {address(out.data()), from_key},
                 s.bytes + s.gap,   {address(in.data()), to_key},
                 s.bytes,           {address(flags.data()), flags_key}},
          blocks(make_blocks(layout)),
          posting(describe_posting(layout, &q, blocks.data())),
          to_memory(remote),
          hca(q.rings, local, other_backend != nullptr ? *other_backend : to_memory, s.first_block, s.first_entry) {
        hca.faults.poison = true;
        std::iota(out.begin(), out.end(), static_cast<unsigned char>(1));
    }

    static std::uint64_t address(const void *at) { return reinterpret_cast<std::uint64_t>(at); }

    bool arrived(std::uint64_t partition) const {
        for (std::uint64_t i = 0; i < layout.bytes; ++i)
            if (in[partition * layout.bytes + i] != out[partition * layout.from_stride + i]) return false;
        return true;
    }
    void put(std::uint64_t index, const wqe &entry) { put_prebuilt(&q, index, &entry); }
    // Entries as they are, one posting each.
    void post(const std::vector<wqe> &entries) {
        for (const wqe &w : entries) {
            std::uint64_t first = 0;
            if (reserve_now(&q, 1, &first) != room::reserved) std::abort();
            put(first, w);
            publish_blocks(&q, first, 1);
        }
    }
    wqe write(bool signalled, std::uint64_t bytes = 8) const {
        return make_write(layout.qpn, layout.to, layout.from, bytes, signalled);
    }

    std::unique_ptr<void, void (*)(void *)> memory;
    queue_memory *queue_words;
    mpix_work_queue &q;
    std::vector<unsigned char> out, in;
    std::vector<std::uint64_t> flags;
    key_table local, remote;
    std::uint32_t from_key, to_key, flags_key;
    partition_layout layout;
    std::vector<wqe> blocks;
    mpix_posting posting;
    memory_backend to_memory;
    hca_queue hca;
};

}  // namespace queue_test

#endif  // MPIX_TESTS_UNIT_QUEUE_BENCH_HPP
