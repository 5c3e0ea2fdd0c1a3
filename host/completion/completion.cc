// SPDX-License-Identifier: BSD-3-Clause
//
// Wait*, Test* and Request_get_status, on arrays that mix our requests with the library's, null and inactive
// ones.
#include <mpi.h>
#include <mpix/device.cuh>

#include <algorithm>
#include <functional>

#include "host/completion/library_completion.h"
#include "host/config.h"
#include "host/mpi/boundary.h"
#include "host/mpi/mixed_array.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"
#include "host/mpi/tools.h"
#include "host/profiled_range.h"
#include "host/progress.h"

using namespace mpix;

namespace {

// ---- one of ours ---------------------------------------------------------------------------------------

// Wait until it can be retired, whatever time has passed since the call began. With an error it stays active.
// `stalled`: nothing has come for MPIX_STALL_SECONDS, here or in a kernel. `beside` is asked now and then for an error
// of any request of the call.
template <class Beside>
status await(request &r, const char *call, wait_clock::time_point since, bool &stalled, const Beside &beside) {
    if (!r.active() || r.done()) return {};
    status gave_up, early;
    unsigned looks = 0;
    const auto done = [&] {
        if (r.done()) return true;
        gave_up = r.kernel_timeout();
        if (gave_up.ok() && ++looks % 16 == 0) early = beside();
        return !gave_up.ok() || !early.ok();
    };
    const status late = progress_until(call, since, std::ref(done), [&r]() -> request & { return r; });
    if (!late.ok() || !gave_up.ok()) stalled = true;
    if (gave_up.ok()) return early.ok() ? late : early;
    // A kernel gave up first: what it waited for, as the host sees it.
    stall s = r.describe_stall();
    s.remark = gave_up.message() + (s.remark.empty() ? "" : "; " + s.remark);
    return report_stall(call, config().stall_seconds, s);
}

// Whether retire() may be called: the epoch is complete, or the request is inactive and has a kept error.
bool may_retire(request &r) { return !r.active() || r.done_exactly(); }

// One of a request that is not complete: its epoch may never be.
int raise_of_incomplete(const mixed_array &array, const char *call) {
    return raise_first_error(array, &request::error_of_incomplete, call);
}

// At the end of a call that tests partitioned requests.
void poll_after(bool complete) {
    if (!complete)
        progress_after_miss();
    else
        lend_progress();
}

// The result of any completion call for an inactive request: an empty status, or the error that device code has left.
int inactive(request &r, const char *call, MPI_Status *status, int *flag = nullptr) {
    lend_progress();
    if (flag != nullptr) *flag = 1;
    const mpix::status bad = r.retire(status);
    return bad.ok() ? MPI_SUCCESS : raise(r, call, bad);
}

}  // namespace

namespace {

// A function of its own: what it keeps on the stack is not for every call to set up.
[[gnu::noinline]] int wait_for(MPI_Request *request, MPI_Status *status) {
    mpix::request *r = ours(request);
    if (r == nullptr) return wait_library(request, status);
    const profiled_range shown(range_name::wait);
    if (is_null(status)) return raise_null(r, "MPI_Wait", "status");
    if (!r->active()) return inactive(*r, "MPI_Wait", status);
    bool stalled = false;
    mpix::status bad = await(*r, "MPI_Wait", wait_clock::now(), stalled, [r] { return r->overdue(); });
    if (bad.ok()) bad = r->retire(status);
    return bad.ok() ? MPI_SUCCESS : raise(*r, "MPI_Wait", bad);
}

}  // namespace

MPIX_SYMBOL int MPI_Wait(MPI_Request *request, MPI_Status *status) try {
    MPIX_CHECK_THREAD("MPI_Wait", of_request(request));
    return may_be_ours() ? wait_for(request, status) : from_library(next.Wait(request, status));
}
MPIX_BOUNDARY("MPI_Wait", of_request(request))

MPIX_SYMBOL int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) try {
    MPIX_CHECK_THREAD("MPI_Test", of_request(request));
    mpix::request *r = ours(request);
    if (r == nullptr) {
        lend_progress();
        return from_library(next.Test(request, flag, status));
    }
    if (flag == nullptr) return raise_null(r, "MPI_Test", "flag");
    if (is_null(status)) return raise_null(r, "MPI_Test", "status");
    if (!r->active()) return inactive(*r, "MPI_Test", status, flag);
    // A program may well ask the same one again and again, so others get on whatever the answer.
    *flag = r->done_exactly();
    poll_after(*flag);
    const mpix::status bad = *flag ? r->retire(status) : r->error_of_incomplete();
    return bad.ok() ? MPI_SUCCESS : raise(*r, "MPI_Test", bad);
}
MPIX_BOUNDARY("MPI_Test", of_request(request))

