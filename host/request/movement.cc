// SPDX-License-Identifier: BSD-3-Clause
#include "host/request/movement.h"

namespace mpix {

movement choose_movement(const outgoing_route &route) {
    movement m;
    if (route.remote)
        m.engine = mover::network;
    else if (!route.from_gpu && !route.to_gpu)
        m.engine = mover::cpu;
    else if (route.landing_gaps || (route.from_gpu && route.gaps))
        m.engine = mover::kernel;
    else
        m.engine = mover::copy_engine;
    // A CPU packs on the way to where it stores; what copies for it cannot.
    m.packed_first = route.gaps && !route.from_gpu && m.engine != mover::cpu;
    m.by_caller = m.engine == mover::cpu && !route.spent;
    m.by_kernels = route.from_gpu && route.to_gpu && !route.remote && !route.spent;
    m.typed_only = m.by_kernels && (route.gaps || route.landing_gaps);
    return m;
}

std::array<slot_range, 2> slot_ranges(std::uint64_t eager_bytes) {
    constexpr std::uint64_t no_limit = ~std::uint64_t{0};
    return {{{0, eager_bytes, 2}, {eager_bytes == no_limit ? no_limit : eager_bytes + 1, no_limit, 1}}};
}

std::uint64_t slots_for(std::uint64_t bytes, std::uint64_t eager_bytes) {
    for (const slot_range &range : slot_ranges(eager_bytes))
        if (bytes <= range.most) return range.slots;
    return 1;
}

}  // namespace mpix
