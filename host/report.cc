// SPDX-License-Identifier: BSD-3-Clause
#include "host/report.h"

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>

#include "host/config.h"
#include "host/format.h"

namespace mpix {
namespace {

// Of fixed size, without a destructor: it must work without memory, and at exit, after the destructors of this thread's
// objects.
struct last_error {
    int returned, in_status;
    char sentence[MPI_MAX_ERROR_STRING];
};
static_assert(std::is_trivially_destructible_v<last_error>);
constinit thread_local last_error last{MPI_SUCCESS, MPI_SUCCESS, ""};
constinit thread_local bool handler_threw = false;
constinit std::atomic<std::uint64_t> notices{0}, stall_reports{0};

bool fatal(MPI_Comm comm) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return true;
    bool is_fatal = handler == MPI_ERRORS_ARE_FATAL;
#ifdef MPI_ERRORS_ABORT
    is_fatal = is_fatal || handler == MPI_ERRORS_ABORT;
#endif
    if (handler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler);
    return is_fatal;
}

// One call, so that lines of several ranks do not mix.
void print(std::string_view first, std::string_view second, std::string_view third) {
    char name[64] = "mpix: ", end[] = "\n";
    if (mpi_is_up()) std::snprintf(name, sizeof name, "mpix: world rank %d: ", this_world_rank());
    const auto part = [](std::string_view text) { return iovec{const_cast<char *>(text.data()), text.size()}; };
    const iovec line[] = {part(name), part(first), part(second), part(third), part(end)};
    std::fflush(stderr);
    static_cast<void>(!writev(fileno(stderr), line, std::size(line)));
}

struct raised {
    int returned, in_status;
    const char *call;
    std::string_view sentence;
    bool printed = false;  // a stall report has printed the sentence
};

// The handler may make errors of its own, on any communicator; what is told afterwards is this one.
int raise_on(MPI_Comm comm, const raised &what) {
    last_error mine{what.returned, what.in_status, ""};
    const int length = std::snprintf(mine.sentence, sizeof mine.sentence, "%s: %.*s", what.call,
                                     static_cast<int>(what.sentence.size()), what.sentence.data());
    // MPI_Error_string has no room for all of it, so stderr has the end.
    const bool cut = length >= static_cast<int>(sizeof mine.sentence);
    if (cut) std::strcpy(mine.sentence + sizeof mine.sentence - sizeof "...", "...");
    last = mine;
    if (!what.printed && (cut || fatal(comm))) print(what.call, ": ", what.sentence);
    try {
        PMPI_Comm_call_errhandler(comm, mine.returned);
    } catch (...) {
        handler_threw = true;
        throw;
    }
    last = mine;
    return mine.returned;
}

int raise_for(const request &r, raised what) {
    const error_place at = place_of_errors(r);  // the handler may free the request
    // A sentence that needed no memory does not say for what there was none.
    char named[160];
    if (const status bare = no_memory(); what.sentence == bare.message()) {
        std::snprintf(named, sizeof named, "%s for the partitioned %s rank %d, tag %d, %d partitions",
                      bare.message().c_str(), at.sends ? "send to" : "receive from", at.peer, at.tag, at.partitions);
        what.sentence = named;
    }
    if (at.last_handler == MPI_ERRHANDLER_NULL) return raise_on(at.comm, what);
    static std::recursive_mutex one_at_a_time;  // the handler may come here again
    const std::lock_guard lock(one_at_a_time);
    PMPI_Comm_set_errhandler(at.stand_in, at.last_handler);
    return raise_on(at.stand_in, what);
}

}  // namespace

