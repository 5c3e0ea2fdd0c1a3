// SPDX-License-Identifier: BSD-3-Clause
//
// For MPIX_ calls on a request: the argument must be a partitioned one.
#ifndef MPIX_HOST_EXTENSIONS_REQUEST_ARGUMENT_H
#define MPIX_HOST_EXTENSIONS_REQUEST_ARGUMENT_H

#include <mpi.h>

#include "host/mpi/tools.h"
#include "host/report.h"
#include "host/request/request.h"
#include "host/request/upcalls.h"

namespace mpix {

inline status find_partitioned(MPI_Request handle, request *&out) {
    out = handle == MPI_REQUEST_NULL ? nullptr : find_request(handle);
    if (out != nullptr) return {};
    if (handle != MPI_REQUEST_NULL && !setup_running()) return init_unseen();  // it is the MPI library's
    return failure(MPI_ERR_REQUEST,
                   handle == MPI_REQUEST_NULL ? "request is MPI_REQUEST_NULL" : "request is not a partitioned request");
}

// `r` may be null.
inline int raise_for(const request *r, const char *call, const status &bad) {
    if (bad.ok()) return MPI_SUCCESS;
    return r == nullptr ? raise(MPI_COMM_NULL, call, bad) : raise(*r, call, bad);
}

}  // namespace mpix

#endif  // MPIX_HOST_EXTENSIONS_REQUEST_ARGUMENT_H
