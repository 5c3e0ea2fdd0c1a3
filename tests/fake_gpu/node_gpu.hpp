// SPDX-License-Identifier: BSD-3-Clause
//
// GPUs of one node, whose memory host memory plays. tests/fake_gpu/*_kernels.cpp are their kernels.
#ifndef MPIX_TESTS_FAKE_GPU_NODE_GPU_HPP
#define MPIX_TESTS_FAKE_GPU_NODE_GPU_HPP

#include <mpix/detail/order.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/select.h"

namespace fake_kernels {

namespace tr = mpix::transport;

// A copy that nothing has been done of when it is begun, and all by the third look.
struct late_copy final : tr::transfer {
    void *to = nullptr;
    const void *from = nullptr;
    std::uint64_t bytes = 0;
    int looks = 0;
    bool finished(mpix::status &) override {
        if (looks < 3 && ++looks == 3) std::memcpy(to, from, bytes);
        return looks == 3;
    }
};

// One GPU for all processes, whose memory is shared memory.
class fake_gpu final : public tr::transport {
public:
    const char *name() const override { return "cuda_ipc"; }
    tr::transport_id id() const override { return tr::id_cuda_ipc; }
    unsigned capabilities() const override { return tr::device_store | tr::adopt_buffer; }
    bool usable() override { return true; }
    bool owns(const void *address, int &device) override {
        device = 0;
        return find(address).address != nullptr;
    }
    mpix::status allocate(std::uint64_t bytes, int, tr::region &out) override {
        if (auto bad = tr::node_memory().allocate(bytes + 64, tr::on_host, out); !bad.ok()) return bad;
        const std::lock_guard lock(mutex_);
        own_[static_cast<char *>(out.address)] = out;
        out.bytes = bytes;
        out.device = 0;
        out.handle = allocated;
        return {};
    }
    mpix::status adopt(void *buffer, std::uint64_t bytes, tr::region &out) override {
        out = find(buffer);
        if (out.address == nullptr) return mpix::failure("the buffer is not memory from cudaMalloc");
        out.address = buffer;
        out.bytes = bytes;
        out.device = 0;
        out.handle = adopted;
        return {};
    }
    void release(tr::region &own) override {
        const tr::region it_was = std::exchange(own, {});
        if (it_was.handle != allocated) return;
        const std::lock_guard lock(mutex_);
        const auto it = own_.find(static_cast<char *>(it_was.address));
        if (it == own_.end()) std::abort();
        tr::node_memory().release(it->second);
        own_.erase(it);
    }
    mpix::status describe(const tr::region &own, tr::wire_region &out) override {
        if (pooled && own.handle == adopted) return mpix::failure("the buffer is memory of a pool");
        tr::region host = own;
        host.device = tr::on_host;
        host.handle = find(own.address).handle;  // shm's
        if (auto bad = tr::node_memory().describe(host, out); !bad.ok()) return bad;
        out.transport = tr::id_cuda_ipc;
        out.device = 0;
        const place here{getpid(), own.address};
        std::memcpy(out.address + sizeof out.address - sizeof here, &here, sizeof here);
        return {};
    }
    mpix::status attach(const tr::wire_region &wire, int, tr::region &out) override {
        place there;
        std::memcpy(&there, wire.address + sizeof wire.address - sizeof there, sizeof there);
        if (there.process == getpid()) {
            out = {};
            out.address = there.address;
            out.bytes = wire.bytes;
        } else {
            tr::wire_region host = wire;
            host.transport = tr::id_shm;
            host.device = tr::on_host;
            if (auto bad = tr::node_memory().attach(host, tr::on_host, out); !bad.ok()) return bad;
        }
        out.device = 0;
        ++attached;
        return {};
    }
    void detach(tr::region &peers) override {
        --attached;
        if (peers.backing != nullptr) tr::node_memory().detach(peers);
        peers = {};
    }
    mpix::status acquire_view(const tr::region &host, int, void *&out) override {
        ++views;
        out = host.address;
        return {};
    }
    void release_view(const tr::region &) override { --views; }
    // Kernels look at the same words.
    mpix::status write(void *to, const void *from, std::uint64_t bytes, int) override {
        for (std::uint64_t at = 0; at < bytes; at += 8) {
            std::uint64_t word;
            std::memcpy(&word, static_cast<const char *>(from) + at, 8);
            mpix::detail::store_release(reinterpret_cast<std::uint64_t *>(static_cast<char *>(to) + at), word);
        }
        return {};
    }
    mpix::status read(void *to, const void *from, std::uint64_t bytes, int) override {
        if (reads_fail) return mpix::failure("cudaMemcpyAsync: an illegal memory access was encountered");
        for (std::uint64_t at = 0; at < bytes; at += 8) {
            const std::uint64_t word = mpix::detail::load_acquire(
                reinterpret_cast<const std::uint64_t *>(static_cast<const char *>(from) + at));
            std::memcpy(static_cast<char *>(to) + at, &word, 8);
        }
        return {};
    }
    mpix::status start(void *to, const void *from, std::uint64_t bytes, int,
                       std::unique_ptr<tr::transfer> &out) override {
        {
            const std::lock_guard lock(mutex_);
            started.push_back(from);
        }
        auto made = std::make_unique<late_copy>();
        made->to = to;
        made->from = from;
        made->bytes = bytes;
        out = std::move(made);
        return {};
    }

    std::atomic<bool> pooled{false};  // no other process can map the user's buffers
    std::atomic<int> attached{0}, views{0};
    std::atomic<bool> reads_fail{false};          // as after an error of a kernel
    std::vector<const void *> started_copies() {  // where those since the last call read from
        const std::lock_guard lock(mutex_);
        return std::exchange(started, {});
    }

private:
    static constexpr std::uint64_t allocated = 1, adopted = 2;
    struct place {
        std::int64_t process;
        void *address;
    };
    tr::region find(const void *address) {
        const std::lock_guard lock(mutex_);
        char *const at = static_cast<char *>(const_cast<void *>(address));
        auto it = own_.upper_bound(at);
        if (it == own_.begin()) return {};
        --it;
        return at < it->first + it->second.bytes ? it->second : tr::region{};
    }
    std::mutex mutex_;
    std::map<char *, tr::region> own_;
    std::vector<const void *> started;
};
inline fake_gpu &gpu() {
    static auto *const one = new fake_gpu;
    return *one;
}

}  // namespace fake_kernels

#endif  // MPIX_TESTS_FAKE_GPU_NODE_GPU_HPP