int class_of_failure(const status &what) {
    static const std::string_view by_system = std::strerror(ENOMEM);
    if (what.given_class() != 0) return what.given_class();
    const bool memory_ran_out = what.out_of_memory() || std::string_view(what.message()).ends_with(by_system);
    return memory_ran_out ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

int this_world_rank() {
    static constinit std::atomic<int> known{-1};
    int rank = known.load(std::memory_order_relaxed);
    if (rank >= 0) return rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    known.store(rank, std::memory_order_relaxed);
    return rank;
}

bool mpi_is_up() {
    int up = 0, down = 0;
    PMPI_Initialized(&up);
    PMPI_Finalized(&down);
    return up && !down;
}

void say(std::string_view line) { print(line, "", ""); }

void demand_mpi(const char *call) {
    if (mpi_is_up()) return;
    int down = 0;
    PMPI_Finalized(&down);
#if defined(MPI_SESSION_NULL)
    constexpr const char *before = "before MPI_Init, which mpix needs beside sessions too";
#else
    constexpr const char *before = "before MPI_Init";
#endif
    say(format("{} was called {}", call, down ? "after MPI_Finalize" : before));
    std::exit(1);
}

static int raise_where_no_request(const raised &what, MPI_Comm comm) {
    demand_mpi(what.call);
    return raise_on(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, what);
}

int raise(MPI_Comm comm, const char *call, int error_class, std::string_view sentence) {
    return raise_where_no_request({error_class, error_class, call, sentence}, comm);
}

int raise(MPI_Comm comm, const char *call, const status &what) {
    const int error_class = class_of(what);
    return raise_where_no_request({error_class, error_class, call, what.message(), what.printed()}, comm);
}

int raise(const request &r, const char *call, const status &what) {
    const int error_class = class_of(what);
    return raise_for(r, {error_class, error_class, call, what.message(), what.printed()});
}

int raise_in_status(const request &r, const char *call, const status &first) {
    return raise_for(r, {MPI_ERR_IN_STATUS, class_of(first), call, first.message(), first.printed()});
}

int class_of_caught(char *sentence, std::size_t room) {
    try {
        throw;
    } catch (const std::bad_alloc &) {
        std::snprintf(sentence, room, "no memory");
        return MPI_ERR_NO_MEM;
    } catch (const std::system_error &e) {
        std::snprintf(sentence, room, "%s", e.what());
        return e.code() == std::errc::not_enough_memory ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
    } catch (const std::exception &e) {
        std::snprintf(sentence, room, "an error within mpix: %s", e.what());
    } catch (...) {
        std::snprintf(sentence, room, "an error within mpix");
    }
    return MPI_ERR_INTERN;
}

// What mpix and the standard library throw in it. Anything else comes from a callback of the program's, by way of the
// MPI library.
static bool can_be_ours() {
    try {
        throw;
    } catch (const std::bad_alloc &) {
        return true;
    } catch (const std::system_error &) {
        return true;
    } catch (const std::logic_error &) {
        return true;
    } catch (...) {
        return false;
    }
}

bool thrown_by_handler() { return handler_threw; }

int raise_caught(const char *call, MPI_Comm comm, const request *r) {
    if (std::exchange(handler_threw, false) || !can_be_ours()) throw;  // for the user
    char sentence[MPI_MAX_ERROR_STRING] = "";
    const int error_class = class_of_caught(sentence, sizeof sentence);
    const raised what{error_class, error_class, call, sentence};
    if (r != nullptr) return raise_for(*r, what);
    if (mpi_is_up()) return raise(comm, call, error_class, sentence);
    print(call, ": ", sentence);
    return error_class;
}

const char *last_sentence(int error_class) {
    return error_class == last.returned || error_class == last.in_status ? last.sentence : "";
}

void forget_sentence() { last = {MPI_SUCCESS, MPI_SUCCESS, ""}; }

std::string ranges(const std::vector<int> &sorted, std::size_t limit) {
    std::string out;
    std::size_t shown = 0;
    for (std::size_t i = 0; i < sorted.size();) {
        std::size_t end = i + 1;
        while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
        if (shown++ == limit) return out + ", ...";
        if (!out.empty()) out += ", ";
        out += end - i == 1 ? format("{}", sorted[i]) : format("{}-{}", sorted[i], sorted[end - 1]);
        i = end;
    }
    return out;
}

namespace {

std::string describe(const stall &s) {
    std::string sentence = format("partitioned {}, peer rank {} (world rank {}), tag {}, epoch {}, path {}", s.kind,
                                  s.peer_rank, s.peer_world_rank, s.tag, s.epoch, s.path);
    if (!s.missing.empty())
        sentence +=
            format("; {} of {} partitions {}: {}", s.missing.size(), s.partitions, s.missing_what, ranges(s.missing));
    for (const std::string &more : {s.remark, s.peer})
        if (!more.empty()) sentence += "; " + more;
    return sentence;
}

}  // namespace

double notice_seconds() {
    constexpr double most = 10;
    const double limit = config().stall_seconds;
    return limit > 0 ? std::min(most, limit / 4) : most;
}

stalls_so_far count_stalls() {
    return {notices.load(std::memory_order_relaxed), stall_reports.load(std::memory_order_relaxed)};
}

void notice_stall(const char *call, double waited, const stall &s) {
    notices.fetch_add(1, std::memory_order_relaxed);
    const double limit = config().stall_seconds;
    const std::string end = limit > 0 ? format("it gives up after {} s", limit) : "it does not give up";
    say(format("WAITING in {} for {:.1f} s: {}; {} (MPIX_STALL_SECONDS)", call, waited, describe(s), end));
}

void notice_unmatched(double waited, const stall &s) {
    notices.fetch_add(1, std::memory_order_relaxed);
    say(format("WAITING for {:.1f} s, but in no MPI call that waits (a kernel, or a loop over MPI_Parrived, may): {}",
               waited, describe(s)));
}

status report_stall(const char *call, double waited, const stall &s) {
    stall_reports.fetch_add(1, std::memory_order_relaxed);
    const std::string sentence = format("no completion after {:.1f} s: {}", waited, describe(s));
    say(format("STALL in {}: {}", call, sentence));
    return failure(MPI_ERR_PENDING, sentence).after_printing();
}

}  // namespace mpix
