// SPDX-License-Identifier: BSD-3-Clause
//
// Start, free, cancel.
#include <mpi.h>

#include <algorithm>
#include <string>

#include "host/format.h"
#include "host/mpi/boundary.h"
#include "host/mpi/mixed_array.h"
#include "host/mpi/scratch.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"
#include "host/mpi/tools.h"
#include "host/profiled_range.h"
#include "host/progress.h"
#include "host/request/request.h"
#include "host/wireup/wireup.h"
#include "transport/reserve.h"

using namespace mpix;

MPIX_SYMBOL int MPI_Start(MPI_Request *request) try {
    MPIX_CHECK_THREAD("MPI_Start", of_request(request));
    mpix::request *r = ours(request);
    if (r == nullptr) return from_library(next.Start(request));
    const profiled_range shown(range_name::start);
    if (r->active()) return raise(*r, "MPI_Start", failure(MPI_ERR_REQUEST, format("{} is active already", r->name())));
    // An error of the inactive time before this call; it must not count as one of the new epoch.
    if (const status bad = r->device_error(); !bad.ok()) return raise(*r, "MPI_Start", bad);
    r->start();
    return MPI_SUCCESS;
}
MPIX_BOUNDARY("MPI_Start", of_request(request))

MPIX_SYMBOL int MPI_Startall(int count, MPI_Request array_of_requests[]) try {
    MPIX_CHECK_THREAD("MPI_Startall", of_requests(count, array_of_requests));
    const char *const call = "MPI_Startall";
    if (is_bad_length(count)) return raise_negative(call, "count", count);
    int first_place = 0;
    mpix::request *const first = first_of_ours(count, array_of_requests, first_place);
    if (first == nullptr) {
        // The libmpi_abi of MPICH 5.0.2 would read it.
        if (count > 0 && array_of_requests == nullptr) return raise_null(nullptr, call, "array_of_requests");
        return from_library(next.Startall(count, array_of_requests));
    }
    const profiled_range shown(range_name::startall);
    scratch<request *> mine(count), sorted(count);
    if (!mine || !sorted)
        return raise(MPI_COMM_NULL, call, failure(MPI_ERR_NO_MEM, "no memory for the array of requests"));
    int n_ours = 0;
    for (int i = 0; i < count; ++i) {
        request *const r = mine[i] = i < first_place    ? nullptr
                                     : i == first_place ? first
                                                        : find_request(array_of_requests[i]);
        if (r == nullptr) continue;
        if (r->active())
            return raise(*r, call, failure(MPI_ERR_REQUEST, format("array_of_requests[{}] is active already", i)));
        if (const status bad = r->device_error(); !bad.ok())
            return raise(*r, call, bad.in_context(format("array_of_requests[{}]: ", i)));
        sorted[n_ours++] = r;
    }
    std::sort(sorted.get(), sorted.get() + n_ours);
    if (const auto twice = std::adjacent_find(sorted.get(), sorted.get() + n_ours); twice != sorted.get() + n_ours) {
        int i = count - 1;
        while (mine[i] != *twice) --i;
        return raise(**twice, call, failure(MPI_ERR_REQUEST, format("array_of_requests[{}] is in the array twice", i)));
    }
    transport::require_reserve();  // so that none fails for want of memory when others have been started
    // The library's first, in one call: if it refuses one of them it starts none, and then nor do we.
    if (n_ours < count) {
        scratch<MPI_Request> library(count - n_ours);
        if (!library) return raise(MPI_COMM_NULL, call, failure(MPI_ERR_NO_MEM, "no memory for the array of requests"));
        int n = 0;
        for (int i = 0; i < count; ++i)
            if (mine[i] == nullptr) library[n++] = array_of_requests[i];
        const int code = from_library(next.Startall(n, library.get()));
        n = 0;
        for (int i = 0; i < count; ++i)  // it may have exchanged them
            if (mine[i] == nullptr) array_of_requests[i] = library[n++];
        if (code != MPI_SUCCESS) return code;
    }
    for (int i = 0; i < count; ++i)
        if (mine[i] != nullptr) mine[i]->start();
    return MPI_SUCCESS;
}
MPIX_BOUNDARY("MPI_Startall", of_requests(count, array_of_requests))

MPIX_SYMBOL int MPI_Request_free(MPI_Request *request) try {
    MPIX_CHECK_THREAD("MPI_Request_free", of_request(request));
    mpix::request *r = ours(request);
    if (r == nullptr) return from_library(next.Request_free(request));
    status bad;
    if (r->active())
        bad = failure(MPI_ERR_REQUEST, format("{} is active; complete it first", r->name()));
    else if (r->exported_to_host || r->device != nullptr)
        bad = failure(MPI_ERR_REQUEST, "the request is exported; call MPIX_Prequest_free first");
    if (!bad.ok()) return raise(*r, "MPI_Request_free", bad);
    transport::require_reserve();  // nothing may fail after this
    leave(disown(r));
    progress_poll();  // the peer's answers to earlier frees, so that their memory comes back
    return from_library(PMPI_Request_free(request));
}
MPIX_BOUNDARY("MPI_Request_free", of_request(request))

MPIX_SYMBOL int MPI_Cancel(MPI_Request *request) try {
    MPIX_CHECK_THREAD("MPI_Cancel", of_request(request));
    const mpix::request *r = ours(request);
    if (r == nullptr) return from_library(next.Cancel(request));
    return raise(*r, "MPI_Cancel", failure(MPI_ERR_REQUEST, "a partitioned request cannot be cancelled"));
}
MPIX_BOUNDARY("MPI_Cancel", of_request(request))
