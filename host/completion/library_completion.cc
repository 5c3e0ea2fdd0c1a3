// SPDX-License-Identifier: BSD-3-Clause
#include "host/completion/library_completion.h"

#include "host/mpi/tools.h"
#include "host/report.h"
#include "host/wireup/wireup.h"

namespace mpix {
namespace {

// MPICH 4.0 leaves the status as it was if nothing in the array is active.
int with_empty_status(int code, const int *index, MPI_Status *status) {
    if (code == MPI_SUCCESS && index != nullptr && *index == MPI_UNDEFINED) fill_empty_status(status);
    return code;
}

}  // namespace

int error_class_of(int code) {
    int error_class = MPI_SUCCESS;
    PMPI_Error_class(code, &error_class);
    return error_class;
}

int wait_library(MPI_Request *handle, MPI_Status *status) {
    if (handle == nullptr || !needs_caller()) return from_library(next.Wait(handle, status));
    int code = MPI_SUCCESS;
    poll_until([&] {
        int flag = 0;
        code = from_library(next.Test(handle, &flag, status));
        return code != MPI_SUCCESS || flag;
    });
    return code;
}

int waitall_library(int count, MPI_Request *handles, MPI_Status *statuses) {
    const bool any = count > 0 && handles != nullptr;
    const bool poll = any && needs_caller();
#if defined(OPEN_MPI)
    // With MPI_THREAD_MULTIPLE, which we have asked for, Open MPI 4.1 never comes back from MPI_Waitall if one of the
    // requests has failed already; so we test in a loop. But a tool must see the program's own call, and so may hang.
    const bool may_hang = any && setup_running() && setup_thread_safe() && next.Waitall == PMPI_Waitall;
    if (poll || may_hang) {
        int code = MPI_SUCCESS, flag = 0;
        const auto test = [&] {
            code = from_library(next.Testall(count, handles, &flag, statuses));
            return code != MPI_SUCCESS || flag;
        };
        if (poll)
            poll_until(test);
        else
            while (!test()) {  // which makes progress
            }
        return code;
    }
#else
    // MPICH's MPI_Testall comes back with an error before all are complete.
    if (poll) {
        int result = MPI_SUCCESS;
        for (int i = 0; i < count; ++i) {
            const int code = wait_library(&handles[i], at(statuses, i));
            set_error(at(statuses, i), error_class_of(code));
            if (code != MPI_SUCCESS) result = MPI_ERR_IN_STATUS;
        }
        return result;
    }
#endif
    return from_library(next.Waitall(count, handles, statuses));
}

int testany_library(int count, MPI_Request *handles, int *index, int *flag, MPI_Status *status) {
    lend_progress();
    const int code = from_library(next.Testany(count, handles, index, flag, status));
    return flag != nullptr && *flag ? with_empty_status(code, index, status) : code;
}

int waitany_library(int count, MPI_Request *handles, int *index, MPI_Status *status) {
    int code = MPI_SUCCESS;
    if (count <= 0 || index == nullptr || !needs_caller()) {
        code = from_library(next.Waitany(count, handles, index, status));
    } else {
        poll_until([&] {
            int flag = 0;
            code = from_library(next.Testany(count, handles, index, &flag, status));
            return code != MPI_SUCCESS || flag;
        });
    }
    return with_empty_status(code, index, status);
}

int waitsome_library(int count, MPI_Request *handles, int *outcount, int *indices, MPI_Status *statuses) {
    if (count <= 0 || outcount == nullptr || !needs_caller())
        return from_library(next.Waitsome(count, handles, outcount, indices, statuses));
    int code = MPI_SUCCESS;
    poll_until([&] {
        code = from_library(next.Testsome(count, handles, outcount, indices, statuses));
        return code != MPI_SUCCESS || *outcount != 0;
    });
    return code;
}

}  // namespace mpix
