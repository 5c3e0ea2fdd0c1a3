// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_T_cvar_*: the knobs. A tool may set them until MPI_Init; what it sets takes the place of the environment's. Some may
// be set later as well, for pairs of requests that are matched from then on.
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "host/config.h"
#include "host/control/setup_mutex.h"
#include "host/mpi/symbol.h"
#include "host/mpi/tools.h"
#include "host/tool_information/entry.h"
#include "host/tool_information/index_space.h"
#include "host/tool_information/knob_variables.h"

using namespace mpix;
using namespace mpix::tool_information;

namespace {

// What a handle of ours points to.
struct knob_handle {
    const knob_variable *knob;
};

struct knob_handles {
    std::mutex mutex;
    std::vector<std::unique_ptr<knob_handle>> all;

    // `mutex` is held.
    auto place_of(MPI_T_cvar_handle handle) {
        return std::find_if(all.begin(), all.end(),
                            [handle](const auto &one) { return static_cast<void *>(one.get()) == handle; });
    }
    // Null: it is the library's, or nobody's.
    const knob_variable *find(MPI_T_cvar_handle handle) {
        const std::lock_guard lock(mutex);
        const auto at = place_of(handle);
        return at == all.end() ? nullptr : (*at)->knob;
    }
};
knob_handles &handles_of_knobs() {
    static auto *const all = new knob_handles;
    return *all;
}

}  // namespace

MPIX_SYMBOL int MPI_T_cvar_get_num(int *num_cvar) try {
    if (num_cvar == nullptr) return next.T_cvar_get_num(num_cvar);
    return control_indices().number(*num_cvar);
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype,
                                    MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope) try {
    index_space::place at{};
    if (const int code = control_indices().find(cvar_index, at); code != MPI_SUCCESS) return code;
    if (!at.ours)
        return next.T_cvar_get_info(at.index, name, name_len, verbosity, datatype, enumtype, desc, desc_len, bind,
                                    scope);
    const knob_variable &knob = knob_variables()[static_cast<std::size_t>(at.index)];
    give_text(name, name_len, knob.name);
    give(verbosity, int{MPI_T_VERBOSITY_USER_BASIC});
    give(datatype, knob.type);
    give(enumtype, as_enum(knob.names));
    give_text(desc, desc_len, knob.meaning);
    give(bind, int{MPI_T_BIND_NO_OBJECT});
    give(scope, knob.scope);
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_cvar_get_index(const char *name, int *cvar_index) try {
    if (name != nullptr && cvar_index != nullptr)
        for (std::size_t i = 0; i < knob_variables().size(); ++i)
            if (knob_variables()[i].name == name) return control_indices().of_ours(static_cast<int>(i), *cvar_index);
    const int code = next.T_cvar_get_index(name, cvar_index);
    if (code == MPI_SUCCESS) *cvar_index = control_indices().of_library(*cvar_index);
    return code;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count) try {
    index_space::place at{};
    if (const int code = control_indices().find(cvar_index, at); code != MPI_SUCCESS) return code;
    if (!at.ours) return next.T_cvar_handle_alloc(at.index, obj_handle, handle, count);
    if (handle == nullptr || count == nullptr) return MPI_ERR_ARG;
    const knob_variable &knob = knob_variables()[static_cast<std::size_t>(at.index)];
    auto made = std::make_unique<knob_handle>(knob_handle{&knob});
    const auto shown = reinterpret_cast<MPI_T_cvar_handle>(made.get());
    const std::lock_guard lock(handles_of_knobs().mutex);
    handles_of_knobs().all.push_back(std::move(made));
    *handle = shown;
    *count = knob.elements;
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_cvar_handle_free(MPI_T_cvar_handle *handle) try {
    if (handle == nullptr || handles_of_knobs().find(*handle) == nullptr) return next.T_cvar_handle_free(handle);
    if (const int code = ready(); code != MPI_SUCCESS) return code;
    const std::lock_guard lock(handles_of_knobs().mutex);
    handles_of_knobs().all.erase(handles_of_knobs().place_of(*handle));
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_cvar_read(MPI_T_cvar_handle handle, void *buf) try {
    const knob_variable *const knob = handles_of_knobs().find(handle);
    if (knob == nullptr) return next.T_cvar_read(handle, buf);
    if (const int code = ready(); code != MPI_SUCCESS) return code;
    if (buf == nullptr) return MPI_ERR_ARG;
    knob->read(configuration_so_far(), buf, knob->elements);
    return MPI_SUCCESS;
}
MPIX_TOOL_BOUNDARY

MPIX_SYMBOL int MPI_T_cvar_write(MPI_T_cvar_handle handle, const void *buf) try {
    const knob_variable *const knob = handles_of_knobs().find(handle);
    if (knob == nullptr) return next.T_cvar_write(handle, buf);
    if (const int code = ready(); code != MPI_SUCCESS) return code;
    if (knob->scope == MPI_T_SCOPE_CONSTANT) return MPI_T_ERR_CVAR_SET_NEVER;
    const bool late = environment_is_read();
    if (late && !may_change_later(knob->variable)) return MPI_T_ERR_CVAR_SET_NOT_NOW;
    if (buf == nullptr) return MPI_ERR_ARG;
    std::string value;
    if (!knob->written(buf, knob->elements, value)) return MPI_T_ERR_INVALID;
    if (!late) return set_knob(knob->variable, value).ok() ? MPI_SUCCESS : MPI_T_ERR_INVALID;
    const std::lock_guard lock(setup_mutex());
    return change_knob(knob->variable, value).ok() ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}
MPIX_TOOL_BOUNDARY
