// SPDX-License-Identifier: BSD-3-Clause
//
// An array of requests as the completion calls get it: ours among the library's, null and inactive ones.
#ifndef MPIX_HOST_MPI_MIXED_ARRAY_H
#define MPIX_HOST_MPI_MIXED_ARRAY_H

#include <mpi.h>

#include <functional>

#include "host/format.h"
#include "host/mpi/scratch.h"
#include "host/request/request.h"

namespace mpix {

// If false, a call is passed on at once, so that ordinary traffic costs no more than without mpix.
inline bool may_be_ours() { return request_table.load(std::memory_order_relaxed) != nullptr; }

// A request of ours, active or not; otherwise null. `handle` may be null.
inline request *ours(const MPI_Request *handle) {
    return handle == nullptr || !may_be_ours() ? nullptr : find_request(*handle);
}

// Whether an array's length is refused here. Otherwise the library says so; that of the standard ABI in MPICH 5.0.2 crashes.
inline bool is_bad_length(int n) { return n < 0 && may_be_ours(); }

// The first request of ours in the array; null if there is none. `place` becomes its index, or n.
inline request *first_of_ours(int n, const MPI_Request *handles, int &place) {
    place = n;
    if (!may_be_ours() || handles == nullptr || requests().size() == 0) return nullptr;
    for (int i = 0; i < n; ++i)
        if (request *const r = ours(&handles[i]); r != nullptr) {
            place = i;
            return r;
        }
    return nullptr;
}

// The library, or a tool behind mpix, gets only the library's requests, in a separate array without gaps: MPICH 4.0
// fails if a null request is beside an incomplete generalized one. Inactive partitioned requests count as null.
class mixed_array {
public:
    mixed_array(int count, const MPI_Request *handles)
        : first_(first_of_ours(count, handles, first_place_)),
          count_(first_ != nullptr ? count : 0),
          elements_(count_),
          place_(count_),
          library_(count_) {
        if (count_ == 0 || !enough_memory()) return;
        for (int i = 0; i < count; ++i) {
            request *const r = i < first_place_ ? nullptr : i == first_place_ ? first_ : ours(&handles[i]);
            const bool of_library = r == nullptr && handles[i] != MPI_REQUEST_NULL;
            elements_[i] = {r != nullptr && r->concerns_caller() ? r : nullptr, of_library};
            if (!of_library) continue;
            place_[library_count_] = i;
            library_[library_count_++] = handles[i];
        }
    }
    // If not, the whole array is the library's affair.
    bool any_ours() const { return count_ > 0; }
    bool enough_memory() const { return elements_ && place_ && library_; }
    status no_memory() const {
        return failure(MPI_ERR_NO_MEM, format("no memory for an array of {} requests", count_));
    }
    int count() const { return count_; }
    // A partitioned request that is active or has a kept error of device code; else null.
    request *mine(int i) const { return elements_[i].mine; }
    // One of ours that is still active: the others have been completed by this very call.
    request *first_active() const {
        for (int i = 0; i < count_; ++i)
            if (mine(i) != nullptr && mine(i)->concerns_caller()) return mine(i);
        return nullptr;
    }
    int library_count() const { return library_count_; }
    MPI_Request *library() { return library_.get(); }
    bool is_library(int i) const { return elements_[i].of_library; }
    // Where the library's k-th request is in the user's array.
    int place(int k) const { return place_[k]; }
    // The library has set completed requests of its own to null; pass that on.
    void take_over(int k, MPI_Request *handles) const { handles[place_[k]] = library_[k]; }
    void take_over_all(MPI_Request *handles) const {
        for (int k = 0; k < library_count_; ++k) take_over(k, handles);
    }

private:
    struct element {
        request *mine;
        bool of_library;
    };

    int first_place_ = 0;  // of `first_`, which is the first of ours
    request *const first_;
    const int count_;
    int library_count_ = 0;
    scratch<element> elements_;
    scratch<int> place_;
    scratch<MPI_Request> library_;
};

// The first error that find(request) gives of ours; `place` becomes that request's.
template <class Find>
status first_error(const mixed_array &array, const Find &find, int &place) {
    for (int i = 0; i < array.count(); ++i) {
        request *const r = array.mine(i);
        if (r == nullptr) continue;
        if (status bad = std::invoke(find, *r); !bad.ok()) {
            place = i;
            return bad;
        }
    }
    return {};
}
template <class Find>
int raise_first_error(const mixed_array &array, const Find &find, const char *call) {
    int place = 0;
    const status bad = first_error(array, find, place);
    return bad.ok() ? MPI_SUCCESS : raise(*array.mine(place), call, bad);
}

inline MPI_Status *at(MPI_Status *statuses, int i) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

// The statuses of the library's requests, for calls with a status for each request. They start as copies of the user's,
// since the library does not write all fields. They are there also where the user ignores his: of those Open MPI 5.0's
// MPI_Waitall says MPI_SUCCESS if a request had failed before.
class library_statuses {
public:
    library_statuses(const mixed_array &array, MPI_Status *statuses)
        : array_(array), user_(statuses), own_(array.library_count()) {
        if (user_ == MPI_STATUSES_IGNORE || !own_) return;
        for (int k = 0; k < array_.library_count(); ++k) own_[k] = user_[array_.place(k)];
    }
    explicit operator bool() const { return static_cast<bool>(own_); }
    MPI_Status *get() { return own_.get(); }
    void take_over() const {
        for (int k = 0; user_ != MPI_STATUSES_IGNORE && k < array_.library_count(); ++k)
            user_[array_.place(k)] = own_[k];
    }

private:
    const mixed_array &array_;
    MPI_Status *const user_;
    scratch<MPI_Status> own_;
};

// Where MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE are no null pointers, a null pointer is a mistake.
inline bool is_null(const MPI_Status *status) { return status == nullptr && status != MPI_STATUS_IGNORE; }
inline int raise_null(const request *r, const char *call, const char *argument) {
    const status bad = failure(MPI_ERR_ARG, format("{} is a null pointer", argument));
    return r == nullptr ? raise(MPI_COMM_NULL, call, bad) : raise(*r, call, bad);
}
[[gnu::cold]] inline int raise_negative(const char *call, const char *argument, int n) {
    return raise(MPI_COMM_NULL, call, failure(MPI_ERR_COUNT, format("{} is {}; it is at least 0", argument, n)));
}

// The first argument that is a null pointer, if any.
inline const char *null_of_some(const int *outcount, const int *indices, const MPI_Status *statuses) {
    return outcount == nullptr  ? "outcount"
           : indices == nullptr ? "array_of_indices"
           : is_null(statuses)  ? "array_of_statuses"
                                : nullptr;
}

inline void set_error(MPI_Status *status, int error_class) {
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error_class;
}

// Whether the library's array calls write MPI_SUCCESS to the statuses of requests that have not failed; programs may
// rely on it. MPI_Waitall does in both libraries.
#if defined(OPEN_MPI)
constexpr bool array_calls_write_success = true;
#else
constexpr bool array_calls_write_success = false;
#endif

}  // namespace mpix

#endif  // MPIX_HOST_MPI_MIXED_ARRAY_H
