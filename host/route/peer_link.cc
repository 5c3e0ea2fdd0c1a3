// SPDX-License-Identifier: BSD-3-Clause
#include "host/route/peer_link.h"

#include <mpix/detail/order.h>

#include <utility>

#include "host/request/request.h"

namespace mpix {

status peer_link::attach(const transport::wire_region &described, int user, transport::region &out) const {
    if (transport::by_network(described.transport)) {
        if (wire == nullptr || wire->id() != described.transport)
            return failure("the peer is reached by a network that is not in use here");
        return wire->attach(described, world_rank, out);
    }
    transport::transport *const owner = transport::by_id(described.transport);
    return owner == nullptr ? failure("the peer chose a transport that is not here")
                            : owner->attach(described, user, out);
}

void peer_link::detach(transport::region &r) const {
    if (!r) return;
    if (r.remote)
        wire->detach(r);
    else
        (r.device == transport::on_host ? &transport::node_memory() : transport::devices())->detach(r);
    r = {};
}

status peer_link::tell(const transport::region &r, std::uint64_t offset, std::uint64_t value,
                       std::uint64_t how_many) const {
    if (r.remote) {
        status bad;
        for (std::uint64_t k = 0; k < how_many && bad.ok(); ++k)
            bad = attempt([&] { return wire->put_word(r, offset + k * sizeof value, value); });
        return bad;
    }
    auto *const words = reinterpret_cast<std::uint64_t *>(static_cast<char *>(r.address) + offset);
    if (r.device != transport::on_host) return transport::devices()->post_words(words, value, how_many, r.device);
    for (std::uint64_t k = 0; k < how_many; ++k) detail::store_release(&words[k], value);  // pairs: A1, C2, D3
    return {};
}

status peer_link::tell_delayed(const transport::region &r, std::uint64_t offset, std::uint64_t value,
                               std::uint64_t most_replaced) const {
    if (!r.remote) return tell(r, offset, value);
    return attempt([&] { return wire->put_word_delayed(r, offset, value, most_replaced); });
}

status gpu_view::acquire(transport::transport &gpus, const transport::region &host, int device,
                         std::unique_ptr<gpu_view> &out) {
    std::unique_ptr<gpu_view> made(new gpu_view(gpus, host));
    auto bad = gpus.acquire_view(host, device, made->address_);
    if (bad.ok()) out = std::move(made);
    return bad;
}

gpu_view::~gpu_view() {
    if (address_ != nullptr) gpus_.release_view(host_);
}

}  // namespace mpix