MPIX_SYMBOL int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) try {
    MPIX_CHECK_THREAD("MPI_Request_get_status", of_request(&request));
    mpix::request *r = ours(&request);
    if (r == nullptr) {
        lend_progress();
        return from_library(next.Request_get_status(request, flag, status));
    }
    if (flag == nullptr) return raise_null(r, "MPI_Request_get_status", "flag");
    if (is_null(status)) return raise_null(r, "MPI_Request_get_status", "status");
    if (!r->active()) return inactive(*r, "MPI_Request_get_status", status, flag);
    *flag = r->done_exactly();
    if (*flag) r->fill_status(status);
    poll_after(*flag);
    return MPI_SUCCESS;
}
MPIX_BOUNDARY("MPI_Request_get_status", of_request(&request))

// ---- all of an array -----------------------------------------------------------------------------------

namespace {

// The library has completed its part with this code, and all of ours are done: retire them.
// `writes_success`: the library's call writes MPI_SUCCESS to the status of each request that has not failed.
int retire_all(mixed_array &array, MPI_Status statuses[], int code, bool writes_success, const char *call) {
    scratch<int> classes(array.count());
    if (!classes) return raise(MPI_COMM_NULL, call, array.no_memory());
    int failed = -1;
    status first;
    for (int i = 0; i < array.count(); ++i) {
        classes[i] = MPI_SUCCESS;
        if (array.is_library(i)) continue;
        request *const r = array.mine(i);
        if (r == nullptr || !r->concerns_caller()) {  // null or inactive, or named twice
            fill_empty_status(at(statuses, i));
            continue;
        }
        const status bad = r->retire(at(statuses, i));
        classes[i] = class_of(bad);
        if (!bad.ok() && failed < 0) {
            failed = i;
            first = bad;
        }
    }
    for (int i = 0; i < array.count(); ++i) {
        // The library has said this of its own already, if it failed.
        const bool write = array.is_library(i) ? failed >= 0 && code == MPI_SUCCESS
                                               : writes_success || failed >= 0 || code != MPI_SUCCESS;
        if (write) set_error(at(statuses, i), classes[i]);
    }
    return failed >= 0 ? raise_in_status(*array.mine(failed), call, first) : code;
}

// One of ours whose epoch has ended with an error, among the next few of the array, so that a look at a long one takes
// no longer; -1 if there is none.
int find_failed(const mixed_array &array, int most_looks, status &why) {
    thread_local unsigned turn = 0;
    for (int looks = std::min(most_looks, array.count()); looks > 0; --looks) {
        const int i = static_cast<int>(++turn % static_cast<unsigned>(array.count()));
        if (request *const r = array.mine(i); r != nullptr) why = r->failed_already();
        if (!why.ok()) return i;
    }
    return -1;
}

// The wait ends, since `failed`, one of ours, has an error: its epoch has ended with it, or may never end. The others
// get some time, so that a program need not come back for what is about to complete; what is not complete then is
// pending. `stalled`: nobody waits any longer.
int give_up_all(mixed_array &array, MPI_Request handles[], MPI_Status statuses[], int failed, const status &why,
                bool stalled, const char *call) {
    scratch<int> classes(array.count());
    if (!classes) return raise(MPI_COMM_NULL, call, array.no_memory());
    constexpr int not_ended = -1;  // the error of one that has may well be MPI_ERR_PENDING
    for (int i = 0; i < array.count(); ++i) classes[i] = not_ended;
    const auto since = wait_clock::now();
    const double patience = stalled ? 0 : notice_seconds();
    for (unsigned round = 1;; ++round) {
        bool all = true;
        for (int i = 0, k = 0; i < array.count(); ++i) {
            const int of_library = array.is_library(i) ? k++ : -1;
            if (classes[i] != not_ended) continue;
            MPI_Status *const status = at(statuses, i);
            request *const r = array.mine(i);
            if (of_library >= 0) {
                int flag = 0;
                const int code = next.Test(&array.library()[of_library], &flag, status);
                if (code != MPI_SUCCESS || flag) classes[i] = error_class_of(code);
            } else if (r == nullptr) {
                fill_empty_status(status);
                classes[i] = MPI_SUCCESS;
            } else if (i == failed && stalled) {
                classes[i] = class_of(why);
            } else if (may_retire(*r)) {
                classes[i] = class_of(r->retire(status));
            }
            all = all && (classes[i] != not_ended || i == failed);
        }
        if (all || seconds_since(since) >= patience) break;
        progress_poll();
        if (round % 16 == 0) detail::pause_waiting(false);
    }
    for (int i = 0; i < array.count(); ++i)
        set_error(at(statuses, i), classes[i] == not_ended ? MPI_ERR_PENDING : classes[i]);
    array.take_over_all(handles);  // before the error handler sees them
    return raise_in_status(*array.mine(failed), call, why);
}

// When a request of the library's has failed: active partitioned requests are pending, null and inactive ones are not.
void set_pending(const mixed_array &array, MPI_Status statuses[]) {
    for (int i = 0; i < array.count(); ++i)
        if (!array.is_library(i)) set_error(at(statuses, i), array.mine(i) != nullptr ? MPI_ERR_PENDING : MPI_SUCCESS);
}

}  // namespace

