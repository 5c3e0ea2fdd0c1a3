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

void throw_if_any_failed(MPI_Comm comm, const char *where, const status &mine) {
    int rank = 0, size = 0, first = 0;
    demand(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    demand(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    const int failed = mine.ok() ? size : rank;
    demand(MPI_Allreduce(&failed, &first, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    if (first == size) return;
    std::string sentence = mine.message();
    int described[2] = {class_of(mine), static_cast<int>(sentence.size())};
    demand(MPI_Bcast(described, 2, MPI_INT, first, comm), "MPI_Bcast");
    sentence.resize(static_cast<std::size_t>(described[1]));
    demand(MPI_Bcast(sentence.data(), described[1], MPI_CHAR, first, comm), "MPI_Bcast");
    throw error(described[0], format("{}, rank {}: {}", where, first, sentence));
}

status same_as_rank_0(MPI_Comm comm, const std::vector<argument> &mine) {
    int rank = 0;
    demand(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    status first;
    for (const argument &a : mine) {
        int count = static_cast<int>(a.values.size());
        demand(MPI_Bcast(&count, 1, MPI_INT, 0, comm), "MPI_Bcast");
        std::vector<std::int64_t> theirs = a.values;
        theirs.resize(static_cast<std::size_t>(count));
        demand(MPI_Bcast(theirs.data(), count, MPI_INT64_T, 0, comm), "MPI_Bcast");
        if (theirs == a.values && count == static_cast<int>(a.values.size())) continue;
        if (first.ok())
            first = failure(MPI_ERR_ARG, format("{} is {} here, and {} on rank 0; all ranks give the same", a.name,
                                                listed(a.values), listed(theirs)));
    }
    return first;
}

}  // namespace mpix::halo
