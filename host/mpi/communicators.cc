// SPDX-License-Identifier: BSD-3-Clause
//
// Every constructor of communicators passes through here, so that each gets its name (see
// host/control/comm_id.h). None sends a message of ours.
#include <mpi.h>

#include <utility>

#include "host/control/comm_id.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"
#include "host/mpi/tools.h"
#include "host/report.h"

using namespace mpix;

namespace {

// A successful constructor that is collective over `parent`.
int made(int code, const MPI_Comm *comm, MPI_Comm parent, constructor how, std::uint64_t detail = 0) {
    if (code == MPI_SUCCESS) communicators().add(*comm, parent, how, detail);
    return from_library(code);
}

// One whose several results differ by their members.
int made_by_members(int code, const MPI_Comm *comm, MPI_Comm parent, constructor how) {
    std::uint64_t members = 0;
    if (code == MPI_SUCCESS && *comm != MPI_COMM_NULL) {
        MPI_Group group;
        PMPI_Comm_group(*comm, &group);
        members = communicator_registry::hash_group(group);
        PMPI_Group_free(&group);
    }
    return made(code, comm, parent, how, members);
}

// The handle goes before the library can give it to another communicator.
template <class Free>
int freed(MPI_Comm *comm, Free free_it) {
    if (comm == nullptr) return from_library(free_it(comm));
    auto known = communicators().remove(*comm);
    const int code = from_library(free_it(comm));
    if (code != MPI_SUCCESS) communicators().restore(std::move(known));
    return code;
}

#if MPIX_MPI_HAS_SESSIONS || MPIX_MPI_HAS_INTERCOMM_CREATE_FROM_GROUPS
std::uint64_t hash_text(const char *text) {
    std::uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
    for (; *text != '\0'; ++text) h = (h ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
    return h;
}
#endif

}  // namespace

MPIX_SYMBOL int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Comm_dup", of_comm(comm));
    return made(next.Comm_dup(comm, newcomm), newcomm, comm, constructor::dup);
}
MPIX_BOUNDARY("MPI_Comm_dup", of_comm(comm))

MPIX_SYMBOL int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Comm_dup_with_info", of_comm(comm));
    return made(next.Comm_dup_with_info(comm, info, newcomm), newcomm, comm, constructor::dup_with_info);
}
MPIX_BOUNDARY("MPI_Comm_dup_with_info", of_comm(comm))

// Both libraries give the handle at once, and so the name is there when the request is complete.
MPIX_SYMBOL int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request) try {
    MPIX_CHECK_THREAD("MPI_Comm_idup", of_comm(comm));
    return made(next.Comm_idup(comm, newcomm, request), newcomm, comm, constructor::idup);
}
MPIX_BOUNDARY("MPI_Comm_idup", of_comm(comm))

MPIX_SYMBOL int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Comm_split", of_comm(comm));
    return made(next.Comm_split(comm, color, key, newcomm), newcomm, comm, constructor::split,
                static_cast<std::uint32_t>(color));
}
MPIX_BOUNDARY("MPI_Comm_split", of_comm(comm))

// What the library made of split_type is known by who is in it.
MPIX_SYMBOL int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Comm_split_type", of_comm(comm));
    return made_by_members(next.Comm_split_type(comm, split_type, key, info, newcomm), newcomm, comm,
                           constructor::split_type);
}
MPIX_BOUNDARY("MPI_Comm_split_type", of_comm(comm))

// Disjoint groups may be passed to one call. Over an intercommunicator the two sides, of different members, have one.
MPIX_SYMBOL int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Comm_create", of_comm(comm));
    const int code = next.Comm_create(comm, group, newcomm);
    int inter = 0;
    if (code == MPI_SUCCESS) PMPI_Comm_test_inter(comm, &inter);
    return inter ? made(code, newcomm, comm, constructor::create)
                 : made_by_members(code, newcomm, comm, constructor::create);
}
MPIX_BOUNDARY("MPI_Comm_create", of_comm(comm))

MPIX_SYMBOL int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Comm_create_group", of_comm(comm));
    const int code = from_library(next.Comm_create_group(comm, group, tag, newcomm));
    if (code == MPI_SUCCESS) communicators().add_of_group(*newcomm, comm, group, tag);
    return code;
}
MPIX_BOUNDARY("MPI_Comm_create_group", of_comm(comm))

MPIX_SYMBOL int MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
                                MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Cart_create", of_comm(comm));
    return made(next.Cart_create(comm, ndims, dims, periods, reorder, newcomm), newcomm, comm, constructor::cart);
}
MPIX_BOUNDARY("MPI_Cart_create", of_comm(comm))

MPIX_SYMBOL int MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Cart_sub", of_comm(comm));
    return made_by_members(next.Cart_sub(comm, remain_dims, newcomm), newcomm, comm, constructor::cart_sub);
}
MPIX_BOUNDARY("MPI_Cart_sub", of_comm(comm))

