// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/bounce_buffers.h"

#include <map>

#include "host/request/chunks.h"

namespace mpix {

transport::outcome bounce_buffers::prepare(transport::transport &memory, transport::transport &gpus, int device) {
    const std::lock_guard lock(mutex_);
    if (made_) return {};
    transport::region all;
    if (auto bad = memory.allocate(number * chunk_bytes, transport::on_host, all); !bad.empty()) return bad;
    void *view = nullptr;
    if (auto bad = gpus.acquire_view(all, device, view); !bad.empty()) {
        memory.release(all);
        return bad;
    }
    for (std::size_t i = 0; i < number; ++i)
        free_.push_back(
            {static_cast<char *>(all.address) + i * chunk_bytes, static_cast<char *>(view) + i * chunk_bytes});
    made_ = true;
    return {};
}

bool bounce_buffers::take(locked_memory &out) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return false;
    out = free_.back();
    free_.pop_back();
    return true;
}

void bounce_buffers::give(locked_memory own) {
    const std::lock_guard lock(mutex_);
    free_.push_back(own);
}

bounce_buffers &bounce_buffers_of(int device) {
    static std::mutex *const mutex = new std::mutex;
    static auto *const all = new std::map<int, bounce_buffers>;
    const std::lock_guard lock(*mutex);
    return (*all)[device];
}

}  // namespace mpix
