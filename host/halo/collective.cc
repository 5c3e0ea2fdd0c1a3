// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo/collective.h"

#include <algorithm>
#include <string>
#include <utility>

#include <mpix/halo.hpp>

#include "host/field/neighbours.h"
#include "host/format.h"
#include "host/halo/usable.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

// "4, 5"
std::string values_text(const argument &a) {
    if (a.is_text) return {a.values.begin(), a.values.end()};
    if (a.name_of != nullptr && a.values.size() == 1) return a.name_of(a.values[0]);
    if (a.is_real && a.values.size() == 1) return format("{}", std::bit_cast<double>(a.values[0]));
    std::string text;
    for (const std::int64_t value : a.values) text += format("{}{}", text.empty() ? "" : ", ", value);
    return text;
}

// Of equal arguments equal.
std::int64_t digest_of(const std::vector<argument> &arguments) {
    std::uint64_t digest = 14695981039346656037U;  // FNV-1a, by words
    const auto add = [&](std::uint64_t word) {
        digest = (digest ^ word) * 1099511628211U;
        digest ^= digest >> 32;
    };
    for (const argument &a : arguments) {
        add(a.values.size());
        for (const std::int64_t value : a.values) add(static_cast<std::uint64_t>(value));
    }
    return static_cast<std::int64_t>(digest);
}

// Throws the sentence of rank `from` on all ranks.
[[noreturn]] void throw_from(int from, MPI_Comm comm, const char *where, const status &mine) {
    std::string sentence = mine.message();
    int described[2] = {class_of(mine), static_cast<int>(sentence.size())};
    demand(MPI_Bcast(described, 2, MPI_INT, from, comm), "MPI_Bcast");
    sentence.resize(static_cast<std::size_t>(described[1]));
    demand(MPI_Bcast(sentence.data(), described[1], MPI_CHAR, from, comm), "MPI_Bcast");
    throw error(described[0], format("{}, rank {}: {}", where, from, sentence));
}

// A failure that names the first argument that is not as on rank 0.
status first_disagreement(MPI_Comm comm, const std::vector<argument> &mine) {
    int arguments = static_cast<int>(mine.size());
    demand(MPI_Bcast(&arguments, 1, MPI_INT, 0, comm), "MPI_Bcast");
    status first;
    for (std::size_t i = 0; i < static_cast<std::size_t>(arguments); ++i) {
        const argument a = i < mine.size() ? mine[i] : argument{};
        int count = static_cast<int>(a.values.size());
        demand(MPI_Bcast(&count, 1, MPI_INT, 0, comm), "MPI_Bcast");
        argument theirs = a;
        theirs.values.resize(static_cast<std::size_t>(count));
        demand(MPI_Bcast(theirs.values.data(), count, MPI_INT64_T, 0, comm), "MPI_Bcast");
        if (theirs.values != a.values && first.ok())
            first = failure(MPI_ERR_ARG, format("{} {} {}{} here, and {} on rank 0; all ranks give the same", a.name,
                                                a.verb, values_text(a), a.counted, values_text(theirs)));
    }
    return first;
}

// Of this thread: for the next check, if not empty.
thread_local std::string refusal;

}  // namespace

void refuse_next(std::string sentence) { refusal = std::move(sentence); }

error::~error() = default;

argument as_argument(collective_call call) {
    const auto name_of = [](std::int64_t which) {
        constexpr const char *names[] = {"mpix::halo::exchange", "mpix::halo::stream_exchange",
                                         "mpix::halo::kernel_exchange", "mpix::halo::gather"};
        return which < 0 || which > 3 ? "another one" : names[which];
    };
    return {.name = "the call", .values = {static_cast<std::int64_t>(call)}, .name_of = name_of};
}

void append_radius(std::vector<argument> &to, const std::string &name, const radius &r) {
    for (int number = 0; number < directions; ++number)
        if (number != no_direction)
            to.push_back({format("{} in direction {}", name, direction_name(number)), {r.cells[number]}});
}

void demand(int code, const char *call) {
    if (code == MPI_SUCCESS) return;
    int error_class = MPI_ERR_OTHER;
    MPI_Error_class(code, &error_class);
    throw error(error_class, format("{}: {}", call, text_of(code, call)));
}

std::string text_of(int code, std::string_view call) {
    int length = 0;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    MPI_Error_string(code, text, &length);
    const std::string prefix = format("{}: ", call);
    return std::string_view(text).starts_with(prefix) ? text + prefix.size() : text;
}

void check_collectively(MPI_Comm comm, const char *where, const status &given, const std::vector<argument> &arguments) {
    demand_mpi_for(where);
    const std::string refused = std::exchange(refusal, {});
    const status mine = refused.empty() ? given : failure(MPI_ERR_ARG, refused);
    int rank = 0, size = 0;
    demand(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    demand(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    // The lowest rank that has failed, and the least and, complemented, the greatest digest.
    const std::int64_t digest = digest_of(arguments);
    const std::int64_t here[3] = {mine.ok() ? size : rank, digest, ~digest};
    std::int64_t all[3] = {};
    demand(MPI_Allreduce(here, all, 3, MPI_INT64_T, MPI_MIN, comm), "MPI_Allreduce");
    if (all[0] < size) throw_from(static_cast<int>(all[0]), comm, where, mine);
    if (all[1] == ~all[2]) return;
    const status differs = first_disagreement(comm, arguments);
    const int found = differs.ok() ? size : rank;
    int first = size;
    demand(MPI_Allreduce(&found, &first, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    throw_from(first, comm, where, differs);
}

int wait_all(int count, MPI_Request *requests, int &error_class) {
    std::vector<MPI_Status> statuses(static_cast<std::size_t>(count));
    const int code = MPI_Waitall(count, requests, statuses.data());
    MPI_Error_class(code, &error_class);
    if (error_class != MPI_ERR_IN_STATUS) return code;
    error_class = MPI_ERR_PENDING;
    for (const MPI_Status &s : statuses)
        if (s.MPI_ERROR != MPI_SUCCESS && s.MPI_ERROR != MPI_ERR_PENDING) MPI_Error_class(s.MPI_ERROR, &error_class);
    return code;
}

}  // namespace mpix::halo
