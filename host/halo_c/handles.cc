// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_c/handles.h"

#include <string_view>
#include <utility>

#include "host/format.h"
#include "host/halo/collective.h"

namespace mpix::halo {
namespace {
thread_local wording callers_wording = nullptr;
}

worded_as::worded_as(wording how) : before_(std::exchange(callers_wording, how)) {}
worded_as::~worded_as() { callers_wording = before_; }

std::string in_callers_words(std::string sentence) {
    return callers_wording == nullptr ? sentence : callers_wording(std::move(sentence));
}

// Without interposition: nothing is sent on it.
error_comm::error_comm(MPI_Comm other) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    demand(PMPI_Comm_get_errhandler(other, &handler), "MPI_Comm_get_errhandler");
    int code = PMPI_Comm_dup(MPI_COMM_SELF, &comm_);
    if (code == MPI_SUCCESS) PMPI_Comm_set_errhandler(comm_, handler);
    PMPI_Errhandler_free(&handler);
    demand(code, "MPI_Comm_dup");
}

error_comm::~error_comm() {
    int finalized = 0;
    PMPI_Finalized(&finalized);
    if (comm_ != MPI_COMM_NULL && !finalized) PMPI_Comm_free(&comm_);
}

void demand_argument(const void *argument, const char *name) {
    if (argument == nullptr) throw error(MPI_ERR_ARG, format("{} is null", name));
}

// "mpix::halo::exchange, rank 1: ..." and "mpix::halo::exchange::ready: ...", of which the C function's name takes the
// place.
std::string with_names(std::string sentence, argument_names names) {
    for (const auto &[in_cpp, in_c] : names)
        for (std::size_t at = 0; (at = sentence.find(in_cpp, at)) != std::string::npos; at += in_c.size())
            sentence.replace(at, in_cpp.size(), in_c);
    return sentence;
}

std::string sentence_in_c(const std::string &sentence) {
    constexpr std::string_view ours = "mpix::halo::";
    if (!sentence.starts_with(ours)) return sentence;
    std::size_t end = ours.size();
    while (end < sentence.size() && sentence[end] != ',' && !(sentence[end] == ':' && sentence[end + 1] == ' ')) ++end;
    return end + 2 <= sentence.size() ? sentence.substr(end + 2) : sentence;
}

}  // namespace mpix::halo
