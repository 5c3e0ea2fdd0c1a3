// SPDX-License-Identifier: BSD-3-Clause
#include "host/route/send_posting.h"

#include <cstddef>
#include <utility>

#include "host/config.h"
#include "host/export/device_request.h"

namespace mpix {

send_staging::~send_staging() {
    if (view_ != nullptr)
        close_view(memory_);
    else if (memory_)
        transport::node_memory().release(memory_);
}

status send_staging::reach(const request &send, int executor, transport::queue_message &m) {
    if (!memory_)
        if (auto bad = transport::node_memory().allocate(send.total_bytes(), transport::on_host, memory_); !bad.ok())
            return bad;
    m.payload = m.staging = static_cast<char *>(memory_.address);
    if (executor == transport::on_host) return {};
    if (view_ == nullptr) {
        void *view = nullptr;
        if (auto bad = send.place.owner->acquire_view(memory_, executor, view); !bad.ok()) return bad;
        view_ = static_cast<char *>(view);
    }
    m.staging = view_;
    return {};
}

status make_posting(const request &send, const std::shared_ptr<const send_route> &route, int executor,
                    send_staging &staging, std::shared_ptr<const send_posting> &out) {
    if (!config().work_queue || !route->how.not_posted.empty()) return {};
    const auto made = std::make_shared<send_posting>();
    transport::chosen_queue chosen;
    if (auto bad = transport::queue_to(send.peer_world(), executor, chosen); !bad.ok()) return bad;
    made->route = route;
    made->queue = chosen.queue;
    made->executed_by = std::move(chosen.executed_by);
    if (auto bad = made->queue->failed(~std::uint64_t{0}); !bad.ok()) return bad;
    transport::queue_message m;
    if (executor != transport::on_host || !send.gapless) {
        if (auto bad = staging.reach(send, executor, m); !bad.ok()) return bad;
    } else {
        m.payload = send.op.buffer;
    }
    m.partitions = static_cast<std::uint32_t>(send.op.partitions);
    m.partition_bytes = send.partition_bytes;
    m.gaps = !send.gapless;
    m.landing = route->landing;
    m.flags = route->arrival;
    m.words = route->peer_words;
    m.complete = offsetof(mpix_words, complete);
    m.slots = route->slots;
    if (auto bad = made->queue->enter(m, made->message); !bad.ok()) return bad;
    out = made;
    return {};
}

}  // namespace mpix
