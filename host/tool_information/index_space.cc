// SPDX-License-Identifier: BSD-3-Clause
#include "host/tool_information/index_space.h"

#include "host/mpi/tools.h"
#include "host/statistics/counters.h"
#include "host/tool_information/knob_variables.h"

namespace mpix::tool_information {

index_space &control_indices() {
    static constinit index_space space([](int *n) { return next.T_cvar_get_num(n); },
                                       [] { return static_cast<int>(knob_variables().size()); });
    return space;
}

index_space &performance_indices() {
    static constinit index_space space([](int *n) { return next.T_pvar_get_num(n); },
                                       [] { return static_cast<int>(counters().size()); });
    return space;
}

index_space &category_indices() {
    static constinit index_space space([](int *n) { return next.T_category_get_num(n); }, [] { return 1; });
    return space;
}

}  // namespace mpix::tool_information
