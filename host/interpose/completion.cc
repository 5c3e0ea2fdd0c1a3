// SPDX-License-Identifier: BSD-3-Clause
//
// Wait*, Test* and Request_get_status, on arrays that mix our requests with the library's, null and inactive
// ones.
#include <mpi.h>
#include <mpix/device.cuh>

#include <functional>

#include "host/config.h"
#include "host/interpose/mixed_array.h"
#include "host/interpose/symbol.h"
#include "host/progress.h"
#include "host/request/setup.h"

using namespace mpix;

namespace {

// ---- one of ours ---------------------------------------------------------------------------------------

// Wait until it can be retired, whatever time has passed since the call began. With an error it stays active.
problem await(request &r, const char *call, wait_clock::time_point since) {
    problem early;
    const auto done = [&] {
        if (r.done()) return true;
        early = r.device_error();  // the epoch may never complete now: say why
        return static_cast<bool>(early);
    };
    const problem late = progress_until(call, since, std::ref(done), [&r]() -> request & { return r; });
    // A kernel gave up first: what it waited for, as the host sees it.
    if (early.error_class == MPI_ERR_PENDING) {
        stall s = r.describe_stall();
        s.remark = early.sentence + (s.remark.empty() ? "" : "; " + s.remark);
        return report_stall(call, config().stall_seconds, s);
    }
    return early ? early : late;
}

// Of those that are not complete: what device code has left behind. Their epochs may never be.
int raise_device_errors(const mixed_array &array, const char *call) {
    for (int i = 0; i < array.count(); ++i)
        if (request *const r = array.mine(i); r != nullptr && r->active())
            if (const problem bad = r->device_error()) return raise(*r, call, bad);
    return MPI_SUCCESS;
}

// ---- the library's -------------------------------------------------------------------------------------

// While the library's calls wait, or are made in a loop, our own work must get on; where no thread does it, we do.
void lend_progress() {
    if (progress_needs_caller()) progress_poll();
}

// At the end of a call that asks whether one of ours is complete.
void poll_after(bool complete) {
    if (!complete)
        progress_poll_in_vain();
    else if (progress_needs_caller())
        progress_poll();
}

template <class Test>
void poll_until(const Test &test) {
    for (unsigned round = 0; !test(); ++round) {
        progress_poll();
        if (round % 16 == 15) detail::pause_waiting(round > 4096);
    }
}

bool library_done(MPI_Request handle) {
    int flag = 0;
    return PMPI_Request_get_status(handle, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
}

// Before the library's own call waits for all of them.
void await_library(int count, const MPI_Request *handles) {
    if (count <= 0 || handles == nullptr || !progress_needs_caller()) return;
    for (int i = 0; i < count; ++i)
        if (handles[i] != MPI_REQUEST_NULL) poll_until([&] { return library_done(handles[i]); });
}

int waitall_library(int count, MPI_Request *handles, MPI_Status *statuses) {
    await_library(count, handles);
#if defined(OPEN_MPI)
    // With MPI_THREAD_MULTIPLE, which we have asked for, Open MPI 4.1 never comes back from MPI_Waitall if one of the
    // requests has failed already; so it is not to wait.
    if (count > 0 && handles != nullptr && setup_thread_safe()) {
        for (int i = 0; i < count; ++i)
            while (handles[i] != MPI_REQUEST_NULL && !library_done(handles[i])) {  // which makes progress
            }
        for (;;) {
            int flag = 0;
            if (const int code = from_library(PMPI_Testall(count, handles, &flag, statuses));
                code != MPI_SUCCESS || flag)
                return code;
        }
    }
#endif
    return from_library(PMPI_Waitall(count, handles, statuses));
}

int error_class_of(int code) {
    int error_class = MPI_SUCCESS;
    PMPI_Error_class(code, &error_class);
    return error_class;
}

}  // namespace

MPIX_SYMBOL int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    mpix::request *r = active_request(request);
    if (r == nullptr) {
        if (request == nullptr || !progress_needs_caller()) return from_library(PMPI_Wait(request, status));
        int code = MPI_SUCCESS;
        poll_until([&] {
            int flag = 0;
            code = from_library(PMPI_Test(request, &flag, status));
            return code != MPI_SUCCESS || flag;
        });
        return code;
    }
    if (is_null(status)) return raise_null(*r, "MPI_Wait", "status");
    problem bad = await(*r, "MPI_Wait", wait_clock::now());
    if (!bad) bad = r->retire(status);
    return bad ? raise(*r, "MPI_Wait", bad) : MPI_SUCCESS;
}

