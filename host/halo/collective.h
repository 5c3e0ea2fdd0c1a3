// SPDX-License-Identifier: BSD-3-Clause
//
// Errors of collective functions: all ranks learn of one.
#ifndef MPIX_HOST_HALO_COLLECTIVE_H
#define MPIX_HOST_HALO_COLLECTIVE_H

#include <mpi.h>

#include <bit>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

// Throws error, if an MPI call that returned `code` has failed.
void demand(int code, const char *call);
// What MPI says of the code that `call` returned, without the name of the call.
std::string text_of(int code, std::string_view call);

// MPI_Waitall, and the class of the request that has failed: MPI_ERR_PENDING, unless another one has.
int wait_all(int count, MPI_Request *requests, int &error_class);

// An argument that all ranks give alike, or an entry of one.
struct argument {
    std::string name;
    std::vector<std::int64_t> values;  // few: a message shows all of them
    std::string_view verb = "is";
    std::string_view counted = {};                   // " boxes", if the value is a number of these
    bool is_real = false;                            // the value is the bit pattern of a double
    bool is_text = false;                            // the values are characters
    const char *(*name_of)(std::int64_t) = nullptr;  // of an enumerator

    static argument real(std::string name, double value) {
        return {.name = std::move(name), .values = {std::bit_cast<std::int64_t>(value)}, .is_real = true};
    }
    static argument text(std::string name, const std::string &text) {
        return {.name = std::move(name), .values = {text.begin(), text.end()}, .is_text = true};
    }
};

// Which of the collective calls that make or do something with fields this is: calls of different ones would meet.
enum class collective_call : std::int64_t { exchange, stream_exchange, kernel_exchange, gather };
argument as_argument(collective_call call);

// Adds the number of each direction.
void append_radius(std::vector<argument> &to, const std::string &name, const radius &r);

// Throws error on all ranks, with the sentence of the lowest rank that has failed, if any has; or else of the lowest
// rank whose arguments are not those of rank 0. `where` is the function. Collective: one reduction, if all is well. On
// this rank alone, if MPI cannot be called here.
void check_collectively(MPI_Comm comm, const char *where, const status &mine,
                        const std::vector<argument> &arguments = {});

// For bindings, whose calls may be refused before they reach a function of ours: the next check_collectively in this
// thread fails with this sentence on all ranks. Empty: it does not.
void refuse_next(std::string sentence);

// What `work` has thrown, as a status, for the collective check that comes next: the other ranks wait in it.
template <class Work>
status outcome_of(const Work &work) {
    try {
        work();
    } catch (const error &e) {
        return failure(e.error_class(), e.what());
    } catch (const std::bad_alloc &) {
        return failure(MPI_ERR_NO_MEM, "no memory");
    }
    return {};
}

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_COLLECTIVE_H
