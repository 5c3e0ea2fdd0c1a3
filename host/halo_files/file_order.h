// SPDX-License-Identifier: BSD-3-Clause
//
// Cells in the order that files have: x fastest, and the values of a cell together, however the field lies in memory.
#ifndef MPIX_HOST_HALO_FILES_FILE_ORDER_H
#define MPIX_HOST_HALO_FILES_FILE_ORDER_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"

namespace mpix::halo {

inline std::int64_t cells_of(const index3 &extent) { return extent[0] * extent[1] * extent[2]; }

// Cells by their number, which is (z * ny + y) * nx + x.
struct cell_range {
    std::int64_t first = 0, end = 0;

    std::int64_t cells() const { return std::max<std::int64_t>(end - first, 0); }
};

// Calls each(row, number) for what of each row of `cells` is in the range, in order; `number` is that of its first cell.
template <class Each>
void for_each_row(const box &cells, const index3 &extent, const cell_range &range, Each each) {
    const std::int64_t row = extent[0], plane = extent[0] * extent[1];
    const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    if (cells.empty() || range.cells() == 0) return;
    const std::int64_t last_z = std::min(cells.hi[2], up(range.end, plane));
    for (std::int64_t z = std::max(cells.lo[2], range.first / plane); z < last_z; ++z) {
        const std::int64_t last_y = std::min(cells.hi[1], up(range.end - z * plane, row));
        for (std::int64_t y = std::max(cells.lo[1], (range.first - z * plane) / row); y < last_y; ++y) {
            const std::int64_t at = z * plane + y * row;
            const std::int64_t lo = std::max(cells.lo[0], range.first - at), hi = std::min(cells.hi[0], range.end - at);
            if (lo < hi) each(box{{lo, y, z}, {hi, y + 1, z + 1}}, at + lo);
        }
    }
}

// Copies rows of a field, of one of this rank's boxes.
class row_copy {
public:
    explicit row_copy(const field_view &view) : view_(view) {}
    std::int64_t cell_bytes() const { return view_.value_bytes() * view_.components(); }
    // Both return how many bytes there are.
    // `i`: the position of the box.
    std::int64_t to_file(std::size_t i, const box &row, std::byte *to);
    std::int64_t from_file(const std::byte *from, std::size_t i, const box &row);

private:
    field_view view_;
    std::vector<std::byte> room_;  // of a row, each component by itself
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FILES_FILE_ORDER_H
