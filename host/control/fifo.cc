// SPDX-License-Identifier: BSD-3-Clause
#include "host/control/fifo.h"

#include <mpix/detail/order.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace mpix {
namespace {

constexpr std::size_t bits = 64;

std::size_t words_for(std::size_t senders) { return (senders + bits - 1) / bits; }
std::size_t news_bytes(std::size_t senders) { return (words_for(senders) * sizeof(std::uint64_t) + 63) / 64 * 64; }

std::atomic<std::uint64_t> *news_in(void *inbox) { return static_cast<std::atomic<std::uint64_t> *>(inbox); }
char *fifos_in(void *inbox, std::size_t senders) { return static_cast<char *>(inbox) + news_bytes(senders); }
std::uint64_t fifo_bytes(std::uint64_t slots) { return sizeof(control_fifo) + slots * sizeof(fifo_slot); }
control_fifo &fifo_at(char *fifos, std::size_t i, std::uint64_t slots) {
    return *reinterpret_cast<control_fifo *>(fifos + i * fifo_bytes(slots));
}

}  // namespace

std::uint64_t fifo_slots(std::size_t senders) {
    constexpr std::uint64_t least = 8, most = 128, all_bytes = 1u << 20;
    return std::clamp(all_bytes / sizeof(fifo_slot) / std::max<std::size_t>(senders, 1), least, most);
}

std::uint64_t inbox_bytes(std::size_t senders) {
    return news_bytes(senders) + senders * fifo_bytes(fifo_slots(senders));
}

void control_inbox::open(void *memory, std::size_t senders) {
    seen_.assign(words_for(senders), 0);
    taken_.assign(senders, 0);
    slots_ = fifo_slots(senders);
    fifos_ = fifos_in(memory, senders);
    news_ = news_in(memory);
}

bool control_inbox::receive(std::size_t &sender, control_packet &out) {
    for (std::size_t w = 0; w < seen_.size(); ++w) {
        // acquire: pairs with the release in put(); a bit taken here says that `put` has counted its message.
        // pairs: W3
        if (news_[w].load(std::memory_order_relaxed) != 0) seen_[w] |= news_[w].exchange(0, std::memory_order_acquire);
        for (; seen_[w] != 0; seen_[w] &= seen_[w] - 1) {
            const std::size_t i = w * bits + static_cast<std::size_t>(std::countr_zero(seen_[w]));
            if (i >= taken_.size()) continue;
            control_fifo &fifo = fifo_at(fifos_, i, slots_);
            // acquire: pairs with the release in put(); the message is there.
            const std::uint64_t waiting = fifo.put.load(std::memory_order_acquire) - taken_[i];  // pairs: W1
            if (waiting == 0 || waiting > slots_) continue;  // a correct sender never counts that far
            const fifo_slot &slot = fifo.slots()[taken_[i] % slots_];
            // Read once: it is not to be trusted, and may change.
            const std::uint64_t bytes = std::min<std::uint64_t>(detail::load_relaxed(&slot.bytes), sizeof out);
            std::memcpy(out.bytes, slot.packet.bytes, bytes);
            std::memset(out.bytes + bytes, 0, sizeof out - bytes);
            // release: pairs with the acquire in put(); the slot has been read and may be written to.
            fifo.taken.store(++taken_[i], std::memory_order_release);  // pairs: W2
            sender = i;
            return true;
        }
    }
    return false;
}

control_outbox::control_outbox(void *inbox, std::size_t senders, std::size_t sender)
    : fifo_(&fifo_at(fifos_in(inbox, senders), sender, fifo_slots(senders))),
      news_(news_in(inbox) + sender / bits),
      bit_(1ull << sender % bits),
      slots_(fifo_slots(senders)) {}

bool control_outbox::put(const control_packet &packet) {
    // acquire: pairs with the release in receive(); the slot has been read.
    if (put_ - fifo_->taken.load(std::memory_order_acquire) >= slots_) return false;  // pairs: W2
    fifo_slot &slot = fifo_->slots()[put_ % slots_];
    const std::uint64_t bytes = filled_bytes(packet);
    slot.bytes = bytes;
    std::memcpy(slot.packet.bytes, packet.bytes, bytes);
    // release: both pair with the acquires in receive(); whoever sees the bit sees the count, and with it the message.
    fifo_->put.store(++put_, std::memory_order_release);  // pairs: W1
    news_->fetch_or(bit_, std::memory_order_release);     // pairs: W3
    return true;
}

}  // namespace mpix
