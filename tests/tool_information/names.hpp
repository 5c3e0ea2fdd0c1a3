// SPDX-License-Identifier: BSD-3-Clause
//
// The names that variables and categories have to a tool, and how these tests fail.
#ifndef MPIX_TESTS_TOOL_INFORMATION_NAMES_HPP
#define MPIX_TESTS_TOOL_INFORMATION_NAMES_HPP

#include <mpi.h>
#include <mpix/mpix.h>

#include <map>
#include <string>

namespace tool_information {

inline int rank_in_world = -1;

[[noreturn]] void fail(const char *file, int line, const char *what);
#define CHECK(condition) ((condition) ? void() : ::tool_information::fail(__FILE__, __LINE__, #condition))
#define OK(call) CHECK((call) == MPI_SUCCESS)

using number = unsigned long long;

constexpr int room = 1024;
struct name_buffer {
    char text[room] = "";
    int length = room;
};

// Of mpix by default; or, by the PMPI_ function, of the MPI library. Empty: there is none of that index.
std::string control_name(int index, decltype(&MPI_T_cvar_get_info) get_info = MPI_T_cvar_get_info);
std::string counter_name(int index, decltype(&MPI_T_pvar_get_info) get_info = MPI_T_pvar_get_info);
std::string category_name(int index, decltype(&MPI_T_category_get_info) get_info = MPI_T_category_get_info);

bool is_ours(const std::string &name);
// Name -> index of each of ours. Checks that all others are the library's, that none is missing, and none there twice.
std::map<std::string, int> our_controls();
std::map<std::string, int> our_counters();

}  // namespace tool_information

#endif  // MPIX_TESTS_TOOL_INFORMATION_NAMES_HPP
