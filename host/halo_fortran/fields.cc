// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_fortran/fields.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>

#include "host/format.h"
#include "host/halo/grid_internals.h"
#include "host/mpi/thread_check.h"

namespace mpix::halo {
namespace {

// An array of the program's.
struct array {
    fint axes;          // -1: it is not there, or nothing is known of its elements
    const fint *shape;  // the last entry is negative for an array of assumed size

    bool known() const { return axes >= 0; }
    fint length(fint axis) const { return shape[axis]; }
    bool of_assumed_size() const { return axes > 0 && length(axes - 1) < 0; }
    std::int64_t elements() const {
        return std::accumulate(shape, shape + axes, std::int64_t{1}, std::multiplies<std::int64_t>());
    }
};

// The distances in the array's memory; a scalar is an array's first element, and says nothing of it. An array of one
// dimension has the cells of any domain without gaps.
status lay_out(const array &a, std::int64_t value_bytes, fortran_field &field) {
    MPIX_Halo_layout &layout = field.layout;
    const int components = layout.components;
    const bool several = components > 1, interleaved = several && layout.interleaved != 0;
    if (a.axes < 2) return {};
    const fint cells_from = interleaved ? 1 : 0, cells_to = several && !interleaved ? a.axes - 1 : a.axes;
    if (several) {
        const fint there = a.length(interleaved ? 0 : a.axes - 1);
        if (there != components && !(a.of_assumed_size() && !interleaved))
            return failure(MPI_ERR_ARG, format("components is {}, and the {} axis of data has {} entries", components,
                                               interleaved ? "first" : "last", there));
    }
    if (cells_to - cells_from > 3)
        return failure(MPI_ERR_ARG, format("data has {} axes; with {} components it has at most {}", a.axes, components,
                                           several ? 4 : 3));
    std::int64_t distance = value_bytes * (interleaved ? components : 1);
    std::int64_t *const distances[] = {&layout.row_bytes, &layout.plane_bytes};
    for (fint axis = cells_from; axis < cells_to; ++axis) {
        distance *= a.length(axis);
        if (axis + 1 < cells_to) *distances[axis - cells_from] = distance;
    }
    if (several && !interleaved) layout.component_bytes = distance;
    field.axes = cells_to - cells_from;
    while (field.axes > 1 && a.length(cells_from + field.axes - 1) == 1) --field.axes;  // no other cells there
    return {};
}

// What the shape of `data` says of the field, and whether `other` is alike.
status describe(const array &data, const array &other, MPI_Datatype type, fortran_field &field) {
    int value_bytes = 0;
    if (field.layout.components < 1)
        return failure(MPI_ERR_ARG, format("components is {}; it is at least 1", field.layout.components));
    if (!data.known()) return {};
    if (PMPI_Type_size(type, &value_bytes) != MPI_SUCCESS) return failure(MPI_ERR_TYPE, "datatype is not a datatype");
    if (status s = lay_out(data, value_bytes, field); !s.ok()) return s;
    if (data.axes > 0 && !data.of_assumed_size()) field.allocated = data.elements() * value_bytes;
    if (other.known() && !std::equal(data.shape, data.shape + data.axes, other.shape, other.shape + other.axes))
        return failure(MPI_ERR_ARG, "other has another shape than data");
    return {};
}

// `fault`: as the module has it.
status check_memory(fint fault, const char *name) {
    constexpr const char *sentences[] = {
        "is an array section with gaps; pass its first element, and say by field%layout where the others are",
        "is not allocated", "has no elements"};
    if (fault == 0) return {};
    return failure(MPI_ERR_BUFFER, format("{} {}", name, sentences[fault - 1]));
}

}  // namespace

MPIX_Halo_field to_c(const fortran_field &f) {
    MPIX_Halo_field made = {};
    made.data = f.data;
    made.type = fortran::type_of(&f.type);
    std::copy_n(f.radius, MPIX_HALO_DIRECTIONS, made.radius);
    made.layout = f.layout;
    made.other = f.other;
    made.allocated = f.allocated;
    made.allocations = f.allocations;
    made.allocation_count = f.allocation_count;
    return made;
}

std::vector<MPIX_Halo_field> to_c(fint count, const fortran_field fields[]) {
    std::vector<MPIX_Halo_field> made;
    std::transform(fields, fields + count, std::back_inserter(made), [](const fortran_field &f) { return to_c(f); });
    return made;
}

status check_axes(const mpix_halo_grid &grid, const fortran_field &field, const std::string &name) {
    const int dimensions = grid.grid.dimensions();
    if (field.axes <= dimensions) return {};
    return failure(MPI_ERR_ARG, format("{}.data has {} axes of cells, and the domain has {}; components= tells of an "
                                       "axis of components",
                                       name, field.axes, dimensions));
}

int check_axes(const char *call, collective_call kind, MPIX_Halo_grid grid, fint count, const fortran_field fields[]) {
    if (grid == MPIX_HALO_GRID_NULL) return MPI_SUCCESS;
    MPIX_CHECK_THREAD(call, of_comm(errors_of(grid)));
    return answer(call, errors_of(grid), [&] {
        status bad;
        for (fint f = 0; f < count && bad.ok(); ++f) bad = check_axes(*grid, fields[f], format("fields[{}]", f));
        const grid_state &state = *grid_internals::state_of(grid->grid, "mpix::halo::exchange");
        check_collectively(state.comm, "mpix::halo::exchange", bad, {as_argument(kind)});
    });
}

}  // namespace mpix::halo

using namespace mpix;
using namespace mpix::halo;

// Of `data` and `other`: the address, the number of axes (-1: see above), the shape, and what is wrong with the memory.
// A field that this refuses has no memory, so that nothing else takes it.
MPIX_HALO_FORTRAN(field_init, (void **data, const fint *axes, const fint shape[], void **other, const fint *other_axes,
                               const fint other_shape[], const fint faults[], const fint *datatype, const fint radius[],
                               const fint *interleaved, const fint *components, const fint below[], const fint above[],
                               const fint staggered[], fortran_field *field, fint *ierror)) {
    call("MPIX_Halo_field_init", ierror, [&]() -> int {
        *field = {};
        field->type = *datatype;
        std::copy_n(radius, MPIX_HALO_DIRECTIONS, field->radius);
        field->layout.interleaved = *interleaved;
        field->layout.components = *components;
        std::copy_n(below, 3, field->layout.below);
        std::copy_n(above, 3, field->layout.above);
        std::copy_n(staggered, 3, field->layout.staggered);
        status bad = check_memory(faults[0], "data");
        if (bad.ok()) bad = check_memory(faults[1], "other");
        fortran_field made = *field;
        made.data = *data;
        made.other = *other;
        if (bad.ok()) bad = describe({*axes, shape}, {*other_axes, other_shape}, fortran::type_of(datatype), made);
        if (!bad.ok()) return raise(MPI_COMM_NULL, "MPIX_Halo_field_init", bad);
        *field = made;
        return MPI_SUCCESS;
    });
}

MPIX_HALO_FORTRAN(field_bytes, (const MPIX_Halo_grid *grid, const fint *i, const fortran_field *field, int64_t *bytes,
                                fint *ierror)) {
    call("MPIX_Halo_field_bytes", ierror, [&] {
        const MPIX_Halo_field in_c = to_c(*field);
        return MPIX_Halo_field_bytes(*grid, *i - 1, &in_c, bytes);
    });
}
