// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/matcher.h"

#include <algorithm>
#include <iterator>

namespace mpix {

// A new place at the end, unless the other side is ahead.
matcher::position matcher::place_for(lines &l, side which) {
    const side other = which == send ? receive : send;
    position &next = l.next[which];
    if (next == l.places.end()) {
        const position made = l.places.insert(l.places.end(), place{});
        if (l.next[other] == l.places.end()) l.next[other] = made;
        return made;
    }
    if (next->times == 1) return next++;
    --next->times;
    const position made = l.places.insert(next, *next);
    made->times = 1;
    return made;
}

void matcher::erase_place(lines &l, position at) {
    for (position &next : l.next)
        if (next == at) ++next;
    l.places.erase(at);
}

void matcher::erase(lines &l, position at) {
    for (const side which : {send, receive}) {
        if (at->slots[which].there()) l.where[which].erase(at->slots[which].number);
        if (at->slots[which].is == state::freed) --l.freed;
    }
    erase_place(l, at);
}

// The freed one in this place has never been.
void matcher::move_up(lines &l, position at, side which) {
    const side other = which == send ? receive : send;
    --l.freed;
    const auto take = [&](const slot &s) {
        at->slots[which] = s;
        if (s.there()) l.where[which][s.number] = at;
    };
    position behind = std::next(at);
    for (; behind != l.places.end() && behind->slots[other].is != state::absent; at = behind++)
        take(behind->slots[which]);
    if (behind == l.places.end()) {
        take({});
        --l.next[which];
        return;
    }
    // All that follow are of this side alone.
    take(behind->slots[which]);
    if (behind->times > 1)
        --behind->times;
    else
        erase_place(l, behind);
}

// Freed ones that nobody has been made for yet take no room.
void matcher::join_runs(lines &l, position at) {
    for (const position neighbour : {at == l.places.begin() ? l.places.end() : std::prev(at), std::next(at)}) {
        if (neighbour == l.places.end() || !neighbour->has(state::freed, state::absent)) continue;
        at->times += neighbour->times;
        for (position &next : l.next)
            if (next == neighbour) next = at;
        l.places.erase(neighbour);
    }
}

// What follows from what the requests of a place have become; and of all behind it.
void matcher::settle(lines &l, position from, bool to_the_end, change &c) {
    bool doubt = l.freed != 0 && std::any_of(l.places.begin(), from, [](const place &p) { return p.undecided(); });
    for (position at = from; at != l.places.end();) {
        const slot(&s)[2] = at->slots;
        if (at->has(state::started, state::freed)) {
            move_up(l, at, s[send].is == state::freed ? send : receive);
            to_the_end = true;
            continue;
        }
        if (at->both(state::freed)) {
            to_the_end |= l.in_doubt;
            erase(l, at++);
        } else if (at->both(state::started) && !doubt) {
            c.final.push_back({s[send].number, s[receive].number});
            erase(l, at++);
        } else {
            l.in_doubt |= at->both(state::started);
            doubt |= at->undecided();
            if (s[send].there() || s[receive].there()) c.places.push_back({s[send].number, s[receive].number});
            ++at;
        }
        if (!to_the_end) break;
    }
    if (to_the_end)
        l.in_doubt = l.in_doubt && std::any_of(l.places.begin(), l.places.end(),
                                               [](const place &p) { return p.both(state::started); });
}

std::pair<matcher::all_lines::iterator, matcher::position> matcher::find(const match_key &key, side which,
                                                                         std::uint64_t number) {
    const auto it = lines_.find(key);
    if (it == lines_.end()) return {it, {}};
    const auto found = it->second.where[which].find(number);
    if (found == it->second.where[which].end()) return {lines_.end(), {}};
    return {it, found->second};
}

void matcher::drop_if_empty(all_lines::iterator it) {
    if (it->second.places.empty()) lines_.erase(it);
}

matcher::change matcher::add(const match_key &key, side which, std::uint64_t number) {
    lines &l = lines_[key];
    const position at = place_for(l, which);
    at->slots[which] = {state::waiting, number, false};
    l.where[which][number] = at;
    change c;
    settle(l, at, false, c);
    return c;
}

matcher::change matcher::start(const match_key &key, side which, std::uint64_t number) {
    change c;
    const auto [it, at] = find(key, which, number);
    if (it == lines_.end()) return c;
    at->slots[which].is = state::started;
    settle(it->second, at, false, c);
    drop_if_empty(it);
    return c;
}

matcher::change matcher::free(const match_key &key, side which, std::uint64_t number) {
    change c;
    const auto [it, at] = find(key, which, number);
    if (it == lines_.end()) return c;
    lines &l = it->second;
    l.where[which].erase(number);
    at->slots[which] = {state::freed, 0, false};
    ++l.freed;
    if (at->slots[which == send ? receive : send].is == state::absent)
        join_runs(l, at);
    else
        settle(l, at, false, c);
    drop_if_empty(it);
    return c;
}

void matcher::remove(const match_key &key, side which, std::uint64_t number) {
    const auto [it, at] = find(key, which, number);
    if (it == lines_.end()) return;
    erase(it->second, at);
    drop_if_empty(it);
}

bool matcher::in_doubt(const match_key &key) const {
    const auto it = lines_.find(key);
    return it != lines_.end() && it->second.in_doubt;
}

matcher::change matcher::end_doubt(const match_key &key) {
    change c;
    const auto it = lines_.find(key);
    if (it == lines_.end()) return c;
    lines &l = it->second;
    for (place &p : l.places)
        if (p.undecided())
            for (slot &s : p.slots) s.passed = s.is == state::waiting;
    settle(l, l.places.begin(), true, c);
    drop_if_empty(it);
    return c;
}

void matcher::remove_source(int source) {
    std::erase_if(lines_, [source](const auto &entry) { return entry.first.source == source; });
}

matcher::pair matcher::first(const match_key &key) const {
    const auto it = lines_.find(key);
    if (it == lines_.end()) return {};
    const slot(&s)[2] = it->second.places.front().slots;
    return {s[send].number, s[receive].number};
}

}  // namespace mpix
