// SPDX-License-Identifier: BSD-3-Clause
//
// Wait*, Test* and Request_get_status, on arrays that mix our requests with the library's, null and inactive
// ones. The library gets to see the array with ours replaced by MPI_REQUEST_NULL.
#include <mpi.h>

#include <vector>

#include "host/config.h"
#include "host/interpose/symbol.h"
#include "host/progress.h"
#include "host/request/request.h"

using namespace mpix;

namespace {

request *ours(const MPI_Request *handle) { return handle == nullptr ? nullptr : find_request(*handle); }

// An array of requests, parted into ours and the library's.
class mixed_array {
public:
    mixed_array(int count, MPI_Request *handles) : handles_(handles) {
        if (handles == nullptr || count <= 0 || requests().size() == 0) return;
        for (int i = 0; i < count; ++i)
            if (find_request(handles[i]) != nullptr) {
                part(count);
                return;
            }
    }
    bool any_ours() const { return !mine_.empty(); }
    request *mine(int i) const { return mine_[static_cast<std::size_t>(i)]; }
    bool mine_active(int i) const { return mine(i) != nullptr && mine(i)->active(); }
    MPI_Request *library() { return library_.data(); }
    // The library set completed requests of its own to null; pass that on.
    void take_over(int i) {
        if (mine(i) == nullptr) handles_[i] = library_[static_cast<std::size_t>(i)];
    }
    void take_over_all() {
        for (std::size_t i = 0; i < mine_.size(); ++i) take_over(static_cast<int>(i));
    }

private:
    void part(int count) {
        for (int i = 0; i < count; ++i) {
            request *const r = find_request(handles_[i]);
            mine_.push_back(r);
            library_.push_back(r != nullptr ? MPI_REQUEST_NULL : handles_[i]);
        }
    }
    MPI_Request *handles_;
    std::vector<request *> mine_;
    std::vector<MPI_Request> library_;
};

MPI_Status *at(MPI_Status *statuses, int i) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

void set_error(MPI_Status *status, int error_class) {
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error_class;
}

// Wait for one of ours, whatever time has passed since the call began; it stays active (with an error) if the
// deadline passes.
problem wait_for(request &r, const char *call, wait_clock::time_point since, MPI_Status *status) {
    if (!r.active()) {
        fill_empty_status(status);
        return {};
    }
    problem early;
    const problem late = progress_until(
        call, since,
        [&] {
            if (r.done()) return true;
            early = r.device_error();  // the epoch may never complete now: say why, and leave it active
            return static_cast<bool>(early);
        },
        [&] { return r.describe_stall(); });
    // A kernel gave up first: what it waited for, as the host sees it.
    if (early.error_class == MPI_ERR_PENDING) {
        stall s = r.describe_stall();
        s.remark = early.sentence + (s.remark.empty() ? "" : "; " + s.remark);
        return report_stall(call, config().stall_seconds, s);
    }
    if (early) return early;
    return late ? late : r.retire(status);
}

// The library's blocking calls would keep our own work waiting if only MPI calls make progress.
template <class Test>
int poll_library(const Test &test) {
    for (;;) {
        int flag = 0;
        if (const int code = test(&flag); code != MPI_SUCCESS || flag) return code;
        progress_poll();
    }
}

}  // namespace

MPIX_SYMBOL int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    mpix::request *r = ours(request);
    if (r == nullptr) {
        if (request != nullptr && progress_needs_caller())
            return poll_library([&](int *flag) { return PMPI_Test(request, flag, status); });
        return PMPI_Wait(request, status);
    }
    const problem bad = wait_for(*r, "MPI_Wait", wait_clock::now(), status);
    return bad ? raise(r->op.comm, "MPI_Wait", bad) : MPI_SUCCESS;
}

