// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/eager.h"

#include <mpix/detail/order.h>

#include <algorithm>
#include <cstring>

namespace mpix::transport::ucx {
namespace {

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

}  // namespace

bool eager_outbox::has_room(std::size_t bytes) const {
    const std::size_t so_far = parts_.before.size() + parts_.body_bytes + message_.size();
    return so_far + sizeof(eager_record) + padded(bytes) <= message_bytes_;
}

// If memory runs out, nothing has changed.
std::size_t eager_outbox::add_record(const eager_record &head, std::size_t room) {
    if (empty()) message_.reserve(2048);
    const std::size_t at = empty() ? sizeof(eager_head) : message_.size();
    message_.resize(at + sizeof head + room);
    std::memcpy(message_.data() + at, &head, sizeof head);
    return at + sizeof head;
}

void eager_outbox::add(eager_kind kind, std::uint64_t address, const void *from, std::size_t bytes) {
    const eager_record head{address, static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(kind)};
    const std::size_t at = add_record(head, padded(bytes));
    if (bytes != 0) std::memcpy(message_.data() + at, from, bytes);
}

void eager_outbox::put_in_place(std::uint64_t address, const void *from, std::size_t bytes) {
    std::vector<std::uint8_t> behind(padded(bytes) - bytes);
    add_record({address, static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(eager_kind::bytes)}, 0);
    parts_ = {std::exchange(message_, std::move(behind)), from, bytes, {}};
    stores_ = true;
}

eager_parts eager_outbox::take(std::uint64_t sender) {
    const eager_head head{sender, taken_++};
    if (std::exchange(stores_, false)) storing_ = taken_;
    (has_body() ? parts_.behind : parts_.before) = std::exchange(message_, {});
    std::memcpy(parts_.before.data(), &head, sizeof head);
    return std::exchange(parts_, {});
}

status eager_inbox::arrive(const void *message, std::size_t bytes, const exposed &is_exposed) {
    const auto *const first = static_cast<const std::uint8_t *>(message);
    eager_head head;
    if (bytes < sizeof head) return failure("a message that ends in its head");
    std::memcpy(&head, first, sizeof head);
    if (head.number < next_ || early_.count(head.number) != 0) return failure("a message that has been there before");
    if (head.number != next_) {
        early_[head.number].assign(first + sizeof head, first + bytes);
        return {};
    }
    ++next_;
    status bad = apply(first + sizeof head, bytes - sizeof head, is_exposed);
    for (auto it = early_.begin(); bad.ok() && it != early_.end() && it->first == next_; it = early_.erase(it)) {
        ++next_;
        bad = apply(it->second.data(), it->second.size(), is_exposed);
    }
    return bad;
}

status eager_inbox::apply(const std::uint8_t *record, std::size_t bytes, const exposed &is_exposed) {
    const std::uint8_t *const end = record + bytes;
    while (record != end) {
        eager_record head;
        if (static_cast<std::size_t>(end - record) < sizeof head)
            return failure("a message that ends in a record's head");
        std::memcpy(&head, record, sizeof head);
        record += sizeof head;
        if (static_cast<std::size_t>(end - record) < padded(head.bytes))
            return failure("a message that ends in a record");
        const auto kind = static_cast<eager_kind>(head.kind);
        const bool stores = kind == eager_kind::bytes || kind == eager_kind::word;
        if (stores && !is_exposed(head.address, head.bytes))
            return failure("a message for memory that is not exposed to it");
        auto *const at = reinterpret_cast<void *>(head.address);
        switch (kind) {
            case eager_kind::bytes:
                std::memcpy(at, record, head.bytes);
                break;
            case eager_kind::word: {
                std::uint64_t value;
                if (head.bytes != sizeof value || head.address % sizeof value != 0)
                    return failure("a word that is none");
                std::memcpy(&value, record, sizeof value);
                // Releases the bytes of all records before. Pairs with whoever observes the word.
                detail::store_release(static_cast<std::uint64_t *>(at), value);  // pairs: N1, N2
                break;
            }
            case eager_kind::question:
                question_ = std::max(question_, head.address);
                break;
            case eager_kind::answer:
                answered_ = std::max(answered_, head.address);
                break;
            default:
                return failure("a record of an unknown kind");
        }
        record += padded(head.bytes);
    }
    return {};
}

}  // namespace mpix::transport::ucx
