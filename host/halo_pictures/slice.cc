// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_pictures/slice.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "host/field/neighbours.h"
#include "host/field/reduction.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_internals.h"
#include "host/halo/host_field.h"
#include "host/halo_files/file_order.h"
#include "host/halo_files/posix_file.h"
#include "host/report.h"

namespace mpix::halo {
namespace {

constexpr const char *png_call = "mpix::halo::write_png";
constexpr int png_tag = 0;
constexpr std::int64_t most_pixels = std::int64_t{1} << 28;

// to[i] = the value at from + i * distance.
void to_doubles(value_type type, const std::byte *from, std::int64_t distance, std::int64_t count, double *to) {
    const auto convert = [&](auto value) {
        for (std::int64_t i = 0; i < count; ++i) {
            std::memcpy(&value, from + i * distance, sizeof value);
            to[i] = static_cast<double>(value);
        }
    };
    const auto one_of = [&](auto... values) {
        ((value_type_of<decltype(values)>() == type ? convert(values) : static_cast<void>(0)), ...);
    };
    one_of(std::int8_t{}, std::int16_t{}, std::int32_t{}, std::int64_t{}, std::uint8_t{}, std::uint16_t{},
           std::uint32_t{}, std::uint64_t{}, float{}, double{}, 0.0L);
}

using color = std::array<unsigned char, 3>;

// Of a value between 0 and 1.
color color_of(color_map map, double value) {
    const auto byte = [](double part) { return static_cast<unsigned char>(std::lround(255 * part)); };
    if (map == color_map::grey) return {byte(value), byte(value), byte(value)};
    if (value < 0.5) return {byte(2 * value), byte(2 * value), 255};
    return {255, byte(2 - 2 * value), byte(2 - 2 * value)};
}

// The plane, and the axes of the picture.
struct plane {
    box cells;
    std::size_t columns, rows;

