// SPDX-License-Identifier: BSD-3-Clause
//
// Every constructor of communicators passes through here, so that each gets its name (see
// host/request/communicator.h). None sends a message of ours.
#include <mpi.h>

#include "host/interpose/symbol.h"
#include "host/request/communicator.h"

using namespace mpix;

namespace {

// Note what a successful constructor made.
int made(int code, const MPI_Comm *comm, std::uint64_t name) {
    if (code == MPI_SUCCESS && comm != nullptr) communicators().add(*comm, name);
    return code;
}

std::uint64_t number(int value) { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)); }

}  // namespace

MPIX_SYMBOL int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm) {
    const auto name = communicators().mark(comm, constructor::dup);
    return made(PMPI_Comm_dup(comm, newcomm), newcomm, name);
}

MPIX_SYMBOL int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm) {
    const auto name = communicators().mark(comm, constructor::dup_with_info);
    return made(PMPI_Comm_dup_with_info(comm, info, newcomm), newcomm, name);
}

MPIX_SYMBOL int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request) {
    const auto name = communicators().mark(comm, constructor::idup);
    return made(PMPI_Comm_idup(comm, newcomm, request), newcomm, name);
}

MPIX_SYMBOL int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm) {
    const auto name = communicators().mark(comm, constructor::split, number(color));
    return made(PMPI_Comm_split(comm, color, key, newcomm), newcomm, name);
}

MPIX_SYMBOL int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm) {
    // What the library made of split_type is known by who is in it.
    const auto name = communicators().mark(comm, constructor::split_type);
    const int code = PMPI_Comm_split_type(comm, split_type, key, info, newcomm);
    if (code != MPI_SUCCESS || *newcomm == MPI_COMM_NULL || name == 0) return code;
    MPI_Group group;
    PMPI_Comm_group(*newcomm, &group);
    communicators().add(*newcomm, name ^ communicator_registry::hash_group(group));
    PMPI_Group_free(&group);
    return code;
}

MPIX_SYMBOL int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm) {
    // Disjoint groups may be passed to one collective call; over an intercommunicator each side has its own.
    int inter = 0;
    if (comm != MPI_COMM_NULL) PMPI_Comm_test_inter(comm, &inter);
    const auto name =
        communicators().mark(comm, constructor::create, inter ? 0 : communicator_registry::hash_group(group));
    return made(PMPI_Comm_create(comm, group, newcomm), newcomm, name);
}

MPIX_SYMBOL int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm) {
    const auto name = communicators().mark_group(comm, constructor::create_group, group, tag);
    return made(PMPI_Comm_create_group(comm, group, tag, newcomm), newcomm, name);
}

MPIX_SYMBOL int MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,
                                MPI_Comm *newcomm) {
    const auto name = communicators().mark(comm, constructor::cart);
    return made(PMPI_Cart_create(comm, ndims, dims, periods, reorder, newcomm), newcomm, name);
}

MPIX_SYMBOL int MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm) {
    // The slices of one call differ by their members.
    const auto name = communicators().mark(comm, constructor::cart_sub);
    const int code = PMPI_Cart_sub(comm, remain_dims, newcomm);
    if (code != MPI_SUCCESS || *newcomm == MPI_COMM_NULL || name == 0) return code;
    MPI_Group group;
    PMPI_Comm_group(*newcomm, &group);
    communicators().add(*newcomm, name ^ communicator_registry::hash_group(group));
    PMPI_Group_free(&group);
    return code;
}

MPIX_SYMBOL int MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder,
                                 MPI_Comm *newcomm) {
    const auto name = communicators().mark(comm, constructor::graph);
    return made(PMPI_Graph_create(comm, nnodes, index, edges, reorder, newcomm), newcomm, name);
}

MPIX_SYMBOL int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[],
                                      const int destinations[], const int weights[], MPI_Info info, int reorder,
                                      MPI_Comm *newcomm) {
    const auto name = communicators().mark(comm, constructor::dist_graph);
    return made(PMPI_Dist_graph_create(comm, n, sources, degrees, destinations, weights, info, reorder, newcomm),
                newcomm, name);
}

MPIX_SYMBOL int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[],
                                               const int sourceweights[], int outdegree, const int destinations[],
                                               const int destweights[], MPI_Info info, int reorder, MPI_Comm *newcomm) {
    const auto name = communicators().mark(comm, constructor::dist_graph);
    return made(PMPI_Dist_graph_create_adjacent(comm, indegree, sources, sourceweights, outdegree, destinations,
                                                destweights, info, reorder, newcomm),
                newcomm, name);
}

MPIX_SYMBOL int MPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader,
                                     int tag, MPI_Comm *newcomm) {
    const int code = PMPI_Intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag, newcomm);
    if (code == MPI_SUCCESS) communicators().add(*newcomm, communicators().mark_bridge(local_comm, *newcomm, tag));
    return code;
}

MPIX_SYMBOL int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newcomm) {
    const auto name = communicators().mark(intercomm, constructor::intercomm_merge);
    return made(PMPI_Intercomm_merge(intercomm, high, newcomm), newcomm, name);
}

MPIX_SYMBOL int MPI_Comm_free(MPI_Comm *comm) {
    if (comm != nullptr) communicators().remove(*comm);  // before the library can hand the handle out again
    return PMPI_Comm_free(comm);
}

MPIX_SYMBOL int MPI_Comm_disconnect(MPI_Comm *comm) {
    if (comm != nullptr) communicators().remove(*comm);  // before the library can hand the handle out again
    return PMPI_Comm_disconnect(comm);
}
