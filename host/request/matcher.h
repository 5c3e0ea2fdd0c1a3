// SPDX-License-Identifier: BSD-3-Clause
//
// Which send meets which receive: first with first, among those of one (communicator, source, tag). A
// request that is freed before it was ever started leaves the order as if it had never been, and its
// partner goes back to its place.
#ifndef MPIX_HOST_REQUEST_MATCHER_H
#define MPIX_HOST_REQUEST_MATCHER_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace mpix {

struct match_key {
    std::uint64_t communicator;
    int source;  // world rank of the sender
    int tag;
    auto operator<=>(const match_key &) const = default;
};

// Numbers stand for the requests; smaller means earlier. The caller serialises.
class matcher {
public:
    void add_send(const match_key &key, std::uint64_t number) { queues_[key].sends.insert(number); }
    void add_receive(const match_key &key, std::uint64_t number) { queues_[key].receives.insert(number); }

    void drop_send(const match_key &key, std::uint64_t number) { drop(key, number, &queue::sends); }
    void drop_receive(const match_key &key, std::uint64_t number) { drop(key, number, &queue::receives); }

    // The next pair (send, receive) of this key; it leaves the queues.
    std::optional<std::pair<std::uint64_t, std::uint64_t>> next(const match_key &key) {
        const auto it = queues_.find(key);
        if (it == queues_.end() || it->second.sends.empty() || it->second.receives.empty()) return std::nullopt;
        queue &q = it->second;
        const std::pair<std::uint64_t, std::uint64_t> pair{*q.sends.begin(), *q.receives.begin()};
        q.sends.erase(q.sends.begin());
        q.receives.erase(q.receives.begin());
        if (q.sends.empty() && q.receives.empty()) queues_.erase(it);
        return pair;
    }

    bool empty() const { return queues_.empty(); }

private:
    struct queue {
        std::set<std::uint64_t> sends, receives;
    };
    void drop(const match_key &key, std::uint64_t number, std::set<std::uint64_t> queue::*side) {
        const auto it = queues_.find(key);
        if (it == queues_.end()) return;
        (it->second.*side).erase(number);
        if (it->second.sends.empty() && it->second.receives.empty()) queues_.erase(it);
    }
    std::map<match_key, queue> queues_;
};

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_MATCHER_H
