// SPDX-License-Identifier: BSD-3-Clause
//
// A random grid with fields in it, which kernels or a stream exchange. A seed decides everything, in one order.
#ifndef MPIX_TESTS_HALO_KERNELS_RANDOM_CASE_HPP
#define MPIX_TESTS_HALO_KERNELS_RANDOM_CASE_HPP

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/device/executor.hpp"
#include "tests/halo/kernels/fields.hpp"

namespace halo_test {

using device_test::executor;

constexpr unsigned char poison = 0xd5;
constexpr int most_areas = 24;

// any: small, with boxes cut at random. long_rows: boxes are whole along x, so most ghost cells lie in long runs.
// large: with small tiles, so an exchange has more parcels than a kernel has blocks.
enum class domains { any, long_rows, large };

// A part of one of the rank's boxes, which a kernel waits for.
struct area {
    box cells;
    int in;  // the box's position
};

class random_case {
public:
    random_case(unsigned seed, int rank, executor &where, domains which)
        : where_(where), shared_(seed), own_(64 * seed + static_cast<unsigned>(rank)) {
        const bool are_long = which == domains::long_rows, is_large = which == domains::large;
        dimensions_ = is_large ? 3 : pick(are_long ? 2 : 1, 3);
        std::vector<std::int64_t> extent;
        mpix::halo::grid_options cut;
        domain whole{{1, 1, 1}, {}};
        for (int a = 0; a < dimensions_; ++a) {
            const auto axis = static_cast<std::size_t>(a);
            extent.push_back(choose_length(which, a));
            if (are_long && a == 0) cut.shortest[0] = extent[0] *= 4;
            cut.periodic[axis] = whole.periodic[axis] = pick(0, 1) == 1;
            whole.extent[axis] = extent.back();
        }
        if (pick(0, 1) == 0 && which == domains::any) choose_boxes(whole.extent, cut);
        grid_.emplace(MPI_COMM_WORLD, extent, cut);
        options_ = {.tile = {}, .sets = pick(2, 4)};
        for (int a = 0; a < dimensions_; ++a)
            options_.tile[static_cast<std::size_t>(a)] = pick(is_large ? 4 : 0, is_large ? 8 : 5);
        if (are_long) options_.tile[0] = 0;
        options_.box_waits = pick(0, 1) == 1;
        by_tiles_ = !options_.box_waits || pick(0, 2) == 0;
        if (options_.box_waits) choose_areas();
        views_.count = pick(1, most_fields);
        for (int f = 0; f < views_.count; ++f) fields_.push_back(make_field(whole, f));
        wrong_ = static_cast<std::uint64_t *>(where_.allocate_shared(sizeof(std::uint64_t)));
        in_stream_ = pick(0, 2) == 0 || which != domains::any;
    }
    ~random_case() {
        where_.release_shared(wrong_);
        for (void *const memory : memory_) where_.release(memory);
    }
    random_case(const random_case &) = delete;
    random_case &operator=(const random_case &) = delete;

    // For what is decided later: the same on all ranks.
    int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(shared_); }

    executor &where() const { return where_; }
    const mpix::halo::grid &grid() const { return *grid_; }
    const mpix::halo::kernel_exchange_options &options() const { return options_; }
    const std::vector<mpix::halo::field> &fields() const { return fields_; }
    const views &in_kernels() const { return views_; }
    // What is waited for by boxes instead of tiles, or beside these.
    const std::vector<area> &areas() const { return areas_; }
    bool by_tiles() const { return by_tiles_; }
    // Whether a stream makes the exchanges, or kernels do.
    bool in_stream() const { return in_stream_; }
    // Kernels count there what is wrong.
    std::uint64_t *wrong() const { return wrong_; }

    // After `done` exchanges of the field, data() is what the next one would use.
    std::uint64_t check_data(const mpix::halo::kernel_exchange &h, std::uint64_t done) const {
        std::uint64_t wrong = 0;
        std::size_t at = 0;
        for (int f = 0; f < views_.count; ++f)
            for (int i = 0; i < boxes(); ++i) {
                const int copies = views_.two_allocations[f] ? 2 : 1;
                wrong += h.data(f, i) != memory_[at + (copies == 2 ? done & 1 : 0)];
                at += static_cast<std::size_t>(copies);
            }
        return wrong;
    }

