// SPDX-License-Identifier: BSD-3-Clause
//
// A GPU and a network that do what they were asked for late, one thing at a time, when the test tells them to: in the
// order in which they have to, and, if the test likes, in no other. What they cannot do they say as any transport
// would, so that threads may call them.
#ifndef MPIX_TESTS_UNIT_FAKE_NETWORK_HPP
#define MPIX_TESTS_UNIT_FAKE_NETWORK_HPP

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "transport/network.h"
#include "transport/transport.h"

namespace fakes {

namespace tr = mpix::transport;

inline std::mt19937_64 &dice() {
    static std::mt19937_64 one(20261122);
    return one;
}

// What has gone wrong for good, or empty.
class trouble {
public:
    void set(const mpix::status &what) {
        const std::lock_guard lock(mutex_);
        what_ = what;
    }
    mpix::status get() const {
        const std::lock_guard lock(mutex_);
        return what_;
    }

private:
    mutable std::mutex mutex_;
    mpix::status what_;
};

// Jobs are done when their owner is told to, or not at all.
class slow_worker {
public:
    // Jobs between two barriers may change places.
    bool any_order = false;

    // Whether it has been done, for as long as there is the worker.
    const std::atomic<bool> *add(std::function<void()> work, bool barrier = true) {
        const std::lock_guard lock(mutex_);
        jobs_.push_back({std::move(work), barrier, &done_.emplace_back(false)});
        return jobs_.back().done;
    }
    // How many were done.
    unsigned work(unsigned most) {
        const std::lock_guard lock(mutex_);
        unsigned done = 0;
        for (; done < most && !jobs_.empty(); ++done) {
            std::size_t free = 0;
            while (any_order && free < jobs_.size() && !jobs_[free].barrier) ++free;
            const auto next = jobs_.begin() + static_cast<std::ptrdiff_t>(free < 2 ? 0 : order_() % free);
            next->work();
            next->done->store(true, std::memory_order_release);
            jobs_.erase(next);
        }
        return done;
    }
    std::size_t waiting() const {
        const std::lock_guard lock(mutex_);
        return jobs_.size();
    }

private:
    struct job {
        std::function<void()> work;
        bool barrier;
        std::atomic<bool> *done;
    };
    mutable std::mutex mutex_;
    std::deque<std::atomic<bool>> done_;
    std::deque<job> jobs_;
    std::mt19937_64 order_{1122};
};

struct ticket final : tr::transfer {
    const std::atomic<bool> *done = nullptr;
    const trouble *problem = nullptr;
    std::atomic<unsigned> *asked = nullptr;
    bool finished(mpix::status &out) override {
        if (asked != nullptr) asked->fetch_add(1, std::memory_order_relaxed);
        if (const mpix::status bad = problem->get(); !bad.ok()) {
            out = bad;
            return true;
        }
        return done->load(std::memory_order_acquire);
    }
};

// Of this process, whatever device it is said to be on.
struct fake_gpus final : tr::transport {
    slow_worker engine;
    trouble problem;
    unsigned views = 0, admitted = 0, within = 0;
    mpix::status not_admitted;
    std::vector<void *> allocated;
    ~fake_gpus() override {
        for (void *memory : allocated) std::free(memory);
    }

