// SPDX-License-Identifier: BSD-3-Clause
//
// The constructors of communicators, and what frees them.
#include <mpi.h>

#include <cstddef>

#include "host/fortran/arguments.h"
#include "host/fortran/names.h"

using namespace mpix::fortran;
using mpix::scratch;

// Fortran's MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, if the process has any: they belong to the MPI library's Fortran, which a
// C program does without.
#if defined(OPEN_MPI)
#define MPIX_FORTRAN_UNWEIGHTED "mpi_fortran_unweighted_"
#define MPIX_FORTRAN_WEIGHTS_EMPTY "mpi_fortran_weights_empty_"
#else  // variables of a module, as gfortran names them
#define MPIX_FORTRAN_UNWEIGHTED "__mpi_f08_link_constants_MOD_mpi_unweighted"
#define MPIX_FORTRAN_WEIGHTS_EMPTY "__mpi_f08_link_constants_MOD_mpi_weights_empty"
#endif
extern "C" {
extern const fint mpix_fortran_unweighted __asm__(MPIX_FORTRAN_UNWEIGHTED) __attribute__((weak));
extern const fint mpix_fortran_weights_empty __asm__(MPIX_FORTRAN_WEIGHTS_EMPTY) __attribute__((weak));
}

namespace {

const int *weights_of(const fint *f) {
    return f == &mpix_fortran_unweighted ? MPI_UNWEIGHTED : f == &mpix_fortran_weights_empty ? MPI_WEIGHTS_EMPTY : f;
}

}  // namespace

