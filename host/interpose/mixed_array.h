// SPDX-License-Identifier: BSD-3-Clause
//
// An array of requests as the completion calls get it: ours among the library's, null and inactive ones.
#ifndef MPIX_HOST_INTERPOSE_MIXED_ARRAY_H
#define MPIX_HOST_INTERPOSE_MIXED_ARRAY_H

#include <mpi.h>

#include "host/format.h"
#include "host/interpose/scratch.h"
#include "host/request/request.h"

namespace mpix {

// Only active requests of ours need us, and those of which an error is to be told. The handle of an inactive one is an inactive request of the library's as well, so
// the library answers for it as for any other, and gets to see the array with our active ones replaced by
// MPI_REQUEST_NULL.
inline request *active_request(const MPI_Request *handle) {
    request *const r = handle == nullptr ? nullptr : find_request(*handle);
    return r != nullptr && r->concerns_caller() ? r : nullptr;
}

class mixed_array {
public:
    mixed_array(int count, const MPI_Request *handles)
        : count_(first_of_ours(count, handles) < count ? count : 0), mine_(count_), library_(count_) {
        if (count_ == 0 || !enough_memory()) return;
        for (int i = 0; i < count; ++i) {
            mine_[i] = active_request(&handles[i]);
            library_[i] = mine_[i] != nullptr ? MPI_REQUEST_NULL : handles[i];
            has_library_ = has_library_ || library_[i] != MPI_REQUEST_NULL;
        }
    }
    // If not, the whole array is the library's affair.
    bool any_ours() const { return count_ > 0; }
    bool enough_memory() const { return mine_ && library_; }
    problem no_memory() const { return {MPI_ERR_NO_MEM, format("no memory for an array of {} requests", count_)}; }
    int count() const { return count_; }
    request *mine(int i) const { return mine_[i]; }
    // One of ours that is still active: the others have been completed by this very call.
    request *first_active() const {
        for (int i = 0; i < count_; ++i)
            if (mine_[i] != nullptr && mine_[i]->concerns_caller()) return mine_[i];
        return nullptr;
    }
    bool has_library() const { return has_library_; }
    MPI_Request *library() { return library_.get(); }
    // The library has set completed requests of its own to null; pass that on.
    void take_over(int i, MPI_Request *handles) const {
        if (mine_[i] == nullptr) handles[i] = library_[i];
    }
    void take_over_all(MPI_Request *handles) const {
        for (int i = 0; i < count_; ++i) take_over(i, handles);
    }

private:
    static int first_of_ours(int n, const MPI_Request *handles) {
        if (handles == nullptr || requests().size() == 0) return n;
        int i = 0;
        while (i < n && active_request(&handles[i]) == nullptr) ++i;
        return i;
    }

    int count_;
    bool has_library_ = false;
    scratch<request *> mine_;
    scratch<MPI_Request> library_;
};

// Where MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE are no null pointers, a null pointer is a mistake.
inline bool is_null(const MPI_Status *status) { return status == nullptr && status != MPI_STATUS_IGNORE; }
inline int raise_null(const request &r, const char *call, const char *argument) {
    return raise(r, call, {MPI_ERR_ARG, format("{} is a null pointer", argument)});
}

inline MPI_Status *at(MPI_Status *statuses, int i) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

inline void set_error(MPI_Status *status, int error_class) {
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error_class;
}

}  // namespace mpix

#endif  // MPIX_HOST_INTERPOSE_MIXED_ARRAY_H
