// SPDX-License-Identifier: BSD-3-Clause
#include "tests/random/shapes.hpp"

#include <algorithm>
#include <numeric>

namespace random_test {
namespace {

constexpr std::int64_t usual_limit = 12000;          // bytes of a message
constexpr std::int64_t large_limit = 3 * (1 << 19);  // of a few; beyond MPIX_EAGER_BYTES
constexpr std::int64_t room_limit = 1 << 18;         // of the memory that a message is spread over
constexpr std::int64_t guard = 64;                   // bytes around it

// ---- communicators ----------------------------------------------------------------------------------------

// Put the parent's ranks into the communicators of their colours, in order of key and of rank.
void make_members(program &p, construction &c) {
    const std::vector<int> parents = p.comms[program::at(c.parent)].members;
    const int colours = 1 + *std::max_element(c.colour.begin(), c.colour.end());
    std::vector<communicator> made(static_cast<std::size_t>(colours));
    std::vector<std::size_t> order(parents.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return c.key[a] < c.key[b]; });
    for (const std::size_t rank : order)
        if (c.colour[rank] >= 0) made[program::at(c.colour[rank])].members.push_back(parents[rank]);
    if (c.how == maker::intercomm) {
        made[0].remote = made[1].members;
        made.pop_back();
    }
    for (communicator &comm : made) {
        comm.is_cart = c.how == maker::cart;
        c.made.push_back(static_cast<int>(p.comms.size()));
        p.comms.push_back(std::move(comm));
    }
}

// Of an intercommunicator: a duplicate, or both sides in one.
void draw_from_inter(program &p, dice &d, construction &c) {
    communicator out = p.comms[program::at(c.parent)];
    c.how = d.of(std::vector{maker::merge, maker::merge, maker::dup, maker::dup_with_info, maker::idup});
    if (c.how == maker::merge) {
        out.members.insert(out.members.end(), out.remote.begin(), out.remote.end());
        out.remote.clear();
    }
    c.made.push_back(static_cast<int>(p.comms.size()));
    p.comms.push_back(std::move(out));
}

void draw_communicator(program &p, dice &d) {
    construction c;
    c.parent = d.below(static_cast<int>(p.comms.size()));
    if (p.comms[program::at(c.parent)].inter()) {
        draw_from_inter(p, d, c);
        p.constructions.push_back(std::move(c));
        return;
    }
    c.how = static_cast<maker>(d.below(static_cast<int>(maker::merge)));
    if (!p.constructions.empty() && d.one_in(3)) {
        // The same once more: only the communicator itself tells its messages from the other's.
        const construction &earlier = d.of(p.constructions);
        if (!p.comms[program::at(earlier.parent)].inter()) c.how = earlier.how, c.parent = earlier.parent;
    }
    const auto ranks = static_cast<int>(p.comms[program::at(c.parent)].members.size());
    if (c.how == maker::intercomm && ranks < 2) return;
    for (int rank = 0; rank < ranks; ++rank) {
        c.key.push_back(c.how == maker::split ? d.between(-2, 2) : 0);
        c.colour.push_back(0);
    }
    switch (c.how) {
        case maker::split:
            for (int &colour : c.colour) colour = d.one_in(6) ? MPI_UNDEFINED : d.below(2);
            break;
        case maker::create:
        case maker::create_group: {
            // A group in any order, of some.
            for (int &key : c.key) key = d.below(4);
            for (int &colour : c.colour) colour = d.one_in(3) ? MPI_UNDEFINED : 0;
            break;
        }
        case maker::intercomm:
            for (std::size_t rank = 1; rank < c.colour.size(); ++rank) c.colour[rank] = d.below(2);
            c.colour[1] = 1;
            break;
        case maker::cart_rows:
            for (int rank = 0; rank < ranks; ++rank)
                c.colour[program::at(rank)] = ranks % 2 == 0 ? rank / (ranks / 2) : 0;
            break;
        default:
            break;
    }
    // Colours from 0 on, without a hole; MPI_UNDEFINED is negative.
    for (int &colour : c.colour) colour = std::max(colour, -1);
    if (std::find(c.colour.begin(), c.colour.end(), 0) == c.colour.end())
        for (int &colour : c.colour) colour = colour > 0 ? 0 : colour;
    if (*std::max_element(c.colour.begin(), c.colour.end()) < 0) c.colour[0] = 0;
    make_members(p, c);
    p.constructions.push_back(std::move(c));
}

// ---- types ------------------------------------------------------------------------------------------------

int keep(program &p, sample made) {
    datatype out;
    out.extent = made.extent();
    out.dense = out.extent == static_cast<std::int64_t>(made.map.size());
    for (std::size_t n = 0; n < made.map.size(); ++n)
        out.dense = out.dense && made.map[n] == static_cast<std::int64_t>(n);
    if (!made.named) MPI_Type_commit(&made.type);
    out.made = std::move(made);
    p.types.push_back(std::move(out));
    return static_cast<int>(p.types.size()) - 1;
}

int draw_type(program &p, dice &d, std::int64_t limit) {
    if (d.one_in(4)) return 0;  // bytes
    for (int attempt = 0; attempt < 20; ++attempt) {
        type_maker maker(d.number());
        sample made = maker.make(d.below(4));
        if (made.map.empty() || static_cast<std::int64_t>(made.map.size()) > limit) continue;
        return keep(p, std::move(made));
    }
    return 0;
}

// ---- the ends of a pair -------------------------------------------------------------------------------------

int draw_divisor(dice &d, std::int64_t n) {
    std::vector<int> all;
    for (int k = 1; k <= 40 && k <= n; ++k)
        if (n % k == 0) all.push_back(k);
    return d.of(all);
}

// The memory that the end's elements reach, and whether they reach some of it twice.
void lay_out(const program &p, end &e) {
    const datatype &type = p.types[program::at(e.type)];
    const std::int64_t elements = e.partitions * e.count;
    std::int64_t low = 0, high = 0;
    for (const std::int64_t n : {std::int64_t{0}, elements - 1})
        for (const std::int64_t at : type.made.map) {
            if (elements == 0) break;
            low = std::min(low, n * type.extent + at);
            high = std::max(high, n * type.extent + at + 1);
        }
    e.origin = guard - low;
    e.room = high - low + 2 * guard;
    e.self_overlapping = false;
    if (type.dense || e.room > room_limit) return;
    std::vector<bool> used(static_cast<std::size_t>(e.room));
    for (std::int64_t n = 0; n < elements; ++n)
        for (const std::int64_t at : type.made.map) {
            const auto place = static_cast<std::size_t>(e.origin + n * type.extent + at);
            e.self_overlapping = e.self_overlapping || used[place];
            used[place] = true;
        }
}

bool usable(const program &p, const end &e, bool send) {
    return (e.room <= room_limit || p.types[program::at(e.type)].dense) && (send || !e.self_overlapping);
}

void share_out(dice &d, end &e, std::int64_t elements, int preferred) {
    e.partitions = preferred != 0 && elements % preferred == 0 ? preferred : draw_divisor(d, elements);
    e.count = elements / e.partitions;
}

// A message of no bytes: no elements, or none with bytes.
void draw_empty(program &p, dice &d, end &e) {
    e.partitions = d.between(1, 5);
    e.count = 0;
    e.type = 0;
    if (d.one_in(2)) {
        type_maker maker(d.number());
        sample made = maker.make(2);
        if (made.map.empty()) e.count = 2;
        e.type = keep(p, std::move(made));
    }
    lay_out(p, e);
}

// Both ends of the same number of bytes.
void draw_ends(program &p, dice &d, pair &q) {
    end &send = q.ends[0], &receive = q.ends[1];
    if (d.one_in(12)) {
        draw_empty(p, d, send);
        draw_empty(p, d, receive);
        return;
    }
    const bool large = d.one_in(150);
    for (int attempt = 0;; ++attempt) {
        const bool simple = large || attempt > 5;
        const std::int64_t small = 600;
        send.type = simple ? 0 : draw_type(p, d, small);
        receive.type = simple ? 0 : d.one_in(4) ? send.type : draw_type(p, d, small);
        const std::int64_t a = p.types[program::at(send.type)].size(), b = p.types[program::at(receive.type)].size();
        const std::int64_t unit = std::lcm(a, b), limit = large ? large_limit : usual_limit;
        if (unit > limit) continue;
        static const std::vector<int> rich = {1, 2, 3, 4, 6, 8, 12, 24, 30, 36};
        std::int64_t bytes = unit * d.of(rich);
        if (simple && d.one_in(2)) bytes *= d.between(1, 300);
        if (large) bytes = 12 * d.between(80000, 130000);
        if (bytes > limit) bytes = unit;
        share_out(d, send, bytes / a, d.one_in(2) ? 12 : 0);
        share_out(d, receive, bytes / b, d.one_in(3) ? send.partitions : d.one_in(2) ? 8 : 0);
        lay_out(p, send);
        lay_out(p, receive);
        if (usable(p, send, true) && usable(p, receive, false)) return;
    }
}

void draw_mismatch(program &p, dice &d, pair &q) {
    end &changed = q.ends[d.below(2)];
    const int type = changed.type;
    const end was = changed;
    if (p.types[program::at(type)].size() == 0) return;
    changed.count = changed.count > 1 && d.one_in(2) ? changed.count - 1 : changed.count + d.between(1, 2);
    lay_out(p, changed);
    q.truncated = usable(p, changed, &changed == &q.ends[0]);
    if (!q.truncated) changed = was;
}

}  // namespace

