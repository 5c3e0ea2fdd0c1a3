// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/constructors.h"

#include <stdlib.h>

static int rank_in(MPI_Comm comm) {
    int rank;
    OK(MPI_Comm_rank(comm, &rank));
    return rank;
}

static int size_of(MPI_Comm comm) {
    int size;
    OK(MPI_Comm_size(comm, &size));
    return size;
}

static MPI_Comm duplicate(MPI_Comm parent) {
    MPI_Comm made;
    OK(MPI_Comm_dup(parent, &made));
    return made;
}

static MPI_Comm dup_with_info(MPI_Comm parent) {
    MPI_Comm made;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_such_key", "whatever"));
    OK(MPI_Comm_dup_with_info(parent, info, &made));
    OK(MPI_Info_free(&info));
    return made;
}

static MPI_Comm idup(MPI_Comm parent) {
    MPI_Comm made;
    MPI_Request request;
    OK(MPI_Comm_idup(parent, &made, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return made;
}

static MPI_Comm split(MPI_Comm parent) {  // two, of ranks in reverse order
    MPI_Comm made;
    OK(MPI_Comm_split(parent, rank_in(parent) % 2, -rank_in(parent), &made));
    return made;
}

static MPI_Comm split_off(MPI_Comm parent) {  // not for the last
    MPI_Comm made;
    OK(MPI_Comm_split(parent, rank_in(parent) == size_of(parent) - 1 ? MPI_UNDEFINED : 7, 0, &made));
    return made;
}

static MPI_Comm split_type(MPI_Comm parent) {
    MPI_Comm made;
    OK(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
    return made;
}

// Of the parent's processes those of our rank's parity. (Of the parent's own group: MPICH 4.0 crashes on others.)
static MPI_Group half_of(MPI_Comm parent) {
    const int size = size_of(parent);
    int *const ranks = malloc((size_t)size * sizeof *ranks), n = 0;
    for (int r = rank_in(parent) % 2; r < size; r += 2) ranks[n++] = r;
    MPI_Group all, half;
    OK(MPI_Comm_group(parent, &all));
    OK(MPI_Group_incl(all, n, ranks, &half));
    OK(MPI_Group_free(&all));
    free(ranks);
    return half;
}

static MPI_Comm create(MPI_Comm parent) {
    MPI_Comm made;
    MPI_Group half = half_of(parent);
    OK(MPI_Comm_create(parent, half, &made));
    OK(MPI_Group_free(&half));
    return made;
}

static MPI_Comm create_group(MPI_Comm parent) {
    MPI_Comm made;
    MPI_Group half = half_of(parent);
    OK(MPI_Comm_create_group(parent, half, 3, &made));
    OK(MPI_Group_free(&half));
    return made;
}

static MPI_Comm cart(MPI_Comm parent) {
    MPI_Comm made;
    const int dims[] = {size_of(parent)}, periods[] = {1};
    OK(MPI_Cart_create(parent, 1, dims, periods, 1, &made));
    return made;
}

static MPI_Comm smaller_cart(MPI_Comm parent) {
    MPI_Comm made;
    const int dims[] = {size_of(parent) - 1}, periods[] = {0};
    OK(MPI_Cart_create(parent, 1, dims, periods, 0, &made));
    return made;
}

static MPI_Comm cart_sub(MPI_Comm parent) {  // two columns where there can be
    MPI_Comm grid, made;
    const int columns = size_of(parent) % 2 == 0 ? 2 : 1, remain[] = {1, 0}, periods[] = {1, 1};
    const int dims[] = {size_of(parent) / columns, columns};
    OK(MPI_Cart_create(parent, 2, dims, periods, 0, &grid));
    OK(MPI_Cart_sub(grid, remain, &made));
    OK(MPI_Comm_free(&grid));
    return made;
}

static MPI_Comm graph(MPI_Comm parent) {
    const int size = size_of(parent);
    int *const index = malloc((size_t)size * sizeof *index), *const edges = malloc((size_t)size * sizeof *edges);
    for (int i = 0; i < size; ++i) {
        index[i] = i + 1;
        edges[i] = (i + 1) % size;
    }
    MPI_Comm made;
    OK(MPI_Graph_create(parent, size, index, edges, 0, &made));
    free(index);
    free(edges);
    return made;
}

static MPI_Comm dist_graph(MPI_Comm parent) {
    MPI_Comm made;
    const int me = rank_in(parent), one = 1, right = (me + 1) % size_of(parent), weight = 1;
    OK(MPI_Dist_graph_create(parent, 1, &me, &one, &right, &weight, MPI_INFO_NULL, 0, &made));
    return made;
}

static MPI_Comm dist_graph_adjacent(MPI_Comm parent) {
    MPI_Comm made;
    const int size = size_of(parent), me = rank_in(parent), weight = 1;
    const int right = (me + 1) % size, left = (me + size - 1) % size;
    OK(MPI_Dist_graph_create_adjacent(parent, 1, &left, &weight, 1, &right, &weight, MPI_INFO_NULL, 0, &made));
    return made;
}

// Between the first half, which is larger if they differ, and the second.
static MPI_Comm intercomm(MPI_Comm parent) {
    MPI_Comm half, made;
    const int first = (size_of(parent) + 1) / 2, second_half = rank_in(parent) >= first;
    OK(MPI_Comm_split(parent, second_half, 0, &half));
    OK(MPI_Intercomm_create(half, 0, parent, second_half ? 0 : first, 77, &made));
    OK(MPI_Comm_free(&half));
    return made;
}

static MPI_Comm dup_of_intercomm(MPI_Comm parent) {
    MPI_Comm bridge = intercomm(parent), made = duplicate(bridge);
    OK(MPI_Comm_free(&bridge));
    return made;
}

static MPI_Comm create_of_intercomm(MPI_Comm parent) {  // between the two first
    MPI_Comm bridge = intercomm(parent), made;
    MPI_Group side, one;
    const int first = 0;
    OK(MPI_Comm_group(bridge, &side));
    OK(MPI_Group_incl(side, 1, &first, &one));
    OK(MPI_Comm_create(bridge, one, &made));
    OK(MPI_Group_free(&side));
    OK(MPI_Group_free(&one));
    OK(MPI_Comm_free(&bridge));
    return made;
}

static MPI_Comm split_of_intercomm(MPI_Comm parent) {  // those who have no partner are left out
    MPI_Comm bridge = intercomm(parent), made;
    int remote;
    OK(MPI_Comm_remote_size(bridge, &remote));
    OK(MPI_Comm_split(bridge, rank_in(bridge) < remote ? rank_in(bridge) : MPI_UNDEFINED, 0, &made));
    OK(MPI_Comm_free(&bridge));
    return made;
}

static MPI_Comm merge(MPI_Comm parent) {
    MPI_Comm bridge = intercomm(parent), made;
    OK(MPI_Intercomm_merge(bridge, rank_in(parent) < (size_of(parent) + 1) / 2, &made));
    OK(MPI_Comm_free(&bridge));
    return made;
}

#if MPI_VERSION >= 4

static MPI_Comm idup_with_info(MPI_Comm parent) {
    MPI_Comm made;
    MPI_Request request;
    OK(MPI_Comm_idup_with_info(parent, MPI_INFO_NULL, &made, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return made;
}

static MPI_Comm from_group(MPI_Comm parent) {
    MPI_Comm made;
    MPI_Group half = half_of(parent);
    OK(MPI_Comm_create_from_group(half, "org.mpix.tests.half", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
    OK(MPI_Group_free(&half));
    return made;
}

static MPI_Comm intercomm_from_groups(MPI_Comm parent) {
    MPI_Comm made;
    MPI_Group all, half, others;
    half = half_of(parent);
    OK(MPI_Comm_group(parent, &all));
    OK(MPI_Group_difference(all, half, &others));
    OK(MPI_Intercomm_create_from_groups(half, 0, others, 0, "org.mpix.tests.both", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                        &made));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&half));
    OK(MPI_Group_free(&others));
    return made;
}

#endif

const struct constructor constructors[] = {
    {"MPI_Comm_dup", 1, duplicate, 0},
    {"MPI_Comm_dup_with_info", 1, dup_with_info, 0},
    {"MPI_Comm_idup", 1, idup, 0},
    {"MPI_Comm_split", 1, split, 0},
    {"MPI_Comm_split with MPI_UNDEFINED", 2, split_off, 0},
    {"MPI_Comm_split_type", 1, split_type, 0},
    {"MPI_Comm_create", 1, create, 0},
    {"MPI_Comm_create_group", 1, create_group, 0},
    {"MPI_Cart_create", 1, cart, 0},
    {"MPI_Cart_create of fewer processes", 2, smaller_cart, 0},
    {"MPI_Cart_sub", 1, cart_sub, 0},
    {"MPI_Graph_create", 1, graph, 0},
    {"MPI_Dist_graph_create", 1, dist_graph, 0},
    {"MPI_Dist_graph_create_adjacent", 1, dist_graph_adjacent, 0},
    {"MPI_Intercomm_create", 2, intercomm, 1},
    {"MPI_Comm_dup of an intercommunicator", 2, dup_of_intercomm, 1},
    {"MPI_Comm_create of an intercommunicator", 2, create_of_intercomm, 1},
    {"MPI_Comm_split of an intercommunicator", 2, split_of_intercomm, 1},
    {"MPI_Intercomm_merge", 2, merge, 1},
#if MPI_VERSION >= 4
    {"MPI_Comm_idup_with_info", 1, idup_with_info, 0},
    {"MPI_Comm_create_from_group", 1, from_group, 1},
    {"MPI_Intercomm_create_from_groups", 2, intercomm_from_groups, 1},
#endif
};
const int n_constructors = sizeof constructors / sizeof *constructors;

int partners(MPI_Comm comm, int *to, int *from) {
    if (comm == MPI_COMM_NULL) return 0;
    int inter = 0, remote = 0;
    OK(MPI_Comm_test_inter(comm, &inter));
    const int rank = rank_in(comm), size = size_of(comm);
    if (inter) {
        OK(MPI_Comm_remote_size(comm, &remote));
        *to = *from = rank;
        return rank < remote;
    }
    *to = (rank + 1) % size;
    *from = (rank + size - 1) % size;
    return 1;
}