MPIX_SYMBOL int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]) try {
    MPIX_CHECK_THREAD("MPI_Waitall", of_requests(count, array_of_requests));
    const char *const call = "MPI_Waitall";
    if (is_bad_length(count)) return raise_negative(call, "count", count);
    mixed_array array(count, array_of_requests);
    if (!array.any_ours()) return waitall_library(count, array_of_requests, array_of_statuses);
    const profiled_range shown(range_name::waitall);
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (is_null(array_of_statuses)) return raise_null(array.first_active(), call, "array_of_statuses");
    library_statuses found(array, array_of_statuses);
    if (!found) return raise(MPI_COMM_NULL, call, array.no_memory());
    // Ours first, with the library making progress in between; then the library's, with ours complete.
    const auto since = wait_clock::now();  // one deadline for all
    for (int i = 0; i < count; ++i) {
        if (array.mine(i) == nullptr) continue;
        // This one may never complete, however long it is waited for, so the errors of the others are not to wait for
        // it: those of device code, and of epochs that have ended.
        int failed = i;
        bool stalled = false;
        const auto error_beside = [&] {
            status bad = first_error(
                array, [](request &r) { return r.active() ? r.kernel_timeout() : status{}; }, failed);
            stalled = !bad.ok();
            if (bad.ok()) bad = first_error(array, &request::overdue, failed);
            if (!bad.ok()) return bad;
            failed = find_failed(array, 1, bad);
            if (failed < 0) failed = i;
            return bad;
        };
        if (const status bad = await(*array.mine(i), call, since, stalled, error_beside); !bad.ok())
            return give_up_all(array, array_of_requests, array_of_statuses, failed, bad, stalled, call);
    }
    int code = MPI_SUCCESS;
    if (status bad; array.library_count() > 0)
        if (const int failed = find_failed(array, count, bad); failed >= 0)
            return give_up_all(array, array_of_requests, array_of_statuses, failed, bad, false, call);
    if (array.library_count() > 0) {
        code = waitall_library(array.library_count(), array.library(), found.get());
        found.take_over();
        array.take_over_all(array_of_requests);
    }
    return retire_all(array, array_of_statuses, code, true, call);
}
MPIX_BOUNDARY("MPI_Waitall", of_requests(count, array_of_requests))

MPIX_SYMBOL int MPI_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]) try {
    MPIX_CHECK_THREAD("MPI_Testall", of_requests(count, array_of_requests));
    const char *const call = "MPI_Testall";
    if (is_bad_length(count)) return raise_negative(call, "count", count);
    mixed_array array(count, array_of_requests);
    if (!array.any_ours()) {
        lend_progress();
        return from_library(next.Testall(count, array_of_requests, flag, array_of_statuses));
    }
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (flag == nullptr) return raise_null(array.first_active(), call, "flag");
    if (is_null(array_of_statuses)) return raise_null(array.first_active(), call, "array_of_statuses");
    library_statuses found(array, array_of_statuses);
    if (!found) return raise(MPI_COMM_NULL, call, array.no_memory());
    *flag = 0;
    for (int i = 0; i < count; ++i)
        if (request *const r = array.mine(i); r != nullptr && !may_retire(*r)) {
            progress_after_miss();  // which also lets the library get on
            return raise_of_incomplete(array, call);
        }
    int code = MPI_SUCCESS;
    if (array.library_count() > 0) {
        code = from_library(next.Testall(array.library_count(), array.library(), flag, found.get()));
        array.take_over_all(array_of_requests);  // with an error MPICH has freed some, whatever the flag says
        if (!*flag) {
            lend_progress();
            if (code != MPI_SUCCESS) {  // MPICH tells of an error before all are complete
                found.take_over();
                set_pending(array, array_of_statuses);
                return code;
            }
            return MPI_SUCCESS;
        }
        found.take_over();
    }
    *flag = 1;
    return retire_all(array, array_of_statuses, code, array_calls_write_success, call);
}
MPIX_BOUNDARY("MPI_Testall", of_requests(count, array_of_requests))

