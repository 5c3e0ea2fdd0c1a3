// SPDX-License-Identifier: BSD-3-Clause
//
// The free parts of one piece of memory, for transports that cut regions from larger pieces.
#ifndef MPIX_TRANSPORT_FREE_RANGES_H
#define MPIX_TRANSPORT_FREE_RANGES_H

#include <cstdint>
#include <iterator>
#include <new>
#include <utility>

#include "transport/reserve.h"

namespace mpix::transport {

// First fit; neighbours are merged. The caller rounds lengths to its alignment, and serialises.
class free_ranges {
public:
    // `length` bytes out of the free ones; false if no range is long enough.
    bool take(std::uint64_t length, std::uint64_t &offset) {
        for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
            if (it->second < length) continue;
            offset = it->first;
            auto rest = ranges_.extract(it);
            rest.key() += length;
            rest.mapped() -= length;
            if (rest.mapped() > 0)
                ranges_.insert(std::move(rest));
            else
                spare_ = std::move(rest);
            return true;
        }
        return false;
    }

    // Never fails: it is what destructors call.
    void give(std::uint64_t offset, std::uint64_t length) {
        auto next = ranges_.lower_bound(offset);
        if (next != ranges_.end() && offset + length == next->first) {
            length += next->second;
            const auto joined = next++;
            spare_ = ranges_.extract(joined);
        }
        if (next != ranges_.begin()) {
            const auto before = std::prev(next);
            if (before->first + before->second == offset) {
                before->second += length;
                return;
            }
        }
        if (!spare_.empty()) {
            spare_.key() = offset;
            spare_.mapped() = length;
            ranges_.insert(std::move(spare_));
            return;
        }
        try {
            ranges_[offset] = length;
        } catch (const std::bad_alloc &) {  // then nobody has it any more
        }
    }

private:
    using all_ranges = safe_map<std::uint64_t, std::uint64_t>;  // offset to length
    all_ranges ranges_;
    all_ranges::node_type spare_;  // the last one that was used up, for the next one
};

}  // namespace mpix::transport

#endif  // MPIX_TRANSPORT_FREE_RANGES_H
