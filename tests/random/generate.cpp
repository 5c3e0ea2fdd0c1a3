// SPDX-License-Identifier: BSD-3-Clause
//
// Draws the steps: again and again one that can be done now, at random, until nothing is left to do.
#include <algorithm>

#include "tests/random/shapes.hpp"
#include "tests/random/standing.hpp"

namespace random_test {
namespace {

class drawing : standing {
public:
    drawing(program &p, dice &d) : standing(p), p_(p), d_(d) {
        comm_made_.assign(p.comms.size(), false);
        comm_freed_.assign(p.comms.size(), false);
        for (int n = 0; n <= p.where.ranks; ++n) comm_made_[program::at(n)] = true;
    }

    void run() {
        while (!finished()) {
            const int what = d_.below(100);
            if (what < 4)
                construct();
            else if (what < 5)
                checkpoint();
            else if (what < 7)
                free_comm();
            else if (what < 12)
                own_message();
            else if (what < 16)
                join(d_.below(p_.where.ranks));
            else if (what < 18)
                launch_epochs(d_.below(p_.where.ranks));
            else
                advance(d_.below(static_cast<int>(lives_.size())));
            run_kernels();
        }
        for (int rank = 0; rank < p_.where.ranks; ++rank) join(rank);
        for (int rank = 0; rank < p_.where.ranks; ++rank) drain(rank);
        for (std::size_t comm = 0; comm < comm_made_.size(); ++comm)
            if (free_at_end(comm)) collective(action::free_comm, static_cast<int>(comm));
    }

private:
    bool free_at_end(std::size_t comm) const {
        return comm > program::at(p_.where.ranks) && comm_made_[comm] && !comm_freed_[comm];
    }

    step &add(action what, int rank) {
        p_.steps.push_back({});
        p_.steps.back().what = what;
        p_.steps.back().rank = rank;
        p_.steps.back().order = d_.number();
        return p_.steps.back();
    }
    void collective(action what, int index) { add(what, -1).index = index; }

    bool finished() {
        for (int request = 0; request < static_cast<int>(lives_.size()); ++request)
            if (!over(request)) return false;
        return std::all_of(received_.begin(), received_.end(), [](const own_life &l) { return l.complete; }) &&
               constructed_ == p_.constructions.size();
    }

    // ---- communicators --------------------------------------------------------------------------------------

    bool may_wait_for_all() const { return !p_.where.calls_only || quiet(); }

    void construct() {
        if (constructed_ == p_.constructions.size() || !may_wait_for_all()) return;
        const construction &c = p_.constructions[constructed_];
        collective(action::construct, static_cast<int>(constructed_++));
        for (const int comm : c.made) comm_made_[program::at(comm)] = true;
    }

    // As soon as nothing more is made on it: what has been made stays usable.
    void free_comm() {
        const int comm = d_.below(static_cast<int>(p_.comms.size()));
        if (!free_at_end(program::at(comm)) || !may_wait_for_all()) return;
        for (int request = 0; request < static_cast<int>(lives_.size()); ++request) {
            if (with(request).comm != comm || !p_.end_of(request).made) continue;
            const life &l = of(request);
            // An error needs the communicator's handler.
            if (!l.made || (with(request).truncated && (l.active || l.started < with(request).epochs))) return;
        }
        for (std::size_t n = 0; n < p_.messages.size(); ++n)
            if (p_.messages[n].comm == comm && !(received_[n].complete && sent_[n].complete)) return;
        for (std::size_t n = constructed_; n < p_.constructions.size(); ++n)
            if (p_.constructions[n].parent == comm) return;
        comm_freed_[program::at(comm)] = true;
        collective(action::free_comm, comm);
    }

    void checkpoint() {
        if (p_.where.calls_only) return;
        for (int rank = 0; rank < p_.where.ranks; ++rank) join(rank);
        if (!nothing_beside()) return;
        step &s = add(action::checkpoint, -1);
        // What each receive has to say: by partition, whether it is there.
        for (int receive = 1; receive < static_cast<int>(lives_.size()); receive += 2) {
            if (!of(receive).active || with(receive).truncated) continue;
            for (int j = 0; j < p_.end_of(receive).partitions; ++j) {
                const bool there = readied(receive, j);
                if (there || p_.bytes(receive) > 0) s.parts.push_back({receive, j, 0, 1, there});
            }
        }
    }

    // ---- the user's own messages ------------------------------------------------------------------------------

