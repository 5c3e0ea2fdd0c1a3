// SPDX-License-Identifier: BSD-3-Clause
#include "host/datatype/typemap.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "device/kernels/gpu_pack.h"

namespace mpix {
namespace {

constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

void note(mpix_typemap &map, std::initializer_list<std::int64_t> values) {
    for (const std::int64_t v : values) map.alignment |= static_cast<std::uint64_t>(v);
}

void reach(mpix_typemap &map, std::int64_t low, std::int64_t high) {
    map.low = std::min(map.low, low);
    map.high = std::max(map.high, high);
}

mpix_step step_of(const mpix_dimension &d) { return {detail::make_divisor(d.packed), d.stride, d.count}; }

mpix_grid grid_of(const mpix_box &box) {
    mpix_grid grid{box.offset, box.packed, box.packed + box.run, box.run, box.dimensions, {}, {}};
    for (std::int64_t k = 0; k < box.dimensions; ++k) {
        grid.step[k] = step_of(box.dimension[k]);
        grid.end += (box.dimension[k].count - 1) * box.dimension[k].packed;
    }
    return grid;
}

void note_box(mpix_typemap &map, const mpix_box &box) {
    note(map, {box.offset, box.packed, box.run});
    std::int64_t low = box.offset, high = box.offset + box.run;
    for (std::int64_t k = 0; k < box.dimensions; ++k) {
        const mpix_dimension &d = box.dimension[k];
        note(map, {d.stride, d.packed});
        const std::int64_t last = (d.count - 1) * d.stride;
        (last < 0 ? low : high) += last;
    }
    reach(map, low, high);
}

// Repeating the element is one more dimension, or the last one goes on for ever.
void repeat(mpix_grid &grid, std::int64_t size, std::int64_t extent) {
    if (grid.dimensions == 0) {
        if (extent == grid.run) {
            grid.run = unbounded;
            return;
        }
    } else {
        mpix_step &last = grid.step[grid.dimensions - 1];
        if (extent == last.count * last.stride) {
            last.count = unbounded;
            return;
        }
    }
    grid.step[grid.dimensions++] = step_of({unbounded, extent, size});
}

void make_table(const plan &type, typemap &out) {
    std::vector<mpix_run> runs = type.loose;
    for (const mpix_box &box : type.boxes)
        for (std::int64_t n = 0; n < detail::runs_in(box); ++n) {
            const detail::run_place at = detail::place_of_run(box, n);
            runs.push_back({at.offset, at.packed, box.run});
        }
    std::sort(runs.begin(), runs.end(), [](const mpix_run &a, const mpix_run &b) { return a.packed < b.packed; });
    bool equal = true;
    for (const mpix_run &r : runs) {
        out.packed.push_back(r.packed);
        out.offset.push_back(r.offset);
        equal = equal && r.length == runs[0].length;
    }
    out.packed.push_back(type.size);
    mpix_run_table &table = out.map.table;
    table.runs = static_cast<std::int64_t>(runs.size());
    table.equal = equal ? runs[0].length : 0;
    table.by_equal = detail::make_divisor(runs[0].length);
    // About as many buckets as runs, so that a search has few steps.
    while ((type.size >> table.shift) > 2 * table.runs) ++table.shift;
    std::size_t run = 0;
    for (std::int64_t at = 0; at < type.size + (std::int64_t{1} << table.shift); at += std::int64_t{1} << table.shift) {
        while (run + 1 < runs.size() && runs[run + 1].packed <= at) ++run;
        out.bucket.push_back(static_cast<std::uint32_t>(run));
    }
    table.buckets = static_cast<std::int64_t>(out.bucket.size());
    table.packed = out.packed.data();
    table.offset = out.offset.data();
    table.bucket = out.bucket.data();
}

std::shared_ptr<const typemap> make_typemap(const plan &type) {
    auto made = std::make_shared<typemap>();
    mpix_typemap &map = made->map;
    map.version = MPIX_ABI_VERSION;
    map.size = type.size;
    map.extent = type.extent;
    map.by_size = detail::make_divisor(type.size);
    map.low = std::numeric_limits<std::int64_t>::max();
    map.high = std::numeric_limits<std::int64_t>::min();
    std::int64_t runs = static_cast<std::int64_t>(type.loose.size());
    for (const mpix_box &box : type.boxes) {
        note_box(map, box);
        // A box may have any number of runs; the sum may not overflow.
        runs = std::min(runs + std::min(detail::runs_in(box), flatten_limit), flatten_limit);
    }
    for (const mpix_run &r : type.loose) {
        note(map, {r.offset, r.packed, r.length});
        reach(map, r.offset, r.offset + r.length);
    }
    if (type.boxes.size() == 1 && type.loose.empty()) {
        map.kind = MPIX_TYPEMAP_GRID;
        map.grid = grid_of(type.boxes[0]);
        repeat(map.grid, type.size, type.extent);
        map.grid.by_cells =
            detail::make_divisor(map.grid.run / 16 + (map.grid.run % 16 + 30) / 16);  // run may be endless
    } else if (!type.loose.empty() || runs <= most_table_runs) {
        map.kind = MPIX_TYPEMAP_RUNS;
        make_table(type, *made);
    } else {
        map.kind = MPIX_TYPEMAP_BOXES;
        for (const mpix_box &box : type.boxes) made->boxes.push_back(grid_of(box));
        map.boxes = made->boxes.data();
        map.number_of_boxes = static_cast<std::int64_t>(made->boxes.size());
    }
    return made;
}

}  // namespace

typemap::~typemap() { gpu::forget(&map); }

std::shared_ptr<const typemap> typemap_of(const plan &type) {
    static auto *const one_at_a_time = new std::mutex;
    const std::lock_guard lock(*one_at_a_time);
    if (type.lookup == nullptr) type.lookup = make_typemap(type);
    return type.lookup;
}

}  // namespace mpix
