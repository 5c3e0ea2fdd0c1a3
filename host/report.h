// SPDX-License-Identifier: BSD-3-Clause
//
// What the user gets to see: errors through the communicator's handler, and the stall report.
#ifndef MPIX_HOST_REPORT_H
#define MPIX_HOST_REPORT_H

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transport/status.h"

namespace mpix {

class request;
struct communicator;

// The class of an operation whose peer's process has ended: the library's own, where it has one.
#ifdef MPIX_ERR_PROC_FAILED
constexpr int process_failed = MPIX_ERR_PROC_FAILED;
#else
constexpr int process_failed = MPI_ERR_OTHER;
#endif

// The class of a failure: the one that it was made with, else MPI_ERR_NO_MEM if memory ran out, here or in a system
// call, else MPI_ERR_OTHER.
int class_of_failure(const status &what);
// The same, or MPI_SUCCESS.
inline int class_of(const status &what) { return what.ok() ? MPI_SUCCESS : class_of_failure(what); }

// Where the errors of a request are raised, and what it is. The user may have freed its communicator: then
// `last_handler` is the one that this had last, to be called with `stand_in`.
struct error_place {
    std::shared_ptr<const communicator> members;  // keeps the handler
    MPI_Comm comm, stand_in;
    MPI_Errhandler last_handler;
    bool sends;
    int peer, tag, partitions;
};
error_place place_of_errors(const request &r);  // in request.cc

// Raise it through the handler of the request's communicator on behalf of the MPI call `call`. With a fatal handler the
// sentence is printed and the program ends; with another one the class is returned after the handler has run. The
// user may have freed the communicator: then it is the handler that it had last, called with a communicator of ours.
int raise(const request &r, const char *call, const status &what);
// The same for a call on an array: MPI_ERR_IN_STATUS is raised, the statuses have the classes.
int raise_in_status(const request &r, const char *call, const status &first);
// Between MPI_Init and MPI_Finalize. Any thread may ask.
bool mpi_is_up();
// Between MPI_Init and MPI_Finalize. Asks the MPI library only once, in MPI_Init: then any thread may ask, also the
// progress thread where it may not call the library.
int this_world_rank();
// Before MPI_Init and after MPI_Finalize there is no error handler: prints the name of `call` and exits, as the MPI
// libraries do.
void demand_mpi(const char *call);
// Where there is no request: the handler of `comm`, an argument of the call, or null for MPI_COMM_WORLD.
int raise(MPI_Comm comm, const char *call, const status &what);

// The same, without allocating memory.
int raise(MPI_Comm comm, const char *call, int error_class, std::string_view sentence);
// Whether the exception in flight is one of an error handler that raise has called.
bool thrown_by_handler();
// The exception that is being handled, raised as an error of `call`: through the handler of the request's communicator,
// or, if that is null, of `comm`. Needs no memory.
int raise_caught(const char *call, MPI_Comm comm, const request *r);
// Its class, and a sentence.
int class_of_caught(char *sentence, std::size_t room);

// The sentence of this thread's last error, if `error_class` is what it returned or put into a status; otherwise
// empty.
const char *last_sentence(int error_class);
// Forget it: the thread has an error of the library's, whose code may well be the same.
void forget_sentence();
// For what a call of the library's gives.
inline int from_library(int code) {
    if (code != MPI_SUCCESS) forget_sentence();
    return code;
}

// "0-3, 7" out of a sorted list; at most `limit` ranges, then "...".
std::string ranges(const std::vector<int> &sorted, std::size_t limit = 16);

// What is known of a request that does not get on.
struct stall {
    const char *kind = "";  // "send" or "receive"
    int peer_rank = 0, peer_world_rank = 0, tag = 0, partitions = 0;
    std::uint64_t epoch = 0;
    std::string path = {};          // or why there is none yet
    const char *missing_what = "";  // "not ready" or "not arrived"
    std::vector<int> missing = {};  // own partitions
    std::string remark = {};        // anything else that explains it
    std::string peer = {};          // the peer's state, or its unmatched requests
};

// When a wait prints its first notice: after 10 s, or a quarter of MPIX_STALL_SECONDS if that is less.
double notice_seconds();
// Print that a wait continues.
void notice_stall(const char *call, double waited, const stall &s);
// The same where no call of the host waits: a kernel may.
void notice_unmatched(double waited, const stall &s);
// How many of these lines this process has printed, notices of whatever kind and stall reports.
struct stalls_so_far {
    std::uint64_t notices, reports;
};
stalls_so_far count_stalls();
// Print the stall report, one line on stderr, and make the error that the waiting call gives.
status report_stall(const char *call, double waited, const stall &s);

// A line on stderr with our name and world rank. Needs no memory.
void say(std::string_view line);

}  // namespace mpix

#endif  // MPIX_HOST_REPORT_H
