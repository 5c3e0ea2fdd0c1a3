// SPDX-License-Identifier: BSD-3-Clause
#include "host/wireup/matcher.h"

#include <algorithm>

namespace mpix {
namespace {

matcher::side other_side(matcher::side which) { return which == matcher::send ? matcher::receive : matcher::send; }

}  // namespace

bool matcher::lines::undecided(std::size_t place) const {
    const entry s = at(send, place), r = at(receive, place);
    return (s.is == state::freed && r.is == state::waiting && !r.passed) ||
           (r.is == state::freed && s.is == state::waiting && !s.passed);
}

// A run of freed requests at this place counts as if they had never been made.
void matcher::lines::erase_freed(side which, std::size_t place) {
    auto &l = line[which];
    std::size_t end = place;
    while (end < l.size() && l[end].is == state::freed) ++end;
    l.erase(l.begin() + static_cast<std::ptrdiff_t>(place), l.begin() + static_cast<std::ptrdiff_t>(end));
    first_freed = std::min(first_freed, place);
    // Joined entries are allowed only behind the other line's end, so split those that are now opposite it.
    for (; place < std::min(l.size(), line[other_side(which)].size()); ++place) split(which, place);
}

// An entry opposite the other line stands for one freed request.
void matcher::lines::split(side which, std::size_t place) {
    auto &l = line[which];
    if (l[place].times == 1) return;
    entry rest = l[place];
    --rest.times;
    l[place].times = 1;
    l.insert(l.begin() + static_cast<std::ptrdiff_t>(place) + 1, rest);
}

void matcher::lines::erase_place(std::size_t place) {
    for (auto &l : line)
        if (place < l.size()) l.erase(l.begin() + static_cast<std::ptrdiff_t>(place));
    if (place < first_freed) --first_freed;
}

// Whether a place before this one is undecided.
bool matcher::lines::doubt_before(std::size_t place) {
    while (first_freed < place && at(send, first_freed).is != state::freed &&
           at(receive, first_freed).is != state::freed)
        ++first_freed;
    for (std::size_t one = first_freed; one < place; ++one)
        if (undecided(one)) return true;
    return false;
}

// Freed requests whose partners have not been made yet are joined into one entry.
void matcher::lines::join_last_freed(side which) {
    auto &l = line[which];
    while (l.size() >= 2 && l.size() - 2 >= line[other_side(which)].size() && l.back().is == state::freed &&
           l[l.size() - 2].is == state::freed) {
        l[l.size() - 2].times += l.back().times;
        l.pop_back();
    }
}

const matcher::change &matcher::none() {
    change_.places.clear();
    change_.final.clear();
    return change_;
}

// What follows from a change in this place; with `to_the_end`, in all later places, too.
const matcher::change &matcher::follow_up(all_lines::iterator it, std::size_t from, bool to_the_end) {
    change &c = change_;
    static_cast<void>(none());
    lines &l = it->second;
    bool doubt = l.doubt_before(from);
    if (doubt) {  // the pair may be set up, but is not final
        l.skipped = true;
        const entry s = l.at(send, from), r = l.at(receive, from);
        if (s.there() && r.there()) c.places.push_back({s.number, r.number});
    }
    const auto end = [&l] { return std::max(l.line[send].size(), l.line[receive].size()); };
    for (std::size_t place = from; place < end() && !doubt;) {
        const entry s = l.at(send, place), r = l.at(receive, place);
        const bool never_been =
            (s.is == state::started && r.is == state::freed) || (r.is == state::started && s.is == state::freed);
        if (never_been) {
            l.erase_freed(s.is == state::freed ? send : receive, place);
            to_the_end = true;
            continue;
        }
        if (s.is == r.is && (s.is == state::started || s.is == state::freed)) {
            if (s.is == state::started) c.final.push_back({s.number, r.number});
            l.erase_place(place);
            to_the_end |= s.is == state::freed && l.skipped;
            if (!to_the_end) break;
            continue;
        }
        if (s.there() || r.there()) c.places.push_back({s.there() ? s.number : 0, r.there() ? r.number : 0});
        doubt = l.undecided(place++);
        if (!to_the_end) break;
    }
    if (to_the_end) l.skipped = doubt;
    if (l.line[send].empty() && l.line[receive].empty()) spare_ = lines_.extract(it);
    return c;
}

std::pair<matcher::all_lines::iterator, std::size_t> matcher::find(const match_key &key, side which,
                                                                   std::uint64_t number) {
    const auto it = lines_.find(key);
    if (it == lines_.end()) return {it, 0};
    const auto &l = it->second.line[which];
    const auto found =
        std::lower_bound(l.begin(), l.end(), number, [](const entry &e, std::uint64_t n) { return e.number < n; });
    if (found == l.end() || found->number != number || found->is == state::freed) return {lines_.end(), 0};
    return {it, static_cast<std::size_t>(found - l.begin())};
}

const matcher::change &matcher::add(const match_key &key, side which, std::uint64_t number) {
    auto it = lines_.find(key);
    if (it == lines_.end() && spare_.empty()) it = lines_.try_emplace(key).first;
    if (it == lines_.end()) {
        spare_.key() = key;
        it = lines_.insert(std::move(spare_)).position;
        it->second.first_freed = 0;
        it->second.skipped = false;
    }
    auto &mine = it->second.line[which];
    const auto &theirs = it->second.line[other_side(which)];
    const std::size_t place = mine.size();
    if (place != 0 && mine.back().number >= number) return none();
    mine.push_back({number, state::waiting});
    if (place < theirs.size()) it->second.split(other_side(which), place);
    return follow_up(it, place, false);
}

const matcher::change &matcher::start(const match_key &key, side which, std::uint64_t number) {
    const auto [it, place] = find(key, which, number);
    if (it == lines_.end()) return none();
    it->second.line[which][place].is = state::started;
    return follow_up(it, place, false);
}

const matcher::change &matcher::free(const match_key &key, side which, std::uint64_t number) {
    const auto [it, place] = find(key, which, number);
    if (it == lines_.end()) return none();
    it->second.line[which][place].is = state::freed;
    it->second.first_freed = std::min(it->second.first_freed, place);
    it->second.join_last_freed(which);
    return follow_up(it, place, false);
}

const matcher::change &matcher::remove(const match_key &key, const pair &both) {
    const auto it = lines_.find(key);
    if (it == lines_.end()) return none();
    lines &l = it->second;
    std::size_t first = std::max(l.line[send].size(), l.line[receive].size());
    for (const side which : {send, receive}) {
        const auto [found, place] = find(key, which, which == send ? both.send : both.receive);
        if (found == lines_.end()) continue;
        l.line[which].erase(l.line[which].begin() + static_cast<std::ptrdiff_t>(place));
        first = std::min(first, place);
    }
    l.first_freed = std::min(l.first_freed, first);
    for (const side which : {send, receive})
        for (std::size_t place = first; place < std::min(l.line[send].size(), l.line[receive].size()); ++place)
            l.split(which, place);
    return follow_up(it, first, true);
}

void matcher::remove_source(int source) {
    std::erase_if(lines_, [source](const auto &one) { return one.first.source == source; });
}

bool matcher::in_doubt(const match_key &key) const {
    const auto it = lines_.find(key);
    if (it == lines_.end() || !it->second.skipped) return false;
    const lines &l = it->second;
    bool doubt = false;
    for (std::size_t place = 0; place < std::max(l.line[send].size(), l.line[receive].size()); ++place) {
        const state s = l.at(send, place).is, r = l.at(receive, place).is;
        const bool ripe = (s == state::started && (r == state::started || r == state::freed)) ||
                          (s == state::freed && r == state::started);
        if (doubt && ripe) return true;
        doubt |= l.undecided(place);
    }
    return false;
}

const matcher::change &matcher::end_doubt(const match_key &key) {
    const auto it = lines_.find(key);
    if (it == lines_.end()) return none();
    lines &l = it->second;
    for (std::size_t place = 0; place < std::min(l.line[send].size(), l.line[receive].size()); ++place)
        if (l.undecided(place))
            for (auto &line : l.line) line[place].passed = line[place].is == state::waiting;
    return follow_up(it, 0, true);
}

matcher::pair matcher::first(const match_key &key) const {
    const auto it = lines_.find(key);
    if (it == lines_.end()) return {};
    pair p;
    if (const entry s = it->second.at(send, 0); s.is != state::freed) p.send = s.number;
    if (const entry r = it->second.at(receive, 0); r.is != state::freed) p.receive = r.number;
    return p;
}

}  // namespace mpix
