// SPDX-License-Identifier: BSD-3-Clause
//
// Request_get_status on arrays, where the MPI library has it: looks, and completes nothing.
#include <mpi.h>

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

#include "host/completion/library_completion.h"
#include "host/mpi/boundary.h"
#include "host/mpi/mixed_array.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"
#include "host/progress.h"
#include "host/report.h"

using namespace mpix;

// Intel MPI and MPICH 4.2.0 to 4.2.3 declare the array without const.
template <class Function>
struct second_argument;
template <class Result, class First, class Second, class... Others>
struct second_argument<Result(First, Second, Others...)> {
    using type = Second;
};
using request_array = second_argument<decltype(MPI_Request_get_status_all)>::type;
using request_array_any = second_argument<decltype(MPI_Request_get_status_any)>::type;
using request_array_some = second_argument<decltype(MPI_Request_get_status_some)>::type;

namespace {

// The error that device code has left behind on an inactive request, if there is one.
int raise_left_behind(const mixed_array &array, const char *call) {
    return raise_first_error(
        array, [](request &r) { return r.active() ? status{} : r.device_error(); }, call);
}

}  // namespace

MPIX_SYMBOL int MPI_Request_get_status_all(int count, request_array array_of_requests, int *flag,
                                           MPI_Status array_of_statuses[]) try {
    MPIX_CHECK_THREAD("MPI_Request_get_status_all", of_requests(count, array_of_requests));
    const char *const call = "MPI_Request_get_status_all";
    mixed_array array(count, array_of_requests);
    lend_progress();
    if (!array.any_ours())
        return from_library(PMPI_Request_get_status_all(count, array_of_requests, flag, array_of_statuses));
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (flag == nullptr) return raise_null(array.first_active(), call, "flag");
    if (is_null(array_of_statuses)) return raise_null(array.first_active(), call, "array_of_statuses");
    if (const int code = raise_left_behind(array, call); code != MPI_SUCCESS) return code;
    library_statuses found(array, array_of_statuses);
    if (!found) return raise(MPI_COMM_NULL, call, array.no_memory());
    *flag = 0;
    for (int i = 0; i < count; ++i)
        if (array.mine(i) != nullptr && !array.mine(i)->done_exactly()) {
            progress_after_miss();
            return MPI_SUCCESS;
        }
    *flag = 1;
    if (array.library_count() > 0) {
        const int code =
            from_library(PMPI_Request_get_status_all(array.library_count(), array.library(), flag, found.get()));
        if (code != MPI_SUCCESS || !*flag) return code;
        found.take_over();
    }
    for (int i = 0; i < count; ++i) {
        if (array.mine(i) != nullptr)
            array.mine(i)->fill_status(at(array_of_statuses, i));
        else if (!array.is_library(i))
            fill_empty_status(at(array_of_statuses, i));
    }
    return MPI_SUCCESS;
}
MPIX_BOUNDARY("MPI_Request_get_status_all", of_requests(count, array_of_requests))

MPIX_SYMBOL int MPI_Request_get_status_any(int count, request_array_any array_of_requests, int *index, int *flag,
                                           MPI_Status *status) try {
    MPIX_CHECK_THREAD("MPI_Request_get_status_any", of_requests(count, array_of_requests));
    const char *const call = "MPI_Request_get_status_any";
    mixed_array array(count, array_of_requests);
    lend_progress();
    if (!array.any_ours())
        return from_library(PMPI_Request_get_status_any(count, array_of_requests, index, flag, status));
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (index == nullptr) return raise_null(array.first_active(), call, "index");
    if (flag == nullptr) return raise_null(array.first_active(), call, "flag");
    if (is_null(status)) return raise_null(array.first_active(), call, "status");
    if (const int code = raise_left_behind(array, call); code != MPI_SUCCESS) return code;
    *flag = 1;
    for (*index = 0; *index < count; ++*index)
        if (array.mine(*index) != nullptr && array.mine(*index)->done_exactly()) {
            array.mine(*index)->fill_status(status);
            return MPI_SUCCESS;
        }
    *index = MPI_UNDEFINED;
    if (array.library_count() > 0) {
        MPI_Status found;
        if (status != MPI_STATUS_IGNORE) found = *status;  // there is what the library does not write
        int k = MPI_UNDEFINED;
        const int code =
            from_library(PMPI_Request_get_status_any(array.library_count(), array.library(), &k, flag, &found));
        if (code != MPI_SUCCESS || (*flag && k != MPI_UNDEFINED)) {
            if (k != MPI_UNDEFINED) *index = array.place(k);
            if (status != MPI_STATUS_IGNORE) *status = found;
            return code;
        }
    }
    *flag = *flag && array.first_active() == nullptr;
    if (*flag)  // nothing is active
        fill_empty_status(status);
    else
        progress_after_miss();
    return MPI_SUCCESS;
}
MPIX_BOUNDARY("MPI_Request_get_status_any", of_requests(count, array_of_requests))

MPIX_SYMBOL int MPI_Request_get_status_some(int incount, request_array_some array_of_requests, int *outcount,
                                            int array_of_indices[], MPI_Status array_of_statuses[]) try {
    MPIX_CHECK_THREAD("MPI_Request_get_status_some", of_requests(incount, array_of_requests));
    const char *const call = "MPI_Request_get_status_some";
    mixed_array array(incount, array_of_requests);
    lend_progress();
    if (!array.any_ours())
        return from_library(
            PMPI_Request_get_status_some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses));
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (const char *const argument = null_of_some(outcount, array_of_indices, array_of_statuses))
        return raise_null(array.first_active(), call, argument);
    if (const int code = raise_left_behind(array, call); code != MPI_SUCCESS) return code;
    int n = MPI_UNDEFINED, code = MPI_SUCCESS;
    if (array.library_count() > 0)
        code = from_library(PMPI_Request_get_status_some(array.library_count(), array.library(), &n, array_of_indices,
                                                         array_of_statuses));
    *outcount = n;
    if (n == MPI_UNDEFINED && array.first_active() == nullptr) return code;  // nothing is active
    if (n == MPI_UNDEFINED) n = 0;
    for (int k = 0; k < n; ++k) array_of_indices[k] = array.place(array_of_indices[k]);
    for (int i = 0; i < incount; ++i) {
        if (array.mine(i) == nullptr || !array.mine(i)->done_exactly()) continue;
        array.mine(i)->fill_status(at(array_of_statuses, n));
        array_of_indices[n++] = i;
    }
    *outcount = n;
    if (n == 0) progress_after_miss();
    return code;
}
MPIX_BOUNDARY("MPI_Request_get_status_some", of_requests(incount, array_of_requests))

#endif
