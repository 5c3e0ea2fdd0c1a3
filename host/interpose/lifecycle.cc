// SPDX-License-Identifier: BSD-3-Clause
//
// Start, free, cancel.
#include <mpi.h>

#include "host/format.h"
#include "host/interpose/symbol.h"
#include "host/progress.h"
#include "host/request/request.h"
#include "host/request/setup.h"

using namespace mpix;

MPIX_SYMBOL int MPI_Start(MPI_Request *request) {
    mpix::request *r = request == nullptr ? nullptr : find_request(*request);
    if (r == nullptr) return PMPI_Start(request);
    if (r->active()) return raise(r->op.comm, "MPI_Start", {MPI_ERR_REQUEST, "the request is active already"});
    r->start();
    return MPI_SUCCESS;
}

MPIX_SYMBOL int MPI_Startall(int count, MPI_Request array_of_requests[]) {
    if (count > 0 && array_of_requests != nullptr)
        for (int i = 0; i < count; ++i)
            if (const request *r = find_request(array_of_requests[i]); r != nullptr && r->active())
                return raise(r->op.comm, "MPI_Startall",
                             {MPI_ERR_REQUEST, format("array_of_requests[{}] is active already", i)});
    for (int i = 0; i < count; ++i) {
        request *r = array_of_requests == nullptr ? nullptr : find_request(array_of_requests[i]);
        if (r != nullptr)
            r->start();
        else if (const int code = PMPI_Start(&array_of_requests[i]); code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

MPIX_SYMBOL int MPI_Request_free(MPI_Request *request) {
    mpix::request *r = request == nullptr ? nullptr : find_request(*request);
    if (r == nullptr) return PMPI_Request_free(request);
    problem bad;
    if (r->active())
        bad = {MPI_ERR_REQUEST, "the request is active; complete it first"};
    else if (r->exported_to_host || r->device != nullptr)
        bad = {MPI_ERR_REQUEST, "the request is exported; call MPIX_Prequest_free first"};
    if (bad) return raise(r->op.comm, "MPI_Request_free", bad);
    leave(disown(r));
    progress_poll();  // the peer's answers to earlier frees, so that their memory comes back
    return PMPI_Request_free(request);
}

MPIX_SYMBOL int MPI_Cancel(MPI_Request *request) {
    const mpix::request *r = request == nullptr ? nullptr : find_request(*request);
    if (r == nullptr) return PMPI_Cancel(request);
    return raise(r->op.comm, "MPI_Cancel", {MPI_ERR_REQUEST, "a partitioned request cannot be cancelled"});
}
