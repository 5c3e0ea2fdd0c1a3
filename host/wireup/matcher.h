// SPDX-License-Identifier: BSD-3-Clause
//
// Which send is matched with which receive, among those of one (communicator, source, tag).
//
// Sends and receives form two lines, in the order of their init calls. Requests at the same place in both lines are a
// pair (MPI-4.0, section 4.2.1). A request that is freed before it was started leaves its place empty. If its partner
// is then freed as well, the place is removed. If its partner is started instead, the freed request counts as never
// made: the ones behind it in its line move up. A pair of two started requests is final, and leaves the lines. A place
// where one request is freed and the other neither freed nor started is undecided. No pair behind an undecided place is
// final.
#ifndef MPIX_HOST_WIREUP_MATCHER_H
#define MPIX_HOST_WIREUP_MATCHER_H

#include <cstddef>
#include <cstdint>

#include "host/control/match_key.h"
#include "transport/reserve.h"

namespace mpix {

// Requests are named by numbers, which are not 0 and grow in the order of the init calls; sends by their process's. The
// caller serialises. To add a request whose number does not grow, or to start, free or remove one that is not in the
// lines, has no effect.
class matcher {
public:
    enum side : std::size_t { send, receive };
    // 0: no request is at that place yet.
    struct pair {
        std::uint64_t send = 0, receive = 0;
        bool operator==(const pair &) const = default;
    };
    // The pairs that have changed. Others are as before, or cannot be decided yet.
    struct change {
        transport::safe_vector<pair> places;
        transport::safe_vector<pair> final;  // left the lines; not among `places`
    };

    // Each returns what has changed, until the next call.
    const change &add(const match_key &key, side which, std::uint64_t number);
    const change &start(const match_key &key, side which, std::uint64_t number);
    const change &free(const match_key &key, side which, std::uint64_t number);
    // Removes a pair that is not final. One of the two may be 0.
    const change &remove(const match_key &key, const pair &both);
    // Removes all keys of this source.
    void remove_source(int source);
    // in_doubt: whether some place would be decided if none before it were undecided. end_doubt: later places no longer
    // wait for the undecided ones, as if the requests there will be freed some time.
    bool in_doubt(const match_key &key) const;
    const change &end_doubt(const match_key &key);

    // The requests in the first place. Unless one of the two is freed, they stay a pair.
    pair first(const match_key &key) const;

    bool empty() const { return lines_.empty(); }

private:
    enum class state : std::uint32_t { absent, waiting, started, freed };
    struct entry {
        std::uint64_t number = 0;
        state is = state::absent;
        bool passed = false;      // later places no longer wait for this one to be decided
        std::uint64_t times = 1;  // above 1: so many joined freed requests, behind the other line's end
        bool there() const { return is == state::waiting || is == state::started; }
    };
    struct lines {
        transport::safe_deque<entry> line[2];
        std::size_t first_freed = 0;  // no earlier place has a freed request
        bool skipped = false;         // follow_up stopped at an undecided place

        entry at(side which, std::size_t place) const {
            return place < line[which].size() ? line[which][place] : entry{};
        }
        bool undecided(std::size_t place) const;
        void erase_freed(side which, std::size_t place);
        bool doubt_before(std::size_t place);
        void split(side which, std::size_t place);
        void erase_place(std::size_t place);
        void join_last_freed(side which);
    };
    using all_lines = transport::safe_map<match_key, lines>;

    // The place of a request; lines_.end() if it is in none.
    std::pair<all_lines::iterator, std::size_t> find(const match_key &key, side which, std::uint64_t number);
    const change &none();
    const change &follow_up(all_lines::iterator it, std::size_t from, bool to_the_end);

    all_lines lines_;
    all_lines::node_type spare_;  // of a key whose lines were empty: with memory for the next key's
    change change_;
};

}  // namespace mpix

#endif  // MPIX_HOST_WIREUP_MATCHER_H