    // What is neither of the box nor a ghost cell that some tile reads has not been touched.
    std::uint64_t check_outside() const {
        std::uint64_t wrong = 0;
        std::size_t at = 0;
        for (int f = 0; f < views_.count; ++f)
            for (int i = 0; i < boxes(); ++i)
                for (int copy = 0; copy < (views_.two_allocations[f] ? 2 : 1); ++copy)
                    wrong += check_allocation(views_.of[f][i], memory_[at++]);
        return wrong;
    }

private:
    int pick_own(int low, int high) { return std::uniform_int_distribution<int>(low, high)(own_); }
    int boxes() const { return static_cast<int>(grid_->boxes().size()); }

    // The domain's length along an axis.
    int choose_length(domains which, int axis) {
        if (which == domains::large) return pick(50, 70);
        if (dimensions_ == 1) return pick(8, 60);
        if (axis == 0) return pick(8, 12);
        return pick(which == domains::long_rows ? 4 : 1, 12);
    }

    // Cut along x, of random lengths, of which some may be 0; up to most_boxes for each rank, in any order.
    void choose_boxes(const index3 &extent, mpix::halo::grid_options &options) {
        int ranks = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        for (int r = 0; r < ranks; ++r)
            options.owners.insert(options.owners.end(), static_cast<std::size_t>(pick(r == 0, most_boxes)), r);
        std::shuffle(options.owners.begin(), options.owners.end(), shared_);
        std::vector<std::int64_t> cuts{0, extent[0]};
        for (std::size_t i = 1; i < options.owners.size(); ++i) cuts.push_back(pick(0, static_cast<int>(extent[0])));
        std::sort(cuts.begin(), cuts.end());
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
            options.boxes.push_back({{cuts[i], 0, 0}, {cuts[i + 1], extent[1], extent[2]}});
    }

    // Cuts this rank's boxes at random places; some areas overlap these.
    void choose_areas() {
        for (int i = 0; i < boxes(); ++i) {
            const std::size_t first = areas_.size();
            const int count = pick_own(1, most_areas / most_boxes - 1);
            areas_.push_back({grid_->local(i), i});
            while (areas_.size() < first + static_cast<std::size_t>(count)) {
                const int which = pick_own(static_cast<int>(first), static_cast<int>(areas_.size()) - 1);
                box &cut = areas_[static_cast<std::size_t>(which)].cells, other = cut;
                const auto axis = static_cast<std::size_t>(pick_own(0, dimensions_ - 1));
                cut.hi[axis] = other.lo[axis] = cut.lo[axis] + pick_own(0, static_cast<int>(cut.size()[axis]));
                areas_.push_back({other, i});
            }
            box more = grid_->local(i);
            for (int a = 0; a < dimensions_; ++a) {
                const auto axis = static_cast<std::size_t>(a);
                more.lo[axis] += pick_own(0, static_cast<int>(more.size()[axis]));
                more.hi[axis] -= pick_own(0, static_cast<int>(more.size()[axis]));
            }
            areas_.push_back({more, i});
        }
    }