    plane(const domain &d, const slice &shown)
        : cells{{}, d.extent}, columns(shown.axis == 0 ? 1 : 0), rows(shown.axis == 2 ? 1 : 2) {
        cells.lo[static_cast<std::size_t>(shown.axis)] = shown.at;
        cells.hi[static_cast<std::size_t>(shown.axis)] = shown.at + 1;
    }
    std::int64_t width() const { return cells.size()[columns]; }
    std::int64_t height() const { return cells.size()[rows]; }
};

// `d`: of the field's points.
status check(const grid_state &g, const domain &d, const std::string &path, const field &from, const slice &shown,
             host_field &memory, field_view &view) {
    std::vector<std::byte> none;
    if (status s = to_png({}, 0, 0, none); !s.ok()) return s;
    if (path.empty()) return failure(MPI_ERR_ARG, "path is empty");
    if (path.find('\0') != std::string::npos) return failure(MPI_ERR_ARG, "path has a null character");
    if (status s = memory.make(g, from, view); !s.ok())
        return s.in_context(class_of(s) == MPI_ERR_COUNT ? "from: " : "from.");
    if (size_of(view.type()) == 0) return failure(MPI_ERR_TYPE, "from.type is bytes; a picture needs numbers");
    if (shown.axis < 0 || shown.axis > 2)
        return failure(MPI_ERR_ARG, format("shown.axis is {}; it is 0 to 2", shown.axis));
    if (const std::int64_t cells = d.extent[static_cast<std::size_t>(shown.axis)]; shown.at < 0 || shown.at >= cells)
        return failure(MPI_ERR_ARG, format("shown.at is {}; it is 0 to {}", shown.at, cells - 1));
    if (shown.component < 0 || shown.component >= view.components())
        return failure(MPI_ERR_ARG,
                       format("shown.component is {}; it is 0 to {}", shown.component, view.components() - 1));
    const bool found = shown.low == 0 && shown.high == 0;
    if (!found && !(shown.low < shown.high && std::isfinite(shown.low) && std::isfinite(shown.high)))
        return failure(MPI_ERR_ARG, format("shown.low is {}, and shown.high is {}; the first is less, or both are 0",
                                           shown.low, shown.high));
    if (shown.colors != color_map::grey && shown.colors != color_map::blue_red)
        return failure(MPI_ERR_ARG,
                       format("shown.colors is {}; it is 0 (grey) or 1 (blue_red)", static_cast<int>(shown.colors)));
    if (const plane p(d, shown); p.width() > most_pixels / p.height())
        return failure(MPI_ERR_COUNT, format("a picture of {} x {} pixels; at most 2^28", p.width(), p.height()));
    return {};
}

// The values of these cells, of the rank's box at position i, x fastest.
std::vector<double> values_of(const domain &d, const field_view &view, std::size_t i, const box &cells, int component) {
    std::vector<double> values(static_cast<std::size_t>(cells.cells()));
    std::vector<std::byte> row_bytes;
    row_copy rows(view);
    double *to = values.data();
    for_each_row(cells, d.extent, {0, cells_of(d.extent)}, [&](const box &row, std::int64_t) {
        const std::int64_t count = row.hi[0] - row.lo[0];
        row_bytes.resize(static_cast<std::size_t>(count * rows.cell_bytes()));
        rows.to_file(i, row, row_bytes.data());
        to_doubles(view.type(), row_bytes.data() + component * view.value_bytes(), rows.cell_bytes(), count, to);
        to += count;
    });
    return values;
}

// On rank 0 all values of the plane, row by row from the top. Collective.
std::vector<double> gathered(const grid_state &g, const domain &d, const field_view &view, const plane &shown,
                             int component) {
    std::vector<double> all(g.rank == 0 ? static_cast<std::size_t>(shown.width() * shown.height()) : 0);
    for (std::size_t number = 0; number < d.boxes.size(); ++number) {
        const int owner = d.owners[number];
        const box cells = intersection(d.boxes[number], shown.cells);
        if (cells.empty() || (g.rank != 0 && g.rank != owner)) continue;
        std::vector<double> values(static_cast<std::size_t>(cells.cells()));
        const auto count = static_cast<int>(values.size());
        if (g.rank == owner)
            values =
                values_of(d, view, static_cast<std::size_t>(g.position_of(static_cast<int>(number))), cells, component);
        if (g.rank != 0) {
            demand(MPI_Send(values.data(), count, MPI_DOUBLE, 0, png_tag, g.comm), "MPI_Send");
            continue;
        }
        if (owner != 0)
            demand(MPI_Recv(values.data(), count, MPI_DOUBLE, owner, png_tag, g.comm, MPI_STATUS_IGNORE), "MPI_Recv");
        const double *from = values.data();
        index3 c{};
        for (c[2] = cells.lo[2]; c[2] < cells.hi[2]; ++c[2])
            for (c[1] = cells.lo[1]; c[1] < cells.hi[1]; ++c[1])
                for (c[0] = cells.lo[0]; c[0] < cells.hi[0]; ++c[0])
                    all[static_cast<std::size_t>((shown.height() - 1 - c[shown.rows]) * shown.width() +
                                                 c[shown.columns])] = *from++;
    }
    return all;
}

std::vector<unsigned char> pixels_of(const std::vector<double> &values, const slice &shown) {
    double low = shown.low, high = shown.high;
    if (low == 0 && high == 0) {
        low = INFINITY, high = -INFINITY;
        for (const double v : values)
            if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
    }
    std::vector<unsigned char> pixels;
    pixels.reserve(3 * values.size());
    for (const double v : values) {
        // Halves, since the difference of two doubles may be none.
        const double part = high > low ? (v / 2 - low / 2) / (high / 2 - low / 2) : 0.5;
        const color c = std::isnan(v) ? color{255, 0, 255} : color_of(shown.colors, std::clamp(part, 0.0, 1.0));
        pixels.insert(pixels.end(), c.begin(), c.end());
    }
    return pixels;
}

status write_file(const std::string &path, const std::vector<std::byte> &bytes) {
    const std::string partial = path + ".partial";
    posix_file file;
    status s = remove_file(partial);
    if (s.ok()) s = file.create(partial);
    if (!s.ok()) return s;
    s = file.write(bytes.data(), bytes.size());
    if (s.ok()) s = file.close();
    if (s.ok()) s = rename_file(partial, path);
    if (!s.ok()) static_cast<void>(remove_file(partial));
    return s;
}

}  // namespace

void write_png_checked(const grid &g, const std::string &path, const field &from, const slice &shown,
                       const status &given) {
    const grid_state &state = *grid_internals::state_of(g, png_call);
    const domain points = points_of(state.domain, from.layout.staggered);
    field_view view;
    host_field memory;
    const status bad = given.ok() ? check(state, points, path, from, shown, memory, view) : given;
    check_collectively(state.comm, png_call, bad,
                       {argument::text("path", path),
                        {"from.layout.staggered", {view.staggered().begin(), view.staggered().end()}},
                        {"shown.axis", {shown.axis}},
                        {"shown.at", {shown.at}},
                        {"shown.component", {shown.component}},
                        argument::real("shown.low", shown.low),
                        argument::real("shown.high", shown.high),
                        {"shown.colors", {static_cast<std::int64_t>(shown.colors)}}});
    const plane p(points, shown);
    const std::vector<double> all = gathered(state, points, view, p, shown.component);
    status s;
    if (state.rank == 0) {
        std::vector<std::byte> bytes;
        s = to_png(pixels_of(all, shown), p.width(), p.height(), bytes);
        if (s.ok()) s = write_file(path, bytes);
    }
    check_collectively(state.comm, png_call, s);
}

void write_png(const grid &g, const std::string &path, const field &from, const slice &shown) {
    write_png_checked(g, path, from, shown, {});
}

}  // namespace mpix::halo
