// SPDX-License-Identifier: BSD-3-Clause
//
// For tests of files: fields of any shape, in memory of any layout, with values that follow from the cell; and
// decompositions.
#ifndef MPIX_TESTS_HALO_SAMPLE_FIELDS_HPP
#define MPIX_TESTS_HALO_SAMPLE_FIELDS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

namespace sample_fields {

namespace halo = mpix::halo;
using halo::box;
using halo::index3;

using bytes = std::vector<std::byte>;
constexpr auto poison = std::byte{0xd5};

struct shape {
    std::string name;
    std::size_t value = 1;
    halo::value_type type = halo::value_type::bytes;
    int components = 1;
    std::uint64_t key = 0;
    std::array<bool, 3> staggered{};

    std::size_t cell() const { return value * static_cast<std::size_t>(components); }
    std::byte at(const index3 &cell, std::size_t byte) const {
        std::uint64_t h = key + byte;
        for (const std::int64_t c : cell.along)
            h = (h ^ static_cast<std::uint64_t>(c)) * 0x9e3779b97f4a7c15 + (h >> 29);
        return static_cast<std::byte>(h >> 56);
    }
};

template <class Each>
void for_each_cell(const box &b, Each each) {
    for (std::int64_t z = b.lo[2]; z < b.hi[2]; ++z)
        for (std::int64_t y = b.lo[1]; y < b.hi[1]; ++y)
            for (std::int64_t x = b.lo[0]; x < b.hi[0]; ++x) each(index3{x, y, z});
}

// A field's memory on one rank, in a layout of its own.
class memory {
public:
    memory(const halo::grid &g, const shape &s, std::mt19937 &random) : shape_(s) {
        const auto pick = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); };
        layout_.components = s.components;
        layout_.interleaved = pick(1) == 1;
        layout_.staggered = s.staggered;
        radius_ = pick(1) ? halo::radius::faces(pick(2)) : halo::radius::all(pick(2));
        const auto depth = halo::ghost_depth(radius_, g.dimensions());
        index3 cells{};  // of the longest box
        for (int i = 0; i < static_cast<int>(g.boxes().size()); ++i)
            local_.push_back(g.points(g.local(i), s.staggered));
        for (std::size_t a = 0; a < 3; ++a) {
            layout_.below[a] = depth[0][a] + pick(1);
            layout_.above[a] = depth[1][a] + pick(1);
            for (const box &b : local_)
                cells[a] = std::max(cells[a], b.size()[a] + layout_.below[a] + layout_.above[a]);
        }
        const auto n = [](std::int64_t count) { return static_cast<std::size_t>(count); };
        layout_.row_bytes = n(cells[0]) * (layout_.interleaved ? s.cell() : s.value) + n(pick(9));
        layout_.plane_bytes = n(cells[1]) * layout_.row_bytes + n(pick(9));
        std::size_t all = n(cells[2]) * layout_.plane_bytes;
        if (!layout_.interleaved) {
            layout_.component_bytes = all + n(pick(9));
            all = layout_.component_bytes * n(s.components);
        }
        bytes_.assign(local_.size(), bytes(all + 1, poison));
    }

    void fill() { fill(bytes_); }
    // Whether it holds what fill() makes of fresh memory; or only poison.
    bool is_filled() const {
        std::vector<bytes> all = fresh();
        fill(all);
        return all == bytes_;
    }
    bool is_fresh() const { return bytes_ == fresh(); }
    std::vector<bytes> &contents() { return bytes_; }  // of each box
    halo::named_field description() {
        halo::field f(nullptr, shape_.value, radius_, layout_);
        f.type = shape_.type;
        if (bytes_.size() == 1) f.data = bytes_[0].data();
        if (bytes_.size() > 1)
            for (bytes &b : bytes_) f.allocations.push_back({.data = b.data()});
        return {shape_.name, f};
    }

private:
    std::vector<bytes> fresh() const { return {bytes_.size(), bytes(bytes_.empty() ? 0 : bytes_[0].size(), poison)}; }
    void fill(std::vector<bytes> &to) const {
        for (std::size_t i = 0; i < to.size(); ++i) fill(local_[i], to[i]);
    }
    void fill(const box &local, bytes &to) const {
        for_each_cell(local, [&](const index3 &where) {
            index3 o{};
            for (std::size_t a = 0; a < 3; ++a) o[a] = where[a] - local.lo[a] + layout_.below[a];
            const auto n = [](std::int64_t count) { return static_cast<std::size_t>(count); };
            const std::size_t cell = layout_.interleaved ? shape_.cell() : shape_.value;
            const std::size_t at = n(o[0]) * cell + n(o[1]) * layout_.row_bytes + n(o[2]) * layout_.plane_bytes;
            for (std::size_t byte = 0; byte < shape_.cell(); ++byte) {
                const std::size_t c = byte / shape_.value, in_value = byte % shape_.value;
                const std::size_t component = layout_.interleaved ? shape_.value : layout_.component_bytes;
                to[at + c * component + in_value] = shape_.at(where, byte);
            }
        });
    }

    shape shape_;
    std::vector<box> local_;  // of the field's points
    halo::radius radius_;
    halo::field_layout layout_;
    std::vector<bytes> bytes_;
};

// Of a domain that is not periodic, in which a staggered field has one point more.
inline box domain_of(const std::vector<std::int64_t> &extent, const std::array<bool, 3> &staggered = {}) {
    box all{{}, {1, 1, 1}};
    std::copy(extent.begin(), extent.end(), all.hi.along);
    for (std::size_t a = 0; a < 3; ++a) all.hi[a] += staggered[a] ? 1 : 0;
    return all;
}

// Boxes of which some may be empty; for some grids one of each rank, for others any number.
inline void choose_boxes(const std::vector<std::int64_t> &extent, int ranks, std::mt19937 &random,
                         halo::grid_options &options) {
    std::vector<box> &boxes = options.boxes;
    boxes = {domain_of(extent)};
    const auto wanted = static_cast<std::size_t>(ranks) * (1 + random() % 2);
    if (wanted != static_cast<std::size_t>(ranks))
        for (std::size_t i = 0; i < wanted; ++i)
            options.owners.push_back(static_cast<int>(random() % static_cast<unsigned>(ranks)));
    while (boxes.size() < wanted) {
        const std::size_t cut = random() % boxes.size(), a = random() % extent.size();
        box &low = boxes[cut], high = low;
        low.hi[a] = high.lo[a] = low.lo[a] + static_cast<std::int64_t>(random() % (low.size()[a] + 1));
        boxes.push_back(high);
    }
    std::shuffle(boxes.begin(), boxes.end(), random);
}

}  // namespace sample_fields

#endif  // MPIX_TESTS_HALO_SAMPLE_FIELDS_HPP