    const char *name() const override { return "fake"; }
    tr::transport_id id() const override { return tr::id_cuda_ipc; }
    unsigned capabilities() const override { return 0; }
    bool usable() override { return true; }
    bool owns(const void *, int &) override { return false; }
    mpix::status allocate(std::uint64_t bytes, int device, tr::region &out) override {
        const std::size_t lines = (bytes + 64) / 64 * 64;
        out.address = allocated.emplace_back(std::aligned_alloc(64, lines));
        std::memset(out.address, 0, lines);
        out.bytes = bytes;
        out.device = device;
        return {};
    }
    mpix::status adopt(void *, std::uint64_t, tr::region &) override { return mpix::failure("no"); }
    // At once, so that a sanitizer sees who still uses it.
    void release(tr::region &own) override {
        std::erase(allocated, own.address);
        std::free(own.address);
        own = {};
    }
    mpix::status describe(const tr::region &, tr::wire_region &) override { return mpix::failure("no"); }
    mpix::status attach(const tr::wire_region &, int, tr::region &) override { return mpix::failure("no"); }
    void detach(tr::region &) override {}
    mpix::status acquire_view(const tr::region &host, int, void *&out) override {
        ++views;
        out = host.address;
        return {};
    }
    void release_view(const tr::region &) override { --views; }
    mpix::status write(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    mpix::status read(void *to, const void *from, std::uint64_t bytes, int) override {
        std::memcpy(to, from, bytes);
        return {};
    }
    mpix::status admit_network(int) override {
        ++admitted;
        return not_admitted;
    }
    mpix::status start(void *to, const void *from, std::uint64_t bytes, int,
                       std::unique_ptr<tr::transfer> &out) override {
        if (bytes == 0) return mpix::failure("the copy engine was asked for nothing");
        auto made = std::make_unique<ticket>();
        made->problem = &problem;
        made->done = engine.add([=] { std::memcpy(to, from, bytes); });
        out = std::move(made);
        return {};
    }
    mpix::status start_within(void *to, const void *from, std::uint64_t bytes, int device,
                              std::unique_ptr<tr::transfer> &out) override {
        ++within;
        return start(to, from, bytes, device, out);
    }
};

struct fake_network : tr::network {
    slow_worker wire;
    trouble problem;
    std::atomic<unsigned> asked{0};  // how often, whether a put has finished
    // Called before a word appears at that place.
    std::function<void(const void *, std::uint64_t)> on_word;

    const char *name() const override { return "fake"; }
    tr::transport_id id() const override { return tr::id_ucx; }
    bool usable(mpix::status &) override { return true; }
    mpix::status introduce(int, std::vector<std::uint8_t> &) override { return {}; }
    mpix::status meet(int, std::vector<std::uint8_t>) override { return {}; }
    mpix::status describe(const tr::region &, tr::wire_region &) override { return {}; }
    void forget(const tr::region &) override {}
    mpix::status attach(const tr::wire_region &, int, tr::region &) override { return {}; }
    void detach(tr::region &) override {}
    mpix::status put(const tr::region &to, std::uint64_t offset, const void *from, std::uint64_t bytes,
                     std::unique_ptr<tr::transfer> &out) override {
        if (const mpix::status bad = problem.get(); !bad.ok()) return bad;
        if (bytes == 0) return mpix::failure("the network was asked for nothing");
        if (offset > to.bytes || bytes > to.bytes - offset) return mpix::failure("a put outside the region");
        char *const where = static_cast<char *>(to.address) + offset;
        auto made = std::make_unique<ticket>();
        made->problem = &problem;
        made->asked = &asked;
        // Reads the source as late as it may.
        made->done = wire.add([=] { std::memcpy(where, from, bytes); }, false);
        out = std::move(made);
        return {};
    }
    mpix::status put_word(const tr::region &to, std::uint64_t offset, std::uint64_t value) override {
        if (const mpix::status bad = problem.get(); !bad.ok()) return bad;
        if (offset > to.bytes || sizeof value > to.bytes - offset) return mpix::failure("a word outside the region");
        char *const where = static_cast<char *>(to.address) + offset;
        wire.add([this, where, value] {
            if (on_word) on_word(where, value);
            std::memcpy(where, &value, sizeof value);
        });
        return {};
    }
    std::unique_ptr<tr::transfer> flush(int) override { return nullptr; }
    mpix::status lost(int) override { return problem.get(); }
    void give_up(int) override {}
    bool progress() override { return false; }
    void stop() override {}
};

inline tr::region host_memory(void *bytes, std::size_t number) {
    tr::region r;
    r.address = r.backing = bytes;
    r.bytes = r.backing_bytes = number;
    return r;
}
inline tr::region host_memory(std::vector<char> &bytes) { return host_memory(bytes.data(), bytes.size()); }

}  // namespace fakes

#endif  // MPIX_TESTS_UNIT_FAKE_NETWORK_HPP
