// SPDX-License-Identifier: BSD-3-Clause
#include "host/protocol/slot_budget.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace mpix {
namespace {

// How many landings of MPIX_LANDING_BYTES a process may have. With more of them, each has left the caches anyway when
// its turn comes.
constexpr std::uint64_t most_landings = 8;

std::atomic<std::uint64_t> taken_by_all{0};  // bytes

}  // namespace

std::uint64_t slots_within(std::uint64_t room, std::uint64_t message_bytes) {
    if (message_bytes == 0) return 2;
    return std::clamp(std::bit_floor(room / message_bytes), std::uint64_t{2}, most_slots);
}

std::uint64_t wanted_slots(std::uint64_t message_bytes, std::uint64_t budget) {
    // Shorter messages would need more slots than there may be, for little gain.
    if (message_bytes == 0 || budget / message_bytes > most_slots) return 2;
    return slots_within(budget, message_bytes);
}

std::uint64_t wanted_slots_between_nodes(std::uint64_t message_bytes, std::uint64_t partitions, std::uint64_t budget) {
    constexpr std::uint64_t most = 16, most_bytes = 64 * 1024, most_partitions = 64;
    if (message_bytes == 0 || partitions > most_partitions) return 2;
    return std::min(slots_within(std::min(budget, most_bytes), message_bytes), most);
}

std::uint64_t clear_to_send_between_nodes(std::uint64_t epoch, std::uint64_t slots) {
    return epoch >= slots ? epoch - (slots - 1) : std::min<std::uint64_t>(epoch, 1);
}

std::uint64_t landing_room::take(std::uint64_t message_bytes, std::uint64_t slots, std::uint64_t budget) {
    give_back();
    const std::uint64_t more = (slots - 2) * message_bytes;
    const std::uint64_t most = budget > ~std::uint64_t{0} / most_landings ? ~std::uint64_t{0} : budget * most_landings;
    for (std::uint64_t before = taken_by_all.load(std::memory_order_relaxed); before <= most && more <= most - before;)
        if (taken_by_all.compare_exchange_weak(before, before + more, std::memory_order_relaxed)) {
            taken_ = more;
            return slots;
        }
    return 2;
}

void landing_room::give_back() {
    taken_by_all.fetch_sub(taken_, std::memory_order_relaxed);
    taken_ = 0;
}

}  // namespace mpix
