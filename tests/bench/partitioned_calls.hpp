// SPDX-License-Identifier: BSD-3-Clause
//
// The partitioned calls of mpix, and those of the MPI library behind it, where it has them.
#ifndef MPIX_TESTS_BENCH_PARTITIONED_CALLS_HPP
#define MPIX_TESTS_BENCH_PARTITIONED_CALLS_HPP

#include <mpi.h>
#include <mpix/mpix.h>

namespace bench {

struct partitioned_calls {
    const char *name;
    decltype(&MPI_Psend_init) psend_init;
    decltype(&MPI_Precv_init) precv_init;
    decltype(&MPI_Startall) startall;
    decltype(&MPI_Pready) pready;
    decltype(&MPI_Pready_range) pready_range;
    decltype(&MPI_Parrived) parrived;
    decltype(&MPI_Waitall) waitall;
    decltype(&MPI_Request_free) request_free;
};
constexpr partitioned_calls mpix_calls = {"mpix",           MPI_Psend_init, MPI_Precv_init, MPI_Startall,    MPI_Pready,
                                          MPI_Pready_range, MPI_Parrived,   MPI_Waitall,    MPI_Request_free};
#if MPIX_LIBRARY_IS_PARTITIONED
constexpr partitioned_calls library_calls = {"library",     PMPI_Psend_init, PMPI_Precv_init,
                                             PMPI_Startall, PMPI_Pready,     PMPI_Pready_range,
                                             PMPI_Parrived, PMPI_Waitall,    PMPI_Request_free};
#endif

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_PARTITIONED_CALLS_HPP
