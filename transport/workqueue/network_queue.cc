// SPDX-License-Identifier: BSD-3-Clause
//
// A work queue executed by the software HCA over any network: its writes become puts. Where no NIC can be rung by
// kernels this carries them, and whoever makes progress in this process is the NIC.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "transport/backends.h"
#include "transport/network.h"
#include "transport/reserve.h"
#include "transport/send_queue.h"
#include "transport/workqueue/software_hca.h"
#include "transport/wqe/executor_memory.h"
#include "transport/wqe/prebuilt_message.h"
#include "transport/wqe/wqe.h"

namespace mpix::transport {
namespace {

using namespace mpix::detail;

constexpr std::uint32_t log_blocks = 8;  // of the send queue; who finds it full leaves the partition to the engine

// Puts. What goes to one peer by a network's words appears behind all that was put there before, so the order of the
// queue is kept; and once the peer is lost, nothing gets there any more.
class put_backend final : public hca_backend {
public:
    explicit put_backend(network &wire) : wire_(wire) {}

    std::uint32_t add(const region &peers) {
        const std::lock_guard lock(mutex_);
        regions_[next_key_] = peers;
        return next_key_++;
    }
    void remove(std::uint32_t key) {
        const std::lock_guard lock(mutex_);
        regions_.erase(key);
    }

    void write(const hca_write &what, hca_operation &op) override {
        region to;
        {
            const std::lock_guard lock(mutex_);
            const auto at = regions_.find(what.remote_key);
            if (at != regions_.end()) to = at->second;
        }
        const std::uint64_t offset = what.remote_address - reinterpret_cast<std::uint64_t>(to.address);
        if (!to || offset > to.bytes || what.bytes > to.bytes - offset) return fail(op, syndrome_remote_access, {});
        if (!what.is_inline) {
            std::unique_ptr<transfer> put;
            if (status bad = wire_.put(to, offset, what.source, what.bytes, put); !bad.ok())
                return fail(op, syndrome_retries_exceeded, bad);
            if (put == nullptr)
                op.finish(syndrome_none);
            else
                under_way_.push_back({&op, std::move(put)});
            return;
        }
        // One flag or several: whole words, and nothing else is posted inline.
        if (what.bytes % sizeof(std::uint64_t) != 0 || offset % sizeof(std::uint64_t) != 0)
            return fail(op, syndrome_local_length, failure("an inline entry holds something else than flags"));
        for (std::uint64_t at = 0; at < what.bytes; at += sizeof(std::uint64_t)) {
            std::uint64_t word;
            std::memcpy(&word, static_cast<const char *>(what.source) + at, sizeof word);
            if (status bad = wire_.put_word(to, offset + at, word); !bad.ok())
                return fail(op, syndrome_retries_exceeded, bad);
        }
        op.finish(syndrome_none);
    }

    void progress() override {
        std::erase_if(under_way_, [this](const operation &o) {
            status bad;
            try {
                if (!o.put->finished(bad)) return false;
            } catch (const std::bad_alloc &) {
                return false;  // asked again
            }
            if (bad.ok())
                o.op->finish(syndrome_none);
            else
                fail(*o.op, syndrome_retries_exceeded, bad);
            return true;
        });
    }
    bool in_order() const override { return true; }

    status why() const {
        const std::lock_guard lock(mutex_);
        return why_;
    }

private:
    struct operation {
        hca_operation *op;
        std::unique_ptr<transfer> put;
    };

    void fail(hca_operation &op, syndrome s, const status &why) {
        {
            const std::lock_guard lock(mutex_);
            if (why_.ok())
                why_ = why.ok() ? failure("an entry names memory of the peer that it has not given us") : why;
        }
        op.finish(s);
    }

    network &wire_;
    safe_vector<operation> under_way_;
    mutable std::mutex mutex_;
    std::map<std::uint32_t, region> regions_;
    std::uint32_t next_key_ = 0x101;  // not given out again
    status why_;
};

class network_queue final : public send_queue {
public:
    network_queue(network &wire, transport &host_memory, transport *gpus, int device)
        : memory_(host_memory, gpus, device), backend_(wire) {}

    ~network_queue() override {
        memory_.release_shared(shared_);
        memory_.release(own_);
    }