    void own_message() {
        if (p_.messages.empty()) return;
        const int n = d_.below(static_cast<int>(p_.messages.size()));
        const message &m = p_.messages[program::at(n)];
        if (!comm_made_[program::at(m.comm)]) return;
        if (d_.one_in(2) && !sent_[program::at(n)].posted) {
            sent_[program::at(n)].posted = true;
            add(action::post_send, m.from).index = n;
        } else if (!received_[program::at(n)].posted) {
            received_[program::at(n)].posted = true;
            add(action::post_receive, m.to).index = n;
            posted_order_.push_back(n);
        } else {
            complete(m.to, -1);
        }
    }
    // ---- requests ----------------------------------------------------------------------------------------------

    void advance(int request) {
        life &l = of(request);
        const pair &q = with(request);
        const end &e = p_.end_of(request);
        if (over(request) || busy(request) || !comm_made_[program::at(q.comm)]) return;
        // CUDA's calls that give and take memory may wait for a kernel, and meanwhile keep mpix's engine from copying
        // what the kernel of another rank waits for.
        const bool memory_is_busy = p_.where.gpu && e.exported && by(e.rank).kernel && !by(e.rank).awaited.empty();
        if (!l.made) {
            if (!first_of_its_kind(request) || memory_is_busy) return;
            l.made = true;
            add(action::make, e.rank).requests = {request};
        } else if (!l.active && l.started == q.epochs) {
            if (l.in_kernel || l.in_threads || memory_is_busy) return;
            l.freed = true;
            add(action::free, e.rank).requests = {request};
        } else if (!l.active) {
            start(request);
        } else if (d_.one_in(6)) {
            look(e.rank);
        } else if (is_send(request) && !l.complete()) {
            ready(request);
        } else if (!is_send(request) && d_.one_in(2)) {
            arrived(request);
        } else if (d_.one_in(8)) {
            prepare(request);
        } else if (completable(request)) {
            complete(e.rank, request);
        }
    }

    void start(int request) {
        const int rank = p_.end_of(request).rank;
        std::vector<int> all;
        for (int other = 0; other < static_cast<int>(lives_.size()); ++other) {
            const life &l = of(other);
            if (p_.end_of(other).rank == rank && p_.end_of(other).made && l.made && !l.freed && !l.active &&
                !busy(other) && !l.in_kernel && !l.in_threads && l.started < with(other).epochs && may_start(other) &&
                (other == request || d_.one_in(2)))
                all.push_back(other);
        }
        if (std::find(all.begin(), all.end(), request) == all.end()) return;
        d_.shuffle(all);
        for (const int one : all) {
            life &l = of(one);
            l.active = true;
            ++l.started;
            if (is_send(one)) l.lacking.assign(program::at(p_.end_of(one).partitions), 1);
        }
        step &s = add(action::start, rank);
        s.requests = all;
        s.together = d_.one_in(2);
    }

    void take(const std::vector<part> &parts) {
        for (const part &one : parts) of(one.request).lacking[program::at(one.partition)] = 0;
    }

    void ready(int request) {
        const int rank = p_.end_of(request).rank;
        const int way = d_.below(8);
        if (way < 2 && !by(rank).kernel && p_.end_of(request).exported) {
            launch(rank);
            return;
        }
        if (way == 2 && !by(rank).threads) {
            ready_beside(rank);
            return;
        }
        std::vector<part> parts = lacking(request);
        if (way == 3) {  // a run of neighbours
            const std::size_t first = program::at(d_.below(static_cast<int>(parts.size())));
            std::size_t end = first + 1;
            while (end < parts.size() && parts[end].partition == parts[end - 1].partition + 1 && !d_.one_in(8)) ++end;
            parts = {parts.begin() + static_cast<std::ptrdiff_t>(first),
                     parts.begin() + static_cast<std::ptrdiff_t>(end)};
        } else {
            d_.shuffle(parts);
            if (d_.one_in(2)) parts.resize(1 + program::at(d_.below(static_cast<int>(parts.size()))));
        }
        take(parts);
        step &s = add(action::ready, rank);
        s.parts = parts;
        s.form = way == 3 ? ready_form::range : way < 6 ? ready_form::list : ready_form::single;
    }

    // A choice of what the sends of a rank lack.
    std::vector<part> choose(int rank, bool exported) {
        std::vector<part> out;
        for (int send = 0; send < static_cast<int>(lives_.size()); send += 2) {
            const end &e = p_.end_of(send);
            if (e.rank != rank || (exported && !e.exported)) continue;
            for (const part &one : lacking(send))
                if (!d_.one_in(3)) out.push_back(one);
        }
        d_.shuffle(out);
        return out;
    }

    void ready_beside(int rank) {
        step s;
        s.parts = choose(rank, false);
        if (s.parts.empty()) return;
        take(s.parts);
        for (const part &one : s.parts) of(one.request).in_threads = true;
        by(rank).threads = true;
        step &out = add(action::ready_beside, rank);
        out.parts = s.parts;
        out.threads = d_.between(1, 3);
    }

