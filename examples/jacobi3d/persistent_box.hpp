// SPDX-License-Identifier: BSD-3-Clause
//
// What a persistent kernel needs beside a subdomain: fields with ghost cells, the tiles of its messages, and the words by
// which its blocks wait for each other. Knows nothing of MPI.
#ifndef JACOBI3D_PERSISTENT_BOX_HPP
#define JACOBI3D_PERSISTENT_BOX_HPP

#include "bricks.hpp"
#include "executor.hpp"
#include "subdomain.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace jacobi3d {

template <class Real>
class persistent_box {
public:
    /** `box` has its initial cells. Beyond face f lies another box, if exchanged[f]; or this one, if wrapped[f]. */
    persistent_box(subdomain<Real> &box, const std::array<bool, num_faces> &exchanged,
                   const std::array<bool, num_faces> &wrapped, const extent3 &brick, int iterations)
        : box_(box), exchanged_(exchanged) {
        const extent3 &size = box.size();
        kernel_.nx = size[0];
        kernel_.ny = size[1];
        kernel_.nz = size[2];
        kernel_.rate = box.rate();
        kernel_.iterations = iterations;
        kernel_.bricks = cut_box(size, brick);
        lay_out_fields(exchanged, wrapped);
        on_faces_ = device_array<int>(box.where(), kernel_.bricks.bricks());
        std::vector<int> on_faces = bricks_on_faces(kernel_.bricks, exchanged);
        kernel_.on_faces_count = static_cast<int>(on_faces.size());
        on_faces.resize(kernel_.bricks.bricks());
        on_faces_.upload(on_faces);
        kernel_.on_faces = on_faces_.data();
        arrivals_ = device_array<unsigned>(box.where(), 1);
        kernel_.arrivals = arrivals_.data();
        words_ = device_array<int>(box.where(), failed_at + 1);
        std::vector<int> words(words_.size());
        for (int set = 0; set < message_sets; ++set) words[set] = set;
        words_.upload(words);
        kernel_.started = words_.data();
        kernel_.gave_up = words_.data() + message_sets;
        kernel_.failed = words_.data() + failed_at;
        for (int f = 0; f < num_faces; ++f) {
            const std::int64_t cells = std::int64_t{kernel_.bricks.tiles(f)} * kernel_.bricks.tile_cells(f);
            if (wrapped[f]) kernel_.wrapped |= 1u << f;
            if (!exchanged[f]) continue;
            kernel_.exchanged |= 1u << f;
            for (int set = 0; set < message_sets; ++set) {
                sends_[set][f] = device_array<Real>(box.where(), cells);
                ghosts_[set][f] = device_array<Real>(box.where(), cells);
                kernel_.messages[set][f] = {sends_[set][f].data(), ghosts_[set][f].data(), MPIX_PREQUEST_NULL,
                                            MPIX_PREQUEST_NULL};
            }
        }
    }
    persistent_box(const persistent_box &) = delete;
    persistent_box &operator=(const persistent_box &) = delete;

    /** Of how many sets the first messages are started before the launch. */
    int started_sets() const { return std::min(message_sets, kernel_.iterations); }
    const brick_grid &bricks() const { return kernel_.bricks; }

    persistent<Real> &kernel() { return kernel_; }
    /** The ghost cells of a set's message, as whoever fills them writes them. */
    Real *ghost(int set, int f) { return ghosts_[set][f].data(); }

    /** All iterations, by at most so many blocks. */
    void launch(const residency &available) {
        residency by = available;
        by.blocks = blocks_of(available.blocks);
        kernel_.face_blocks = blocks_for_faces(kernel_.bricks, exchanged_, by);
        box_.where().launch(kernel_, by.blocks);
    }
    /** More have nothing to do. */
    int blocks_of(int most) const { return std::min(most, kernel_.bricks.bricks() + kernel_.on_faces_count); }
    /** The subdomain then has the result as its current field. */
    void finish() {
        box_.where().synchronize();
        const extent3 &size = box_.size();
        const std::vector<Real> field = fields_[kernel_.iterations % 2].download();
        std::vector<Real> cells(static_cast<std::size_t>(box3{{0, 0, 0}, size}.cells()));
        auto to = cells.begin();
        for (int z = 0; z < size[2]; ++z)
            for (int y = 0; y < size[1]; ++y) to = std::copy_n(field.begin() + index(0, y, z), size[0], to);
        box_.where().upload(box_.field(0), cells.data(), cells.size() * sizeof(Real));
    }
    /** After finish(): whether a wait or a send has failed. */
    bool failed() const { return words_.download()[failed_at] != 0; }

private:
    static constexpr int failed_at = 2 * message_sets;
    // Rows begin at multiples of so many elements; of float, of 32 bytes, a sector of the GPU's memory.
    static constexpr int row_alignment = 8;

    std::int64_t index(int x, int y, int z) const {
        return row_alignment + (z + 1) * kernel_.plane + (y + 1) * kernel_.width + x;
    }
    // A row is followed by the ghost cell at its end, and the next one's first ghost cell.
    void lay_out_fields(const std::array<bool, num_faces> &exchanged, const std::array<bool, num_faces> &wrapped) {
        const extent3 &size = box_.size();
        kernel_.width = (std::int64_t{size[0]} + 2 + row_alignment - 1) / row_alignment * row_alignment;
        kernel_.plane = kernel_.width * (size[1] + 2);
        check_layer(kernel_.plane, most_in_batch);
        std::vector<Real> field(static_cast<std::size_t>(row_alignment + kernel_.plane * (size[2] + 2)));
        const std::vector<Real> cells = box_.cells();
        auto from = cells.begin();
        for (int z = 0; z < size[2]; ++z)
            for (int y = 0; y < size[1]; ++y, from += size[0])
                std::copy_n(from, size[0], field.begin() + index(0, y, z));
        for (int f = 0; f < num_faces; ++f) {
            if (exchanged[f] || wrapped[f]) continue;
            const std::vector<Real> rows = box_.ghost_cells(f);
            const int axis = face_axis(f), across = axis == 0 ? 1 : 0, along = axis == 2 ? 1 : 2;
            std::array<int, 3> at;
            at[axis] = face_is_upper(f) ? size[axis] : -1;
            for (at[along] = 0; at[along] < size[along]; ++at[along])
                for (at[across] = 0; at[across] < size[across]; ++at[across])
                    field[index(at[0], at[1], at[2])] = rows[std::int64_t{at[along]} * size[across] + at[across]];
        }
        for (int i = 0; i < 2; ++i) {
            fields_[i] = device_array<Real>(box_.where(), static_cast<std::int64_t>(field.size()));
            fields_[i].upload(field);
            kernel_.fields[i] = fields_[i].data() + index(0, 0, 0);
        }
    }

    subdomain<Real> &box_;
    std::array<bool, num_faces> exchanged_;
    persistent<Real> kernel_ = {};
    device_array<Real> fields_[2];
    device_array<int> on_faces_, words_;
    device_array<unsigned> arrivals_;
    device_array<Real> sends_[message_sets][num_faces], ghosts_[message_sets][num_faces];
};

}  // namespace jacobi3d

#endif  // JACOBI3D_PERSISTENT_BOX_HPP