// ---- any of an array -----------------------------------------------------------------------------------

namespace {

// Wait until `look` is true: a request is complete or an error has occurred. `code`: the result of the last look.
template <class Look>
int wait_for(const mixed_array &array, const char *call, const Look &look, const int &code) {
    if (array.first_active() == nullptr) {  // only the library's, which may take their time
        poll_until(look);
        return code;
    }
    const status late = progress_until(call, wait_clock::now(), std::ref(look),
                                       [&array]() -> request & { return *array.first_active(); });
    return late.ok() ? code : raise(*array.first_active(), call, late);
}

// One look at the whole array: the index of a completed request (then retired), or MPI_UNDEFINED. True if that is the
// answer: also where nothing is active.
bool test_any(mixed_array &array, MPI_Request handles[], int *index, MPI_Status *status, const char *call, int &code) {
    // Where the look begins moves on, so that a request which is complete whenever it is looked at, ours or the
    // library's, keeps no other one waiting.
    thread_local unsigned turn = 0;
    ++turn;
    code = MPI_SUCCESS;
    *index = MPI_UNDEFINED;
    bool any_active = false;
    for (unsigned half = 0; half < 2; ++half) {
        if ((turn + half) % 2 == 0) {
            for (int k = 0; k < array.count(); ++k) {
                const int i =
                    static_cast<int>((turn / 2 + static_cast<unsigned>(k)) % static_cast<unsigned>(array.count()));
                request *const r = array.mine(i);
                any_active = any_active || r != nullptr;
                if (r == nullptr || !may_retire(*r)) continue;
                if (const mpix::status bad = r->retire(status); !bad.ok()) code = raise(*r, call, bad);
                *index = i;
                return true;
            }
        } else if (array.library_count() > 0) {
            int k = MPI_UNDEFINED, flag = 0;
            MPI_Status found;
            if (status != MPI_STATUS_IGNORE) found = *status;  // there is what the library does not write
            code = from_library(next.Testany(array.library_count(), array.library(), &k, &flag, &found));
            any_active = any_active || !flag;
            if (code == MPI_SUCCESS && (!flag || k == MPI_UNDEFINED)) continue;
            if (k != MPI_UNDEFINED) {
                array.take_over(k, handles);
                *index = array.place(k);
            }
            if (status != MPI_STATUS_IGNORE) *status = found;
            return true;
        }
    }
    if (!any_active) fill_empty_status(status);
    return !any_active;
}

}  // namespace

MPIX_SYMBOL int MPI_Testany(int count, MPI_Request array_of_requests[], int *index, int *flag, MPI_Status *status) try {
    MPIX_CHECK_THREAD("MPI_Testany", of_requests(count, array_of_requests));
    const char *const call = "MPI_Testany";
    if (is_bad_length(count)) return raise_negative(call, "count", count);
    mixed_array array(count, array_of_requests);
    if (!array.any_ours()) return testany_library(count, array_of_requests, index, flag, status);
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (index == nullptr) return raise_null(array.first_active(), call, "index");
    if (flag == nullptr) return raise_null(array.first_active(), call, "flag");
    if (is_null(status)) return raise_null(array.first_active(), call, "status");
    int code = MPI_SUCCESS;
    *flag = test_any(array, array_of_requests, index, status, call, code);
    poll_after(*flag);
    return *flag || code != MPI_SUCCESS ? code : raise_of_incomplete(array, call);
}
MPIX_BOUNDARY("MPI_Testany", of_requests(count, array_of_requests))

MPIX_SYMBOL int MPI_Waitany(int count, MPI_Request array_of_requests[], int *index, MPI_Status *status) try {
    MPIX_CHECK_THREAD("MPI_Waitany", of_requests(count, array_of_requests));
    const char *const call = "MPI_Waitany";
    if (is_bad_length(count)) return raise_negative(call, "count", count);
    mixed_array array(count, array_of_requests);
    if (!array.any_ours()) return waitany_library(count, array_of_requests, index, status);
    const profiled_range shown(range_name::waitany);
    if (!array.enough_memory()) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (index == nullptr) return raise_null(array.first_active(), call, "index");
    if (is_null(status)) return raise_null(array.first_active(), call, "status");
    int code = MPI_SUCCESS;
    const auto look = [&] {
        if (test_any(array, array_of_requests, index, status, call, code)) return true;
        code = raise_of_incomplete(array, call);
        return code != MPI_SUCCESS;
    };
    return wait_for(array, call, look, code);
}
MPIX_BOUNDARY("MPI_Waitany", of_requests(count, array_of_requests))