    void launch(int rank) {
        const std::vector<part> sends = choose(rank, true);
        std::vector<part> parts;
        for (const part &one : sends) {
            of(one.request).in_kernel = true;
            p_.slice(one, parts);
        }
        d_.shuffle(parts);
        take(sends);
        beside &b = by(rank);
        b.awaited.clear();
        // Copies from and to a GPU, and cudaFree, wait for its kernel; so that may not wait for later steps, nor for a
        // thread that has yet to fill what it marks.
        const bool threads = std::any_of(beside_.begin(), beside_.end(), [](const beside &x) { return x.threads; });
        for (int receive = 1; receive < static_cast<int>(lives_.size()); receive += 2) {
            const end &e = p_.end_of(receive);
            life &l = of(receive);
            // The sender has started too: so there are steps that ready what is missing, without waiting for us.
            if (p_.where.calls_only || e.rank != rank || !e.exported || !l.active || with(receive).truncated ||
                (!with(receive).null_peer && of(partner_of(receive)).started < l.started))
                continue;
            for (int j = 0; j < e.partitions; ++j)
                if (d_.one_in(2) && (readied(receive, j) || !busy(partner_of(receive))) &&
                    (!p_.where.gpu || (!threads && readied(receive, j)))) {
                    b.awaited.push_back({receive, j});
                    l.in_kernel = true;
                }
        }
        d_.shuffle(b.awaited);
        parts.insert(parts.end(), b.awaited.begin(), b.awaited.end());
        if (parts.empty()) return;
        b.kernel = true;
        add_kernel(action::launch, rank, parts);
    }

    // A kernel, or a stream, for requests that are active on a rank, and for some that are started now.
    void launch_epochs(int rank) {
        // Where nothing but calls makes progress, the host may not wait for a GPU's kernel that waits for others.
        if (by(rank).kernel || (p_.where.gpu && p_.where.calls_only)) return;
        for (int request = 0; request < static_cast<int>(lives_.size()); ++request)
            if (p_.end_of(request).rank == rank && p_.end_of(request).exported && d_.one_in(4)) start(request);
        if (p_.where.gpu) join(rank);  // threads, which copy
        std::vector<activation> all;
        const int most = d_.between(1, 6);
        for (const int request : active_on(rank)) {
            if (!p_.end_of(request).exported || with(request).truncated || of(request).in_threads ||
                of(request).looked || d_.one_in(6))
                continue;
            const int wanted = d_.one_in(3) ? d_.between(1, most) : most;
            const bool begins = of(request).waited;
            const int there = with(request).epochs - of(request).started + !begins;
            if (there == 0) continue;
            activation one{request, begins, std::min(wanted, there), d_.one_in(2), {}};
            if (is_send(request) && !one.waits && d_.one_in(2))
                for (int i = 0; i < p_.end_of(request).partitions; ++i)
                    if (d_.one_in(2)) one.left.push_back(i);
            all.push_back(one);
        }
        for (std::vector<int> stuck; !(stuck = stuck_with(rank, all)).empty();)
            if (std::erase_if(all, [&](const activation &one) {
                    return std::find(stuck.begin(), stuck.end(), one.request) != stuck.end();
                }) == 0)
                return;
        if (all.empty()) return;
        d_.shuffle(all);
        const bool by_stream = d_.one_in(2);
        std::vector<part> parts;
        for (const activation &one : all)
            for (const part &missing : lacking(one.request)) {
                if (one.epochs == 1 && std::find(one.left.begin(), one.left.end(), missing.partition) != one.left.end())
                    continue;
                if (by_stream)
                    parts.push_back(missing);
                else
                    p_.slice(missing, parts);
            }
        d_.shuffle(parts);
        begin_epochs(rank, all);
        step &s = add_kernel(action::launch_epochs, rank, parts);
        s.activations = all;
        s.by_stream = by_stream;
    }

    step &add_kernel(action what, int rank, const std::vector<part> &parts) {
        step &s = add(what, rank);
        s.parts = parts;
        s.blocks = d_.between(1, 3);
        s.threads = d_.between(1, 3);
        s.whole_blocks = d_.one_in(2);
        return s;
    }

    // If what it waits for is under way.
    void join(int rank) {
        beside &b = by(rank);
        if (b.threads) {
            b.threads = false;
            for (int request = 0; request < static_cast<int>(lives_.size()); ++request)
                if (p_.end_of(request).rank == rank) of(request).in_threads = false;
            add(action::join_threads, rank);
        }
        const auto there = [&](const part &one) {
            return !of(one.request).active || readied(one.request, one.partition);
        };
        if (!b.kernel || !b.over || !std::all_of(b.awaited.begin(), b.awaited.end(), there)) return;
        b.kernel = false;
        for (const activation &one : b.activations) of(one.request).waited = one.waits;
        b.activations.clear();
        b.awaited.clear();
        for (int request = 0; request < static_cast<int>(lives_.size()); ++request)
            if (p_.end_of(request).rank == rank) of(request).in_kernel = of(request).in_epochs = false;
        add(action::join_kernel, rank);
    }

