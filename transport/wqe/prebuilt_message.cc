// SPDX-License-Identifier: BSD-3-Clause
#include "transport/wqe/prebuilt_message.h"

#include <bit>
#include <cstring>
#include <vector>

#include "transport/wqe/wqe.h"

namespace mpix::transport {

using detail::wqe;

status prebuild(const queue_message &m, const message_keys &keys, const queue_identity &queue, executor_memory &memory,
                region &out) {
    if (!std::has_single_bit(m.slots)) return failure("a landing holds a power of two of messages");
    const std::uint64_t bytes = m.partitions * m.partition_bytes;
    const auto place = [](const region &r, std::uint64_t offset, std::uint32_t key) {
        return remote_place{reinterpret_cast<std::uint64_t>(r.address) + offset, key};
    };
    std::vector<wqe> blocks;
    std::vector<mpix_posting> postings;
    for (std::uint64_t slot = 0; slot < m.slots; ++slot) {
        const partition_layout layout{queue.qpn,         m.partitions,
                                      m.partition_bytes, {reinterpret_cast<std::uint64_t>(m.payload), keys.payload},
                                      m.partition_bytes, place(m.landing, slot * bytes, keys.landing),
                                      m.partition_bytes, place(m.flags, 0, keys.flags)};
        if (status bad = check_layout(layout, queue.log_sq); !bad.ok()) return bad;
        const std::vector<wqe> those = make_blocks(layout);
        blocks.insert(blocks.end(), those.begin(), those.end());
        blocks.push_back(
            make_flag_write(queue.qpn, place(m.flags, 8 * std::uint64_t{m.partitions}, keys.flags), 0, false));
        blocks.push_back(make_flag_write(queue.qpn, place(m.words, m.complete, keys.words), 0, true));
        postings.push_back(describe_posting(layout, queue.words, nullptr));
    }
    // The postings, then their blocks.
    const std::size_t room =
        (postings.size() * sizeof(mpix_posting) + 63) / 64 * 64;  // blocks begin at a multiple of 64
    std::vector<char> image(room + blocks.size() * sizeof(wqe));
    region made;
    if (status bad = memory.allocate(image.size(), made); !bad.ok()) return bad;
    auto *const at = reinterpret_cast<wqe *>(static_cast<char *>(made.address) + room);
    for (std::size_t slot = 0; slot < postings.size(); ++slot) {
        postings[slot].blocks = at + slot * (blocks.size() / postings.size());
        postings[slot].staging = m.staging;
        postings[slot].gaps = m.gaps;
    }
    std::memcpy(image.data(), postings.data(), postings.size() * sizeof postings[0]);
    std::memcpy(image.data() + room, blocks.data(), blocks.size() * sizeof(wqe));
    if (status bad = memory.write(made, image.data(), image.size()); !bad.ok()) {
        memory.release(made);
        return bad;
    }
    out = made;
    return {};
}

}  // namespace mpix::transport
