// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T_category_* and MPI_T_enum_*: one category of ours has all our variables.
#include <mpi.h>

#include <algorithm>
#include <string_view>

#include "host/mpi/symbol.h"
#include "host/mpi/tools.h"
#include "host/statistics/counters.h"
#include "host/tool_information/entry.h"
#include "host/tool_information/index_space.h"
#include "host/tool_information/knob_variables.h"

using namespace mpix;
using namespace mpix::tool_information;

namespace {

constexpr std::string_view category_name = "mpix";
constexpr std::string_view category_meaning =
    "mpix: MPI-4 partitioned communication, triggered from inside GPU kernels";

// The first `len` indices of our category's `number` variables.
int list_ours(index_space &space, int number, int len, int indices[]) {
    for (int i = 0; i < std::min(len, number); ++i)
        if (const int code = space.of_ours(i, indices[i]); code != MPI_SUCCESS) return code;
    return MPI_SUCCESS;
}

// What the library has written about its category `index`, whose variables are `number`, in our indices.
int renumber(index_space &space, int code, int number, int len, int indices[]) {
    for (int i = 0; code == MPI_SUCCESS && i < std::min(len, number); ++i) indices[i] = space.of_library(indices[i]);
    return code;
}

struct category_size {
    int controls = 0, counters = 0, categories = 0;
};
category_size size_of(int library_category) {
    category_size n;
    char name[1] = "", meaning[1] = "";
    int name_room = 1, meaning_room = 1;  // not null, which not all libraries take
    next.T_category_get_info(library_category, name, &name_room, meaning, &meaning_room, &n.controls, &n.counters,
                             &n.categories);
    return n;
}

}  // namespace

MPIX_SYMBOL int MPI_T_category_get_num(int *num_cat) try {
    if (num_cat == nullptr) return next.T_category_get_num(num_cat);
    return category_indices().number(*num_cat);
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len,
                                        int *num_cvars, int *num_pvars, int *num_categories) try {
    index_space::place at{};
    if (const int code = category_indices().find(cat_index, at); code != MPI_SUCCESS) return code;
    if (!at.ours)
        return next.T_category_get_info(at.index, name, name_len, desc, desc_len, num_cvars, num_pvars, num_categories);
    give_text(name, name_len, category_name);
    give_text(desc, desc_len, category_meaning);
    give(num_cvars, static_cast<int>(knob_variables().size()));
    give(num_pvars, static_cast<int>(counters().size()));
    give(num_categories, 0);
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_category_get_index(const char *name, int *cat_index) try {
    if (name != nullptr && cat_index != nullptr && name == category_name)
        return category_indices().of_ours(0, *cat_index);
    const int code = next.T_category_get_index(name, cat_index);
    if (code == MPI_SUCCESS) *cat_index = category_indices().of_library(*cat_index);
    return code;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_category_get_cvars(int cat_index, int len, int indices[]) try {
    index_space::place at{};
    if (const int code = category_indices().find(cat_index, at); code != MPI_SUCCESS) return code;
    if (at.ours) return list_ours(control_indices(), static_cast<int>(knob_variables().size()), len, indices);
    return renumber(control_indices(), next.T_category_get_cvars(at.index, len, indices), size_of(at.index).controls,
                    len, indices);
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_category_get_pvars(int cat_index, int len, int indices[]) try {
    index_space::place at{};
    if (const int code = category_indices().find(cat_index, at); code != MPI_SUCCESS) return code;
    if (at.ours) return list_ours(performance_indices(), static_cast<int>(counters().size()), len, indices);
    return renumber(performance_indices(), next.T_category_get_pvars(at.index, len, indices),
                    size_of(at.index).counters, len, indices);
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_category_get_categories(int cat_index, int len, int indices[]) try {
    index_space::place at{};
    if (const int code = category_indices().find(cat_index, at); code != MPI_SUCCESS) return code;
    if (at.ours) return MPI_SUCCESS;
    return renumber(category_indices(), next.T_category_get_categories(at.index, len, indices),
                    size_of(at.index).categories, len, indices);
}
MPIX_TOOL_BOUNDARY

#if MPI_VERSION >= 4
// Events are the library's alone.
MPIX_SYMBOL int MPI_T_category_get_num_events(int cat_index, int *num_events) try {
    index_space::place at{};
    if (const int code = category_indices().find(cat_index, at); code != MPI_SUCCESS) return code;
    if (!at.ours) return next.T_category_get_num_events(at.index, num_events);
    give(num_events, 0);
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_category_get_events(int cat_index, int len, int indices[]) try {
    index_space::place at{};
    if (const int code = category_indices().find(cat_index, at); code != MPI_SUCCESS) return code;
    return at.ours ? MPI_SUCCESS : next.T_category_get_events(at.index, len, indices);
}
MPIX_TOOL_BOUNDARY
#endif

MPIX_SYMBOL int MPI_T_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len) try {
    const value_names *const names = as_value_names(enumtype);
    if (names == nullptr) return next.T_enum_get_info(enumtype, num, name, name_len);
    if (const int code = ready(); code != MPI_SUCCESS) return code;
    give(num, static_cast<int>(names->values.size()));
    give_text(name, name_len, names->name);
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_enum_get_item(MPI_T_enum enumtype, int index, int *value, char *name, int *name_len) try {
    const value_names *const names = as_value_names(enumtype);
    if (names == nullptr) return next.T_enum_get_item(enumtype, index, value, name, name_len);
    if (const int code = ready(); code != MPI_SUCCESS) return code;
    if (index < 0 || index >= static_cast<int>(names->values.size())) return MPI_T_ERR_INVALID_INDEX;
    give(value, index);
    give_text(name, name_len, names->values[static_cast<std::size_t>(index)]);
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY
