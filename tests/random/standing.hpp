// SPDX-License-Identifier: BSD-3-Clause
//
// How far everything has come while steps are drawn, and what may be done then.
#ifndef MPIX_TESTS_RANDOM_STANDING_HPP
#define MPIX_TESTS_RANDOM_STANDING_HPP

#include <algorithm>
#include <vector>

#include "tests/random/program.hpp"

namespace random_test {

// How far a request has come in the order of the steps.
struct life {
    bool made = false, freed = false, active = false;
    int started = 0;            // epochs
    std::vector<char> lacking;  // of an active send: partitions that nobody has readied yet
    bool in_kernel = false, in_threads = false;
    bool in_epochs = false;  // a kernel runs its epochs
    bool waited = false;     // a kernel has ended the running epoch
    bool looked = false;     // the host has, maybe: a rank that is ahead in the order may have done its part

    bool complete() const { return std::find(lacking.begin(), lacking.end(), 1) == lacking.end(); }
};

// One side of one of the user's own messages.
struct own_life {
    bool posted = false, complete = false;
};

// What runs beside a rank.
struct beside {
    bool kernel = false, threads = false;
    std::vector<part> awaited;            // by the kernel
    std::vector<activation> activations;  // that the kernel runs, all an epoch at a time
    int epoch = 0;                        // of theirs, in which it is: 0 is the first
    bool over = false;                    // it needs nothing any more
};

class standing {
protected:
    explicit standing(const program &p);

    life &of(int request) { return lives_[program::at(request)]; }
    const life &of(int request) const { return lives_[program::at(request)]; }
    const pair &with(int request) const { return program_.pairs[program::at(pair_of(request))]; }
    beside &by(int rank) { return beside_[program::at(rank)]; }

    bool over(int request) const;
    bool quiet() const;
    bool nothing_beside() const;
    // Whether partition j of an active receive has been readied by its sender, in the order of the steps.
    bool readied(int receive, int j) const;
    // Whether a call may wait for it now.
    bool completable(int request) const;
    // Requests with equal communicator, tag and ranks meet in the order in which they are made.
    bool first_of_its_kind(int request) const;
    bool behind_lone(int request) const;
    // Behind some that one side alone makes, and frees unstarted, others are started after all such are gone; and in
    // order, for what may be waited for before the earliest is started is not followed here.
    bool may_start(int request) const;
    // Whether the host keeps off a request, whose epochs a kernel runs. From all of the rank's in GPU memory: copies, too,
    // may wait for a kernel, which here waits for what others have yet to do.
    bool busy(int request) const;
    void begin_epochs(int rank, const std::vector<activation> &all);
    // Kernels go on as far as others let them; with `hosts_help`, as if the hosts did all that they may.
    void run_kernels(bool hosts_help = false);
    // For which requests kernels would wait for ever if these were begun.
    std::vector<int> stuck_with(int rank, const std::vector<activation> &all) const;
    std::vector<part> lacking(int request) const;
    std::vector<int> active_on(int rank) const;
    // The k-th posted receive of a kind may be waited for when k messages of that kind are under way.
    bool receive_completable(int n) const;
    // A long message may wait for its receive, and which one that is is open while there are others.
    bool send_completable(int n) const;

    std::vector<life> lives_;
    std::vector<own_life> sent_, received_;
    std::vector<int> posted_order_;  // of the user's own receives
    std::vector<beside> beside_;

private:
    // Whether the kernel ends the epoch of this activation that it is in, and cannot yet.
    bool missing(const beside &b, const activation &one, bool hosts_help) const;
    bool host_may_go_on(int request) const;
    // How many of that kind of the user's own messages have come so far.
    int count(const std::vector<own_life> &lives, int kind, bool own_life::*what) const;

    const program &program_;
};

}  // namespace random_test

#endif  // MPIX_TESTS_RANDOM_STANDING_HPP