MPIX_SYMBOL int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    mpix::request *r = active_request(request);
    if (r == nullptr || flag == nullptr) {
        lend_progress();
        return from_library(PMPI_Test(request, flag, status));
    }
    if (is_null(status)) return raise_null(*r, "MPI_Test", "status");
    // A program may well ask the same one again and again, so others get on whatever the answer.
    *flag = r->done_exactly();
    poll_after(*flag);
    const problem bad = *flag ? r->retire(status) : r->device_error();
    return bad ? raise(*r, "MPI_Test", bad) : MPI_SUCCESS;
}

MPIX_SYMBOL int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
    mpix::request *r = active_request(&request);
    if (r == nullptr || flag == nullptr) {
        lend_progress();
        return from_library(PMPI_Request_get_status(request, flag, status));
    }
    if (is_null(status)) return raise_null(*r, "MPI_Request_get_status", "status");
    *flag = r->done_exactly();
    if (*flag) r->fill_status(status);
    poll_after(*flag);
    return MPI_SUCCESS;
}

// ---- all of an array -----------------------------------------------------------------------------------

namespace {

// The library has completed its part with this code, and all of ours are done: retire them.
int retire_all(mixed_array &array, MPI_Status statuses[], int code, const char *call) {
    scratch<int> classes(array.count());
    if (!classes) return raise(*array.first_active(), call, array.no_memory());
    int failed = -1;
    problem first;
    for (int i = 0; i < array.count(); ++i) {
        classes[i] = MPI_SUCCESS;
        request *const r = array.mine(i);
        if (r == nullptr || !r->active()) {  // or named twice
            if (r != nullptr || !array.has_library()) fill_empty_status(at(statuses, i));
            continue;
        }
        const problem bad = r->retire(at(statuses, i));
        classes[i] = bad.error_class;
        if (bad && failed < 0) {
            failed = i;
            first = bad;
        }
    }
    if (failed < 0 && code == MPI_SUCCESS) return MPI_SUCCESS;
    // The library has said this of its own already, if it failed.
    for (int i = 0; i < array.count(); ++i)
        if (array.mine(i) != nullptr || code == MPI_SUCCESS) set_error(at(statuses, i), classes[i]);
    return failed >= 0 ? raise_in_status(*array.mine(failed), call, first) : code;
}

// MPICH, when one of its own has failed, leaves the errors of null requests as they were, and takes inactive ones for
// pending.
void mend_inactive(const mixed_array &array, const MPI_Request handles[], MPI_Status statuses[]) {
    for (int i = 0; i < array.count(); ++i)
        if (handles[i] == MPI_REQUEST_NULL || (array.mine(i) == nullptr && find_request(handles[i]) != nullptr))
            set_error(at(statuses, i), MPI_SUCCESS);
}

// One of ours, `failed`, does not complete: nobody is waited for any more. The others are taken as they are.
int give_up_all(mixed_array &array, MPI_Status statuses[], int failed, const problem &why, const char *call) {
    for (int i = 0; i < array.count(); ++i) {
        MPI_Status *const status = at(statuses, i);
        request *const r = array.mine(i);
        int error_class = MPI_ERR_PENDING;
        if (r == nullptr) {
            int flag = 0;
            const int code = PMPI_Test(&array.library()[i], &flag, status);
            if (code != MPI_SUCCESS || flag) error_class = error_class_of(code);
        } else if (i == failed) {
            error_class = why.error_class;
        } else if (r->active() && r->done_exactly()) {
            error_class = r->retire(status).error_class;
        }
        set_error(status, error_class);
    }
    return raise_in_status(*array.mine(failed), call, why);
}

}  // namespace

MPIX_SYMBOL int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]) {
    const char *const call = "MPI_Waitall";
    mixed_array array(count, array_of_requests);
    if (!array.any_ours()) return waitall_library(count, array_of_requests, array_of_statuses);
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(array_of_statuses)) return raise_null(*array.first_active(), call, "array_of_statuses");
    // Ours first, with the library making progress in between; then the library's, with ours complete.
    const auto since = wait_clock::now();  // one deadline for all
    for (int i = 0; i < count; ++i) {
        if (array.mine(i) == nullptr) continue;
        if (const problem bad = await(*array.mine(i), call, since)) {
            const int code = give_up_all(array, array_of_statuses, i, bad, call);
            array.take_over_all(array_of_requests);
            return code;
        }
    }
    int code = MPI_SUCCESS;
    if (array.has_library()) {
        code = waitall_library(count, array.library(), array_of_statuses);
        if (code != MPI_SUCCESS) mend_inactive(array, array_of_requests, array_of_statuses);
        array.take_over_all(array_of_requests);
    }
    return retire_all(array, array_of_statuses, code, call);
}

