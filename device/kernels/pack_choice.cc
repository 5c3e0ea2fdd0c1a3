// SPDX-License-Identifier: BSD-3-Clause
#include "device/kernels/pack_choice.h"

#include <algorithm>
#include <cstdlib>

namespace mpix::gpu {
namespace {

// DRAM is read and written by atoms of this size (measured on an H200).
constexpr double atom = 64;
// cudaDevAttrMaxPitch of all GPUs so far.
constexpr std::int64_t longest_pitch = 0x7fffffff;

// Runs of a message, on average.
struct runs {
    double number, length, distance;
};

double number_in(const mpix_grid &box) {
    double n = 1;
    for (std::int64_t k = 0; k < box.dimensions; ++k) n *= static_cast<double>(box.step[k].count);
    return n;
}

runs runs_of(const pack_shape &shape) {
    const mpix_typemap &type = *shape.type;
    const auto bytes = static_cast<double>(shape.bytes);
    if (type.kind == MPIX_TYPEMAP_GRID) {
        const auto length = static_cast<double>(type.grid.run);
        return {bytes / length, length, std::abs(static_cast<double>(type.grid.step[0].stride))};
    }
    double an_element = 0;
    if (type.kind == MPIX_TYPEMAP_RUNS)
        an_element = static_cast<double>(type.table.runs);
    else
        for (std::int64_t b = 0; b < type.number_of_boxes; ++b) an_element += number_in(type.boxes[b]);
    const auto size = static_cast<double>(type.size);
    return {an_element * bytes / size, size / an_element, static_cast<double>(type.high - type.low) / an_element};
}

// Bytes that cross the memory interface: whole atoms of the elements' side, for unpacking those that are not covered
// entirely a second time; and the packed bytes.
double traffic_of(const pack_shape &shape) {
    const runs r = runs_of(shape);
    const std::uint64_t all = shape.type->alignment | 64;
    const auto granule = static_cast<double>(all & (~all + 1));
    const double touched = std::min(std::max(r.distance, r.length), r.length - granule + atom);
    const double covered = std::max(0.0, r.length - atom + granule);
    return r.number * (touched + (shape.unpack ? std::max(0.0, touched - covered) : 0)) +
           static_cast<double>(shape.bytes);
}

word_class class_of(const pack_shape &shape) {
    const double length = runs_of(shape).length;
    if (length >= static_cast<double>(long_run)) return shape.word == 1 ? long_joined : words_of_16;
    switch (shape.word) {
        case 16:
            return words_of_16;
        case 8:
            return words_of_8;
        case 4:
            return words_of_4;
        default:
            return length < 4 ? single_bytes : joined_words;
    }
}

double by_kernel(const pack_shape &shape, const pack_costs &costs) {
    const double traffic = traffic_of(shape), bytes = static_cast<double>(shape.bytes);
    double us = traffic / (traffic < costs.cache_bytes ? costs.cached : costs.memory);
    const int way = shape.unpack ? 1 : 0;
    const word_class words = class_of(shape);
    us = std::max(us, bytes / costs.moved[way][words] +
                          (words == long_joined ? runs_of(shape).number * costs.joined_run[way] : 0));
    if (shape.packed == packed_place::mapped_host) us = std::max(us, bytes / costs.host);
    return costs.kernel + us;
}

double by_rows(const pack_shape &shape, const pitched_rows &rows, const pack_costs &costs) {
    const bool host = shape.packed == packed_place::mapped_host;
    const double number = static_cast<double>(rows.height) * static_cast<double>(rows.depth);
    const int odd = shape.word == 1 ? 1 : 0;
    const double us = host ? static_cast<double>(shape.bytes) / costs.copied_host
                           : 2 * static_cast<double>(shape.bytes) / costs.copied_rows[odd];
    return costs.copy + std::max(us, number * (host ? costs.host_row : costs.row[odd]));
}

bool one_piece(const pack_shape &shape) {
    return shape.type->kind == MPIX_TYPEMAP_GRID && shape.type->grid.dimensions == 0;
}

}  // namespace

bool as_rows(const pack_shape &shape, pitched_rows &out) {
    if (shape.type->kind != MPIX_TYPEMAP_GRID || one_piece(shape)) return false;
    const mpix_grid &grid = shape.type->grid;
    // Dimensions of which the message has one step are none.
    std::int64_t dimensions = grid.dimensions;
    const auto inside_one_step = [&](const mpix_step &s) {
        return detail::divide(shape.begin, s.by) == detail::divide(shape.begin + shape.bytes - 1, s.by);
    };
    while (dimensions > 0 && inside_one_step(grid.step[dimensions - 1])) --dimensions;
    if (dimensions != 1 && dimensions != 2) return false;
    const std::int64_t whole = dimensions == 1 ? grid.run : grid.step[1].by.value;
    if (shape.begin % whole != 0 || shape.bytes % whole != 0) return false;
    const std::int64_t pitch = grid.step[0].stride;
    if (pitch < grid.run || pitch > longest_pitch) return false;
    out = {detail::grid_map(*shape.type).locate(shape.begin).offset, grid.run, pitch, shape.bytes / grid.run, 1, 0};
    if (dimensions == 1) return true;
    const std::int64_t slice = grid.step[1].stride;
    out.height = grid.step[1].by.value / grid.run;
    out.depth = shape.bytes / whole;
    if (slice % pitch != 0 || slice / pitch < out.height) return false;
    out.slice = slice / pitch;
    return true;
}

pack_choice consider(const pack_shape &shape, const pack_costs &costs, pack_mode mode) {
    const auto bytes = static_cast<double>(shape.bytes);
    const bool whole = one_piece(shape), unreachable = shape.packed == packed_place::unreachable,
               other_gpu = shape.packed == packed_place::other_gpu;
    const char *const in_one_piece = "the elements are in one piece";
    pitched_rows rows{};
    pack_choice out{};
    auto &[copy, kernel, by_row, staged] = out.candidates;
    copy = {pack_way::copy, whole ? nullptr : "the elements have gaps",
            costs.copy + bytes / (shape.packed == packed_place::same_gpu ? costs.memory / 2 : costs.copied_host)};
    kernel = {pack_way::kernel, whole ? in_one_piece : unreachable ? "no kernel reaches the packed bytes" : nullptr, 0};
    by_row = {pack_way::rows,
              whole                   ? in_one_piece
              : unreachable           ? "the packed bytes are in memory that is not page-locked, or not mapped"
              : other_gpu             ? "the packed bytes are on another GPU"
              : !as_rows(shape, rows) ? "the elements are no whole rows at one distance"
                                      : nullptr,
              0};
    staged = {pack_way::staged, whole ? in_one_piece : !unreachable ? "kernels reach the packed bytes" : nullptr, 0};
    if (kernel.why_not == nullptr) kernel.us = by_kernel(shape, costs);
    if (by_row.why_not == nullptr) by_row.us = by_rows(shape, rows, costs);
    if (staged.why_not == nullptr) staged.us = by_kernel(shape, costs) + costs.copy + bytes / costs.copied_host;

    // Within a GPU copying rows saves some of the launch, if anything; of what comes after that, messages of few MiB
    // were measured, and of others it may be twice as much.
    const auto doubtful = [&](const pack_candidate &c) {
        const bool doubled = c.way == pack_way::rows && shape.packed == packed_place::same_gpu;
        return doubled ? 2 * c.us - costs.copy : c.us;
    };
    const pack_candidate *best = nullptr;
    for (const pack_candidate &c : out.candidates)
        if (c.why_not == nullptr && (best == nullptr || doubtful(c) < doubtful(*best))) best = &c;
    if (mode == pack_mode::kernel && kernel.why_not == nullptr) best = &kernel;
    if (mode == pack_mode::rows && by_row.why_not == nullptr) best = &by_row;
    out.taken = best->way;
    return out;
}

const char *name_of(pack_way way) {
    switch (way) {
        case pack_way::copy:
            return "copy";
        case pack_way::kernel:
            return "kernel";
        case pack_way::rows:
            return "copy by rows";
        case pack_way::staged:
            return "staged";
    }
    return "";
}

}  // namespace mpix::gpu
