// SPDX-License-Identifier: BSD-3-Clause
//
// Which send meets which receive, among those of one (communicator, source, tag).
//
// Sends and receives stand in two lines, in the order of their init calls, and those in one place are a pair (MPI-4.0,
// section 4.2.1). A request that is freed before it was started leaves its place empty. If its partner is freed as
// well, that place is gone. If its partner is started instead, the freed one is as if it had never been: those behind it
// in its line move up. A pair whose two requests have both been started is final, and leaves the lines. As long as a
// place is undecided between the two, those behind it are in doubt: no pair of them is final.
#ifndef MPIX_HOST_WIREUP_MATCHER_H
#define MPIX_HOST_WIREUP_MATCHER_H

#include <cstddef>
#include <cstdint>

#include "host/control/match_key.h"
#include "transport/reserve.h"

namespace mpix {

// Numbers stand for the requests; they are not 0, and grow in the order of the init calls. The caller serialises. What
// is not in the lines (any more) can be started, freed and removed without effect.
class matcher {
public:
    enum side : std::size_t { send, receive };
    // 0: nobody is in that place, or not yet.
    struct pair {
        std::uint64_t send = 0, receive = 0;
        bool operator==(const pair &) const = default;
    };
    // What has become known; what is not named is as it was, or in doubt.
    struct change {
        transport::safe_vector<pair> places;
        transport::safe_vector<pair> final;  // left the lines; not among `places`
    };

    change add(const match_key &key, side which, std::uint64_t number);
    change start(const match_key &key, side which, std::uint64_t number);
    change free(const match_key &key, side which, std::uint64_t number);
    // A pair leaves that is not known to be final, and maybe in doubt. One of the two may be 0: nobody.
    change remove(const match_key &key, const pair &both);
    // All keys of this source.
    void remove_source(int source);
    // Whether nothing but doubt keeps some from what their starts would bring about; and what follows if those who have lost
    // their partners are taken to be freed some time.
    bool in_doubt(const match_key &key) const;
    change end_doubt(const match_key &key);

    // Who is in the first place: unless one of the two is freed, they are a pair for good.
    pair first(const match_key &key) const;

    bool empty() const { return lines_.empty(); }

private:
    enum class state : std::uint32_t { absent, waiting, started, freed };
    struct entry {
        std::uint64_t number = 0;
        state is = state::absent;
        bool passed = false;      // those behind it do not wait for what becomes of it
        std::uint64_t times = 1;  // more: that many freed ones, where the other line has ended
        bool there() const { return is == state::waiting || is == state::started; }
    };
    struct lines {
        transport::safe_deque<entry> line[2];
        std::size_t first_freed = 0;  // no place before it has a freed one
        bool skipped = false;         // what is known of some in doubt has not been looked at

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

    // Where it stands; lines_.end() if it does not.
    std::pair<all_lines::iterator, std::size_t> find(const match_key &key, side which, std::uint64_t number);
    change follow_up(all_lines::iterator it, std::size_t from, bool to_the_end);

    all_lines lines_;
};

}  // namespace mpix

#endif  // MPIX_HOST_WIREUP_MATCHER_H
