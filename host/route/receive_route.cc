// SPDX-License-Identifier: BSD-3-Clause
#include "host/route/receive_route.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "host/config.h"
#include "host/datatype/plan_wire.h"
#include "host/export/device_request.h"
#include "host/protocol/inline_threshold.h"
#include "host/protocol/rget.h"
#include "host/request/upcalls.h"

namespace mpix {
namespace {

void give_back_memory(transport::region &r) {
    if (!r) return;
    if (r.device == transport::on_host)
        give_back(r);
    else
        transport::devices()->release(r);
    r = {};
}

// How the network in use reaches GPU memory; null: it does not.
transport::gpu_puts *gpu_wire() {
    status none;
    transport::network *const wire = transport::network_in_use();
    return wire == nullptr ? nullptr : wire->gpu_memory(none);
}

// A partition comes as one piece into host memory, or where the network puts it into GPU memory.
chunking chunks_for(const receive_route &route, bool to_gpu) {
    const bool in_chunks = route.link.wire != nullptr && to_gpu && !route.by_puts();
    return chunks_of(route.peer_partitions, route.bytes / route.peer_partitions, in_chunks);
}

// Registers the user's own buffer in GPU memory, so that the network can put there. Returns why not, or an empty
// string.
std::string register_buffer(const receive_match &match, receive_route &route) {
    const request &r = match.receive;
    transport::gpu_puts *gpus = nullptr;
    const gpu_end end = r.end_for(*route.link.wire, gpus);
    if (std::string why = why_staged(end, match.sender.flags.has(offer_flag::gpu_put)); !why.empty() || !end.on_gpu)
        return why;
    if (auto bad = r.place.owner->admit_network(r.place.device); !bad.ok()) return bad.message();
    auto made = std::make_unique<registered_buffer>();
    if (auto bad = gpus->adopt(r.op.buffer, r.total_bytes(), r.place.device, made->region); !bad.ok())
        return bad.message();
    route.landing = made->region;
    route.registered = std::move(made);
    return {};
}

// How many words mpix_prequest.taken has: at least as many as this side has partitions, see arrived_here.
std::uint64_t taken_entries(const receive_match &match, const receive_route &route) {
    return std::max(route.peer_partitions, static_cast<std::uint64_t>(match.receive.op.partitions));
}

// Whether the message goes by a single copy; then fills in how the send buffer is read. Not after a match was undone: threads
// may remember the earlier route.
bool choose_single_copy(const receive_match &match, receive_route &route) {
    const request &r = match.receive;
    const offer_body &sender = match.sender;
    // Reasons on the sender's side are known to the sender.
    single_copy seen_here{
        .partition_bytes = route.bytes / route.peer_partitions, .least = 1, .receiver_gaps = !r.gapless};
    if (!sender.flags.has(offer_flag::in_place) || route.choice.taken != transport::id_shm || !match.first ||
        config().single_copy_bytes == 0 || !why_no_single_copy(seen_here).empty() ||
        !transport::others_reach(r.op.buffer, route.bytes))
        return false;
    const transport::peer_memory *const far = memory_of(match.link.world_rank, seen_here.unreached);
    transport::region buffer;
    if (far == nullptr || sender.send_buffer.bytes < route.bytes ||
        !transport::attach_buffer(sender.send_buffer, buffer).ok())
        return false;
    route.far = far;
    route.send_buffer = static_cast<const char *>(buffer.address);
    return true;
}

// Whether it has an inline buffer. What the user's kernels leave there, a kernel of the library takes out. With gaps it
// goes by pieces, which must divide the sender's partitions, too.
bool inline_wanted(const receive_match &match, const receive_route &route) {
    const request &r = match.receive;
    // A receive that waits for several of the sender's partitions is faster with fences: it looks at their flags side
    // by side.
    const bool few = route.peer_partitions <= static_cast<std::uint64_t>(r.op.partitions);
    const std::uint64_t each = route.bytes / route.peer_partitions;
    return MPIX_HAVE_NVCC && few &&
           match.sender.flags.has(r.gapless ? offer_flag::inline_packed : offer_flag::inline_to_gaps) &&
           r.fits_inline(largest_inline(!r.gapless)) && (r.device == nullptr || r.device->inline_capable()) &&
           (r.gapless || each % static_cast<std::uint64_t>(r.offsets().piece()) == 0) &&
           gpu::load_on(r.place.device).empty();
}

// The user's own buffer in GPU memory, as a region that a sender on this node maps.
status adopt_buffer(const request &receive, transport::region &out) {
    const memory_span used = receive.used_memory();
    return receive.place.owner->adopt(receive.op.buffer + used.low, static_cast<std::uint64_t>(used.high - used.low),
                                      out);
}

// Why a sender on this node cannot map that buffer, or an empty string. `sender`: its world rank; -1: it is not known yet.
std::string why_not_mapped(const request &receive, int sender) {
    transport::region buffer;
    transport::wire_region described;
    status bad = adopt_buffer(receive, buffer);
    if (bad.ok()) bad = receive.place.owner->describe(buffer, described);
    // It may do here what we may do there.
    if (bad.ok() && sender >= 0 && receive.place.owner->gives_files(described)) {
        const transport::peer_memory *const there = memory_of(sender, bad);
        if (there != nullptr) bad = transport::reach_files(*there);
        bad = bad.in_context(
            "the buffer is memory mapped by cuMemMap, and the sender may take no files of this process: ");
    }
    give_back_memory(buffer);
    return bad.message();
}

// The landing and the flags are where the sender gets them to, and the progress engine delivers from there.
status deliver_from_landing(const request &r, const chunking &chunks, receive_route &route) {
    route.delivery = std::make_unique<staged_delivery>(
        gpu_buffer{r.place.owner, r.place.device, r.op.buffer, r.gapless ? nullptr : r.op.type}, chunks, route.slots);
    return route.delivery->allocate(route.landing, route.arrival->region);
}

status allocate_flags(transport::transport &memory, const chunking &chunks, receive_route &route) {
    return memory.allocate((chunks.all() + 1) * sizeof(std::uint64_t), transport::on_host, route.arrival->region);
}

// The landing is GPU memory of ours, which the sender maps in place of the user's buffer. The flags are in host memory,
// where the progress engine sees them.
status land_beside_buffer(const request &r, receive_route &route) {
    route.slots = 1;
    route.why_no_rget = "the sender does not map the receive buffer";
    const chunking chunks = chunks_for(route, true);
    const std::uint64_t bytes = std::max(route.bytes, least_forwarded);
    if (auto bad = route.owner->allocate(bytes, r.place.device, route.landing); !bad.ok()) return bad;
    if (auto bad = allocate_flags(transport::node_memory(), chunks, route); !bad.ok()) return bad;
    return deliver_from_landing(r, chunks, route);
}

// The landing is the user's buffer, which the sender maps. If the datatype has gaps, the sender also gets its plan.
status land_in_gpu(const receive_match &match, receive_route &route,
                   std::unique_ptr<const sender_gpu_memory> &sender_gpu) {
    const request &r = match.receive;
    route.why_forwarded = why_not_mapped(r, match.link.world_rank);
    if (!route.why_forwarded.empty()) return land_beside_buffer(r, route);
    route.slots = 1;
    if (!r.gapless) {
        const std::vector<char> plan = to_bytes(*r.op.type);
        transport::region &layout = route.layout.region;
        if (auto bad = transport::node_memory().allocate(plan.size(), transport::on_host, layout); !bad.ok())
            return bad;
        std::memcpy(layout.address, plan.data(), plan.size());
    }
    if (auto bad = adopt_buffer(r, route.landing); !bad.ok()) return bad;
    sender_gpu = reach_gpu_memory(r, match.sender, *match.words, *route.owner, route.why_no_rget);
    route.by_rget = sender_gpu != nullptr && sender_gpu->buffer;
    if (inline_wanted(match, route))
        route.inline_buffer = inline_buffer_for(route.peer_partitions, route.bytes / route.peer_partitions,
                                                largest_inline(!r.gapless), route.by_rget);
    const std::uint64_t all_bytes = route.inline_buffer ? route.inline_buffer.all
                                    : route.by_rget     ? bytes_with_rts(route.peer_partitions)
                                                        : (chunks_for(route, true).all() + 1) * sizeof(std::uint64_t);
    return route.owner->allocate(all_bytes, r.place.device, route.arrival->region);
}

// The landing is host memory, or the user's buffer in GPU memory, which the network puts to.
status land_in_host(const receive_match &match, receive_route &route) {
    const request &r = match.receive;
    const bool to_gpu = r.place.owner != nullptr;
    route.slots = route.by_puts() ? 1 : slots_for(route.bytes, config().eager_bytes);
    // Host memory that the sender stores to. After a match was undone there are no more than two slots: its landing may
    // be kept, and a thread that has its address may read the number of slots of this one.
    if (route.slots == 2 && !to_gpu && match.first) {
        const std::uint64_t budget = config().landing_bytes;
        route.slots = route.link.wire == nullptr
                          ? route.room.take(route.bytes, budget)
                          : route.room.take_between_nodes(route.bytes, route.peer_partitions, budget);
    }
    if (!to_gpu) {
        route.own_taken.reset(
            static_cast<std::uint64_t *>(std::calloc(taken_entries(match, route), sizeof(std::uint64_t))));
        route.taken = route.own_taken.get();
        if (route.taken == nullptr) return no_memory();
    }
    const chunking chunks = chunks_for(route, to_gpu);
    if (!route.by_puts())
        if (auto bad = route.owner->allocate(route.slots * route.bytes, transport::on_host, route.landing); !bad.ok())
            return bad;
    if (auto bad = allocate_flags(*route.owner, chunks, route); !bad.ok()) return bad;
    return to_gpu ? deliver_from_landing(r, chunks, route) : status{};
}

status fill_in(const receive_match &match, receive_route &route, std::unique_ptr<const sender_gpu_memory> &sender_gpu) {
    route.owner = &route.choice.landing();
    if (route.link.wire != nullptr) route.why_staged = register_buffer(match, route);
    if (choose_single_copy(match, route)) {
        route.slots = 1;
        auto bad =
            route.owner->allocate((route.peer_partitions + 1 + taken_entries(match, route)) * sizeof(std::uint64_t),
                                  transport::on_host, route.arrival->region);
        if (bad.ok())
            route.taken = static_cast<std::uint64_t *>(route.arrival->region.address) + route.peer_partitions + 1;
        return bad;
    }
    if ((route.owner->capabilities() & transport::adopt_buffer) != 0) return land_in_gpu(match, route, sender_gpu);
    return land_in_host(match, route);
}

}  // namespace

own_region::~own_region() { give_back_memory(region); }

void registered_buffer::take_back() {
    if (!region) return;
    if (transport::gpu_puts *const gpus = gpu_wire(); gpus != nullptr) gpus->forget(region);
    region = {};
}

receive_route::~receive_route() {
    const bool viewed = delivery != nullptr, ended = !viewed || delivery->end();
    delivery = nullptr;
    if (!ended) {
        // Copies still write to the landing, or read it, so it stays.
        if (registered != nullptr) registered->region = {};
    } else if (registered == nullptr && viewed && landing.device == transport::on_host) {
        // Closing it may wait for kernels.
        if (landing) close_view(landing);
    } else if (registered == nullptr) {
        give_back_memory(landing);
    }
}

status make_receive_route(const receive_match &match, std::shared_ptr<const receive_route> &out,
                          std::unique_ptr<const sender_gpu_memory> &sender_gpu) {
    if (match.choice->taken == transport::id_none) return match.choice->why_not;
    const auto made = std::make_shared<receive_route>(match.link, *match.choice, match.receive.total_bytes(),
                                                      static_cast<std::uint64_t>(match.sender.partitions));
    std::unique_ptr<const sender_gpu_memory> buffer;
    auto bad = fill_in(match, *made, buffer);
    if (!bad.ok()) return bad;
    const transport::region &arrival = made->arrival->region;
    made->flags = static_cast<std::uint64_t *>(arrival.address);
    made->flags_on_device = arrival.device != transport::on_host;
    out = made;
    sender_gpu = std::move(buffer);
    return bad;
}

status check_sharing(const request &receive) {
    if (why_not_mapped(receive, -1).empty()) return {};
    transport::transport &gpus = *receive.place.owner;
    transport::region landing;
    transport::wire_region described;
    status bad = gpus.allocate(least_forwarded, receive.place.device, landing);
    if (bad.ok()) bad = gpus.describe(landing, described);
    give_back_memory(landing);
    return bad;
}

status describe(const receive_route &route, const request &receive, accept_body &answer) {
    transport::network *const wire = route.link.wire;
    const transport::region &arrival = route.arrival->region;
    answer.slots = static_cast<std::uint32_t>(std::min<std::uint64_t>(route.slots, 2));
    answer.flags.set(accept_flag::in_chunks, wire != nullptr && route.delivery != nullptr && !route.by_puts());
    answer.flags.set(accept_flag::inline_buffer, bool(route.inline_buffer));
    answer.flags.set(accept_flag::in_place, route.in_place());
    answer.flags.set(accept_flag::rget, route.by_rget);
    if (wire != nullptr) {
        if (auto bad = route.by_puts() ? gpu_wire()->describe(route.landing, answer.landing, answer.landing_supplement)
                                       : wire->describe(route.landing, answer.landing);
            !bad.ok())
            return bad;
        if (auto bad = wire->describe(arrival, answer.arrival); !bad.ok()) return bad;
        return wire->describe(receive.words_region, answer.words);
    }
    if (route.in_place())
        transport::describe_buffer(receive.op.buffer, route.bytes, answer.landing);
    else if (auto bad = route.owner->describe(route.landing, answer.landing); !bad.ok())
        return bad;
    transport::transport &arrivals = route.flags_on_device ? *route.owner : transport::node_memory();
    if (auto bad = arrivals.describe(arrival, answer.arrival); !bad.ok()) return bad;
    if (const transport::region &layout = route.layout.region; layout)
        if (auto bad = transport::node_memory().describe(layout, answer.landing_supplement); !bad.ok()) return bad;
    return transport::node_memory().describe(receive.words_region, answer.words);
}

}  // namespace mpix