MPIX_SYMBOL int MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder,
                                 MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Graph_create", of_comm(comm));
    return made(next.Graph_create(comm, nnodes, index, edges, reorder, newcomm), newcomm, comm, constructor::graph);
}
MPIX_BOUNDARY("MPI_Graph_create", of_comm(comm))

MPIX_SYMBOL int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
                                      const int destinations[], const int weights[], MPI_Info info, int reorder,
                                      MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Dist_graph_create", of_comm(comm));
    return made(next.Dist_graph_create(comm, n, sources, degrees, destinations, weights, info, reorder, newcomm),
                newcomm, comm, constructor::dist_graph);
}
MPIX_BOUNDARY("MPI_Dist_graph_create", of_comm(comm))

MPIX_SYMBOL int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[],
                                               const int sourceweights[], int outdegree, const int destinations[],
                                               const int destweights[], MPI_Info info, int reorder,
                                               MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Dist_graph_create_adjacent", of_comm(comm));
    return made(next.Dist_graph_create_adjacent(comm, indegree, sources, sourceweights, outdegree, destinations,
                                                destweights, info, reorder, newcomm),
                newcomm, comm, constructor::dist_graph);
}
MPIX_BOUNDARY("MPI_Dist_graph_create_adjacent", of_comm(comm))

MPIX_SYMBOL int MPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader,
                                     int tag, MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Intercomm_create", of_comm(local_comm));
    const int code =
        from_library(next.Intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag, newcomm));
    if (code == MPI_SUCCESS)
        communicators().add_orphan(*newcomm, constructor::intercomm_create, static_cast<std::uint32_t>(tag));
    return code;
}
MPIX_BOUNDARY("MPI_Intercomm_create", of_comm(local_comm))

MPIX_SYMBOL int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Intercomm_merge", of_comm(intercomm));
    return made(next.Intercomm_merge(intercomm, high, newcomm), newcomm, intercomm, constructor::intercomm_merge);
}
MPIX_BOUNDARY("MPI_Intercomm_merge", of_comm(intercomm))

#if MPIX_MPI_HAS_COMM_IDUP_WITH_INFO
MPIX_SYMBOL int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request) try {
    MPIX_CHECK_THREAD("MPI_Comm_idup_with_info", of_comm(comm));
    return made(next.Comm_idup_with_info(comm, info, newcomm, request), newcomm, comm, constructor::idup_with_info);
}
MPIX_BOUNDARY("MPI_Comm_idup_with_info", of_comm(comm))
#endif

#if MPIX_MPI_HAS_SESSIONS
MPIX_SYMBOL int MPI_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info,
                                           MPI_Errhandler errhandler, MPI_Comm *newcomm) try {
    MPIX_CHECK_THREAD("MPI_Comm_create_from_group", of_world());
    const int code = from_library(next.Comm_create_from_group(group, stringtag, info, errhandler, newcomm));
    if (code == MPI_SUCCESS) communicators().add_orphan(*newcomm, constructor::create_from_group, hash_text(stringtag));
    return code;
}
MPIX_BOUNDARY("MPI_Comm_create_from_group", of_world())

#endif
#if MPIX_MPI_HAS_INTERCOMM_CREATE_FROM_GROUPS  // Intel MPI 2021.13 has sessions without it

MPIX_SYMBOL int MPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group,
                                                 int remote_leader, const char *stringtag, MPI_Info info,
                                                 MPI_Errhandler errhandler, MPI_Comm *newintercomm) try {
    MPIX_CHECK_THREAD("MPI_Intercomm_create_from_groups", of_world());
    const int code = from_library(next.Intercomm_create_from_groups(
        local_group, local_leader, remote_group, remote_leader, stringtag, info, errhandler, newintercomm));
    if (code == MPI_SUCCESS)
        communicators().add_orphan(*newintercomm, constructor::intercomm_create_from_groups, hash_text(stringtag));
    return code;
}
MPIX_BOUNDARY("MPI_Intercomm_create_from_groups", of_world())

#endif

MPIX_SYMBOL int MPI_Comm_free(MPI_Comm *comm) try {
    MPIX_CHECK_THREAD("MPI_Comm_free", of_comm(comm));
    return freed(comm, next.Comm_free);
}
MPIX_BOUNDARY("MPI_Comm_free", of_comm(comm))

MPIX_SYMBOL int MPI_Comm_disconnect(MPI_Comm *comm) try {
    MPIX_CHECK_THREAD("MPI_Comm_disconnect", of_comm(comm));
    return freed(comm, next.Comm_disconnect);
}
MPIX_BOUNDARY("MPI_Comm_disconnect", of_comm(comm))
