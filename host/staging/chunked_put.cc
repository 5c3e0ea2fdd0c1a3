// SPDX-License-Identifier: BSD-3-Clause
#include "host/staging/chunked_put.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace mpix {
namespace {

// Packed bytes that the network may be reading yet, of a put that was given up.
struct left_behind {
    std::vector<char> packed;
    transport::safe_vector<std::unique_ptr<transport::transfer>> readers;
};

void leave(left_behind made) {
    static std::mutex mutex;
    static auto *const all = new transport::safe_vector<left_behind>;
    const std::lock_guard lock(mutex);
    std::erase_if(*all, [](const left_behind &l) {
        return std::all_of(l.readers.begin(), l.readers.end(), [](const auto &reader) {
            status ignored;
            return reader->finished(ignored);
        });
    });
    all->push_back(std::move(made));
}

}  // namespace

chunked_put::chunked_put(const remote_message &to, std::uint64_t partition, const char *from)
    : to_(to),
      end_((partition + 1) * to.chunks.per_partition),
      next_(partition * to.chunks.per_partition),
      from_(from) {}

chunked_put::chunked_put(const remote_message &to, std::uint64_t partition, std::vector<char> packed)
    : to_(to),
      end_((partition + 1) * to.chunks.per_partition),
      next_(partition * to.chunks.per_partition),
      packed_(std::move(packed)),
      from_(packed_.data()) {}

chunked_put::chunked_put(const remote_message &to, std::uint64_t partition, const gpu_buffer &from,
                         bounce_buffers &through)
    : to_(to),
      end_((partition + 1) * to.chunks.per_partition),
      next_(partition * to.chunks.per_partition),
      gpu_(from),
      through_(&through) {}

chunked_put::~chunked_put() {
    left_behind left;
    for (piece &p : under_way_) {
        if (p.bounce.host == nullptr) {
            if (!packed_.empty() && p.putting != nullptr) left.readers.push_back(std::move(p.putting));
            continue;
        }
        if (p.reading == nullptr && p.putting == nullptr)
            through_->give(to_.peer, p.bounce);
        else
            through_->leave(to_.peer, p.bounce, std::move(p.reading != nullptr ? p.reading : p.putting));
    }
    if (left.readers.empty()) return;
    left.packed = std::move(packed_);
    leave(std::move(left));
}

void chunked_put::fail(const status &why) {
    if (failure_.ok()) failure_ = why;
}

// The bytes, and behind them the flag; the network keeps that order.
void chunked_put::put(std::uint64_t chunk, const char *from, std::unique_ptr<transport::transfer> &out) {
    const std::uint64_t begin = to_.chunks.begin(chunk), bytes = to_.chunks.end(chunk) - begin;
    status bad;
    if (bytes != 0 && to_.reads_gpu != nullptr)
        bad = to_.reads_gpu->put(to_.landing, to_.offset + begin, from, bytes, out);
    else if (bytes != 0)
        bad = to_.wire->put(to_.landing, to_.offset + begin, from, bytes, out);
    if (bad.ok()) bad = to_.wire->put_word(to_.flags, chunk * sizeof(std::uint64_t), to_.epoch);
    if (!bad.ok()) fail(bad);
}

// As many chunks as there is room for.
void chunked_put::start() {
    for (; next_ < end_ && failure_.ok(); ++next_) {
        piece p;
        p.chunk = next_;
        const std::uint64_t begin = to_.chunks.begin(next_), bytes = to_.chunks.end(next_) - begin;
        if (through_ == nullptr || bytes == 0) {
            const char *const from =
                through_ != nullptr ? nullptr
                                    : from_ + (begin - to_.chunks.partition_of(next_) * to_.chunks.partition_bytes);
            put(next_, from, p.putting);
            if (p.putting != nullptr) under_way_.push_back(std::move(p));
            continue;
        }
        if (!through_->take(to_.peer, p.bounce)) return;
        if (auto bad = start_reading(gpu_, begin, bytes, p.bounce, p.reading); !bad.ok()) {
            through_->give(to_.peer, p.bounce);
            return fail(bad);
        }
        under_way_.push_back(std::move(p));
    }
}

// True once the chunk has left our memory.
bool chunked_put::advance(piece &p) {
    status bad;
    if (p.reading != nullptr) {
        if (!p.reading->finished(bad)) return false;
        p.reading = nullptr;
        p.read = true;
        if (!bad.ok()) fail(bad);
    }
    if (p.read) {
        if (failure_.ok()) put(p.chunk, p.bounce.host, p.putting);
        p.read = false;
    }
    if (p.putting != nullptr) {
        if (!p.putting->finished(bad)) return false;
        p.putting = nullptr;
        if (!bad.ok()) fail(bad);
    }
    if (p.bounce.host != nullptr) through_->give(to_.peer, std::exchange(p.bounce, {}));
    return true;
}

bool chunked_put::finished(status &bad) {
    start();
    std::erase_if(under_way_, [this](piece &p) noexcept {
        try {
            return advance(p);
        } catch (const std::bad_alloc &) {  // it is asked again
            return false;
        }
    });
    if (!under_way_.empty() || (next_ < end_ && failure_.ok())) return false;
    bad = failure_;
    return true;
}

bool chunked_put::in_order() const {
    return through_ == nullptr && to_.reads_gpu == nullptr && to_.landing.device == transport::on_host &&
           next_ == end_ && failure_.ok();
}

}  // namespace mpix
