// SPDX-License-Identifier: BSD-3-Clause
//
// Which send meets which receive, among those of one (communicator, source, tag).
//
// Sends and receives stand in two lines, in the order of their init calls, and those in one place are a pair (MPI-4.0,
// section 4.2.1). A request that is freed before it was started leaves its place empty. If its partner is freed as
// well, that place is gone. If its partner is started instead, the freed one is as if it had never been: those behind it
// in its line move up. A pair whose two requests have both been started is final, and leaves the lines; but as long as a
// request in front of it has lost its partner, and is neither freed nor started, it is in doubt, and stays.
#ifndef MPIX_HOST_REQUEST_MATCHER_H
#define MPIX_HOST_REQUEST_MATCHER_H

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <utility>
#include <vector>

namespace mpix {

struct match_key {
    std::uint64_t communicator;
    int source;  // world rank of the sender
    int tag;
    auto operator<=>(const match_key &) const = default;
};

// Numbers stand for the requests, and are not 0. The caller serialises. What is not in the lines (any more) can be
// started, freed and removed without effect.
class matcher {
public:
    enum side : std::size_t { send, receive };
    // A place; 0: nobody is in it, or not yet.
    struct pair {
        std::uint64_t send = 0, receive = 0;
        bool operator==(const pair &) const = default;
    };
    struct change {
        std::vector<pair> places;  // all whose requests may have got another partner, or none
        std::vector<pair> final;   // left the lines; not among `places`
    };

    change add(const match_key &key, side which, std::uint64_t number);
    change start(const match_key &key, side which, std::uint64_t number);
    change free(const match_key &key, side which, std::uint64_t number);
    // It leaves, and its partner with it.
    void remove(const match_key &key, side which, std::uint64_t number);
    // All keys of this source.
    void remove_source(int source);
    // Whether there are pairs in doubt; and what follows if those who have lost their partners are taken to be freed soon.
    bool in_doubt(const match_key &key) const;
    change end_doubt(const match_key &key);

    // Who is in the first place: unless one of the two is freed, they are a pair for good.
    pair first(const match_key &key) const;

    bool empty() const { return lines_.empty(); }

private:
    enum class state { absent, waiting, started, freed };
    struct slot {
        state is = state::absent;
        std::uint64_t number = 0;
        bool passed = false;  // those behind it do not wait for what becomes of it
        bool there() const { return is == state::waiting || is == state::started; }
    };
    struct place {
        slot slots[2];
        std::uint64_t times = 1;  // more: that many places, one side freed and the other absent
        bool both(state is) const { return slots[send].is == is && slots[receive].is == is; }
        bool has(state one, state other) const {
            return (slots[send].is == one && slots[receive].is == other) ||
                   (slots[send].is == other && slots[receive].is == one);
        }
        bool undecided() const {
            return has(state::freed, state::waiting) && !slots[send].passed && !slots[receive].passed;
        }
    };
    using position = std::list<place>::iterator;
    struct lines {
        std::list<place> places;
        std::map<std::uint64_t, position> where[2];
        position next[2] = {places.end(), places.end()};  // the first place where this side is absent
        std::uint64_t freed = 0;                          // slots
        bool in_doubt = false;
    };
    using all_lines = std::map<match_key, lines>;

    static position place_for(lines &l, side which);
    static void erase_place(lines &l, position at);
    static void erase(lines &l, position at);
    static void move_up(lines &l, position at, side which);
    static void join_runs(lines &l, position at);
    static void settle(lines &l, position from, bool to_the_end, change &c);
    // Where it stands; lines_.end() if it does not.
    std::pair<all_lines::iterator, position> find(const match_key &key, side which, std::uint64_t number);
    void drop_if_empty(all_lines::iterator it);

    all_lines lines_;
};

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_MATCHER_H
