// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo/collective.h"

#include <algorithm>

#include <mpix/halo.hpp>

#include "host/format.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

std::string listed(const std::vector<std::int64_t> &values) {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i == 6 && values.size() > 7) return text + ", ...";
        text += format("{}{}", i == 0 ? "" : ", ", values[i]);
    }
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
status difference(MPI_Comm comm, const std::vector<argument> &mine) {
    int arguments = static_cast<int>(mine.size());
    demand(MPI_Bcast(&arguments, 1, MPI_INT, 0, comm), "MPI_Bcast");
    status first;
    for (std::size_t i = 0; i < static_cast<std::size_t>(arguments); ++i) {
        const argument a = i < mine.size() ? mine[i] : argument{};
        int count = static_cast<int>(a.values.size());
        demand(MPI_Bcast(&count, 1, MPI_INT, 0, comm), "MPI_Bcast");
        std::vector<std::int64_t> theirs = a.values;
        theirs.resize(static_cast<std::size_t>(count));
        demand(MPI_Bcast(theirs.data(), count, MPI_INT64_T, 0, comm), "MPI_Bcast");
        if (theirs != a.values && first.ok())
            first = failure(MPI_ERR_ARG, format("{} is {} here, and {} on rank 0; all ranks give the same", a.name,
                                                listed(a.values), listed(theirs)));
    }
    return first;
}

}  // namespace

error::~error() = default;

void demand(int code, const char *call) {
    if (code == MPI_SUCCESS) return;
    int error_class = MPI_ERR_OTHER, length = 0;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    MPI_Error_class(code, &error_class);
    MPI_Error_string(code, text, &length);
    throw error(error_class, format("{}: {}", call, text));
}

void check_collectively(MPI_Comm comm, const char *where, const status &mine, const std::vector<argument> &arguments) {
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
    const status differs = difference(comm, arguments);
    const int found = differs.ok() ? size : rank;
    int first = size;
    demand(MPI_Allreduce(&found, &first, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    throw_from(first, comm, where, differs);
}

}  // namespace mpix::halo
