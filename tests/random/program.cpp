// SPDX-License-Identifier: BSD-3-Clause
#include "tests/random/program.hpp"

#include <algorithm>

namespace random_test {

const std::vector<int> &communicator::peers_of(int world_rank) const {
    if (!inter()) return members;
    return std::find(members.begin(), members.end(), world_rank) != members.end() ? remote : members;
}

bool communicator::has(int world_rank) const {
    return std::find(members.begin(), members.end(), world_rank) != members.end() ||
           std::find(remote.begin(), remote.end(), world_rank) != remote.end();
}

int communicator::rank_of(int peer, int world_rank) const {
    const std::vector<int> &peers = peers_of(world_rank);
    return static_cast<int>(std::find(peers.begin(), peers.end(), peer) - peers.begin());
}

bool program::overlap(int pair, int i, int j) const {
    const std::int64_t sent = partition_bytes(2 * pair), received = partition_bytes(2 * pair + 1);
    return i * sent < (j + 1) * received && j * received < (i + 1) * sent;
}

void program::slice(const part &whole, std::vector<part> &slices) const {
    const int all = end_of(whole.request).contributors;
    for (int n = 0; n < all; ++n) slices.push_back({whole.request, whole.partition, n, all});
}

const char *name_of(completion call) {
    constexpr const char *names[] = {"Wait",    "Test",    "Request_get_status", "Waitall", "Testall",
                                     "Waitany", "Testany", "Waitsome",           "Testsome"};
    return names[static_cast<int>(call)];
}

namespace {

const char *name_of(action what) {
    constexpr const char *names[] = {"construct",     "free_comm",   "checkpoint",   "make",         "free",
                                     "start",         "ready",       "ready_beside", "join_threads", "launch",
                                     "launch_epochs", "join_kernel", "arrived",      "prepare",      "look",
                                     "unready",       "complete",    "post_send",    "post_receive"};
    return names[static_cast<int>(what)];
}

const char *name_of(maker how) {
    constexpr const char *names[] = {"dup",        "dup_with_info", "idup", "split",     "split_type",
                                     "create",     "create_group",  "cart", "cart_rows", "graph",
                                     "dist_graph", "intercomm",     "merge"};
    return names[static_cast<int>(how)];
}

std::string list(const std::vector<int> &all) {
    std::string out = "[";
    for (const int one : all) out += (out.size() > 1 ? " " : "") + std::to_string(one);
    return out + "]";
}

std::string describe(const program &p, int request) {
    const end &e = p.end_of(request);
    return (is_send(request) ? "send " : "receive ") + std::to_string(request) + " on rank " + std::to_string(e.rank) +
           ": " + std::to_string(e.partitions) + " x " + std::to_string(e.count) + " x " +
           p.type_of(request).made.text + (e.exported ? ", exported for " + std::to_string(e.contributors) : "") +
           (e.type_freed_early ? ", type freed early" : "");
}

}  // namespace

std::string describe(const program &p) {
    std::string out;
    for (std::size_t n = 0; n < p.comms.size(); ++n)
        out += "comm " + std::to_string(n) + " " + list(p.comms[n].members) + list(p.comms[n].remote) + "\n";
    for (std::size_t n = 0; n < p.constructions.size(); ++n) {
        const construction &c = p.constructions[n];
        out += "construction " + std::to_string(n) + ": " + name_of(c.how) + " of " + std::to_string(c.parent) +
               ", colours " + list(c.colour) + ", keys " + list(c.key) + ", gives " + list(c.made) + "\n";
    }
    for (std::size_t n = 0; n < p.pairs.size(); ++n) {
        const pair &q = p.pairs[n];
        out += "comm " + std::to_string(q.comm) + " tag " + std::to_string(q.tag) + " epochs " +
               std::to_string(q.epochs) + (q.null_peer ? " null peer" : "") + (q.truncated ? " truncated" : "") + "\n";
        for (int side = 0; side < 2; ++side)
            if (q.ends[side].made) out += "  " + describe(p, 2 * static_cast<int>(n) + side) + "\n";
    }
    for (std::size_t n = 0; n < p.steps.size(); ++n) {
        const step &s = p.steps[n];
        out += std::to_string(n) + " rank " + std::to_string(s.rank) + " " + name_of(s.what);
        if (s.rank < 0 || s.what == action::post_send || s.what == action::post_receive)
            out += " " + std::to_string(s.index);
        if (s.what == action::complete || s.what == action::look || s.what == action::unready)
            out += std::string(" by ") + name_of(s.call);
        if (s.by_stream) out += " by a stream";
        if (!s.requests.empty()) out += " requests " + list(s.requests);
        for (const part &one : s.parts) {
            out += " " + std::to_string(one.request) + "/" + std::to_string(one.partition);
            if (one.slices > 1) out += "." + std::to_string(one.slice);
        }
        for (const activation &one : s.activations) {
            out += " (" + std::to_string(one.request) + ": " + std::to_string(one.epochs) +
                   (one.begins ? " more epochs" : " epochs") + (one.waits ? ", waits" : "");
            if (!one.left.empty()) out += ", leaves " + list(one.left);
            out += ")";
        }
        if (!s.sends.empty()) out += " sends " + list(s.sends);
        if (!s.receives.empty()) out += " receives " + list(s.receives);
        if (!s.idle.empty()) out += " idle " + list(s.idle);
        out += "\n";
    }
    return out;
}

}  // namespace random_test
