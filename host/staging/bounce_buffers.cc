// SPDX-License-Identifier: BSD-3-Clause
#include "host/staging/bounce_buffers.h"

#include <map>

#include "host/staging/chunks.h"

namespace mpix {

status bounce_buffers::allocate(transport::transport &memory, transport::transport &gpus, int device) {
    const std::lock_guard lock(mutex_);
    if (made_) return {};
    transport::region all;
    if (auto bad = memory.allocate(number * chunk_bytes, transport::on_host, all); !bad.ok()) return bad;
    void *view = nullptr;
    if (auto bad = gpus.acquire_view(all, device, view); !bad.ok()) {
        memory.release(all);
        return bad;
    }
    for (std::size_t i = 0; i < number; ++i)
        free_.push_back(
            {static_cast<char *>(all.address) + i * chunk_bytes, static_cast<char *>(view) + i * chunk_bytes});
    made_ = true;
    return {};
}

bool bounce_buffers::take(int peer, locked_memory &out) {
    const std::lock_guard lock(mutex_);
    reclaim();
    if (free_.empty() || taken_[peer] == most_of_one) return false;
    ++taken_[peer];
    out = free_.back();
    free_.pop_back();
    return true;
}

void bounce_buffers::give(int peer, locked_memory own) {
    const std::lock_guard lock(mutex_);
    --taken_[peer];
    free_.push_back(own);
}

void bounce_buffers::leave(int peer, locked_memory own, std::unique_ptr<transport::transfer> user) {
    const std::lock_guard lock(mutex_);
    left_.push_back({peer, own, std::move(user)});
}

void bounce_buffers::reclaim() {
    std::erase_if(left_, [this](const left &l) {
        status ignored;
        if (!l.user->finished(ignored)) return false;
        --taken_[l.peer];
        free_.push_back(l.memory);
        return true;
    });
}

bounce_buffers &bounce_buffers_of(int device) {
    static std::mutex *const mutex = new std::mutex;
    static auto *const all = new std::map<int, bounce_buffers>;
    const std::lock_guard lock(*mutex);
    return (*all)[device];
}

}  // namespace mpix