    // Rings and records in host memory that both sides reach; what only the executor touches in its own.
    status open() {
        constexpr std::size_t blocks = std::size_t{1} << log_blocks;
        struct shared_part {
            alignas(64) std::uint32_t sq_record;
            alignas(64) std::uint32_t cq_record;
            alignas(64) mpix_queue_report report;
            alignas(64) wqe sq[blocks];
            cqe cq[blocks];
        };
        struct own_part {
            mpix_work_queue queue;
            std::uint64_t filled[blocks];
        };
        void *view = nullptr;
        if (status bad = memory_.share(sizeof(shared_part), shared_, view); !bad.ok()) return bad;
        auto *const host = static_cast<shared_part *>(shared_.address);
        static std::atomic<std::uint32_t> next_number{1};
        const std::uint32_t number = next_number.fetch_add(1, std::memory_order_relaxed) & 0xffffff;
        const auto rings_at = [number](shared_part *at) {
            return mpix_queue_rings{at->sq, at->cq, &at->sq_record, &at->cq_record, nullptr, log_blocks, log_blocks,
                                    number, 0};
        };
        own_part image{};
        image.queue = make_queue(rings_at(host), image.filled, &host->report);
        auto *const device_side = static_cast<shared_part *>(view);
        image.queue.rings = rings_at(device_side);
        image.queue.report = &device_side->report;
        if (status bad = memory_.allocate(sizeof image, own_); !bad.ok()) return bad;
        queue_ = &static_cast<own_part *>(own_.address)->queue;
        image.queue.filled = static_cast<own_part *>(own_.address)->filled;
        if (status bad = memory_.write(own_, &image, sizeof image); !bad.ok()) return bad;
        hca_ = std::make_unique<hca_queue>(rings_at(host), local_keys_, backend_);
        return {};
    }

    status enter(const queue_message &m, std::unique_ptr<queued_message> &out) override;

    std::string executed_by() const override { return "the software HCA"; }
    bool step() override {
        const std::unique_lock lock(stepping_, std::try_to_lock);  // else another thread is at it
        if (!lock) return false;
        // All that there can be at once: the back end looks at all that is under way each time.
        const bool any = hca_->step(1u << log_blocks);
        // A failure is known before the completion of what failed. Pairs with completed(), then failed().
        failed_at_.store(hca_->failed_at(), std::memory_order_relaxed);
        completed_.store(hca_->completed(), std::memory_order_release);  // pairs: Q11
        return any;
    }
    std::uint64_t completed() override { return completed_.load(std::memory_order_acquire); }  // pairs: Q11
    status failed(std::uint64_t below) override {
        if (failed_at_.load(std::memory_order_relaxed) >= below) return {};
        const status why = backend_.why();
        return (why.ok() ? failure("an entry of it is malformed") : why).in_context("the work queue has failed: ");
    }

private:
    struct message final : queued_message {
        network_queue &owner;
        region memory;
        std::vector<std::uint32_t> local, remote;  // keys
        explicit message(network_queue &o) : owner(o) {}
        ~message() override {
            for (const std::uint32_t key : local) owner.local_keys_.remove(key);
            for (const std::uint32_t key : remote) owner.backend_.remove(key);
            owner.memory_.release(memory);
        }
        const mpix_posting *postings() const override { return static_cast<const mpix_posting *>(memory.address); }
    };

    executor_memory memory_;
    region shared_, own_;
    mpix_work_queue *queue_ = nullptr;  // as the executor reaches it
    key_table local_keys_;
    put_backend backend_;
    std::unique_ptr<hca_queue> hca_;
    std::mutex stepping_;
    std::atomic<std::uint64_t> completed_{0};
    std::atomic<std::uint64_t> failed_at_{hca_faults::no_entry};
};

status network_queue::enter(const queue_message &m, std::unique_ptr<queued_message> &out) {
    auto made = std::make_unique<message>(*this);
    made->local.push_back(
        local_keys_.add(const_cast<char *>(m.payload), m.partitions * m.partition_bytes, may_read_locally));
    for (const region *peers : {&m.landing, &m.flags, &m.words}) made->remote.push_back(backend_.add(*peers));
    if (status bad = prebuild(m, {made->local[0], made->remote[0], made->remote[1], made->remote[2]},
                              {hca_->qpn(), log_blocks, queue_}, memory_, made->memory);
        !bad.ok())
        return bad;
    out = std::move(made);
    return {};
}

}  // namespace

status make_network_queue(network &wire, transport &host_memory, transport *gpus, int device,
                          std::unique_ptr<send_queue> &out) {
    auto made = std::make_unique<network_queue>(wire, host_memory, gpus, device);
    status bad = made->open();
    if (bad.ok()) out = std::move(made);
    return bad;
}

}  // namespace mpix::transport
