// SPDX-License-Identifier: BSD-3-Clause
#include "host/report.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <utility>

#include "host/config.h"
#include "host/format.h"
#include "host/request/request.h"

namespace mpix {
namespace {

struct last_error {
    int returned = MPI_SUCCESS, in_status = MPI_SUCCESS;
    std::string sentence;
    bool printed = false;
};
thread_local last_error last;

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

// The handler may make errors of its own, on any communicator; what is told afterwards is this one.
int raise_on(MPI_Comm comm, const last_error &what) {
    last = what;
    if (!what.printed && fatal(comm)) say(what.sentence);
    PMPI_Comm_call_errhandler(comm, what.returned);
    last = what;
    return what.returned;
}

int raise_for(const request &r, const last_error &what) {
    const std::shared_ptr<const communicator> members = r.op.members;  // the handler may free the request
    // acquire: pairs with the release in communicator_registry::remove.
    const MPI_Errhandler kept = members->last_handler.load(std::memory_order_acquire);
    if (kept == MPI_ERRHANDLER_NULL) return raise_on(r.op.comm, what);
    static std::recursive_mutex one_at_a_time;  // the handler may come here again
    const std::lock_guard lock(one_at_a_time);
    PMPI_Comm_set_errhandler(communicators().stand_in(), kept);
    return raise_on(communicators().stand_in(), what);
}

}  // namespace

void say(const std::string &line) {
    int up = 0, down = 0, rank = -1;
    PMPI_Initialized(&up);
    PMPI_Finalized(&down);
    if (up && !down) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const std::string whole = rank < 0 ? format("mpix: {}\n", line) : format("mpix: world rank {}: {}\n", rank, line);
    std::fwrite(whole.data(), 1, whole.size(), stderr);  // one call, so that lines of several ranks stay whole
}

int raise(MPI_Comm comm, const char *call, const problem &what) {
    if (comm == MPI_COMM_NULL) comm = MPI_COMM_WORLD;
    return raise_on(comm, {what.error_class, what.error_class, format("{}: {}", call, what.sentence), what.printed});
}

int raise(const request &r, const char *call, const problem &what) {
    return raise_for(r, {what.error_class, what.error_class, format("{}: {}", call, what.sentence), what.printed});
}

int raise_in_status(const request &r, const char *call, const problem &first) {
    return raise_for(r, {MPI_ERR_IN_STATUS, first.error_class, format("{}: {}", call, first.sentence), first.printed});
}

const std::string &last_sentence(int error_class) {
    static const std::string none;
    return error_class == last.returned || error_class == last.in_status ? last.sentence : none;
}

void forget_sentence() { last = {}; }

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

void notice_stall(const char *call, double waited, const stall &s) {
    const double limit = config().stall_seconds;
    const std::string end = limit > 0 ? format("it gives up after {} s", limit) : "it does not give up";
    say(format("WAITING in {} for {:.1f} s: {}; {} (MPIX_STALL_SECONDS)", call, waited, describe(s), end));
}

problem report_stall(const char *call, double waited, const stall &s) {
    const std::string sentence = format("no completion after {:.1f} s: {}", waited, describe(s));
    say(format("STALL in {}: {}", call, sentence));
    return {MPI_ERR_PENDING, sentence, true};
}

}  // namespace mpix