    mpix::halo::field make_field(const domain &cells, int f) {
        view v{};
        mpix::halo::field_layout layout;
        v.whole = cells;
        for (int a = 0; a < dimensions_; ++a) {
            const auto axis = static_cast<std::size_t>(a);
            layout.staggered[axis] = pick(0, 2) == 0;
            v.more[axis] = layout.staggered[axis] && !cells.periodic[axis] ? 1 : 0;
            v.whole.extent[axis] += v.more[axis];
        }
        v.seed = static_cast<std::uint64_t>(pick(1, 1000000));
        const mpix::halo::radius reach = choose_radius();
        for (int number = 0; number < mpix::halo::directions; ++number) {
            bool exists = true;
            for (auto a = static_cast<std::size_t>(dimensions_); a < 3; ++a)
                exists = exists && mpix::halo::direction(number)[a] == 0;
            v.reach[number] = exists ? reach.cells[static_cast<std::size_t>(number)] : 0;
        }
        const int value = pick(0, 4) == 0 ? pick(1, 9) : 1 << pick(0, 3), components = pick(1, 3);
        v.value = value;
        v.cell_bytes = value * components;
        layout.components = components;
        layout.interleaved = pick(0, 1) == 0;
        v.cell = layout.interleaved ? v.cell_bytes : value;
        const std::array<index3, 2> depth = mpix::halo::ghost_depth(reach, dimensions_);
        const int more = pick(0, 2);
        for (std::size_t a = 0; a < 3; ++a) {
            layout.below[a] = depth[0][a] + more;
            layout.above[a] = depth[1][a] + more;
        }
        views_.two_allocations[f] = pick(0, 2) != 0;

        // Of the only box, some rows and planes are longer than they need be.
        const int longer_row = pick(0, 2) == 0 ? pick(1, 20) : 0, longer_plane = pick(0, 2) == 0 ? pick(1, 20) : 0;
        mpix::halo::field made(nullptr, static_cast<std::size_t>(value), reach, layout);
        for (int i = 0; i < boxes(); ++i) {
            v.local = grid_->points(grid_->local(i), layout.staggered);
            for (std::size_t a = 0; a < 3; ++a) {
                v.origin[a] = v.local.lo[a] - layout.below[a];
                v.size[a] = v.local.size()[a] + layout.below[a] + layout.above[a];
            }
            v.row = v.size[0] * v.cell + (boxes() == 1 ? longer_row : 0);
            v.plane = v.size[1] * v.row + (boxes() == 1 ? longer_plane : 0);
            v.component = layout.interleaved ? value : v.size[2] * v.plane;
            v.all_bytes = v.size[2] * v.plane * (layout.interleaved ? 1 : components);
            if (boxes() == 1) {
                made.layout.row_bytes = static_cast<std::size_t>(v.row);
                made.layout.plane_bytes = static_cast<std::size_t>(v.plane);
            }
            void *both[2] = {};
            for (int copy = 0; copy < (views_.two_allocations[f] ? 2 : 1); ++copy) {
                both[copy] = where_.allocate(v.bytes() + 1);
                where_.set(both[copy], poison, v.bytes() + 1);
                memory_.push_back(both[copy]);
            }
            made.allocations.push_back({.data = both[0], .other = both[1], .allocated = v.bytes()});
            views_.of[f][i] = v;
        }
        return made;
    }

    mpix::halo::radius choose_radius() {
        const int how = pick(0, 3);
        mpix::halo::radius reach =
            how == 0 ? mpix::halo::radius::faces(pick(1, 3)) : mpix::halo::radius::all(pick(1, 2));
        if (how == 3) {
            for (int &depth : reach.cells) depth = pick(0, 2);
            reach.cells[mpix::halo::no_direction] = 0;
        }
        return reach;
    }

    std::uint64_t check_allocation(const view &v, void *memory) const {
        std::vector<unsigned char> bytes(v.bytes() + 1);
        where_.download(bytes.data(), memory, bytes.size());
        std::vector<char> may_change(bytes.size());
        if (!v.local.empty())
            for (std::int64_t i = 0; i < v.size[0] * v.size[1] * v.size[2]; ++i) {
                const index3 cell{v.origin[0] + i % v.size[0], v.origin[1] + i / v.size[0] % v.size[1],
                                  v.origin[2] + i / (v.size[0] * v.size[1])};
                if (!is_exchanged(v, cell)) continue;
                for (std::int64_t b = 0; b < v.cell_bytes; ++b) may_change[static_cast<std::size_t>(v.at(cell, b))] = 1;
            }
        std::uint64_t wrong = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) wrong += !may_change[i] && bytes[i] != poison;
        return wrong;
    }

    executor &where_;
    std::mt19937 shared_, own_;  // the same on all ranks; this rank's
    int dimensions_ = 3;
    std::optional<mpix::halo::grid> grid_;
    mpix::halo::kernel_exchange_options options_;
    bool by_tiles_ = true, in_stream_ = false;
    std::vector<area> areas_;
    views views_{};
    std::vector<mpix::halo::field> fields_;
    std::uint64_t *wrong_ = nullptr;
    std::vector<void *> memory_;
};

}  // namespace halo_test

#endif  // MPIX_TESTS_HALO_KERNELS_RANDOM_CASE_HPP