MPIX_SYMBOL int MPI_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]) {
    const char *const call = "MPI_Testall";
    mixed_array array(count, array_of_requests);
    if (!array.any_ours() || flag == nullptr) {
        lend_progress();
        return from_library(PMPI_Testall(count, array_of_requests, flag, array_of_statuses));
    }
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(array_of_statuses)) return raise_null(*array.first_active(), call, "array_of_statuses");
    *flag = 0;
    for (int i = 0; i < count; ++i)
        if (request *const r = array.mine(i); r != nullptr && !r->done_exactly()) {
            progress_poll_in_vain();  // which also lets the library get on
            return raise_device_errors(array, call);
        }
    int code = MPI_SUCCESS;
    if (array.has_library()) {
        code = from_library(PMPI_Testall(count, array.library(), flag, array_of_statuses));
        if (code != MPI_SUCCESS) mend_inactive(array, array_of_requests, array_of_statuses);
        array.take_over_all(array_of_requests);  // with an error MPICH has freed some, whatever the flag says
        if (!*flag) {
            lend_progress();
            // MPICH tells of an error before all are complete.
            if (code != MPI_SUCCESS)
                for (int i = 0; i < count; ++i)
                    if (array.mine(i) != nullptr) set_error(at(array_of_statuses, i), MPI_ERR_PENDING);
            return code;
        }
    }
    *flag = 1;
    return retire_all(array, array_of_statuses, code, call);
}

// ---- any of an array -----------------------------------------------------------------------------------

namespace {

// MPICH 4.0 leaves the status as it was if nothing in the array is active.
int with_empty_status(int code, const int *index, MPI_Status *status) {
    if (code == MPI_SUCCESS && index != nullptr && *index == MPI_UNDEFINED) fill_empty_status(status);
    return code;
}

// One look at the whole array: the index of a completed request (then retired), or MPI_UNDEFINED.
int test_any(mixed_array &array, MPI_Request handles[], MPI_Status *status, const char *call, int &code) {
    // Where the look begins moves on, so that a request which is complete whenever it is looked at, ours or the
    // library's, keeps no other one waiting.
    thread_local unsigned turn = 0;
    ++turn;
    code = MPI_SUCCESS;
    for (unsigned half = 0; half < 2; ++half) {
        if ((turn + half) % 2 == 0) {
            for (int k = 0; k < array.count(); ++k) {
                const int i =
                    static_cast<int>((turn / 2 + static_cast<unsigned>(k)) % static_cast<unsigned>(array.count()));
                request *const r = array.mine(i);
                if (r == nullptr || !r->done_exactly()) continue;
                if (const problem bad = r->retire(status)) code = raise(*r, call, bad);
                return i;
            }
        } else if (array.has_library()) {
            int index = MPI_UNDEFINED, flag = 0;
            MPI_Status found;
            if (status != MPI_STATUS_IGNORE) found.MPI_ERROR = status->MPI_ERROR;  // not a single call's to change
            code = from_library(PMPI_Testany(array.count(), array.library(), &index, &flag, &found));
            if (code == MPI_SUCCESS && (!flag || index == MPI_UNDEFINED)) continue;
            if (index != MPI_UNDEFINED) array.take_over(index, handles);
            if (status != MPI_STATUS_IGNORE) *status = found;
            return index;
        }
    }
    return MPI_UNDEFINED;
}

}  // namespace

MPIX_SYMBOL int MPI_Testany(int count, MPI_Request array_of_requests[], int *index, int *flag, MPI_Status *status) {
    const char *const call = "MPI_Testany";
    mixed_array array(count, array_of_requests);
    if (!array.any_ours() || index == nullptr || flag == nullptr) {
        lend_progress();
        const int code = from_library(PMPI_Testany(count, array_of_requests, index, flag, status));
        return flag != nullptr && *flag ? with_empty_status(code, index, status) : code;
    }
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(status)) return raise_null(*array.first_active(), call, "status");
    int code = MPI_SUCCESS;
    *index = test_any(array, array_of_requests, status, call, code);
    *flag = *index != MPI_UNDEFINED;
    poll_after(*flag);
    return *flag || code != MPI_SUCCESS ? code : raise_device_errors(array, call);
}

