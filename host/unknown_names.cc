// SPDX-License-Identifier: BSD-3-Clause
#include "host/unknown_names.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <numeric>
#include <set>

#include "host/format.h"
#include "host/report.h"

extern char **environ;

namespace mpix {
namespace {

const std::vector<std::string_view> &knobs() {
    static const std::vector<std::string_view> all = {
#define MPIX_KNOB(member, type, variable, initial, meaning) variable,
#include "host/config.def"
#undef MPIX_KNOB
    };
    return all;
}

// Variables that the library does not read: those of build systems, environment modules, the Python package and the tests.
bool is_for_others(std::string_view name) {
    for (const std::string_view other :
         {"MPIX_DIR", "MPIX_HOME", "MPIX_LIBRARY", "MPIX_PREFIX", "MPIX_ROOT", "MPIX_VERSION"})
        if (name == other) return true;
    return name.substr(0, 9) == "MPIX_TEST";
}

std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

std::string did_you_mean(std::string_view nearest) {
    return nearest.empty() ? std::string() : format("; did you mean {}?", nearest);
}

bool on_rank_0() {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
}

// True in the first call for that key.
bool is_new(const std::string &key) {
    static auto *const mutex = new std::mutex;
    static auto *const told = new std::set<std::string>;
    const std::lock_guard lock(*mutex);
    return told->insert(key).second;
}

}  // namespace

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view> &known) {
    std::string_view nearest;
    std::size_t least = name.size() / 3 + 1;
    for (const std::string_view candidate : known)
        if (const std::size_t d = distance(name, candidate); d < least) {
            least = d;
            nearest = candidate;
        }
    return nearest;
}

std::vector<std::string> unknown_variables(const char *const *environment) {
    std::vector<std::string> lines;
    for (; environment != nullptr && *environment != nullptr; ++environment) {
        const std::string_view entry = *environment, name = entry.substr(0, entry.find('='));
        if (name.substr(0, 5) != "MPIX_" || is_for_others(name)) continue;
        if (std::find(knobs().begin(), knobs().end(), name) != knobs().end()) continue;
        lines.push_back(format("WARNING: the environment has {}, which mpix does not know{}", name,
                               did_you_mean(nearest_name(name, knobs()))));
    }
    return lines;
}

// Without memory the warnings are left out.
void warn_of_unknown_variables() {
    try {
        if (!on_rank_0()) return;
        for (const std::string &line : unknown_variables(environ)) say(line);
    } catch (const std::bad_alloc &) {
    }
}

void warn_of_unknown_keys(const char *call, MPI_Info info, const std::vector<std::string_view> &known) {
    if (info == MPI_INFO_NULL) return;
    try {
        int keys = 0;
        if (PMPI_Info_get_nkeys(info, &keys) != MPI_SUCCESS) return;
        for (int n = 0; n < keys; ++n) {
            char text[MPI_MAX_INFO_KEY + 1] = "";
            if (PMPI_Info_get_nthkey(info, n, text) != MPI_SUCCESS) return;
            const std::string key = text;
            if (key.compare(0, 5, "mpix_") != 0) continue;
            if (std::find(known.begin(), known.end(), key) != known.end()) continue;
            if (!is_new(call + (' ' + key)) || !on_rank_0()) continue;
            say(format("WARNING: {} ignores the info key {}, which it does not know{}", call, key,
                       did_you_mean(nearest_name(key, known))));
        }
    } catch (const std::bad_alloc &) {
    }
}

}  // namespace mpix
