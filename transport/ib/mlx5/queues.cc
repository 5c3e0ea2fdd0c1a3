// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ib/mlx5/queues.h"

#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/ib/mlx5/completion_watch.h"
#include "transport/ib/mlx5/doorbell_proxy.h"
#include "transport/ib/mlx5/memory.h"
#include "transport/ib/mlx5/queue_pair.h"
#include "transport/wqe/executor_memory.h"
#include "transport/wqe/prebuilt_message.h"
#include "transport/wqe/wqe.h"

namespace mpix::transport::mlx5 {
namespace {

constexpr std::uint32_t blocks_wanted = 256;  // who finds the queue full leaves the partition to the engine

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

// One peer's, shared by its queue, which may outlive the device.
struct connection {
    std::mutex mutex;
    verbs_calls verbs;
    ibv_pd *domain = nullptr;
    queue_pair pair;
    bool met = false;
    bool taken = false;                             // by an executor
    doorbell_proxy *rung = nullptr;                 // by this one
    std::map<const queued_message *, memory> sent;  // what the NIC reads for it
    bool closed = false;

    void close() {
        const std::lock_guard lock(mutex);
        if (rung != nullptr) rung->remove(pair.number());
        rung = nullptr;
        pair.close();
        sent.clear();
        closed = true;
    }
};

std::string text_of(std::uint64_t error) {
    const auto number = [](unsigned value) {
        constexpr char digits[] = "0123456789abcdef";
        return std::string("0x") + digits[value >> 4 & 15] + digits[value & 15];
    };
    return "the NIC gives entry " + std::to_string(detail::error_index(error)) + " the syndrome " +
           number(detail::error_syndrome(error)) + " (vendor's " + number(detail::error_vendor(error)) + ")";
}

class mlx5_queue final : public send_queue {
public:
    mlx5_queue(std::shared_ptr<connection> to, transport &host_memory, transport *gpus, int device)
        : connection_(std::move(to)), memory_(host_memory, gpus, device) {}
    ~mlx5_queue() override {
        memory_.release_shared(report_);
        memory_.release(own_);
    }

    // The connection's mutex is held.
    status open() {
        const queue_pair &pair = connection_->pair;
        const mpix_queue_rings &host = pair.host_rings();
        const std::size_t blocks = std::size_t{1} << host.log_sq;
        void *report_view = nullptr;
        if (status bad = memory_.share(sizeof(mpix_queue_report), report_, report_view); !bad.ok()) return bad;
        std::vector<char> image(sizeof(mpix_work_queue) + blocks * sizeof(std::uint64_t));
        if (status bad = memory_.allocate(image.size(), own_); !bad.ok()) return bad;
        identity_ = {host.qpn, host.log_sq, static_cast<mpix_work_queue *>(own_.address)};
        auto *const report = static_cast<mpix_queue_report *>(report_.address);
        std::vector<std::uint64_t> filled(blocks);
        mpix_work_queue words = make_queue(host, filled.data(), report);
        words.rings = pair.rings();
        words.report = static_cast<mpix_queue_report *>(report_view);
        words.filled = reinterpret_cast<std::uint64_t *>(identity_.words + 1);
        std::memcpy(image.data(), &words, sizeof words);
        std::memcpy(image.data() + sizeof words, filled.data(), blocks * sizeof filled[0]);
        if (status bad = memory_.write(own_, image.data(), image.size()); !bad.ok()) return bad;
        watch_.emplace(host, report);
        how_ = pair.rung_by() == bell::by_poster
                   ? "the NIC, rung by whoever posts"
                   : "the NIC, rung by a thread of the host: " + pair.why_proxy().message();
        return {};
    }

    status enter(const queue_message &m, std::unique_ptr<queued_message> &out) override {
        auto made = std::make_unique<message>(*this);
        std::uint32_t payload = 0;
        {
            const std::lock_guard lock(connection_->mutex);
            if (connection_->closed) return failure("the RDMA device is closed");
            memory &source = connection_->sent[made.get()];
            if (status bad = source.add(connection_->verbs, nullptr, connection_->domain, m.payload,
                                        m.partitions * m.partition_bytes, contents::payload_source, page_bytes());
                !bad.ok())
                return bad;
            payload = source.local_key();
        }
        if (status bad = prebuild(m, {payload, rdma::key_of(m.landing), rdma::key_of(m.flags), rdma::key_of(m.words)},
                                  identity_, memory_, made->blocks);
            !bad.ok())
            return bad;
        out = std::move(made);
        return {};
    }

    std::string executed_by() const override { return how_; }
    bool step() override { return false; }
    std::uint64_t completed() override {
        const std::lock_guard lock(connection_->mutex);
        if (!connection_->closed) watch_->look();
        return watch_->completed();
    }
    status failed(std::uint64_t below) override {
        const std::lock_guard lock(connection_->mutex);
        if (watch_->failed_at() >= below) return {};
        return failure("the work queue has failed: " + text_of(watch_->error()));
    }

private:
    struct message final : queued_message {
        mlx5_queue &owner;
        region blocks;
        explicit message(mlx5_queue &o) : owner(o) {}
        ~message() override {
            owner.memory_.release(blocks);
            const std::lock_guard lock(owner.connection_->mutex);
            owner.connection_->sent.erase(this);
        }
        const mpix_posting *postings() const override { return static_cast<const mpix_posting *>(blocks.address); }
    };