MPIX_SYMBOL int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    mpix::request *r = ours(request);
    if (r == nullptr || flag == nullptr) return PMPI_Test(request, flag, status);
    *flag = 1;
    if (!r->active()) {
        fill_empty_status(status);
        return MPI_SUCCESS;
    }
    // A program may well ask the same one again and again, so others get on whatever the answer.
    *flag = r->done_exactly();
    if (!*flag || progress_needs_caller()) progress_poll();
    if (!*flag) return MPI_SUCCESS;
    const problem bad = r->retire(status);
    return bad ? raise(r->op.comm, "MPI_Test", bad) : MPI_SUCCESS;
}

MPIX_SYMBOL int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]) {
    mixed_array array(count, array_of_requests);
    if (!array.any_ours()) {
        if (count > 0 && progress_needs_caller())
            return poll_library(
                [&](int *flag) { return PMPI_Testall(count, array_of_requests, flag, array_of_statuses); });
        return PMPI_Waitall(count, array_of_requests, array_of_statuses);
    }
    // Ours first, with the library making progress in between; then the library's, with ours complete.
    std::vector<problem> problems(static_cast<std::size_t>(count));
    std::vector<MPI_Status> own(static_cast<std::size_t>(count));
    const auto since = wait_clock::now();  // one deadline for all
    int failed = -1;
    for (int i = 0; i < count; ++i) {
        if (array.mine(i) == nullptr) continue;
        problem &bad = problems[static_cast<std::size_t>(i)];
        fill_empty_status(&own[static_cast<std::size_t>(i)]);
        bad = wait_for(*array.mine(i), "MPI_Waitall", since, &own[static_cast<std::size_t>(i)]);
        if (bad && failed < 0) failed = i;
    }
    int code =
        progress_needs_caller()
            ? poll_library([&](int *flag) { return PMPI_Testall(count, array.library(), flag, array_of_statuses); })
            : PMPI_Waitall(count, array.library(), array_of_statuses);
    array.take_over_all();
    for (int i = 0; i < count && array_of_statuses != MPI_STATUSES_IGNORE; ++i) {
        const problem &bad = problems[static_cast<std::size_t>(i)];
        if (array.mine(i) != nullptr) {
            const int keep = array_of_statuses[i].MPI_ERROR;
            array_of_statuses[i] = own[static_cast<std::size_t>(i)];
            array_of_statuses[i].MPI_ERROR = keep;
        }
        if (failed >= 0 && (array.mine(i) != nullptr || code == MPI_SUCCESS))
            set_error(&array_of_statuses[i], bad.error_class);
        else if (code != MPI_SUCCESS && array.mine(i) != nullptr)
            set_error(&array_of_statuses[i], MPI_SUCCESS);
    }
    if (failed >= 0)
        return raise_in_status(array.mine(failed)->op.comm, "MPI_Waitall", problems[static_cast<std::size_t>(failed)]);
    return code;
}

MPIX_SYMBOL int MPI_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]) {
    mixed_array array(count, array_of_requests);
    if (!array.any_ours() || flag == nullptr) return PMPI_Testall(count, array_of_requests, flag, array_of_statuses);
    *flag = 0;
    for (int i = 0; i < count; ++i)
        if (array.mine_active(i) && !array.mine(i)->done_exactly()) {
            progress_poll();  // which also lets the library get on
            return MPI_SUCCESS;
        }
    const int code = PMPI_Testall(count, array.library(), flag, array_of_statuses);
    if (code == MPI_SUCCESS && !*flag) return MPI_SUCCESS;
    array.take_over_all();
    int failed = -1;
    problem first;
    std::vector<int> classes(static_cast<std::size_t>(count), MPI_SUCCESS);
    for (int i = 0; i < count; ++i) {
        if (array.mine(i) == nullptr) continue;
        problem bad;
        MPI_Status *const status = at(array_of_statuses, i);
        if (array.mine_active(i))
            bad = array.mine(i)->retire(status);
        else
            fill_empty_status(status);
        classes[static_cast<std::size_t>(i)] = bad.error_class;
        if (bad && failed < 0) {
            failed = i;
            first = bad;
        }
    }
    if (failed < 0 && code == MPI_SUCCESS) return MPI_SUCCESS;
    for (int i = 0; i < count; ++i)
        if (array.mine(i) != nullptr || code == MPI_SUCCESS)
            set_error(at(array_of_statuses, i), classes[static_cast<std::size_t>(i)]);
    return failed >= 0 ? raise_in_status(array.mine(failed)->op.comm, "MPI_Testall", first) : code;
}