    void arrived(int receive) {
        std::vector<part> parts;
        const bool must = d_.one_in(2);
        for (int j = 0; j < p_.end_of(receive).partitions; ++j)
            if (d_.one_in(2) && (!must || (readied(receive, j) && !with(receive).truncated)))
                parts.push_back({receive, j});
        if (parts.empty()) return;
        d_.shuffle(parts);
        step &s = add(action::arrived, p_.end_of(receive).rank);
        s.parts = parts;
        s.must = must;
    }

    void prepare(int request) {
        const pair &q = with(request);
        const life &theirs = of(partner_of(request));
        // A receive has met its send when that is made, or, behind some that one side alone made, started.
        const bool met =
            (theirs.made && !is_send(request) && !behind_lone(request)) || theirs.started >= of(request).started;
        if (!q.null_peer && !met) return;
        step &s = add(action::prepare, p_.end_of(request).rank);
        s.requests = {request};
    }

    // ---- completion ------------------------------------------------------------------------------------------

    void look(int rank) {
        std::vector<int> some, unready;
        for (const int request : active_on(rank)) {
            if (d_.one_in(2)) some.push_back(request);
            if (is_send(request) && !of(request).complete()) unready.push_back(request);
        }
        const bool negative = !unready.empty() && d_.one_in(2);
        if (negative) some = unready;
        if (some.empty()) return;
        for (const int request : some) of(request).looked |= !is_send(request) || of(request).complete();
        step &s = add(negative ? action::unready : action::look, rank);
        s.requests = some;
        const completion calls[] = {completion::test, completion::get_status, completion::testall, completion::testany,
                                    completion::testsome};
        s.call = calls[d_.below(5)];
        s.ignore_status = d_.one_in(3);
    }

    // Some of what is completable on a rank, and `must`.
    void complete(int rank, int must) {
        step s;
        for (const int request : active_on(rank))
            if (request == must || (completable(request) && d_.one_in(2))) s.requests.push_back(request);
        for (int n = 0; n < static_cast<int>(p_.messages.size()); ++n) {
            if (p_.messages[program::at(n)].from == rank && send_completable(n) && d_.one_in(2)) s.sends.push_back(n);
            if (p_.messages[program::at(n)].to == rank && receive_completable(n) && d_.one_in(2))
                s.receives.push_back(n);
        }
        finish(rank, s);
    }
    void drain(int rank) {
        step s;
        for (int n = 0; n < static_cast<int>(p_.messages.size()); ++n)
            if (p_.messages[program::at(n)].from == rank && !sent_[program::at(n)].complete) s.sends.push_back(n);
        finish(rank, s);
    }
    void finish(int rank, step &chosen) {
        if (chosen.requests.empty() && chosen.sends.empty() && chosen.receives.empty()) return;
        for (const int request : chosen.requests) of(request).active = of(request).waited = of(request).looked = false;
        for (const int n : chosen.sends) sent_[program::at(n)].complete = true;
        for (const int n : chosen.receives) received_[program::at(n)].complete = true;
        for (int request = 0; request < static_cast<int>(lives_.size()); ++request) {
            const life &l = of(request);
            const bool chosen_now =
                std::find(chosen.requests.begin(), chosen.requests.end(), request) != chosen.requests.end();
            if (p_.end_of(request).rank == rank && l.made && !l.freed && !l.active && !chosen_now && d_.one_in(3))
                chosen.idle.push_back(request);
        }
        step &s = add(action::complete, rank);
        s.requests = chosen.requests;
        s.sends = chosen.sends;
        s.receives = chosen.receives;
        s.idle = chosen.idle;
        s.nulls = d_.one_in(2) ? d_.below(3) : 0;
        s.call = static_cast<completion>(d_.below(static_cast<int>(completion::count)));
        s.ignore_status = d_.one_in(4);
    }

    program &p_;
    dice &d_;
    std::vector<bool> comm_made_, comm_freed_;
    std::size_t constructed_ = 0;
};

}  // namespace

program draw(std::uint64_t seed, const setting &where) {
    program p;
    p.seed = seed;
    p.where = where;
    dice d(seed);
    draw_communicators(p, d);
    draw_pairs(p, d);
    draw_messages(p, d);
    drawing(p, d).run();
    return p;
}

}  // namespace random_test
