// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_exchange/node_plan.h"

#include <algorithm>
#include <map>

#include "host/halo/collective.h"

namespace mpix::halo {
namespace {

// On the grid's communicator; messages of exchanges have others.
constexpr int plan_tag = 2;

template <class T>
T rounded_up(T n, T to) {
    return (n + to - 1) / to * to;
}

// Both ends call it.
void lay_out(node_message &m) {
    m.bytes = 0;
    for (node_part &p : m.parts) {
        p.at = m.bytes;
        m.bytes = rounded_up<std::int64_t>(m.bytes + p.bytes, 16);
    }
}

void append(std::vector<std::int64_t> &words, const node_message &m) {
    words.insert(words.end(), {m.sender, m.carrier, static_cast<std::int64_t>(m.parts.size())});
    for (const node_part &p : m.parts) words.insert(words.end(), {p.reader, p.bytes});
}

std::vector<node_message> messages_in(const std::vector<std::int64_t> &words) {
    std::vector<node_message> all;
    for (std::size_t i = 0; i < words.size();) {
        node_message m{.sender = static_cast<int>(words[i]), .carrier = static_cast<int>(words[i + 1])};
        m.parts.resize(static_cast<std::size_t>(words[i + 2]));
        i += 3;
        for (node_part &p : m.parts) {
            p.reader = static_cast<int>(words[i]);
            p.bytes = words[i + 1];
            i += 2;
        }
        lay_out(m);
        all.push_back(std::move(m));
    }
    return all;
}

// What other ranks send to this one, `count` messages, one after the other.
std::vector<std::int64_t> receive_plans(MPI_Comm comm, const std::vector<node_message> &sent, int count) {
    std::vector<std::vector<std::int64_t>> out(sent.size());
    std::vector<MPI_Request> requests(sent.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < sent.size(); ++i) {
        append(out[i], sent[i]);
        demand(MPI_Isend(out[i].data(), static_cast<int>(out[i].size()), MPI_INT64_T, sent[i].carrier, plan_tag, comm,
                         &requests[i]),
               "MPI_Isend");
    }
    std::vector<std::int64_t> in;
    for (int i = 0; i < count; ++i) {
        MPI_Status found;
        int words = 0;
        demand(MPI_Probe(MPI_ANY_SOURCE, plan_tag, comm, &found), "MPI_Probe");
        demand(MPI_Get_count(&found, MPI_INT64_T, &words), "MPI_Get_count");
        const std::size_t before = in.size();
        in.resize(before + static_cast<std::size_t>(words));
        demand(MPI_Recv(in.data() + before, words, MPI_INT64_T, found.MPI_SOURCE, plan_tag, comm, MPI_STATUS_IGNORE),
               "MPI_Recv");
    }
    for (MPI_Request &r : requests) demand(MPI_Wait(&r, MPI_STATUS_IGNORE), "MPI_Wait");
    return in;
}

// Of all ranks.
std::vector<std::int64_t> gathered(MPI_Comm comm, const std::vector<std::int64_t> &mine) {
    int ranks = 0;
    demand(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    std::vector<int> counts(static_cast<std::size_t>(ranks)), first(counts.size());
    const int words = static_cast<int>(mine.size());
    demand(MPI_Allgather(&words, 1, MPI_INT, counts.data(), 1, MPI_INT, comm), "MPI_Allgather");
    int all = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        first[i] = all;
        all += counts[i];
    }
    std::vector<std::int64_t> of_all(static_cast<std::size_t>(all));
    demand(
        MPI_Allgatherv(mine.data(), words, MPI_INT64_T, of_all.data(), counts.data(), first.data(), MPI_INT64_T, comm),
        "MPI_Allgatherv");
    return of_all;
}

}  // namespace

int carrier_of(const node_map &nodes, int sender, int node) {
    const std::vector<int> &its = nodes.ranks_of(node);
    return its[static_cast<std::size_t>(nodes.place_of(sender)) % its.size()];
}

std::vector<node_message> plan_node_messages(const node_map &nodes, const std::vector<candidate> &sends,
                                             node_messages how) {
    std::map<int, node_message> by_node;
    for (const candidate &c : sends) {
        const int node = nodes.node_of(c.peer);
        if (nodes.is_here(c.peer)) continue;
        if (how == node_messages::automatic && c.bytes > longest_in_node_message) continue;
        node_message &m = by_node[node];
        m.sender = nodes.rank();
        m.carrier = carrier_of(nodes, m.sender, node);
        m.parts.push_back({.reader = c.peer, .bytes = c.packed_bytes});
    }
    std::vector<node_message> all;
    for (auto &[node, m] : by_node) {
        // One message by itself would only take one copy more.
        if (how == node_messages::automatic && m.parts.size() < 2) continue;
        std::sort(m.parts.begin(), m.parts.end(),
                  [](const node_part &a, const node_part &b) { return a.reader < b.reader; });
        lay_out(m);
        all.push_back(std::move(m));
    }
    return all;
}

node_plan exchange_plans(MPI_Comm comm, MPI_Comm here, const node_map &nodes, const std::vector<node_message> &sent,
                         bool &any) {
    // A carrier may be no neighbour of the sender's, so it has to be told.
    std::vector<int> counts(static_cast<std::size_t>(nodes.ranks()));
    for (const node_message &m : sent) ++counts[static_cast<std::size_t>(m.carrier)];
    demand(MPI_Allreduce(MPI_IN_PLACE, counts.data(), nodes.ranks(), MPI_INT, MPI_SUM, comm), "MPI_Allreduce");
    any = std::any_of(counts.begin(), counts.end(), [](int count) { return count > 0; });
    node_plan plan;
    if (!any) return plan;
    const std::vector<std::int64_t> carried = receive_plans(comm, sent, counts[static_cast<std::size_t>(nodes.rank())]);
    plan.received = messages_in(gathered(here, carried));
    std::sort(plan.received.begin(), plan.received.end(),
              [](const node_message &a, const node_message &b) { return a.sender < b.sender; });
    std::size_t at = node_line * nodes.ranks_of(nodes.node_of(nodes.rank())).size();
    for (node_message &m : plan.received) {
        const auto bytes = rounded_up(static_cast<std::size_t>(m.bytes), node_line);
        m.flag_at = at;
        m.room_at = {at + node_line, at + node_line + bytes};
        at += node_line + 2 * bytes;
    }
    plan.memory_bytes = at;
    return plan;
}

}  // namespace mpix::halo