void draw_communicators(program &p, dice &d) {
    communicator world;
    for (int rank = 0; rank < p.where.ranks; ++rank) world.members.push_back(rank);
    p.comms.push_back(world);
    for (int rank = 0; rank < p.where.ranks; ++rank) p.comms.push_back({{rank}, {}, false});
    const int calls = d.below(6);
    for (int n = 0; n < calls; ++n) draw_communicator(p, d);
}

void draw_pairs(program &p, dice &d) {
    sample bytes;  // the type of index 0
    bytes.map = {0};
    bytes.text = "byte";
    keep(p, std::move(bytes));
    const int most = d.one_in(8) ? 30 : 10;
    const int pairs = d.between(1, most), tags = d.between(1, 3), exported = d.below(3);
    for (int n = 0; n < pairs; ++n) {
        pair q;
        q.comm = d.one_in(2) ? 0 : d.below(static_cast<int>(p.comms.size()));
        // Tags repeat, so that pairs differ by the order of their init calls alone.
        q.tag = d.below(tags);
        if (q.tag == 2) q.tag = 32767;
        const communicator &comm = p.comms[program::at(q.comm)];
        std::vector<int> all = comm.members;
        all.insert(all.end(), comm.remote.begin(), comm.remote.end());
        q.ends[0].rank = d.of(all);
        q.ends[1].rank = d.of(comm.peers_of(q.ends[0].rank));
        if (!p.pairs.empty() && d.one_in(3)) {  // like another, maybe on another communicator
            const pair &other = d.of(p.pairs);
            const std::vector<int> &peers = comm.peers_of(other.ends[0].rank);
            if (comm.has(other.ends[0].rank) &&
                std::find(peers.begin(), peers.end(), other.ends[1].rank) != peers.end()) {
                q.tag = other.tag;
                for (int side = 0; side < 2; ++side) q.ends[side].rank = other.ends[side].rank;
            }
        }
        q.epochs = d.between(1, 4);
        for (end &e : q.ends) {
            e.exported = d.below(3) < exported;
            e.contributors = e.exported && d.one_in(4) ? d.between(2, 3) : 1;
            e.type_freed_early = d.one_in(3);
        }
        draw_ends(p, d, q);
        // For kernels that run many.
        const std::int64_t size = q.ends[0].partitions * q.ends[0].count * p.types[program::at(q.ends[0].type)].size();
        if ((q.ends[0].exported || q.ends[1].exported) && size <= usual_limit && d.one_in(3))
            q.epochs += d.between(1, 6);
        if (!p.where.calls_only && d.one_in(10)) draw_mismatch(p, d, q);
        const int left_out = d.below(2);
        if (d.one_in(12)) {
            q.null_peer = true;
            q.truncated = false;
            q.ends[left_out].made = false;
        } else if (d.one_in(5)) {  // freed unstarted, and made by one side only or by both
            q.epochs = 0;
            q.truncated = false;
            q.ends[left_out].made = d.one_in(2);
        }
        p.pairs.push_back(q);
    }
    // Behind what one side alone makes another pair must come, or later programs would have to heed it.
    for (std::size_t n = 0; n < p.pairs.size(); ++n) {
        const pair one = p.pairs[n];
        if (one.null_peer || !one.alone()) continue;
        const bool followed = std::any_of(p.pairs.begin() + static_cast<std::ptrdiff_t>(n), p.pairs.end(),
                                          [&](const pair &q) { return q.epochs > 0 && of_one_kind(one, q); });
        if (followed) continue;
        pair q;
        q.comm = one.comm;
        q.tag = one.tag;
        for (int side = 0; side < 2; ++side) q.ends[side].rank = one.ends[side].rank;
        q.epochs = 1;
        draw_ends(p, d, q);
        p.pairs.push_back(q);
    }
}