    const std::shared_ptr<connection> connection_;
    executor_memory memory_;
    region report_, own_;
    queue_identity identity_{};
    std::optional<completion_watch> watch_;  // under the connection's mutex
    std::string how_;
};

class mlx5_queues final : public hardware_queues {
public:
    mlx5_queues(const verbs_calls &verbs, gpu_loader gpu, ibv_context *device, ibv_pd *domain, const rdma::port &at)
        : verbs_(verbs), load_gpu_(gpu), device_(device), domain_(domain), port_(at) {}
    ~mlx5_queues() override {
        for (auto &[peer, c] : connections_) c->close();
    }

    status introduce(int peer, rdma::qp_address &own) override {
        const std::lock_guard lock(mutex_);
        std::shared_ptr<connection> &c = connections_[peer];
        if (c == nullptr) {
            auto made = std::make_shared<connection>();
            made->verbs = verbs_;
            made->domain = domain_;
            if (status bad = made->pair.open(verbs_, device_, domain_, port_, blocks_wanted); !bad.ok()) return bad;
            c = std::move(made);
        }
        own = c->pair.address();
        return {};
    }

    status meet(int peer, const rdma::qp_address &peers) override {
        const std::lock_guard lock(mutex_);
        const std::shared_ptr<connection> c = find(peer);
        if (c == nullptr) return failure("there is no queue pair of the NIC to that process");
        if (c->met) return {};
        status bad = c->pair.connect(peers);
        c->met = bad.ok();
        return bad;
    }

    void give_up(int peer) override {
        const std::lock_guard lock(mutex_);
        if (const std::shared_ptr<connection> c = find(peer); c != nullptr) c->pair.fail_all();
    }

    status open_queue(int peer, transport &host_memory, transport *gpus, int device,
                      std::unique_ptr<send_queue> &out) override {
        std::shared_ptr<connection> c;
        {
            const std::lock_guard lock(mutex_);
            c = find(peer);
            if (c == nullptr || !c->met) return failure("the queue pair of the NIC is not connected");
            if (gpus != nullptr)
                if (status bad = load_pages(); !bad.ok()) return bad;
        }
        // Not under our own mutex: others' connections do not wait for CUDA.
        const std::lock_guard own(c->mutex);
        if (c->closed) return failure("the RDMA device is closed");
        if (c->taken) return failure("the NIC's queue to that process is another executor's");
        if (gpus != nullptr)
            if (status bad = c->pair.map_for_gpu(*pages_); !bad.ok()) return bad;
        auto made = std::make_unique<mlx5_queue>(c, host_memory, gpus, device);
        if (status bad = made->open(); !bad.ok()) return bad;
        if (c->pair.rung_by() == bell::by_proxy) {
            doorbell_proxy &rings = doorbell_proxy_thread();
            if (!rings.running()) return failure("there is no thread to ring the NIC");
            rings.add(c->pair.host_rings());
            c->rung = &rings;
        }
        c->taken = true;
        out = std::move(made);
        return {};
    }

private:
    std::shared_ptr<connection> find(int peer) const {
        const auto it = connections_.find(peer);
        return it == connections_.end() ? nullptr : it->second;
    }
    status load_pages() {
        if (pages_ != nullptr) return {};
        gpu_calls calls;
        if (status bad = load_gpu_(calls); !bad.ok()) return bad;
        pages_ = std::make_unique<gpu_pages>(calls, page_bytes());
        return {};
    }

    doorbell_proxy &doorbell_proxy_thread() {
        const std::lock_guard lock(mutex_);
        if (doorbell_proxy_ == nullptr) doorbell_proxy_ = std::make_unique<doorbell_proxy>();
        return *doorbell_proxy_;
    }

    const verbs_calls verbs_;
    const gpu_loader load_gpu_;
    ibv_context *const device_;
    ibv_pd *const domain_;
    const rdma::port &port_;
    std::mutex mutex_;
    std::unique_ptr<gpu_pages> pages_;
    std::unique_ptr<doorbell_proxy> doorbell_proxy_;
    std::map<int, std::shared_ptr<connection>> connections_;
};

}  // namespace

status make_queues(const verbs_calls &verbs, gpu_loader gpu, ibv_context *device, ibv_pd *domain, const rdma::port &at,
                   std::unique_ptr<hardware_queues> &out) {
    if (!verbs.mlx5dv_is_supported(device->device)) return failure("the RDMA device is no ConnectX of the mlx5 kind");
    out = std::make_unique<mlx5_queues>(verbs, gpu, device, domain, at);
    return {};
}

}  // namespace mpix::transport::mlx5

namespace mpix::transport {

status make_mlx5_queues(ibv_context *device, ibv_pd *domain, const rdma::port &at,
                        std::unique_ptr<hardware_queues> &out) {
    mlx5::verbs_calls verbs;
    if (status bad = verbs.load(); !bad.ok()) return bad;
    return mlx5::make_queues(
        verbs, [](mlx5::gpu_calls &gpu) { return gpu.load(); }, device, domain, at, out);
}

}  // namespace mpix::transport
