// SPDX-License-Identifier: BSD-3-Clause
//
// Whether an exchange, of whichever kind, can be used: not after it has been moved from, nor after a call has failed,
// nor where MPI cannot be called. And what becomes of it if messages may come after its destructor.
#ifndef MPIX_HOST_HALO_USABLE_H
#define MPIX_HOST_HALO_USABLE_H

#include <mpi.h>

#include <atomic>
#include <memory>
#include <string>

#include <mpix/halo.hpp>

#include "host/format.h"
#include "host/mpi/thread_check.h"
#include "host/report.h"

namespace mpix::halo {

// What an exchange of class `kind` consists of, for one of its functions.
template <class State>
auto &demand_state(const State &state, const char *kind, const char *function) {
    if (!state) throw error(MPI_ERR_REQUEST, format("{}::{}: the exchange has been moved from", kind, function));
    return *state;
}

// Throws error, if a function that calls MPI cannot do so here: `kind`, or its member `function`.
inline void demand_mpi_for(const char *kind, const char *function = nullptr) {
    const auto name = [&] { return function == nullptr ? std::string(kind) : format("{}::{}", kind, function); };
    if (!mpi_is_up()) [[unlikely]]
        throw error(MPI_ERR_OTHER, format("{}: call it between MPI_Init and MPI_Finalize", name()));
    if (checks_threads && called_by_wrong_thread()) [[unlikely]]
        throw error(MPI_ERR_OTHER, format("{}: {}", name(), wrong_thread().message()));
}

// demand_state, for a function that calls MPI.
template <class State>
auto &demand_usable(const State &state, const char *kind, const char *function) {
    auto &used = demand_state(state, kind, function);
    demand_mpi_for(kind, function);
    return used;
}

// Does `work`. If it throws, fail(error class) notes first that the exchange has failed.
template <class Work, class Fail>
void do_or_fail(const Work &work, const Fail &fail) {
    try {
        work();
    } catch (const error &e) {
        fail(e.error_class());
        throw;
    } catch (...) {
        fail(MPI_ERR_NO_MEM);
        throw;
    }
}

// Keeps what an exchange consists of until the process ends, since messages may still come. It remains reachable, and so is no
// leak to those who look for leaks.
template <class State>
void keep(std::unique_ptr<State> state) {
    static std::atomic<State *> last{nullptr};
    State *const kept = state.release();
    kept->kept_before = last.exchange(kept, std::memory_order_relaxed);  // nobody follows it
}

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_USABLE_H
