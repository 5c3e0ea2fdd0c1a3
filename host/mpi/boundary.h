// SPDX-License-Identifier: BSD-3-Clause
//
// No exception leaves an MPI call. Each entry point is a function-try-block that ends with
//
//     MPIX_BOUNDARY("MPI_Start", of_request(request))
//
// which costs nothing as long as nothing is thrown.
#ifndef MPIX_HOST_MPI_BOUNDARY_H
#define MPIX_HOST_MPI_BOUNDARY_H

#include <cxxabi.h>
#include <mpi.h>

#include "host/report.h"
#include "host/request/request.h"

namespace mpix::boundary {

// Determines the error handler.
struct place {
    MPI_Comm comm = MPI_COMM_NULL;  // null: MPI_COMM_WORLD
    const request *r = nullptr;
};

inline place of_world() { return {}; }
inline place of_comm(MPI_Comm comm) { return {comm, nullptr}; }
inline place of_comm(const MPI_Comm *comm) { return {comm == nullptr ? MPI_COMM_NULL : *comm, nullptr}; }
// The first partitioned request in the array.
inline place of_requests(int count, const MPI_Request *handles) {
    for (int i = 0; handles != nullptr && i < count; ++i)
        if (const request *const r = handles[i] == MPI_REQUEST_NULL ? nullptr : find_request(handles[i]); r != nullptr)
            return {MPI_COMM_NULL, r};
    return {};
}
inline place of_request(const MPI_Request *handle) { return of_requests(1, handle); }

[[gnu::cold]] inline int raise(const char *call, const place &where) { return raise_caught(call, where.comm, where.r); }

}  // namespace mpix::boundary

// Thread cancellation unwinds by an exception that must be rethrown.
#define MPIX_BOUNDARY(call, where)                   \
    catch (const abi::__forced_unwind &) {           \
        throw;                                       \
    }                                                \
    catch (...) {                                    \
        using namespace mpix::boundary;              \
        return mpix::boundary::raise(call, (where)); \
    }

#endif  // MPIX_HOST_MPI_BOUNDARY_H
