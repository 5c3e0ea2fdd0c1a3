// SPDX-License-Identifier: BSD-3-Clause
//
// The how-manieth of its key each operation is, by the order of the init calls: what would have met if nobody had ever
// freed a request unstarted. Where only one side has freed one, the pairs that have completed an epoch say so, and those
// that come after them are counted from them on.
#ifndef MPIX_HOST_REQUEST_INIT_ORDER_H
#define MPIX_HOST_REQUEST_INIT_ORDER_H

#include <cstdint>
#include <map>

#include "host/request/matcher.h"

namespace mpix {

// Ids stand for the requests, and are not 0. The caller serialises.
class init_order {
public:
    enum side { sends, receives };

    // A new one: its number on its own side.
    std::uint64_t add(const match_key &key, side s, std::uint64_t id) {
        counted &c = keys_[key];
        c.at[s][++c.made[s]] = id;
        return c.made[s];
    }

    // Of operation `number` of side `s`, the one of the other side.
    struct partner {
        bool made;         // there has been one
        std::uint64_t id;  // 0: not any more
    };
    partner of(const match_key &key, side s, std::uint64_t number) const {
        const auto it = keys_.find(key);
        if (it == keys_.end()) return {false, 0};
        const counted &c = it->second;
        const side other = s == sends ? receives : sends;
        const std::uint64_t theirs = s == sends ? number + c.lead : number - c.lead;
        const auto found = c.at[other].find(theirs);
        return {theirs - 1 < c.made[other], found == c.at[other].end() ? 0 : found->second};
    }

    // These two have completed an epoch.
    void acquainted(const match_key &key, std::uint64_t send, std::uint64_t receive) {
        if (const auto it = keys_.find(key); it != keys_.end()) it->second.lead = receive - send;
    }

    void remove(const match_key &key, side s, std::uint64_t number) {
        const auto it = keys_.find(key);
        if (it == keys_.end()) return;
        counted &c = it->second;
        c.at[s].erase(number);
        // Where both sides have come as far, the count may start anew.
        if (c.at[sends].empty() && c.at[receives].empty() && c.made[sends] + c.lead == c.made[receives])
            keys_.erase(it);
    }

private:
    struct counted {
        std::uint64_t made[2] = {0, 0};
        std::uint64_t lead = 0;  // of the receives over the sends; modulo 2^64
        std::map<std::uint64_t, std::uint64_t> at[2];
    };
    std::map<match_key, counted> keys_;
};

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_INIT_ORDER_H