namespace {

// One look at the whole array: the index of a completed request (then retired), or MPI_UNDEFINED with
// `idle` telling whether any active request is left to wait for.
int test_any(mixed_array &array, int count, MPI_Status *status, const char *call, bool &idle, int &code) {
    code = MPI_SUCCESS;
    idle = true;
    for (int i = 0; i < count; ++i) {
        if (!array.mine_active(i)) continue;
        idle = false;
        if (!array.mine(i)->done_exactly()) continue;
        const problem bad = array.mine(i)->retire(status);
        if (bad) code = raise(array.mine(i)->op.comm, call, bad);
        return i;
    }
    int index = MPI_UNDEFINED, flag = 0;
    MPI_Status library_status;
    if (status != MPI_STATUS_IGNORE) library_status.MPI_ERROR = status->MPI_ERROR;  // not a single call's to change
    code = PMPI_Testany(count, array.library(), &index, &flag, &library_status);
    if (code != MPI_SUCCESS || (flag && index != MPI_UNDEFINED)) {
        idle = false;
        if (index != MPI_UNDEFINED) array.take_over(index);
        if (status != MPI_STATUS_IGNORE) *status = library_status;
        return index;
    }
    if (!flag) idle = false;
    return MPI_UNDEFINED;
}

}  // namespace

MPIX_SYMBOL int MPI_Testany(int count, MPI_Request array_of_requests[], int *index, int *flag, MPI_Status *status) {
    mixed_array array(count, array_of_requests);
    if (!array.any_ours() || index == nullptr || flag == nullptr)
        return PMPI_Testany(count, array_of_requests, index, flag, status);
    bool idle = false;
    int code = MPI_SUCCESS;
    *index = test_any(array, count, status, "MPI_Testany", idle, code);
    *flag = *index != MPI_UNDEFINED || idle;
    if (idle) fill_empty_status(status);
    if (!*flag) progress_poll();
    return code;
}

MPIX_SYMBOL int MPI_Waitany(int count, MPI_Request array_of_requests[], int *index, MPI_Status *status) {
    mixed_array array(count, array_of_requests);
    if (!array.any_ours() || index == nullptr) {
        if (count > 0 && index != nullptr && progress_needs_caller())
            return poll_library([&](int *flag) { return PMPI_Testany(count, array_of_requests, index, flag, status); });
        return PMPI_Waitany(count, array_of_requests, index, status);
    }
    bool idle = false;
    int code = MPI_SUCCESS;
    const problem late = progress_until(
        "MPI_Waitany", wait_clock::now(),
        [&] {
            *index = test_any(array, count, status, "MPI_Waitany", idle, code);
            return *index != MPI_UNDEFINED || idle || code != MPI_SUCCESS;
        },
        [&] {
            for (int i = 0; i < count; ++i)
                if (array.mine_active(i)) return array.mine(i)->describe_stall();
            return stall{};
        });
    if (late)
        for (int i = 0; i < count; ++i)
            if (array.mine_active(i)) return raise(array.mine(i)->op.comm, "MPI_Waitany", late);
    if (idle) fill_empty_status(status);
    return code;
}