MPIX_SYMBOL int MPI_Waitany(int count, MPI_Request array_of_requests[], int *index, MPI_Status *status) {
    const char *const call = "MPI_Waitany";
    mixed_array array(count, array_of_requests);
    if (!array.any_ours() || index == nullptr) {
        if (count <= 0 || index == nullptr || !progress_needs_caller())
            return with_empty_status(from_library(PMPI_Waitany(count, array_of_requests, index, status)), index,
                                     status);
        int code = MPI_SUCCESS;
        poll_until([&] {
            int flag = 0;
            code = from_library(PMPI_Testany(count, array_of_requests, index, &flag, status));
            return code != MPI_SUCCESS || flag;
        });
        return with_empty_status(code, index, status);
    }
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(status)) return raise_null(*array.first_active(), call, "status");
    int code = MPI_SUCCESS;
    const auto look = [&] {
        *index = test_any(array, array_of_requests, status, call, code);
        if (*index == MPI_UNDEFINED && code == MPI_SUCCESS) code = raise_device_errors(array, call);
        return *index != MPI_UNDEFINED || code != MPI_SUCCESS;
    };
    const problem late = progress_until(call, wait_clock::now(), std::ref(look),
                                        [&array]() -> request & { return *array.first_active(); });
    return late ? raise(*array.first_active(), call, late) : code;
}

// ---- some of an array ----------------------------------------------------------------------------------

namespace {

// One look at the whole array: all that are complete. `classes` is room for one per request.
int test_some(mixed_array &array, MPI_Request handles[], int *outcount, int indices[], MPI_Status statuses[],
              scratch<int> &classes, const char *call) {
    int n = 0, code = MPI_SUCCESS, failed = -1;
    if (array.has_library()) {
        code = from_library(PMPI_Testsome(array.count(), array.library(), &n, indices, statuses));
        if (n == MPI_UNDEFINED) n = 0;
    }
    const bool library_says = error_class_of(code) == MPI_ERR_IN_STATUS;
    for (int k = 0; k < n; ++k) {
        array.take_over(indices[k], handles);
        classes[k] = library_says && statuses != MPI_STATUSES_IGNORE ? statuses[k].MPI_ERROR : MPI_SUCCESS;
    }
    problem first;
    for (int i = 0; i < array.count(); ++i) {
        request *const r = array.mine(i);
        if (r == nullptr || !r->active() || !r->done_exactly()) continue;
        const problem bad = r->retire(at(statuses, n));
        classes[n] = bad.error_class;
        if (bad && failed < 0) {
            failed = i;
            first = bad;
        }
        indices[n++] = i;
    }
    *outcount = n;
    if (failed < 0 && code == MPI_SUCCESS) return MPI_SUCCESS;
    for (int k = 0; k < n; ++k) set_error(at(statuses, k), classes[k]);
    return failed >= 0 ? raise_in_status(*array.mine(failed), call, first) : code;
}

}  // namespace

MPIX_SYMBOL int MPI_Testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                             MPI_Status array_of_statuses[]) {
    const char *const call = "MPI_Testsome";
    mixed_array array(incount, array_of_requests);
    if (!array.any_ours() || outcount == nullptr || array_of_indices == nullptr) {
        lend_progress();
        return from_library(PMPI_Testsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses));
    }
    scratch<int> classes(incount);
    if (!array.enough_memory() || !classes) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(array_of_statuses)) return raise_null(*array.first_active(), call, "array_of_statuses");
    const int code = test_some(array, array_of_requests, outcount, array_of_indices, array_of_statuses, classes, call);
    poll_after(*outcount != 0);
    return *outcount != 0 || code != MPI_SUCCESS ? code : raise_device_errors(array, call);
}

MPIX_SYMBOL int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                             MPI_Status array_of_statuses[]) {
    const char *const call = "MPI_Waitsome";
    mixed_array array(incount, array_of_requests);
    if (!array.any_ours() || outcount == nullptr || array_of_indices == nullptr) {
        if (incount <= 0 || outcount == nullptr || !progress_needs_caller())
            return from_library(
                PMPI_Waitsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses));
        int code = MPI_SUCCESS;
        poll_until([&] {
            code =
                from_library(PMPI_Testsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses));
            return code != MPI_SUCCESS || *outcount != 0;
        });
        return code;
    }
    scratch<int> classes(incount);
    if (!array.enough_memory() || !classes) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(array_of_statuses)) return raise_null(*array.first_active(), call, "array_of_statuses");
    int code = MPI_SUCCESS;
    const auto look = [&] {
        code = test_some(array, array_of_requests, outcount, array_of_indices, array_of_statuses, classes, call);
        if (*outcount == 0 && code == MPI_SUCCESS) code = raise_device_errors(array, call);
        return code != MPI_SUCCESS || *outcount != 0;
    };
    const problem late = progress_until(call, wait_clock::now(), std::ref(look),
                                        [&array]() -> request & { return *array.first_active(); });
    return late ? raise(*array.first_active(), call, late) : code;
}
