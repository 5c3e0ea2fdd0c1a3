// SPDX-License-Identifier: BSD-3-Clause
//
// Pieces of a datatype's plan, as host and device code execute them. All lengths are signed bytes.
#ifndef MPIX_DETAIL_PLAN_H
#define MPIX_DETAIL_PLAN_H

#include <mpix/detail/order.h>

#define MPIX_MAX_DIMENSIONS 6

// One step along a dimension goes `stride` bytes in memory and `packed` bytes in the packed form.
struct mpix_dimension {
    int64_t count, stride, packed;
};

// A regular set of runs: run (i0, i1, ...) is `run` bytes at memory offset + i0*stride0 + i1*stride1 + ..., and at
// packed offset packed + i0*packed0 + ... The innermost dimension comes first. In the packed form the runs of an inner
// dimension come before the next step of an outer one: packed strides are positive, and each is at least what the
// dimensions inside it span.
struct mpix_box {
    int64_t offset, packed, run;
    int64_t dimensions;
    struct mpix_dimension dimension[MPIX_MAX_DIMENSIONS];  // unused ones are zero
};

// A run on its own.
struct mpix_run {
    int64_t offset, packed, length;
};

namespace mpix::detail {

// How many runs of the box begin before packed byte `x`.
MPIX_FN int64_t runs_before(const mpix_box &box, int64_t x) {
    int64_t rest = x - box.packed;
    if (rest <= 0) return 0;
    int64_t index = 0;
    for (int64_t k = box.dimensions - 1; k >= 0; --k) {
        const mpix_dimension &d = box.dimension[k];
        const int64_t step = rest / d.packed, last = d.count - 1;
        const int64_t at = step < last ? step : last;
        index = index * d.count + at;
        rest -= at * d.packed;
    }
    return rest > 0 ? index + 1 : index;
}

// Where run `index` lies.
struct run_place {
    int64_t offset, packed;
};
MPIX_FN run_place place_of_run(const mpix_box &box, int64_t index) {
    run_place at{box.offset, box.packed};
    for (int64_t k = 0; k < box.dimensions; ++k) {
        const mpix_dimension &d = box.dimension[k];
        const int64_t outer = index / d.count, step = index - outer * d.count;
        at.offset += step * d.stride;
        at.packed += step * d.packed;
        index = outer;
    }
    return at;
}

MPIX_FN int64_t runs_in(const mpix_box &box) {
    int64_t runs = 1;
    for (int64_t k = 0; k < box.dimensions; ++k) runs *= box.dimension[k].count;
    return runs;
}

}  // namespace mpix::detail

#endif  // MPIX_DETAIL_PLAN_H
