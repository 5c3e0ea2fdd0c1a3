// SPDX-License-Identifier: BSD-3-Clause
//
// A whole field in an array of the program's, which must be one for the field.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <mpix/halo.h>

#include "host/format.h"
#include "host/halo_c/exchange.h"
#include "host/halo_fortran/call.h"
#include "host/halo_fortran/fields.h"

using namespace mpix;
using namespace mpix::halo;

namespace {

using extents = std::vector<std::int64_t>;

// "12 x 10 x 8"
std::string text_of(const extents &of) {
    std::string text;
    for (const std::int64_t along : of) text += format("{}{}", text.empty() ? "" : " x ", along);
    return text;
}

std::int64_t product(extents::const_iterator from, extents::const_iterator to) {
    return std::accumulate(from, to, std::int64_t{1}, std::multiplies<std::int64_t>());
}

// Axes of one entry make no difference.
extents without_ones(extents of) {
    std::erase(of, 1);
    return of;
}

// Those of the array that the field's values fill.
extents wanted(const domain &points, const field_view &from) {
    extents made(points.extent.along, points.extent.along + points.dimensions);
    if (from.components() > 1) made.insert(from.interleaved() ? made.begin() : made.end(), from.components());
    return made;
}

// An array of the program's. The last length of one of assumed size is negative, and a scalar is the first element of
// one; then nothing is known of the end.
struct destination {
    extents shape;
    std::int64_t element_bytes;

    bool of_assumed_size() const { return !shape.empty() && shape.back() < 0; }
    status check(const domain &points, const field_view &from) const;
};

status destination::check(const domain &points, const field_view &from) const {
    const extents all = wanted(points, from);
    const std::int64_t value = from.value_bytes(), total = product(all.begin(), all.end()) * value;
    // What is next to each other for sure: an element may be all interleaved components of a cell, and of values
    // without arithmetic also a part of one.
    const std::int64_t cell = from.interleaved() ? value * from.components() : value;
    const bool parts = from.type() == value_type::bytes && element_bytes > 0 && cell % element_bytes == 0;
    const auto bad = [&] {
        return failure(MPI_ERR_BUFFER,
                       format("global has {}{}values of {} bytes; the domain has {} of {} bytes", text_of(shape),
                              shape.empty() ? "" : " ", element_bytes, text_of(all), value));
    };
    if (element_bytes != value && element_bytes != cell && !parts) return bad();
    extents given = shape;
    if (of_assumed_size()) {
        const std::int64_t slice = product(given.begin(), given.end() - 1) * element_bytes;
        given.back() = slice > 0 ? total / slice : 0;
    }
    if (shape.empty() || (shape.size() == 1 && given[0] * element_bytes == total)) return {};
    const bool cell_is_first = from.interleaved() && from.components() > 1;
    const extents behind_cell = without_ones({all.begin() + (cell_is_first ? 1 : 0), all.end()});
    std::int64_t together = element_bytes;
    for (auto axis = given.begin();; ++axis) {
        if (together == cell && without_ones({axis, given.end()}) == behind_cell) return {};
        if (axis == given.end()) return bad();
        together *= *axis;
    }
}

// What a descriptor of ISO_Fortran_binding.h begins with, whatever the compiler.
struct descriptor {
    void *base_address;
    std::size_t element_bytes;
};

}  // namespace

// `array`: an array of any type, whose elements have this many bytes.
MPIX_HALO_FORTRAN(element_bytes, (const void *array, int64_t *bytes)) {
    *bytes = static_cast<int64_t>(static_cast<const descriptor *>(array)->element_bytes);
}

MPIX_HALO_FORTRAN(gather, (const MPIX_Halo_grid *grid, const fortran_field *from, void **global, const fint *axes,
                           const fint shape[], const int64_t *element_bytes, const fint *root, fint *ierror)) {
    call("MPIX_Halo_gather", ierror, [&] {
        const MPIX_Halo_field in_c = to_c(*from);
        const destination to = {{shape, shape + *axes}, *element_bytes};
        const status bad = *grid == MPIX_HALO_GRID_NULL ? status{} : check_axes(**grid, *from, "from");
        return gather_with(
            bad, [&](const domain &points, const field_view &view) { return to.check(points, view); }, *grid, &in_c,
            *global, *root);
    });
}