// ---- some of an array ----------------------------------------------------------------------------------

namespace {

// One look at the whole array: all that are complete. `classes` is room for one per request.
int test_some(mixed_array &array, MPI_Request handles[], int *outcount, int indices[], MPI_Status statuses[],
              scratch<int> &classes, const char *call) {
    int n = MPI_UNDEFINED, code = MPI_SUCCESS, failed = -1;
    if (array.library_count() > 0)
        code = from_library(next.Testsome(array.library_count(), array.library(), &n, indices, statuses));
    *outcount = n;
    if (n == MPI_UNDEFINED && array.first_active() == nullptr) return code;  // nothing is active
    if (n == MPI_UNDEFINED) n = 0;
    const int by_library = n;
    const bool library_says = error_class_of(code) == MPI_ERR_IN_STATUS;
    for (int k = 0; k < n; ++k) {
        array.take_over(indices[k], handles);
        indices[k] = array.place(indices[k]);
        classes[k] = library_says && statuses != MPI_STATUSES_IGNORE ? statuses[k].MPI_ERROR : MPI_SUCCESS;
    }
    status first;
    for (int i = 0; i < array.count(); ++i) {
        request *const r = array.mine(i);
        if (r == nullptr || !r->active() || !r->done_exactly()) continue;
        const status bad = r->retire(at(statuses, n));
        classes[n] = class_of(bad);
        if (!bad.ok() && failed < 0) {
            failed = i;
            first = bad;
        }
        indices[n++] = i;
    }
    *outcount = n;
    const bool all_well = failed < 0 && code == MPI_SUCCESS;
    for (int k = all_well ? by_library : 0; k < n; ++k)
        if (!all_well || array_calls_write_success) set_error(at(statuses, k), classes[k]);
    return failed >= 0 ? raise_in_status(*array.mine(failed), call, first) : code;
}

}  // namespace

MPIX_SYMBOL int MPI_Testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                             MPI_Status array_of_statuses[]) try {
    MPIX_CHECK_THREAD("MPI_Testsome", of_requests(incount, array_of_requests));
    const char *const call = "MPI_Testsome";
    if (is_bad_length(incount)) return raise_negative(call, "incount", incount);
    mixed_array array(incount, array_of_requests);
    if (!array.any_ours()) {
        lend_progress();
        return from_library(next.Testsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses));
    }
    scratch<int> classes(incount);
    if (!array.enough_memory() || !classes) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (const char *const argument = null_of_some(outcount, array_of_indices, array_of_statuses))
        return raise_null(array.first_active(), call, argument);
    const int code = test_some(array, array_of_requests, outcount, array_of_indices, array_of_statuses, classes, call);
    poll_after(*outcount != 0);
    return *outcount != 0 || code != MPI_SUCCESS ? code : raise_of_incomplete(array, call);
}
MPIX_BOUNDARY("MPI_Testsome", of_requests(incount, array_of_requests))

MPIX_SYMBOL int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                             MPI_Status array_of_statuses[]) try {
    MPIX_CHECK_THREAD("MPI_Waitsome", of_requests(incount, array_of_requests));
    const char *const call = "MPI_Waitsome";
    if (is_bad_length(incount)) return raise_negative(call, "incount", incount);
    mixed_array array(incount, array_of_requests);
    if (!array.any_ours())
        return waitsome_library(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
    const profiled_range shown(range_name::waitsome);
    scratch<int> classes(incount);
    if (!array.enough_memory() || !classes) return raise(MPI_COMM_NULL, call, array.no_memory());
    if (const char *const argument = null_of_some(outcount, array_of_indices, array_of_statuses))
        return raise_null(array.first_active(), call, argument);
    int code = MPI_SUCCESS;
    const auto look = [&] {
        code = test_some(array, array_of_requests, outcount, array_of_indices, array_of_statuses, classes, call);
        if (*outcount == 0 && code == MPI_SUCCESS) code = raise_of_incomplete(array, call);
        return code != MPI_SUCCESS || *outcount != 0;
    };
    return wait_for(array, call, look, code);
}
MPIX_BOUNDARY("MPI_Waitsome", of_requests(incount, array_of_requests))
