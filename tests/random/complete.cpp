// SPDX-License-Identifier: BSD-3-Clause
//
// The completion calls, on arrays of partitioned requests, the library's own, inactive and null ones.
#include <unistd.h>

#include <algorithm>
#include <random>

#include "tests/random/execute.hpp"

namespace random_test {
namespace {

constexpr int untouched = 123456;  // in the MPI_ERROR of a status

MPI_Status fresh_status() {
    MPI_Status status{};
    status.MPI_SOURCE = status.MPI_TAG = status.MPI_ERROR = untouched;
    return status;
}

int class_of(int code) {
    int found = MPI_SUCCESS;
    MPI_Error_class(code, &found);
    return found;
}

}  // namespace

std::vector<execution::place> execution::places_of(const step &s) {
    std::vector<place> out;
    for (const int request : s.requests) out.push_back({place::ours, request});
    for (const int request : s.idle) out.push_back({place::ours, request});
    for (const int n : s.sends) out.push_back({place::send, n});
    for (const int n : s.receives) out.push_back({place::receive, n});
    for (int n = 0; n < s.nulls; ++n) out.push_back({place::null, n});
    // Persistent requests of the library's that have done their work.
    for (int n = 0; n < static_cast<int>(p_.messages.size()) && s.nulls > 0; ++n)
        if (receives_[program::at(n)].handle != MPI_REQUEST_NULL && !receives_[program::at(n)].active)
            out.push_back({place::receive, n});
    std::mt19937_64 random(s.order);
    for (std::size_t n = out.size(); n > 1; --n) std::swap(out[n - 1], out[random() % n]);
    return out;
}

MPI_Request &execution::handle(const place &at) {
    static thread_local MPI_Request null;
    null = MPI_REQUEST_NULL;
    return at.what == place::ours      ? of(at.number).handle
           : at.what == place::send    ? sends_[program::at(at.number)].handle
           : at.what == place::receive ? receives_[program::at(at.number)].handle
                                       : null;
}

bool execution::active(const place &at) {
    return at.what == place::ours      ? of(at.number).active
           : at.what == place::send    ? sends_[program::at(at.number)].active
           : at.what == place::receive ? receives_[program::at(at.number)].active
                                       : false;
}

bool execution::any_active(const std::vector<place> &all) {
    return std::any_of(all.begin(), all.end(), [&](const place &at) { return active(at); });
}

int execution::error_of(const place &at) const {
    return at.what == place::ours ? status_of(p_, at.number).error : MPI_SUCCESS;
}

// ---- statuses -------------------------------------------------------------------------------------------------

void execution::check_source(const expected_status &expected, const MPI_Status &status) {
    int bytes = -1, elements = -1, cancelled = -1;
    must(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    must(MPI_Get_elements(&status, MPI_BYTE, &elements), "MPI_Get_elements");
    must(MPI_Test_cancelled(&status, &cancelled), "MPI_Test_cancelled");
    if (status.MPI_SOURCE != expected.source || status.MPI_TAG != expected.tag ||
        (expected.bytes_known && (bytes != expected.bytes || elements != expected.bytes)) || cancelled != 0)
        fail("a status says source %d, tag %d, %d bytes, %d elements, cancelled %d; not source %d, tag %d, %lld bytes",
             status.MPI_SOURCE, status.MPI_TAG, bytes, elements, cancelled, expected.source, expected.tag,
             static_cast<long long>(expected.bytes));
}

// Of ours, inactive and null ones; other calls than those that set MPI_ERROR.
void execution::check_status(const place &at, bool was_active, const MPI_Status &status) {
    if (!was_active) return check_source(empty_status(), status);
    if (at.what != place::ours) return;
    const expected_status expected = status_of(p_, at.number);
    if (!expected.known) return;
    check_source(expected, status);
    const std::int64_t size = p_.type_of(at.number).size();
    if (!expected.bytes_known || size == 0) return;
    int count = -1;
    must(MPI_Get_count(&status, p_.type_of(at.number).made.type, &count), "MPI_Get_count of the request's type");
    if (count != expected.bytes / size)
        fail("the status of request %d says %d elements of its type, not %lld", at.number, count,
             static_cast<long long>(expected.bytes / size));
}

// A request that was active is complete: its handle now, its status (or none), its memory.
void execution::settle(const place &at, MPI_Request now, const MPI_Status *status) {
    if (status != nullptr) check_status(at, true, *status);
    if (at.what == place::ours) {
        if (now != of(at.number).handle) fail("completion changed the handle of request %d", at.number);
        of(at.number).active = false;
        check_memory(at.number);
        return;
    }
    own &o = at.what == place::send ? sends_[program::at(at.number)] : receives_[program::at(at.number)];
    const message &m = p_.messages[program::at(at.number)];
    const bool persistent = at.what == place::send ? m.persistent_send : m.persistent_receive;
    if (now != (persistent ? o.handle : MPI_REQUEST_NULL)) fail("a request of the library's has a wrong handle");
    o.handle = now;
    o.active = false;
    if (at.what == place::receive) check_own_message(at.number, status);
}

// ---- calls --------------------------------------------------------------------------------------------------------

void execution::singly(const step &s, const place &at) {
    const bool was_active = active(at);
    const char *const call = name_of(s.call);
    MPI_Request copy = handle(at);
    MPI_Status status = fresh_status();
    MPI_Status *const wanted = s.ignore_status ? MPI_STATUS_IGNORE : &status;
    int flag = 1, code = MPI_SUCCESS;
    if (s.call == completion::get_status) {
        must(MPI_Request_get_status(copy, &flag, wanted), call);
        if (copy != handle(at)) fail("%s changed a handle", call);
        if (flag && !s.ignore_status) check_status(at, was_active, status);
        // It stays as it was.
        if (!flag || s.what != action::complete) return;
        status = fresh_status();
        code = MPI_Wait(&copy, wanted);
    } else if (s.call == completion::wait) {
        code = MPI_Wait(&copy, wanted);
    } else {
        code = MPI_Test(&copy, &flag, wanted);
    }
    if (!flag) {
        must(code, call);
        if (!was_active) fail("%s of an inactive request says no", call);
        return;
    }
    if (class_of(code) != (was_active ? error_of(at) : MPI_SUCCESS))
        fail("%s gave class %d (%s), not %d", call, class_of(code), error_text(code).c_str(), error_of(at));
    if (at.what == place::ours && code == MPI_SUCCESS && !s.ignore_status && status.MPI_ERROR != untouched)
        fail("%s set MPI_ERROR of its status", call);
    if (was_active)
        settle(at, copy, s.ignore_status ? nullptr : &status);
    else if (!s.ignore_status)
        check_status(at, false, status);
}

void execution::all_at_once(const step &s, const std::vector<place> &all) {
    const int n = static_cast<int>(all.size());
    std::vector<MPI_Request> handles;
    std::vector<MPI_Status> statuses(all.size(), fresh_status());
    int error = MPI_SUCCESS, flag = 1;
    for (const place &at : all) {
        handles.push_back(handle(at));
        if (active(at) && error_of(at) != MPI_SUCCESS) error = MPI_ERR_IN_STATUS;
    }
    const std::vector<MPI_Request> before_call = handles;
    MPI_Status *const wanted = s.ignore_status ? MPI_STATUSES_IGNORE : statuses.data();
    const int code = s.call == completion::waitall ? MPI_Waitall(n, handles.data(), wanted)
                                                   : MPI_Testall(n, handles.data(), &flag, wanted);
    if (!flag) {
        must(code, "MPI_Testall");
        if (handles != before_call) fail("MPI_Testall said no, and changed a handle");
        if (!any_active(all)) fail("MPI_Testall of inactive requests says no");
        return;
    }
    if (class_of(code) != error)
        fail("%s gave class %d (%s), not %d", name_of(s.call), class_of(code), error_text(code).c_str(), error);
    for (std::size_t k = 0; k < all.size(); ++k) {
        const bool was_active = active(all[k]);
        const int expected = was_active ? error_of(all[k]) : MPI_SUCCESS;
        if (code != MPI_SUCCESS && !s.ignore_status && class_of(statuses[k].MPI_ERROR) != expected)
            fail("%s: MPI_ERROR %zu of %d is %d, not class %d", name_of(s.call), k, n, statuses[k].MPI_ERROR, expected);
        if (was_active)
            settle(all[k], handles[k], s.ignore_status ? nullptr : &statuses[k]);
        else if (!s.ignore_status)
            check_status(all[k], false, statuses[k]);
    }
}

void execution::any_of_them(const step &s, const std::vector<place> &all) {
    const int n = static_cast<int>(all.size());
    const char *const call = name_of(s.call);
    std::vector<MPI_Request> handles;
    for (const place &at : all) handles.push_back(handle(at));
    MPI_Status status = fresh_status();
    MPI_Status *const wanted = s.ignore_status ? MPI_STATUS_IGNORE : &status;
    int index = -1, flag = 1;
    const int code = s.call == completion::waitany ? MPI_Waitany(n, handles.data(), &index, wanted)
                                                   : MPI_Testany(n, handles.data(), &index, &flag, wanted);
    if (!any_active(all)) {
        must(code, call);
        if (!flag || index != MPI_UNDEFINED) fail("%s of inactive requests: flag %d, index %d", call, flag, index);
        // Of none of ours the library itself says this, and MPICH 4.0 leaves the status as it was.
        const bool any_ours =
            std::any_of(all.begin(), all.end(), [](const place &at) { return at.what == place::ours; });
        if (any_ours && !s.ignore_status) check_source(empty_status(), status);
        return;
    }
    if (!flag) {
        must(code, call);
        if (index != MPI_UNDEFINED) fail("%s says no, and index %d", call, index);
        return;
    }
    if (index < 0 || index >= n || !active(all[program::at(index)])) fail("%s gave index %d of %d", call, index, n);
    const place &at = all[program::at(index)];
    if (class_of(code) != error_of(at))
        fail("%s gave class %d (%s), not %d", call, class_of(code), error_text(code).c_str(), error_of(at));
    if (at.what == place::ours && code == MPI_SUCCESS && !s.ignore_status && status.MPI_ERROR != untouched)
        fail("%s set MPI_ERROR of its status", call);
    settle(at, handles[program::at(index)], s.ignore_status ? nullptr : &status);
}

void execution::some_of_them(const step &s, const std::vector<place> &all) {
    const int n = static_cast<int>(all.size());
    const char *const call = name_of(s.call);
    std::vector<MPI_Request> handles;
    for (const place &at : all) handles.push_back(handle(at));
    std::vector<MPI_Status> statuses(all.size(), fresh_status());
    MPI_Status *const wanted = s.ignore_status ? MPI_STATUSES_IGNORE : statuses.data();
    std::vector<int> indices(all.size() + 1, -1);
    int found = -1;
    const int code = s.call == completion::waitsome ? MPI_Waitsome(n, handles.data(), &found, indices.data(), wanted)
                                                    : MPI_Testsome(n, handles.data(), &found, indices.data(), wanted);
    if (!any_active(all)) {
        must(code, call);
        if (found != MPI_UNDEFINED) fail("%s of inactive requests: %d", call, found);
        return;
    }
    if (found < (s.call == completion::waitsome ? 1 : 0) || found > n) fail("%s: %d of %d", call, found, n);
    int error = MPI_SUCCESS;
    for (int k = 0; k < found; ++k) {
        const int index = indices[program::at(k)];
        if (index < 0 || index >= n || !active(all[program::at(index)])) fail("%s gave index %d of %d", call, index, n);
        if (error_of(all[program::at(index)]) != MPI_SUCCESS) error = MPI_ERR_IN_STATUS;
    }
    if (class_of(code) != error)
        fail("%s gave class %d (%s), not %d", call, class_of(code), error_text(code).c_str(), error);
    for (int k = 0; k < found; ++k) {
        const place &at = all[program::at(indices[program::at(k)])];
        const MPI_Status &status = statuses[program::at(k)];
        if (!active(at)) fail("%s gave an index twice", call);
        if (code != MPI_SUCCESS && !s.ignore_status && class_of(status.MPI_ERROR) != error_of(at))
            fail("%s: MPI_ERROR %d of %d is %d, not class %d", call, k, found, status.MPI_ERROR, error_of(at));
        settle(at, handles[program::at(indices[program::at(k)])], s.ignore_status ? nullptr : &status);
    }
}

// One call of the kind that the step asks for, or one for each request.
void execution::attempt(const step &s, const std::vector<place> &all) {
    switch (s.call) {
        case completion::wait:
        case completion::test:
        case completion::get_status:
            for (const place &at : all) singly(s, at);
            break;
        case completion::waitall:
        case completion::testall:
            all_at_once(s, all);
            break;
        case completion::waitany:
        case completion::testany:
            any_of_them(s, all);
            break;
        case completion::waitsome:
        case completion::testsome:
            some_of_them(s, all);
            break;
        case completion::count:
            break;
    }
}

void execution::complete(const step &s) {
    const std::vector<place> all = places_of(s);
    while (any_active(all)) {
        attempt(s, all);
        if (any_active(all)) usleep(50);
    }
    attempt(s, all);  // nothing is active any more
}

void execution::look(const step &s) {
    const std::vector<place> all = places_of(s);
    attempt(s, all);
    if (s.what == action::look) return;
    for (const place &at : all)
        if (!active(at)) fail("%s completed request %d, which lacks a partition", name_of(s.call), at.number);
}

}  // namespace random_test
