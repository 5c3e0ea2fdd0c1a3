// SPDX-License-Identifier: BSD-3-Clause
//
// The communicators of a program: by each constructor that MPI has, and freed again.
#include "tests/random/execute.hpp"

#include <algorithm>

namespace random_test {

void execution::construct(const construction &c) {
    const MPI_Comm parent = comms_[program::at(c.parent)];
    if (parent == MPI_COMM_NULL) return;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(parent, &rank);
    MPI_Comm_size(parent, &ranks);
    const int colour = c.colour.empty() ? 0 : c.colour[program::at(rank)];
    const int key = c.key.empty() ? 0 : c.key[program::at(rank)];
    MPI_Comm out = MPI_COMM_NULL;
    std::vector<int> each(static_cast<std::size_t>(ranks), 1), next;
    for (int n = 0; n < ranks; ++n) next.push_back((n + 1) % ranks);
    const int right = next[program::at(rank)], left = (rank + ranks - 1) % ranks;
    int code = MPI_SUCCESS;
    switch (c.how) {
        case maker::dup:
            code = MPI_Comm_dup(parent, &out);
            break;
        case maker::dup_with_info:
            code = MPI_Comm_dup_with_info(parent, MPI_INFO_NULL, &out);
            break;
        case maker::idup: {
            MPI_Request request;
            must(MPI_Comm_idup(parent, &out, &request), "MPI_Comm_idup");
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
            break;
        }
        case maker::split:
            code = MPI_Comm_split(parent, colour < 0 ? MPI_UNDEFINED : colour, key, &out);
            break;
        case maker::split_type:
            // The reference takes all for neighbours.
            code = p_.where.one_node ? MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &out)
                                     : MPI_Comm_split(parent, 0, key, &out);
            break;
        case maker::create:
        case maker::create_group: {
            std::vector<int> chosen;
            for (const int member : p_.comms[program::at(c.made[0])].members)
                chosen.push_back(p_.comms[program::at(c.parent)].rank_of(member, rank_));
            MPI_Group all, some;
            MPI_Comm_group(parent, &all);
            MPI_Group_incl(all, static_cast<int>(chosen.size()), chosen.data(), &some);
            if (c.how == maker::create)
                code = MPI_Comm_create(parent, some, &out);
            else if (colour >= 0)
                code = MPI_Comm_create_group(parent, some, 7, &out);
            MPI_Group_free(&some);
            MPI_Group_free(&all);
            break;
        }
        case maker::cart:
            code = MPI_Cart_create(parent, 1, &ranks, each.data(), 0, &out);
            break;
        case maker::cart_rows: {
            const int dims[] = {ranks % 2 == 0 ? 2 : 1, ranks % 2 == 0 ? ranks / 2 : ranks};
            const int periods[] = {1, 0}, remain[] = {0, 1};
            MPI_Comm both;
            must(MPI_Cart_create(parent, 2, dims, periods, 0, &both), "MPI_Cart_create");
            code = MPI_Cart_sub(both, remain, &out);
            MPI_Comm_free(&both);
            break;
        }
        case maker::graph: {
            std::vector<int> index;
            for (int n = 1; n <= ranks; ++n) index.push_back(n);
            code = MPI_Graph_create(parent, ranks, index.data(), next.data(), 0, &out);
            break;
        }
        case maker::dist_graph:
            code = MPI_Dist_graph_create_adjacent(parent, 1, &left, each.data(), 1, &right, each.data(), MPI_INFO_NULL,
                                                  0, &out);
            break;
        case maker::intercomm: {
            // The leaders talk on a communicator of their own: a wildcard receive would take what they say.
            MPI_Comm local, bridge;
            must(MPI_Comm_split(parent, colour, 0, &local), "MPI_Comm_split");
            must(MPI_Comm_dup(parent, &bridge), "MPI_Comm_dup");
            const int leader =
                static_cast<int>(std::find(c.colour.begin(), c.colour.end(), 1 - colour) - c.colour.begin());
            code = MPI_Intercomm_create(local, 0, bridge, leader, 5, &out);
            MPI_Comm_free(&local);
            MPI_Comm_free(&bridge);
            break;
        }
        case maker::merge: {
            const std::vector<int> &low = p_.comms[program::at(c.parent)].members;
            code = MPI_Intercomm_merge(parent, std::find(low.begin(), low.end(), rank_) == low.end(), &out);
            break;
        }
    }
    must(code, "a constructor of communicators");
    if (out == MPI_COMM_NULL) return;
    MPI_Comm_set_errhandler(out, MPI_ERRORS_RETURN);
    for (const int made : c.made)
        if (p_.comms[program::at(made)].has(rank_)) comms_[program::at(made)] = out;
}

void execution::free_comm(int index) {
    MPI_Comm &comm = comms_[program::at(index)];
    if (comm == MPI_COMM_NULL) return;
    // Nothing but the user's own messages has been on it.
    int flag = 0;
    must(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
    if (flag) fail("there is a message on communicator %d that nobody has sent", index);
    // Before the communicator: Open MPI 4.1 would read what is freed then.
    free_own(index);
    must(MPI_Comm_free(&comm), "MPI_Comm_free");
}

// The library's persistent requests that have been on it.
void execution::free_own(int comm) {
    for (std::size_t n = 0; n < p_.messages.size(); ++n)
        for (own *o : {&sends_[n], &receives_[n]})
            if (p_.messages[n].comm == comm && o->handle != MPI_REQUEST_NULL)
                must(MPI_Request_free(&o->handle), "MPI_Request_free of the library's");
}

}  // namespace random_test
