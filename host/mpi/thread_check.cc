// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/thread_check.h"

#include <thread>

#include "host/config.h"
#include "host/format.h"

namespace mpix {
namespace {

std::thread::id main_thread;
int told_level = MPI_THREAD_MULTIPLE;

}  // namespace

void start_thread_check(int level) {
    main_thread = std::this_thread::get_id();
    told_level = level;
    checks_threads = config().check && (level == MPI_THREAD_SINGLE || level == MPI_THREAD_FUNNELED);
}

bool called_by_wrong_thread() { return std::this_thread::get_id() != main_thread; }

status wrong_thread() {
    return failure(MPI_ERR_OTHER,
                   format("called by another thread than the one that initialised MPI, but the thread level is {}; ask "
                          "MPI_Init_thread for MPI_THREAD_MULTIPLE, or for MPI_THREAD_SERIALIZED if no two threads "
                          "call at the same time",
                          told_level == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED"));
}

int raise_wrong_thread(const char *call, const boundary::place &where) {
    const status bad = wrong_thread();
    return where.r != nullptr ? raise(*where.r, call, bad) : raise(where.comm, call, bad);
}

}  // namespace mpix
