// SPDX-License-Identifier: BSD-3-Clause
#include "host/route/send_route.h"

#include <mpix/impl/epoch/slot_ring.cuh>

#include <algorithm>
#include <utility>
#include <vector>

#include "host/datatype/plan_wire.h"
#include "host/protocol/rget.h"
#include "host/protocol/slot_budget.h"
#include "host/staging/bounce_buffers.h"

namespace mpix {
namespace {

status read_layout(const transport::wire_region &from, std::shared_ptr<const plan> &out) {
    if (from.transport != transport::id_shm) return failure("the receiver's datatype is where we cannot read it");
    transport::region bytes;
    if (auto bad = transport::node_memory().attach(from, transport::on_host, bytes); !bad.ok()) return bad;
    // A copy, so that nobody can change it while it is checked.
    const std::vector<char> copy(static_cast<const char *>(bytes.address),
                                 static_cast<const char *>(bytes.address) + bytes.bytes);
    transport::node_memory().detach(bytes);
    status bad;
    out = plan_from_bytes(copy.data(), copy.size(), bad);
    return bad;
}

// A region that is mapped here, or that a network puts to; or the receive buffer, if we have offered a single copy.
status attach_landing(const send_offer &offered, const accept_body &m, int user, send_route &route) {
    const peer_link &link = route.link;
    if (transport::by_network(m.landing.transport) && m.landing.device != transport::on_host)
        return link.wire->id() == m.landing.transport
                   ? offered.gpu_wire->attach(m.landing, m.landing_supplement, link.world_rank, route.landing)
                   : failure("the peer is reached by a network that is not in use here");
    if (!m.flags.has(accept_flag::in_place)) return link.attach(m.landing, user, route.landing);
    if (!offered.why_no_single_copy.empty() || offered.far == nullptr || route.slots != 1)
        return failure("the receiver asks for a single copy, which was not offered");
    route.far = offered.far;
    return transport::attach_buffer(m.landing, route.landing);
}

status fill_in(const request &send, const send_offer &offered, const accept_body &m, const transport::choice &choice,
               bool rematched, send_route &route) {
    const auto partitions = static_cast<std::uint64_t>(send.op.partitions);
    const std::uint64_t total = send.total_bytes();
    // GPU memory of the receiver's that is not its buffer: its progress engine looks at the flags, in host memory.
    const bool forwarded = m.landing.transport == transport::id_cuda_ipc && m.arrival.transport == transport::id_shm;
    if (m.arrival.transport != m.landing.transport && !forwarded)
        return failure("the receiver's landing and its flags are of different transports");
    if (forwarded && (m.landing.device == transport::on_host || m.arrival.device != transport::on_host ||
                      m.slots != 1 || m.flags.bits != 0 || m.landing_supplement.bytes != 0))
        return failure("the receiver's landing, which it forwards from, does not go with the rest of what it asks for");
    if (choice.taken == transport::id_none) return choice.why_not;
    if (choice.taken != m.landing.transport) return failure("the receiver's landing has an impossible transport");
    route.slots = m.slots;
    if (route.slots == 2) route.slots = slots_within(m.landing.bytes, total);
    route.chunks = chunks_of(partitions, send.partition_bytes, m.flags.has(accept_flag::in_chunks));
    const bool by_rget = m.flags.has(accept_flag::rget);
    if (m.flags.has(accept_flag::inline_buffer))
        route.inline_buffer = inline_buffer_for(partitions, send.partition_bytes, send.partition_bytes, by_rget);
    if (by_rget && (!offered.rget.why_not.empty() || transport::by_network(m.landing.transport) ||
                    m.landing.device == transport::on_host || m.landing_supplement.bytes != 0))
        return failure("the receiver wants to read the send buffer, which was not offered");
    const std::uint64_t flags_bytes = route.inline_buffer ? route.inline_buffer.all
                                      : by_rget           ? bytes_with_rts(partitions)
                                      : m.flags.has(accept_flag::in_place)
                                          ? bytes_with_taken(partitions)
                                          : (route.chunks.all() + 1) * sizeof(std::uint64_t);
    std::uint64_t landing_bytes = forwarded ? std::max(total, least_forwarded) : route.slots * total;
    memory_span span{0, 0};
    const bool remote = transport::by_network(m.landing.transport), to_gpu = m.landing.device != transport::on_host;
    if (remote && to_gpu && (!offered.gpu_put() || route.slots != 1 || route.chunks.per_partition != 1))
        return failure("the receiver asks for puts into its GPU memory, which were not offered");
    if (m.landing_supplement.bytes != 0 && to_gpu && !remote) {
        if (auto bad = read_layout(m.landing_supplement, route.landing_type); !bad.ok()) return bad;
        const auto size = static_cast<std::uint64_t>(route.landing_type->size);
        if (total == 0 || total % size != 0 || route.slots != 1)
            return failure("the receiver's datatype does not fit the message");
        span = span_of(*route.landing_type, static_cast<std::int64_t>(total / size));
        landing_bytes = static_cast<std::uint64_t>(span.high - span.low);
    }
    if (m.landing.bytes < landing_bytes || m.arrival.bytes < flags_bytes || m.words.bytes < sizeof(mpix_words) ||
        m.words.transport != (remote ? m.landing.transport : transport::id_shm) ||
        (route.chunks.per_partition > 1 && !remote))
        return failure("the receiver's landing is too small");
    const transport::placement &place = send.place;
    if (remote && place.owner != nullptr && !offered.why_staged.empty())
        if (auto bad = bounce_buffers_of(place.device).allocate(transport::node_memory(), *place.owner, place.device);
            !bad.ok())
            return bad;
    // The device that will do the stores or the copies: the buffer's; for one on the host, see device_in_use.
    transport::transport *const gpus = transport::devices();
    int user = 0;
    if (place.owner != nullptr)
        user = place.device;
    else if (to_gpu && gpus != nullptr)
        user = gpus->device_in_use();
    if (auto bad = attach_landing(offered, m, user, route); !bad.ok()) return bad;
    if (auto bad = route.link.attach(m.arrival, user, route.arrival); !bad.ok()) return bad;
    if (auto bad = route.link.attach(m.words, user, route.peer_words); !bad.ok()) return bad;
    route.landing_at = static_cast<char *>(route.landing.address) - span.low;
    route.path = choice.name;
    const reason two_copies =
        offered.why_no_single_copy.empty()
            ? reason(
                  "the receiver declines: its buffer has gaps or cannot be reached, it cannot reach the "
                  "send buffer, its MPIX_SINGLE_COPY_BYTES is 0, or an earlier match was undone")
            : offered.why_no_single_copy;
    const reason no_rget = !offered.rget.why_not.empty() ? offered.rget.why_not
                           : by_rget                     ? reason()
                                                         : reason("the receiver does not read it, and says why");
    movement &how = route.how;
    how = choose_movement({.from_gpu = place.owner != nullptr,
                           .gaps = !send.gapless,
                           .to_gpu = route.to_gpu(),
                           .landing_gaps = route.landing_type != nullptr,
                           .remote = route.landing.remote,
                           .rematched = rematched,
                           .in_chunks = route.chunks.per_partition > 1,
                           .forwarded = forwarded,
                           .flags_far = forwarded && !route.arrival.lasting,
                           .bytes = total,
                           .partition_bytes = send.partition_bytes,
                           .in_place = route.in_place(),
                           .two_copies = two_copies,
                           .staged = offered.why_staged,
                           .inline_buffer = route.inline_buffer && offered.goes_inline(),
                           .no_rget = no_rget,
                           .rget_bytes = offered.rget.least});
    if (place.owner != nullptr && how.staged.empty()) route.reads_gpu = offered.gpu_wire;
    if (how.by_kernels && total != 0) {
        const bool gaps = !send.gapless || route.landing_type != nullptr;
        const transport::region &in_gpu = forwarded ? route.landing : route.arrival;
        how.to_engine = choose_copy_engine_threshold(in_gpu, place.device, route.link.world_rank, partitions, gaps);
        if (!forwarded)
            how.sent_inline =
                gaps ? choose_inline_threshold(place.device, route.link.world_rank, true) : offered.threshold;
        measure_inline(in_gpu, place.device, route.link.world_rank);
    }
    return {};
}

}  // namespace

send_route::~send_route() {
    if (!in_place()) link.detach(landing);
    link.detach(arrival);
    link.detach(peer_words);
}

char *send_route::landing_of(std::uint64_t epoch) const { return landing_at + detail::slot_of(epoch, slots) * bytes; }

transport::choice choose_transport(const request &send, const accept_body &accepted) {
    transport::ends pair;
    pair.by_network = transport::by_network(accepted.landing.transport);
    pair.receiver_on_gpu = accepted.landing.device != transport::on_host;
    pair.sender_on_gpu = send.place.owner != nullptr;
    pair.sender_has_devices = transport::devices() != nullptr;
    return transport::choose(pair);
}

status make_send_route(const request &send, const send_offer &offered, const accept_body &accepted,
                       const transport::choice &choice, bool rematched, std::shared_ptr<const send_route> &out) {
    const auto made = std::make_shared<send_route>(offered.link, send.total_bytes());
    auto bad = fill_in(send, offered, accepted, choice, rematched, *made);
    if (bad.ok()) out = made;
    return bad;
}

}  // namespace mpix
