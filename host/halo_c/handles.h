// SPDX-License-Identifier: BSD-3-Clause
//
// What the handles of the C interface stand for, and how its functions answer.
#ifndef MPIX_HOST_HALO_C_HANDLES_H
#define MPIX_HOST_HALO_C_HANDLES_H

#include <mpi.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <mpix/halo.h>
#include <mpix/halo.hpp>

#include "host/report.h"

namespace mpix::halo {

// A communicator of this process alone, which has the error handler that another one had.
class error_comm {
public:
    explicit error_comm(MPI_Comm other);
    ~error_comm();
    error_comm(const error_comm &) = delete;
    error_comm &operator=(const error_comm &) = delete;
    MPI_Comm get() const { return comm_; }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace mpix::halo

struct mpix_halo_grid {
    mpix::halo::grid grid;
    std::shared_ptr<const mpix::halo::error_comm> errors;
};

struct mpix_halo_exchange {
    mpix::halo::exchange exchange;
    std::shared_ptr<const mpix::halo::error_comm> errors;
};

namespace mpix::halo {

// Where errors are raised; MPI_COMM_NULL, that is at MPI_COMM_WORLD, for a null handle.
template <class Handle>
MPI_Comm errors_of(const Handle *handle) {
    return handle == nullptr ? MPI_COMM_NULL : handle->errors->get();
}

// Throws error, if an argument is a null pointer or handle.
void demand_argument(const void *argument, const char *name);
template <class Handle>
Handle &demand_handle(Handle *handle, const char *name) {
    demand_argument(handle, name);
    return *handle;
}

// An error's sentence without the name of the C++ function.
std::string sentence_in_c(const std::string &sentence);

// Names of C++ arguments in sentences, each with that of the C function's argument in its place.
using argument_names = std::initializer_list<std::pair<std::string_view, std::string_view>>;
std::string with_names(std::string sentence, argument_names names);

// While an object of this class lives, this thread's error strings pass through `how`, which replaces C's names of
// arguments by those of the calling language.
using wording = std::string (*)(std::string sentence);
class worded_as {
public:
    explicit worded_as(wording how);
    ~worded_as();
    worded_as(const worded_as &) = delete;
    worded_as &operator=(const worded_as &) = delete;

private:
    wording before_;
};
std::string in_callers_words(std::string sentence);

// What the C function `call` returns that does `work`.
template <class Work>
int answer(const char *call, MPI_Comm errors, Work work, argument_names names = {}) {
    int error_class = MPI_SUCCESS;
    std::string sentence;
    try {
        work();
        return MPI_SUCCESS;
    } catch (const error &e) {
        error_class = e.error_class();
        sentence = in_callers_words(with_names(sentence_in_c(e.what()), names));
    }
    return raise(errors, call, error_class, sentence);
}

inline box from_c(const MPIX_Halo_box &b) { return {{b.lo[0], b.lo[1], b.lo[2]}, {b.hi[0], b.hi[1], b.hi[2]}}; }
inline MPIX_Halo_box to_c(const box &b) { return {{b.lo[0], b.lo[1], b.lo[2]}, {b.hi[0], b.hi[1], b.hi[2]}}; }
inline std::array<bool, 3> axes_from_c(const int is[3]) { return {is[0] != 0, is[1] != 0, is[2] != 0}; }
inline index3 from_c(const int64_t cell[3]) { return {cell[0], cell[1], cell[2]}; }

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_C_HANDLES_H
