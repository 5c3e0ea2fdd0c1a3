// SPDX-License-Identifier: BSD-3-Clause
#include "tests/tool_information/categories.hpp"

#include <set>
#include <vector>

#include "tests/tool_information/names.hpp"

namespace tool_information {
namespace {

template <class Get, class NameOf>
std::multiset<std::string> members(int category, int n, const Get &get, const NameOf &name_of) {
    std::vector<int> indices(static_cast<std::size_t>(n) + 1, -7);
    OK(get(category, n, indices.data()));
    CHECK(indices.back() == -7);
    std::multiset<std::string> all;
    for (int i = 0; i < n; ++i) all.insert(name_of(indices[static_cast<std::size_t>(i)]));
    return all;
}

}  // namespace

void check_categories(const std::map<std::string, int> &controls, const std::map<std::string, int> &counters) {
    int all = 0, of_library = 0, ours = -1;
    OK(MPI_T_category_get_num(&all));
    OK(PMPI_T_category_get_num(&of_library));
    CHECK(all == of_library + 1);
    OK(MPI_T_category_get_index("mpix", &ours));
    for (int i = 0; i < all; ++i) {
        int n_controls = 0, n_counters = 0, n_categories = 0;
        name_buffer name, meaning;
        const int code = MPI_T_category_get_info(i, name.text, &name.length, meaning.text, &meaning.length, &n_controls,
                                                 &n_counters, &n_categories);
        if (code != MPI_SUCCESS) {  // one of the library's may have gone
            CHECK(i != ours && category_name(i < ours ? i : i - 1, PMPI_T_category_get_info).empty());
            continue;
        }
        const auto held = members(i, n_controls, MPI_T_category_get_cvars, [](int v) { return control_name(v); });
        const auto counted = members(i, n_counters, MPI_T_category_get_pvars, [](int v) { return counter_name(v); });
        const auto below =
            members(i, n_categories, MPI_T_category_get_categories, [](int v) { return category_name(v); });
        if (i == ours) {
            CHECK(std::string(name.text) == "mpix" && n_categories == 0);
            CHECK(held.size() == controls.size() && counted.size() == counters.size());
            for (const auto &[one, index] : controls) CHECK(held.count(one) == 1);
            for (const auto &[one, index] : counters) CHECK(counted.count(one) == 1);
            // Fewer than there are.
            int few[2] = {-7, -7};
            OK(MPI_T_category_get_cvars(i, 1, few));
            CHECK(is_ours(control_name(few[0])) && few[1] == -7);
            continue;
        }
        int theirs = -1, index = -1;
        OK(PMPI_T_category_get_index(name.text, &theirs));
        OK(MPI_T_category_get_index(name.text, &index));
        CHECK(index == i || category_name(index) == name.text);  // some library has two of a name
        CHECK(held == members(theirs, n_controls, PMPI_T_category_get_cvars,
                              [](int v) { return control_name(v, PMPI_T_cvar_get_info); }));
        CHECK(counted == members(theirs, n_counters, PMPI_T_category_get_pvars,
                                 [](int v) { return counter_name(v, PMPI_T_pvar_get_info); }));
        CHECK(below == members(theirs, n_categories, PMPI_T_category_get_categories,
                               [](int v) { return category_name(v, PMPI_T_category_get_info); }));
    }
    CHECK(category_name(all).empty());
#if MPI_VERSION >= 4
    int events = -1;
    OK(MPI_T_category_get_num_events(ours, &events));
    CHECK(events == 0);
#endif
}

}  // namespace tool_information
