// SPDX-License-Identifier: BSD-3-Clause
//
// Every device call, made by every kind of group.
#include "tests/device/harness.hpp"

using namespace device_test;

namespace {

enum class mark { forum, forum_swapped, forum_range, forum_list, group, group_range, contribute, share, count };
enum class ask { forum, poll, wait, wait_default, count };

constexpr const char *mark_names[] = {"MPI_Pready(int, MPIX_Prequest)",
                                      "MPI_Pready(MPIX_Prequest, int)",
                                      "MPI_Pready_range",
                                      "MPI_Pready_list",
                                      "mpix::pready",
                                      "mpix::pready_range",
                                      "mpix::pready_contribute",
                                      "mpix::pready_contribute of shares"};
constexpr const char *ask_names[] = {"MPI_Parrived", "mpix::parrived", "mpix::wait_arrived with a timeout",
                                     "mpix::wait_arrived"};

constexpr int most_shares = 64;  // partitions in one call of MPI_Pready_list here

struct body {
    port p;
    scope by;
    mark marking;
    ask asking;

    // The MPI Forum's calls are for one thread: the group's writes come before, by its own barrier.
    template <class Group>
    DEVICE_FN void ready(const Group &group, int low, int high) const {
        if (marking == mark::group_range) {
            p.expect(low, MPI_SUCCESS, mpix::pready_range(group, low, high, p.send));
            return;
        }
        if (marking == mark::group) {
            for (int i = high; i >= low; --i) p.expect(i, MPI_SUCCESS, mpix::pready(group, i, p.send));
            return;
        }
        group.sync();
        if (group.thread_rank() != 0) return;
        if (marking == mark::forum)
            for (int i = low; i <= high; ++i) p.expect(i, MPI_SUCCESS, MPI_Pready(i, p.send));
        if (marking == mark::forum_swapped)
            for (int i = low; i <= high; ++i) p.expect(i, MPI_SUCCESS, MPI_Pready(p.send, i));
        if (marking == mark::forum_range) p.expect(low, MPI_SUCCESS, MPI_Pready_range(low, high, p.send));
        if (marking == mark::forum_list) {
            int list[most_shares];
            for (int i = low; i <= high; ++i) list[i - low] = high - (i - low);
            p.expect(low, MPI_SUCCESS, MPI_Pready_list(high - low + 1, list, p.send));
        }
    }

    template <class Group>
    DEVICE_FN void contribute(const Group &group, int index, int groups) const {
        // Every group writes its slice of every partition.
        const std::uint64_t bytes = p.send_bytes();
        const std::uint64_t from = bytes * static_cast<std::uint64_t>(index) / static_cast<std::uint64_t>(groups);
        const std::uint64_t to = bytes * static_cast<std::uint64_t>(index + 1) / static_cast<std::uint64_t>(groups);
        for (int i = 0; i < p.sends; ++i) {
            p.fill(group, static_cast<std::uint64_t>(i) * bytes + from, to - from);
            p.expect(i, MPI_SUCCESS,
                     marking == mark::contribute ? mpix::pready_contribute(group, i, p.send)
                                                 : mpix::pready_contribute(group, i, p.send, from, to - from));
        }
    }

    // Polls as a bound, for all members of the group must agree when to give up.
    static constexpr long most_polls = 20'000'000;

    template <class Group>
    DEVICE_FN bool arrived(const Group &group, int j) const {
        if (asking == ask::wait || asking == ask::wait_default) {
            const int code = asking == ask::wait ? mpix::wait_arrived(group, p.receive, j, patience_ns)
                                                 : mpix::wait_arrived(group, p.receive, j);
            p.expect(j, MPI_SUCCESS, code);
            return code == MPI_SUCCESS;
        }
        if (asking == ask::poll) {
            for (long poll = 0; poll < most_polls; ++poll) {
                if (mpix::parrived(group, p.receive, j)) return true;
                poll_pause();
            }
            complain(p.errors, wrong::timeout, p.epoch, j, 0, 1, 0);
            return false;
        }
        int flag = 0;
        if (group.thread_rank() == 0) {
            for (long poll = 0; !flag && poll < most_polls; ++poll) {
                p.expect(j, MPI_SUCCESS, MPI_Parrived(p.receive, j, &flag));
                if (!flag) poll_pause();
            }
            if (!flag) complain(p.errors, wrong::timeout, p.epoch, j, 0, 1, 0);
        }
        group.sync();
        return true;
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int block_index, int blocks) const {
        as_group(block, by, [&](const auto &group, int index, int groups) {
            const int mine = block_index * groups + index, all = blocks * groups;
            if (marking == mark::contribute || marking == mark::share) {
                contribute(group, mine, all);
            } else {
                const int low = p.sends * mine / all, high = p.sends * (mine + 1) / all - 1;
                for (int i = low; i <= high; ++i) p.fill(group, i);
                if (low <= high) ready(group, low, high);
            }
            for (int j = p.receives * mine / all; j < p.receives * (mine + 1) / all; ++j)
                if (arrived(group, j)) {
                    p.verify(group, j);
                    // It stays so, and may be asked again by anybody.
                    int flag = 0;
                    if (group.thread_rank() == 0) p.expect(j, MPI_SUCCESS, MPI_Parrived(p.receive, j, &flag));
                    if (group.thread_rank() == 0 && !flag) complain(p.errors, wrong::answer, p.epoch, j, 0, 1, 0);
                }
        });
    }
};

struct layout {
    scope by;
    int blocks, threads, groups;  // in all
};

// Each partition is waited for by one group.
void all_calls(session &s, const layout &l, bool sole) {
    const shape many{.sends = 24, .receives = 24, .bytes = 24 * 1000, .sole_waiter = sole};
    const shape few{.sends = 3, .receives = 24, .bytes = 24 * 1000, .contributors = l.groups, .sole_waiter = sole};
    exchange plain(s, many, 1), shared(s, few, 2);
    for (int m = 0; m < static_cast<int>(mark::count); ++m)
        for (int a = 0; a < static_cast<int>(ask::count); ++a) {
            exchange &x = static_cast<mark>(m) >= mark::contribute ? shared : plain;
            s.what = std::string(mark_names[m]) + " and " + ask_names[a] + " by " + scope_name(l.by) + ", " +
                     std::to_string(l.blocks) + " x " + std::to_string(l.threads) + (sole ? ", each alone" : "");
            x.start();
            s.run(l.blocks, l.threads, body{x.view(), l.by, static_cast<mark>(m), static_cast<ask>(a)});
            x.wait();
            x.verify_received(2, 32);
        }
    plain.check_guards();
    shared.check_guards();
}

// ---- wait_arrived and its timeout -----------------------------------------------------------------------

struct ready_some {
    port p;
    int first, last;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int i = first; i <= last; ++i) {
            p.fill(block, i);
            p.expect(i, MPI_SUCCESS, mpix::pready(block, i, p.send));
        }
    }
};

struct ask_absent {
    port p;
    int absent;
    std::uint64_t timeout_ns;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int j = 0; j < p.receives; ++j) {
            if (j == absent) continue;
            p.expect(j, MPI_SUCCESS, mpix::wait_arrived(block, p.receive, j, patience_ns));
            p.verify(block, j);
        }
        const int code = mpix::wait_arrived(block, p.receive, absent, timeout_ns);
        if (code != MPI_ERR_PENDING)
            complain(p.errors, wrong::code, p.epoch, absent, 0, MPI_ERR_PENDING, static_cast<std::uint64_t>(code));
        if (mpix::parrived(block, p.receive, absent)) complain(p.errors, wrong::answer, p.epoch, absent, 0, 0, 1);
    }
};

void timeouts(session &s) {
    exchange x(s, {.sends = 3, .receives = 3, .bytes = 3 * 1000}, 3);
    const int threads = executor::is_gpu ? 32 : 4;
    for (const std::uint64_t timeout_ns : {std::uint64_t{0}, std::uint64_t{3'000'000}}) {
        s.what = "timeout of " + std::to_string(timeout_ns) + " ns";
        x.start();
        s.run(1, threads, ready_some{x.view(), 0, 1});
        s.run(1, threads, ask_absent{x.view(), 2, timeout_ns});
        s.meet();
        s.run(1, threads, ready_some{x.view(), 2, 2});
        s.run(1, threads, transfer{x.view(), scope::block, false, true});
        x.wait();
        x.verify_received(1, threads);
    }
}

}  // namespace

int main(int argc, char **argv) {
    session s(argc, argv, "device calls");
    std::vector<layout> layouts;
    if (executor::is_gpu)
        layouts = {{scope::thread, 1, 1, 1},        {scope::thread, 2, 64, 128}, {scope::tile4, 1, 64, 16},
                   {scope::partial_warp, 1, 64, 4}, {scope::warp, 2, 96, 6},     {scope::block, 1, 1024, 1},
                   {scope::block, 7, 32, 7},        {scope::block, 24, 100, 24}};
    else
        layouts = {
            {scope::thread, 1, 1, 1}, {scope::thread, 2, 3, 6}, {scope::block, 1, 4, 1}, {scope::block, 3, 4, 3}};
    if (!executor::is_gpu && !s.quick) layouts.push_back({scope::block, 1, 32, 1});
    for (const layout &l : layouts)
        for (const bool sole : {false, true}) all_calls(s, l, sole);
    timeouts(s);
    return s.finish();
}
