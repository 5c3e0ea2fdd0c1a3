// SPDX-License-Identifier: BSD-3-Clause
#include "host/route/send_offer.h"

#include <utility>

#include "device/kernels/gpu_pack.h"
#include "host/config.h"
#include "host/protocol/rget.h"
#include "host/protocol/select.h"
#include "host/request/upcalls.h"
#include "host/route/sender_memory.h"

namespace mpix {
namespace {

// Whether the other process's memory can be reached is tried only where it matters.
void offer_single_copy(const request &send, send_offer &o, offer_body &m) {
    single_copy pair{.sender_on_gpu = send.place.owner != nullptr,
                     .sender_gaps = !send.gapless,
                     .partition_bytes = send.partition_bytes,
                     .least = config().single_copy_bytes};
    o.why_no_single_copy = why_no_single_copy(pair);
    if (!o.why_no_single_copy.empty()) return;
    o.far = memory_of(send.peer_world(), pair.unreached);
    if (pair.unreached.ok() && !transport::others_reach(send.op.buffer, send.total_bytes()))
        pair.unreached = failure("the system cannot read the send buffer for another process");
    o.why_no_single_copy = why_no_single_copy(pair);
    if (o.why_no_single_copy.empty()) transport::describe_buffer(send.op.buffer, send.total_bytes(), m.send_buffer);
}

// The receiver maps these if its own buffer is GPU memory, too. Without the words, its kernels tell the host.
void offer_gpu_memory(const request &send, send_offer &o, offer_body &m) {
    transport::transport &gpus = *send.place.owner;
    const bool rget = o.rget.why_not.empty();
    status bad = gpus.allocate(kernel_words_bytes(rget ? static_cast<std::uint64_t>(send.op.partitions) : 0),
                               send.place.device, o.kernel_words);
    if (bad.ok()) bad = gpus.describe(o.kernel_words, m.kernel_words);
    if (!bad.ok()) {
        m.kernel_words = {};
        if (o.kernel_words) gpus.release(o.kernel_words);
        o.kernel_words = {};
    }
    if (!rget) return;
    transport::region buffer;
    if (bad.ok()) bad = gpus.adopt(send.op.buffer, send.total_bytes(), buffer);
    if (bad.ok()) bad = gpus.describe(buffer, m.send_buffer);
    if (bad.ok() && gpus.gives_files(m.send_buffer)) {
        gpus.release(buffer);
        bad = failure("the send buffer is memory mapped by cuMemMap");
    }
    o.rget.why_not = bad;
    if (bad.ok())
        m.flags.set(offer_flag::rget);
    else
        m.send_buffer = {};
}

}  // namespace

rget_terms rget_terms_of(const request &send) {
    rget_terms terms;
    terms.least = rget_threshold(send.place.owner == nullptr ? 0 : gpu::lone_thread_rate(send.place.device));
    terms.why_not = send.why_no_rget(terms.least);
    if (terms.why_not.empty() && terms.least == 0) terms.why_not = "a thread's stores have not been measured";
    return terms;
}

send_offer::~send_offer() {
    if (kernel_words) place.owner->release(kernel_words);
}

offer_body make_offer(const request &send, send_offer &o) {
    offer_body m{.communicator = send.op.members->name,
                 .tag = send.op.tag,
                 .partitions = send.op.partitions,
                 .bytes = send.total_bytes()};
    m.flags.set(offer_flag::has_devices, transport::devices() != nullptr);
    status bad;
    transport::network *const wire = network_to(send.peer_world(), bad);
    o.link = {wire, send.peer_world()};
    if (wire != nullptr) bad = introduce_to(send.peer_world(), *wire);
    if (wire != nullptr && bad.ok()) bad = wire->describe(send.words_region, m.words);
    // Without a network the receiver finds out itself whether it can map our words, and tells us if not.
    if (wire == nullptr || !bad.ok()) static_cast<void>(transport::node_memory().describe(send.words_region, m.words));
    m.no_network.assign(bad.message());
    if (wire == nullptr && bad.ok()) {
        offer_single_copy(send, o, m);
        m.flags.set(offer_flag::in_place, o.why_no_single_copy.empty());
        if (send.place.owner != nullptr) offer_gpu_memory(send, o, m);
    } else if (bad.ok()) {
        o.why_staged = why_staged(send.end_for(*wire, o.gpu_wire));
        m.flags.set(offer_flag::gpu_put, o.gpu_put());
    }
    // Decided by what is known now, so that a receive makes an inline buffer only for a send that uses it.
    if (send.place.owner != nullptr) {
        o.threshold = choose_inline_threshold(send.place.device, send.peer_world(), !send.gapless);
        o.to_packed = send.fits_inline(o.threshold.bytes);
        o.to_gaps = send.fits_inline(largest_inline(true));
        m.flags.set(offer_flag::inline_packed, o.to_packed);
        m.flags.set(offer_flag::inline_to_gaps, o.to_gaps);
    }
    return m;
}

}  // namespace mpix
