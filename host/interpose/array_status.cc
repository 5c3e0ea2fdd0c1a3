// SPDX-License-Identifier: BSD-3-Clause
//
// Request_get_status on arrays, where the MPI library has it: looks, and completes nothing.
#include <mpi.h>

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

#include "host/interpose/mixed_array.h"
#include "host/interpose/symbol.h"
#include "host/progress.h"
#include "host/report.h"

using namespace mpix;

MPIX_SYMBOL int MPI_Request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag,
                                           MPI_Status array_of_statuses[]) {
    const char *const call = "MPI_Request_get_status_all";
    mixed_array array(count, array_of_requests);
    if (progress_needs_caller()) progress_poll();
    if (!array.any_ours() || flag == nullptr)
        return from_library(PMPI_Request_get_status_all(count, array_of_requests, flag, array_of_statuses));
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(array_of_statuses)) return raise_null(*array.first_active(), call, "array_of_statuses");
    *flag = 0;
    for (int i = 0; i < count; ++i)
        if (array.mine(i) != nullptr && !array.mine(i)->done_exactly()) {
            progress_poll_in_vain();
            return MPI_SUCCESS;
        }
    const int code = from_library(PMPI_Request_get_status_all(count, array.library(), flag, array_of_statuses));
    if (code != MPI_SUCCESS || !*flag) return code;
    for (int i = 0; i < count; ++i)
        if (array.mine(i) != nullptr) array.mine(i)->fill_status(at(array_of_statuses, i));
    return MPI_SUCCESS;
}

MPIX_SYMBOL int MPI_Request_get_status_any(int count, const MPI_Request array_of_requests[], int *index, int *flag,
                                           MPI_Status *status) {
    const char *const call = "MPI_Request_get_status_any";
    mixed_array array(count, array_of_requests);
    if (progress_needs_caller()) progress_poll();
    if (!array.any_ours() || index == nullptr || flag == nullptr)
        return from_library(PMPI_Request_get_status_any(count, array_of_requests, index, flag, status));
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(status)) return raise_null(*array.first_active(), call, "status");
    *flag = 1;
    for (*index = 0; *index < count; ++*index)
        if (array.mine(*index) != nullptr && array.mine(*index)->done_exactly()) {
            array.mine(*index)->fill_status(status);
            return MPI_SUCCESS;
        }
    MPI_Status found;
    const int code = from_library(PMPI_Request_get_status_any(count, array.library(), index, flag, &found));
    if (code == MPI_SUCCESS && (!*flag || *index == MPI_UNDEFINED)) {  // ours are active, so something is
        *flag = 0;
        *index = MPI_UNDEFINED;
        progress_poll_in_vain();
        return MPI_SUCCESS;
    }
    if (status != MPI_STATUS_IGNORE) {
        found.MPI_ERROR = status->MPI_ERROR;  // not a single call's to change
        *status = found;
    }
    return code;
}

MPIX_SYMBOL int MPI_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int *outcount,
                                            int array_of_indices[], MPI_Status array_of_statuses[]) {
    const char *const call = "MPI_Request_get_status_some";
    mixed_array array(incount, array_of_requests);
    if (progress_needs_caller()) progress_poll();
    if (!array.any_ours() || outcount == nullptr || array_of_indices == nullptr)
        return from_library(
            PMPI_Request_get_status_some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses));
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(array_of_statuses)) return raise_null(*array.first_active(), call, "array_of_statuses");
    int n = 0;
    const int code =
        from_library(PMPI_Request_get_status_some(incount, array.library(), &n, array_of_indices, array_of_statuses));
    if (n == MPI_UNDEFINED) n = 0;
    for (int i = 0; i < incount; ++i) {
        if (array.mine(i) == nullptr || !array.mine(i)->done_exactly()) continue;
        array.mine(i)->fill_status(at(array_of_statuses, n));
        array_of_indices[n++] = i;
    }
    *outcount = n;
    if (n == 0) progress_poll_in_vain();
    return code;
}

#endif
