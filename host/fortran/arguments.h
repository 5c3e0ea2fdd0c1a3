// SPDX-License-Identifier: BSD-3-Clause
//
// Fortran's arguments as C's, and back. Objects of these classes stand for one argument of a routine; the variable of
// the program is written when they end.
#ifndef MPIX_HOST_FORTRAN_ARGUMENTS_H
#define MPIX_HOST_FORTRAN_ARGUMENTS_H

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "host/mpi/scratch.h"
#include "host/report.h"

namespace mpix::fortran {

using fint = MPI_Fint;
static_assert(std::is_same_v<fint, int>, "Fortran's INTEGER is to be as large as C's int");

inline void give(fint *ierror, int code) {
    if (ierror != nullptr) *ierror = code;
}
[[gnu::cold]] inline int no_memory(const char *call) {
    return raise(MPI_COMM_NULL, call, MPI_ERR_NO_MEM, "no memory for an argument that is an array");
}

// ---- handles ------------------------------------------------------------------------------------

inline MPI_Comm comm_of(const fint *f) { return MPI_Comm_f2c(*f); }
inline MPI_Datatype type_of(const fint *f) { return MPI_Type_f2c(*f); }
inline MPI_Group group_of(const fint *f) { return MPI_Group_f2c(*f); }
inline MPI_Info info_of(const fint *f) { return MPI_Info_f2c(*f); }
inline MPI_Request request_of(const fint *f) { return MPI_Request_f2c(*f); }

// A handle that the call may change. What it does not change stays as it is, also if it is no handle.
class changed_request {
public:
    explicit changed_request(fint *f) : f_(f), before_(request_of(f)), c_(before_) {}
    changed_request(const changed_request &) = delete;
    changed_request &operator=(const changed_request &) = delete;
    ~changed_request() {
        if (c_ != before_) *f_ = MPI_Request_c2f(c_);
    }
    operator MPI_Request *() { return &c_; }

private:
    fint *const f_;
    const MPI_Request before_;
    MPI_Request c_;
};

class changed_comm {
public:
    explicit changed_comm(fint *f) : f_(f), before_(comm_of(f)), c_(before_) {}
    changed_comm(const changed_comm &) = delete;
    changed_comm &operator=(const changed_comm &) = delete;
    ~changed_comm() {
        if (c_ != before_) *f_ = MPI_Comm_c2f(c_);
    }
    operator MPI_Comm *() { return &c_; }

private:
    fint *const f_;
    const MPI_Comm before_;
    MPI_Comm c_;
};

// Handles that the call makes: given to the program if it succeeds.
inline void give_request(fint *ierror, int code, fint *f, MPI_Request made) {
    if (code == MPI_SUCCESS) *f = MPI_Request_c2f(made);
    give(ierror, code);
}
inline void give_comm(fint *ierror, int code, fint *f, MPI_Comm made) {
    if (code == MPI_SUCCESS) *f = MPI_Comm_c2f(made);
    give(ierror, code);
}

class changed_requests {
public:
    changed_requests(int count, fint *f) : f_(f), count_(count), before_(count), c_(count) {
        if (!*this) return;
        for (int i = 0; i < count_; ++i) c_[i] = before_[i] = request_of(&f_[i]);
    }
    changed_requests(const changed_requests &) = delete;
    changed_requests &operator=(const changed_requests &) = delete;
    ~changed_requests() {
        if (!*this) return;
        for (int i = 0; i < count_; ++i)
            if (c_[i] != before_[i]) f_[i] = MPI_Request_c2f(c_[i]);
    }
    explicit operator bool() const { return before_ && c_; }
    MPI_Request *get() { return c_.get(); }

private:
    fint *const f_;
    const int count_;
    scratch<MPI_Request> before_, c_;
};

// ---- buffers, text ------------------------------------------------------------------------------

#if defined(OPEN_MPI)
extern "C" {
// Fortran's MPI_BOTTOM, if the process has one: it belongs to the MPI library's Fortran.
extern const fint mpix_fortran_bottom __asm__("mpi_fortran_bottom_") __attribute__((weak));
}
inline void *address_of(void *f) { return f == &mpix_fortran_bottom ? MPI_BOTTOM : f; }
#endif

// Fills the program's text with blanks.
inline std::size_t give_text(char *f, std::size_t room, const char *text, std::size_t length) {
    const std::size_t used = std::min(length, room);
    std::memcpy(f, text, used);
    std::memset(f + used, ' ', room - used);
    return used;
}

// Without the blanks at its end.
class text {
public:
    text(const char *f, std::size_t length) : c_(static_cast<int>(length) + 1) {
        if (!c_) return;
        while (length > 0 && f[length - 1] == ' ') --length;
        std::memcpy(c_.get(), f, length);
        c_[static_cast<int>(length)] = '\0';
    }
    explicit operator bool() const { return static_cast<bool>(c_); }
    const char *get() { return c_.get(); }

private:
    scratch<char> c_;
};

// ---- statuses -----------------------------------------------------------------------------------

constexpr int status_size = sizeof(MPI_Status) / sizeof(fint);
#if defined(OPEN_MPI)
// The modules and mpif.h have the same variables.
inline bool is_ignore(const fint *f) { return f == MPI_F_STATUS_IGNORE; }
inline bool are_ignore(const fint *f) { return f == MPI_F_STATUSES_IGNORE; }
#else
// Those of mpi_f08. MPICH before 5 declares them also where it was built without Fortran and lacks them.
#pragma weak MPI_F08_STATUS_IGNORE
#pragma weak MPI_F08_STATUSES_IGNORE
inline bool is_ignore(const fint *f) {
    return &MPI_F08_STATUS_IGNORE != nullptr && static_cast<const void *>(f) == MPI_F08_STATUS_IGNORE;
}
inline bool are_ignore(const fint *f) {
    return &MPI_F08_STATUSES_IGNORE != nullptr && static_cast<const void *>(f) == MPI_F08_STATUSES_IGNORE;
}
#endif

// Begins as a copy of the program's, since the library does not write all fields.
class changed_status {
public:
    explicit changed_status(fint *f) : f_(is_ignore(f) ? nullptr : f) {
        if (f_ != nullptr) MPI_Status_f2c(f_, &c_);
    }
    changed_status(const changed_status &) = delete;
    changed_status &operator=(const changed_status &) = delete;
    ~changed_status() {
        if (f_ != nullptr) MPI_Status_c2f(&c_, f_);
    }
    operator MPI_Status *() { return f_ == nullptr ? MPI_STATUS_IGNORE : &c_; }

private:
    fint *const f_;
    MPI_Status c_;
};

class changed_statuses {
public:
    changed_statuses(int count, fint *f)
        : f_(are_ignore(f) ? nullptr : f), count_(count), c_(f_ == nullptr ? 0 : count) {
        if (f_ == nullptr || !*this) return;
        for (int i = 0; i < count_; ++i) MPI_Status_f2c(f_ + i * status_size, &c_[i]);
    }
    changed_statuses(const changed_statuses &) = delete;
    changed_statuses &operator=(const changed_statuses &) = delete;
    ~changed_statuses() {
        if (f_ == nullptr || !*this) return;
        for (int i = 0; i < count_; ++i) MPI_Status_c2f(&c_[i], f_ + i * status_size);
    }
    explicit operator bool() const { return static_cast<bool>(c_); }
    MPI_Status *get() { return f_ == nullptr ? MPI_STATUSES_IGNORE : c_.get(); }

private:
    fint *const f_;
    const int count_;
    scratch<MPI_Status> c_;
};

// ---- logicals, indices --------------------------------------------------------------------------

inline int logical_of(const fint *f) { return *f != 0; }

// One that the call may set. What it was before does not matter: Fortran's intent(out) may have any bits.
class made_logical {
public:
    explicit made_logical(fint *f) : f_(f) {}
    made_logical(const made_logical &) = delete;
    made_logical &operator=(const made_logical &) = delete;
    ~made_logical() {
        if (c_ != untouched) *f_ = c_ != 0;
    }
    operator int *() { return &c_; }

private:
    static constexpr int untouched = std::numeric_limits<int>::min();
    fint *const f_;
    int c_ = untouched;
};

class logicals {
public:
    logicals(int count, const fint *f) : c_(count) {
        for (int i = 0; c_ && i < count; ++i) c_[i] = logical_of(&f[i]);
    }
    explicit operator bool() const { return static_cast<bool>(c_); }
    const int *get() { return c_.get(); }

private:
    scratch<int> c_;
};

// The place of an element in an array, from 1 on. (Partitions and ranks are numbered from 0, as in C.)
class made_index {
public:
    explicit made_index(fint *f) : f_(f) {}
    made_index(const made_index &) = delete;
    made_index &operator=(const made_index &) = delete;
    ~made_index() {
        if (c_ != untouched) *f_ = c_ >= 0 ? c_ + 1 : c_;
    }
    operator int *() { return &c_; }

private:
    static constexpr int untouched = std::numeric_limits<int>::min();
    fint *const f_;
    int c_ = untouched;
};

// Several, and how many.
class made_indices {
public:
    made_indices(fint *outcount, fint *f) : outcount_(outcount), f_(f) {}
    made_indices(const made_indices &) = delete;
    made_indices &operator=(const made_indices &) = delete;
    ~made_indices() {
        if (c_ == untouched) return;
        *outcount_ = c_;
        for (int i = 0; i < c_; ++i) ++f_[i];
    }
    int *count() { return &c_; }
    int *get() { return f_; }

private:
    static constexpr int untouched = std::numeric_limits<int>::min();
    fint *const outcount_, *const f_;
    int c_ = untouched;
};

}  // namespace mpix::fortran

#endif  // MPIX_HOST_FORTRAN_ARGUMENTS_H