void draw_messages(program &p, dice &d) {
    const int messages = d.one_in(2) ? 0 : d.between(1, 8);
    struct kind {
        int comm, to, source, tag;
        auto operator<=>(const kind &) const = default;
    };
    std::vector<kind> kinds;
    // What the receives of a rank on a communicator name: with two ways, one would take what the other waits for.
    const std::uint64_t ways = d.number();
    for (int n = 0; n < messages; ++n) {
        message m{};
        m.comm = d.one_in(2) ? 0 : d.below(static_cast<int>(p.comms.size()));
        const communicator &comm = p.comms[program::at(m.comm)];
        m.from = d.of(comm.members);
        m.to = d.of(comm.peers_of(m.from));
        m.tag = d.below(3);
        m.bytes = d.one_in(10) ? d.between(4, 20000) : d.between(4, 200);
        const auto way = ways >> (2 * ((m.comm + 5 * m.to) % 30));
        m.any_source = (way & 1) != 0;
        // Open MPI 4.1's MPI_Comm_create_group sends messages on the parent, with the tag that it is given.
        m.any_tag =
            (way & 2) != 0 && std::none_of(p.constructions.begin(), p.constructions.end(), [&](const construction &c) {
                return c.how == maker::create_group && c.parent == m.comm;
            });
        m.persistent_send = d.one_in(3);
        m.persistent_receive = d.one_in(3);
        const kind k{m.comm, m.to, m.any_source ? -1 : m.from, m.any_tag ? -1 : m.tag};
        m.kind = static_cast<int>(std::find(kinds.begin(), kinds.end(), k) - kinds.begin());
        if (program::at(m.kind) == kinds.size()) kinds.push_back(k);
        p.messages.push_back(m);
    }
    p.message_kinds = static_cast<int>(kinds.size());
}

}  // namespace random_test