namespace {

// One look at the whole array: all that are complete. `outcount` is MPI_UNDEFINED if nothing is active.
int test_some(mixed_array &array, int count, int *outcount, int indices[], MPI_Status statuses[], const char *call) {
    std::vector<int> library_indices(static_cast<std::size_t>(count));
    std::vector<MPI_Status> library_statuses(static_cast<std::size_t>(count));
    int found = 0;
    const int code = PMPI_Testsome(count, array.library(), &found, library_indices.data(), library_statuses.data());
    bool active = found != MPI_UNDEFINED;
    int n = 0, failed = -1;
    problem first;
    std::vector<int> classes;
    for (int k = 0; found != MPI_UNDEFINED && k < found; ++k) {
        const auto from = static_cast<std::size_t>(k);
        array.take_over(library_indices[from]);
        indices[n] = library_indices[from];
        if (statuses != MPI_STATUSES_IGNORE) statuses[n] = library_statuses[from];
        classes.push_back(code == MPI_ERR_IN_STATUS ? library_statuses[from].MPI_ERROR : MPI_SUCCESS);
        ++n;
    }
    for (int i = 0; i < count; ++i) {
        if (!array.mine_active(i)) continue;
        active = true;
        if (!array.mine(i)->done_exactly()) continue;
        const problem bad = array.mine(i)->retire(at(statuses, n));
        classes.push_back(bad.error_class);
        if (bad && failed < 0) {
            failed = i;
            first = bad;
        }
        indices[n++] = i;
    }
    *outcount = active ? n : MPI_UNDEFINED;
    if (failed < 0 && code == MPI_SUCCESS) return MPI_SUCCESS;
    for (int k = 0; k < n; ++k) set_error(at(statuses, k), classes[static_cast<std::size_t>(k)]);
    return failed >= 0 ? raise_in_status(array.mine(failed)->op.comm, call, first) : code;
}

}  // namespace

MPIX_SYMBOL int MPI_Testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                             MPI_Status array_of_statuses[]) {
    mixed_array array(incount, array_of_requests);
    if (!array.any_ours() || outcount == nullptr || array_of_indices == nullptr)
        return PMPI_Testsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
    const int code = test_some(array, incount, outcount, array_of_indices, array_of_statuses, "MPI_Testsome");
    if (*outcount == 0) progress_poll();
    return code;
}

MPIX_SYMBOL int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                             MPI_Status array_of_statuses[]) {
    mixed_array array(incount, array_of_requests);
    if (!array.any_ours() || outcount == nullptr || array_of_indices == nullptr) {
        if (incount > 0 && outcount != nullptr && progress_needs_caller()) {
            int code = MPI_SUCCESS;
            do {
                progress_poll();
                code = PMPI_Testsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
            } while (code == MPI_SUCCESS && *outcount == 0);
            return code;
        }
        return PMPI_Waitsome(incount, array_of_requests, outcount, array_of_indices, array_of_statuses);
    }
    int code = MPI_SUCCESS;
    const problem late = progress_until(
        "MPI_Waitsome", wait_clock::now(),
        [&] {
            code = test_some(array, incount, outcount, array_of_indices, array_of_statuses, "MPI_Waitsome");
            return code != MPI_SUCCESS || *outcount != 0;
        },
        [&] {
            for (int i = 0; i < incount; ++i)
                if (array.mine_active(i)) return array.mine(i)->describe_stall();
            return stall{};
        });
    if (late)
        for (int i = 0; i < incount; ++i)
            if (array.mine_active(i)) return raise(array.mine(i)->op.comm, "MPI_Waitsome", late);
    return code;
}

MPIX_SYMBOL int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
    mpix::request *r = ours(&request);
    if (r == nullptr || flag == nullptr) return PMPI_Request_get_status(request, flag, status);
    *flag = 1;
    if (!r->active()) {
        fill_empty_status(status);
        return MPI_SUCCESS;
    }
    *flag = r->done_exactly();
    if (*flag) r->fill_status(status);
    if (!*flag || progress_needs_caller()) progress_poll();
    return MPI_SUCCESS;
}