MPIX_FORTRAN(mpi_comm_dup, MPI_COMM_DUP, (fint * comm, fint *newcomm, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_dup(comm_of(comm), &made);
    give_comm(ierror, code, newcomm, made);
}

MPIX_FORTRAN(mpi_comm_dup_with_info, MPI_COMM_DUP_WITH_INFO, (fint * comm, fint *info, fint *newcomm, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_dup_with_info(comm_of(comm), info_of(info), &made);
    give_comm(ierror, code, newcomm, made);
}

// Both libraries give the handle at once.
MPIX_FORTRAN(mpi_comm_idup, MPI_COMM_IDUP, (fint * comm, fint *newcomm, fint *request, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request pending = MPI_REQUEST_NULL;
    const int code = MPI_Comm_idup(comm_of(comm), &made, &pending);
    give_comm(ierror, code, newcomm, made);
    give_request(ierror, code, request, pending);
}

MPIX_FORTRAN(mpi_comm_split, MPI_COMM_SPLIT, (fint * comm, fint *color, fint *key, fint *newcomm, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_split(comm_of(comm), *color, *key, &made);
    give_comm(ierror, code, newcomm, made);
}

MPIX_FORTRAN(mpi_comm_split_type, MPI_COMM_SPLIT_TYPE,
             (fint * comm, fint *split_type, fint *key, fint *info, fint *newcomm, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_split_type(comm_of(comm), *split_type, *key, info_of(info), &made);
    give_comm(ierror, code, newcomm, made);
}

MPIX_FORTRAN(mpi_comm_create, MPI_COMM_CREATE, (fint * comm, fint *group, fint *newcomm, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_create(comm_of(comm), group_of(group), &made);
    give_comm(ierror, code, newcomm, made);
}

MPIX_FORTRAN(mpi_comm_create_group, MPI_COMM_CREATE_GROUP,
             (fint * comm, fint *group, fint *tag, fint *newcomm, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_create_group(comm_of(comm), group_of(group), *tag, &made);
    give_comm(ierror, code, newcomm, made);
}

MPIX_FORTRAN(mpi_cart_create, MPI_CART_CREATE,
             (fint * comm_old, fint *ndims, fint *dims, fint *periods, fint *reorder, fint *comm_cart, fint *ierror)) {
    logicals periodic(*ndims, periods);
    if (!periodic) return give(ierror, no_memory("MPI_Cart_create"));
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Cart_create(comm_of(comm_old), *ndims, dims, periodic.get(), logical_of(reorder), &made);
    give_comm(ierror, code, comm_cart, made);
}

MPIX_FORTRAN(mpi_cart_sub, MPI_CART_SUB, (fint * comm, fint *remain_dims, fint *newcomm, fint *ierror)) {
    int dims = 0;
    if (const int code = PMPI_Cartdim_get(comm_of(comm), &dims); code != MPI_SUCCESS) return give(ierror, code);
    logicals remain(dims, remain_dims);
    if (!remain) return give(ierror, no_memory("MPI_Cart_sub"));
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Cart_sub(comm_of(comm), remain.get(), &made);
    give_comm(ierror, code, newcomm, made);
}

MPIX_FORTRAN(mpi_graph_create, MPI_GRAPH_CREATE,
             (fint * comm_old, fint *nnodes, fint *index, fint *edges, fint *reorder, fint *comm_graph, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Graph_create(comm_of(comm_old), *nnodes, index, edges, logical_of(reorder), &made);
    give_comm(ierror, code, comm_graph, made);
}

MPIX_FORTRAN(mpi_dist_graph_create, MPI_DIST_GRAPH_CREATE,
             (fint * comm_old, fint *n, fint *sources, fint *degrees, fint *destinations, fint *weights, fint *info,
              fint *reorder, fint *comm_dist_graph, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Dist_graph_create(comm_of(comm_old), *n, sources, degrees, destinations, weights_of(weights),
                                           info_of(info), logical_of(reorder), &made);
    give_comm(ierror, code, comm_dist_graph, made);
}

MPIX_FORTRAN(mpi_dist_graph_create_adjacent, MPI_DIST_GRAPH_CREATE_ADJACENT,
             (fint * comm_old, fint *indegree, fint *sources, fint *sourceweights, fint *outdegree, fint *destinations,
              fint *destweights, fint *info, fint *reorder, fint *comm_dist_graph, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Dist_graph_create_adjacent(comm_of(comm_old), *indegree, sources, weights_of(sourceweights),
                                                    *outdegree, destinations, weights_of(destweights), info_of(info),
                                                    logical_of(reorder), &made);
    give_comm(ierror, code, comm_dist_graph, made);
}

MPIX_FORTRAN(mpi_intercomm_create, MPI_INTERCOMM_CREATE,
             (fint * local_comm, fint *local_leader, fint *peer_comm, fint *remote_leader, fint *tag,
              fint *newintercomm, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code =
        MPI_Intercomm_create(comm_of(local_comm), *local_leader, comm_of(peer_comm), *remote_leader, *tag, &made);
    give_comm(ierror, code, newintercomm, made);
}

MPIX_FORTRAN(mpi_intercomm_merge, MPI_INTERCOMM_MERGE,
             (fint * intercomm, fint *high, fint *newintracomm, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Intercomm_merge(comm_of(intercomm), logical_of(high), &made);
    give_comm(ierror, code, newintracomm, made);
}

#if MPIX_MPI_HAS_COMM_IDUP_WITH_INFO
MPIX_FORTRAN(mpi_comm_idup_with_info, MPI_COMM_IDUP_WITH_INFO,
             (fint * comm, fint *info, fint *newcomm, fint *request, fint *ierror)) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request pending = MPI_REQUEST_NULL;
    const int code = MPI_Comm_idup_with_info(comm_of(comm), info_of(info), &made, &pending);
    give_comm(ierror, code, newcomm, made);
    give_request(ierror, code, request, pending);
}
#endif

#if MPIX_MPI_HAS_SESSIONS
MPIX_FORTRAN(mpi_comm_create_from_group, MPI_COMM_CREATE_FROM_GROUP,
             (fint * group, char *stringtag, fint *info, fint *errhandler, fint *newcomm, fint *ierror,
              std::size_t length)) {
    mpix::fortran::text tag(stringtag, length);
    if (!tag) return give(ierror, no_memory("MPI_Comm_create_from_group"));
    MPI_Comm made = MPI_COMM_NULL;
    const int code =
        MPI_Comm_create_from_group(group_of(group), tag.get(), info_of(info), MPI_Errhandler_f2c(*errhandler), &made);
    give_comm(ierror, code, newcomm, made);
}
#endif

#if MPIX_MPI_HAS_INTERCOMM_CREATE_FROM_GROUPS
MPIX_FORTRAN(mpi_intercomm_create_from_groups, MPI_INTERCOMM_CREATE_FROM_GROUPS,
             (fint * local_group, fint *local_leader, fint *remote_group, fint *remote_leader, char *stringtag,
              fint *info, fint *errhandler, fint *newintercomm, fint *ierror, std::size_t length)) {
    mpix::fortran::text tag(stringtag, length);
    if (!tag) return give(ierror, no_memory("MPI_Intercomm_create_from_groups"));
    MPI_Comm made = MPI_COMM_NULL;
    const int code =
        MPI_Intercomm_create_from_groups(group_of(local_group), *local_leader, group_of(remote_group), *remote_leader,
                                         tag.get(), info_of(info), MPI_Errhandler_f2c(*errhandler), &made);
    give_comm(ierror, code, newintercomm, made);
}
#endif

MPIX_FORTRAN(mpi_comm_free, MPI_COMM_FREE, (fint * comm, fint *ierror)) {
    changed_comm c(comm);
    give(ierror, MPI_Comm_free(c));
}

MPIX_FORTRAN(mpi_comm_disconnect, MPI_COMM_DISCONNECT, (fint * comm, fint *ierror)) {
    changed_comm c(comm);
    give(ierror, MPI_Comm_disconnect(c));
}
