// SPDX-License-Identifier: BSD-3-Clause
#include "tests/random/standing.hpp"

namespace random_test {

standing::standing(const program &p)
    : lives_(2 * p.pairs.size()),
      sent_(p.messages.size()),
      received_(p.messages.size()),
      beside_(static_cast<std::size_t>(p.where.ranks)),
      program_(p) {}

bool standing::over(int request) const { return !program_.end_of(request).made || lives_[program::at(request)].freed; }

bool standing::quiet() const {
    return std::none_of(lives_.begin(), lives_.end(), [](const life &l) { return l.active; });
}

bool standing::nothing_beside() const {
    return std::none_of(beside_.begin(), beside_.end(), [](const beside &b) { return b.kernel || b.threads; });
}

bool standing::readied(int receive, int j) const {
    if (with(receive).null_peer) return true;
    const life &mine = lives_[program::at(receive)], &theirs = lives_[program::at(partner_of(receive))];
    if (theirs.started != mine.started) return theirs.started > mine.started;
    if (!theirs.active) return true;
    const bool empty = program_.bytes(receive) == 0 || with(receive).truncated;
    for (int i = 0; i < static_cast<int>(theirs.lacking.size()); ++i)
        if (theirs.lacking[program::at(i)] && (empty || program_.overlap(pair_of(receive), i, j))) return false;
    return true;
}

bool standing::completable(int request) const {
    const life &l = lives_[program::at(request)];
    if (!l.active) return false;
    if (!is_send(request)) {
        for (int j = 0; j < program_.end_of(request).partitions; ++j)
            if (!readied(request, j)) return false;
        return true;
    }
    return l.complete() && (with(request).null_peer || lives_[program::at(partner_of(request))].started >= l.started);
}

bool standing::first_of_its_kind(int request) const {
    for (int earlier = request - 2; earlier >= 0; earlier -= 2)
        if (of_one_kind(with(earlier), with(request)) && program_.end_of(earlier).made && !of(earlier).made)
            return false;
    return true;
}

bool standing::behind_lone(int request) const {
    for (int earlier = request - 2; earlier >= 0; earlier -= 2)
        if (of_one_kind(with(earlier), with(request)) && with(earlier).alone()) return true;
    return false;
}

bool standing::may_start(int request) const {
    if (of(request).started > 0) return true;
    bool others_started = true, all_gone = true;
    for (int earlier = request - 2; earlier >= 0; earlier -= 2) {
        const pair &a = with(earlier);
        if (!of_one_kind(a, with(request))) continue;
        if (a.epochs == 0 && program_.end_of(earlier).made && !of(earlier).freed) all_gone = false;
        if (a.epochs > 0 && of(earlier).started == 0) others_started = false;
    }
    return !behind_lone(request) || (others_started && all_gone);
}

// ---- epochs that kernels run ------------------------------------------------------------------------------------

bool standing::busy(int request) const {
    const beside &b = beside_[program::at(program_.end_of(request).rank)];
    return lives_[program::at(request)].in_epochs ||
           (program_.where.gpu && program_.end_of(request).exported && !b.activations.empty());
}

void standing::begin_epochs(int rank, const std::vector<activation> &all) {
    beside &b = by(rank);
    b.kernel = true;
    b.activations = all;
    b.epoch = 0;
    b.over = false;
    for (const activation &one : all) {
        life &l = of(one.request);
        l.in_epochs = true;
        l.started += one.begins;
        l.waited = false;
        if (!is_send(one.request)) continue;
        std::vector<char> left(l.lacking.size());
        if (one.begins) l.lacking.assign(l.lacking.size(), 1);
        for (const int partition : one.left)
            left[program::at(partition)] = one.epochs == 1 && l.lacking[program::at(partition)];
        l.lacking = left;
    }
}

bool standing::missing(const beside &b, const activation &one, bool hosts_help) const {
    const int more = one.epochs - b.epoch;
    if (more < 1 || (more == 1 && !one.waits) || completable(one.request)) return false;
    return !hosts_help || !host_may_go_on(partner_of(one.request));
}

bool standing::host_may_go_on(int request) const {
    const auto kept = [this](int other) {
        return busy(other) && !beside_[program::at(program_.end_of(other).rank)].over;
    };
    if (kept(request)) return false;
    // It is made after those of its kind before it. If one of them is alone, its first epoch also waits for them.
    const bool behind = of(request).started == 0 && behind_lone(request);
    for (int earlier = request - 2; earlier >= 0 && of(request).started == 0; earlier -= 2) {
        if (!of_one_kind(with(earlier), with(request)) || !program_.end_of(earlier).made) continue;
        const life &l = of(earlier);
        const bool awaited = with(earlier).epochs == 0 ? !l.freed : l.started == 0;
        if ((!l.made || (behind && awaited)) && kept(earlier)) return false;
    }
    // The next epoch is started after the other kernel has ended.
    const std::vector<part> &awaited = beside_[program::at(program_.end_of(request).rank)].awaited;
    return !of(request).in_kernel || std::none_of(awaited.begin(), awaited.end(), [&](const part &one) {
        return of(one.request).active && !readied(one.request, one.partition) && kept(partner_of(one.request));
    });
}

void standing::run_kernels(bool hosts_help) {
    for (bool moved = true; moved;) {
        moved = false;
        for (beside &b : beside_) {
            if (b.over || std::any_of(b.activations.begin(), b.activations.end(),
                                      [&](const activation &one) { return missing(b, one, hosts_help); }))
                continue;
            moved = true;
            ++b.epoch;
            b.over = true;
            for (const activation &one : b.activations) {
                if (one.epochs <= b.epoch) continue;
                b.over = false;
                life &l = of(one.request);
                ++l.started;
                if (is_send(one.request) && one.epochs == b.epoch + 1)
                    for (const int partition : one.left) l.lacking[program::at(partition)] = 1;
            }
        }
    }
}

std::vector<int> standing::stuck_with(int rank, const std::vector<activation> &all) const {
    standing then(*this);
    then.begin_epochs(rank, all);
    then.run_kernels(true);
    std::vector<int> out;
    for (const beside &b : then.beside_)
        for (const activation &one : b.activations)
            if (!b.over && then.missing(b, one, true)) out.push_back(one.request);
    return out;
}

std::vector<part> standing::lacking(int request) const {
    std::vector<part> out;
    const life &l = of(request);
    for (int i = 0; i < static_cast<int>(l.lacking.size()); ++i)
        if (l.active && !busy(request) && l.lacking[program::at(i)]) out.push_back({request, i});
    return out;
}

std::vector<int> standing::active_on(int rank) const {
    std::vector<int> out;
    for (int request = 0; request < static_cast<int>(lives_.size()); ++request)
        if (program_.end_of(request).rank == rank && lives_[program::at(request)].active && !busy(request))
            out.push_back(request);
    return out;
}

bool standing::receive_completable(int n) const {
    if (!received_[program::at(n)].posted || received_[program::at(n)].complete) return false;
    const int kind = program_.messages[program::at(n)].kind;
    int place = 0;
    for (const int other : posted_order_) {
        place += program_.messages[program::at(other)].kind == kind;
        if (other == n) break;
    }
    return count(sent_, kind, &own_life::posted) >= place;
}

bool standing::send_completable(int n) const {
    if (!sent_[program::at(n)].posted || sent_[program::at(n)].complete) return false;
    const int kind = program_.messages[program::at(n)].kind;
    int all = 0;
    for (const message &m : program_.messages) all += m.kind == kind;
    return count(received_, kind, &own_life::posted) == all;
}

int standing::count(const std::vector<own_life> &lives, int kind, bool own_life::*what) const {
    int n = 0;
    for (std::size_t m = 0; m < lives.size(); ++m) n += program_.messages[m].kind == kind && lives[m].*what;
    return n;
}

}  // namespace random_test
