// SPDX-License-Identifier: BSD-3-Clause
#include "tests/tool_information/names.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>

namespace tool_information {
namespace {

// Not all libraries take null for what is not asked for.
struct rest_of_info {
    int verbosity, var_class, bind, scope, readonly, continuous, atomic, controls, counters, categories;
    MPI_Datatype type;
    MPI_T_enum names;
    name_buffer meaning;
};

template <class NameOf, class Get>
std::multiset<std::string> names(int n, const NameOf &name_of, const Get &get_info) {
    std::multiset<std::string> all;
    for (int i = 0; i < n; ++i) all.insert(name_of(i, get_info));
    return all;
}

// Where each of ours is; and that all others are the library's, none is missing, and none there twice.
template <class NameOf, class Get>
std::map<std::string, int> ours_beside_library(int all, int of_library, const NameOf &name_of, const Get &get,
                                               const Get &get_of_library) {
    std::map<std::string, int> ours;
    std::multiset<std::string> theirs;
    for (int i = 0; i < all; ++i) {
        const std::string name = name_of(i, get);
        if (is_ours(name))
            CHECK(ours.emplace(name, i).second);
        else
            theirs.insert(name);
    }
    CHECK(theirs == names(of_library, name_of, get_of_library));
    CHECK(all == of_library + static_cast<int>(ours.size()));
    CHECK(name_of(all, get).empty() && name_of(-1, get).empty());
    return ours;
}

}  // namespace

void fail(const char *file, int line, const char *what) {
    std::fprintf(stderr, "FAILED %s:%d, world rank %d: %s\n", file, line, rank_in_world, what);
    std::fflush(stderr);
    int up = 0;
    MPI_Initialized(&up);
    if (up) MPI_Abort(MPI_COMM_WORLD, 1);
    std::exit(1);
}

std::string control_name(int index, decltype(&MPI_T_cvar_get_info) get_info) {
    name_buffer name;
    rest_of_info r;
    return get_info(index, name.text, &name.length, &r.verbosity, &r.type, &r.names, r.meaning.text, &r.meaning.length,
                    &r.bind, &r.scope) == MPI_SUCCESS
               ? name.text
               : "";
}
std::string counter_name(int index, decltype(&MPI_T_pvar_get_info) get_info) {
    name_buffer name;
    rest_of_info r;
    return get_info(index, name.text, &name.length, &r.verbosity, &r.var_class, &r.type, &r.names, r.meaning.text,
                    &r.meaning.length, &r.bind, &r.readonly, &r.continuous, &r.atomic) == MPI_SUCCESS
               ? name.text
               : "";
}
std::string category_name(int index, decltype(&MPI_T_category_get_info) get_info) {
    name_buffer name;
    rest_of_info r;
    return get_info(index, name.text, &name.length, r.meaning.text, &r.meaning.length, &r.controls, &r.counters,
                    &r.categories) == MPI_SUCCESS
               ? name.text
               : "";
}

bool is_ours(const std::string &name) { return name.rfind("mpix_", 0) == 0; }

std::map<std::string, int> our_controls() {
    int all = 0, of_library = 0;
    OK(MPI_T_cvar_get_num(&all));
    OK(PMPI_T_cvar_get_num(&of_library));
    return ours_beside_library(all, of_library, control_name, MPI_T_cvar_get_info, PMPI_T_cvar_get_info);
}
std::map<std::string, int> our_counters() {
    int all = 0, of_library = 0;
    OK(MPI_T_pvar_get_num(&all));
    OK(PMPI_T_pvar_get_num(&of_library));
    return ours_beside_library(all, of_library, counter_name, MPI_T_pvar_get_info, PMPI_T_pvar_get_info);
}

}  // namespace tool_information
