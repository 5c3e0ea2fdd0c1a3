// SPDX-License-Identifier: BSD-3-Clause
//
// What a kernel that stays needs beside a subdomain: the tiles of its messages, and the words by which its blocks wait
// for each other. Knows nothing of MPI.
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
    /** `box` has its initial cells. `exchanged[f]`: as `sends` of the subdomain. */
    persistent_box(subdomain<Real> &box, const std::array<bool, num_faces> &exchanged, const extent3 &brick,
                   int iterations)
        : box_(box) {
        const extent3 &size = box.size();
        kernel_.nx = size[0];
        kernel_.ny = size[1];
        kernel_.nz = size[2];
        kernel_.rate = box.rate();
        kernel_.iterations = iterations;
        kernel_.bricks = cut_box(size, brick);
        for (int i = 0; i < 2; ++i) kernel_.fields[i] = box.field(i);
        order_ = device_array<int>(box.where(), kernel_.bricks.bricks());
        order_.upload(brick_order(kernel_.bricks, exchanged, &kernel_.on_faces));
        kernel_.order = order_.data();
        words_ = device_array<int>(box.where(), kernel_.bricks.bricks() + others);
        std::vector<int> words(words_.size());
        for (int set = 0; set < message_sets; ++set) words[set] = set;
        words_.upload(words);
        kernel_.started = words_.data();
        kernel_.gave_up = words_.data() + message_sets;
        kernel_.failed = words_.data() + failed_at;
        kernel_.done = words_.data() + others;
        for (int f = 0; f < num_faces; ++f) {
            const std::int64_t cells = std::int64_t{kernel_.bricks.tiles(f)} * kernel_.bricks.tile_cells(f);
            if (exchanged[f]) {
                kernel_.exchanged |= 1u << f;
                for (int set = 0; set < message_sets; ++set) {
                    sends_[set][f] = device_array<Real>(box.where(), cells);
                    ghosts_[set][f] = device_array<Real>(box.where(), cells);
                    kernel_.messages[set][f] = {sends_[set][f].data(), ghosts_[set][f].data(), MPIX_PREQUEST_NULL,
                                                MPIX_PREQUEST_NULL};
                }
            } else {
                fixed_[f] = device_array<Real>(box.where(), cells);
                fixed_[f].upload(in_tiles(box.ghost_cells(f), f));
                kernel_.fixed[f] = fixed_[f].data();
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

    /** All iterations, by at most so many blocks; the subdomain then has the result as its current field. */
    void launch(int blocks) { box_.where().launch(kernel_, std::min(blocks, kernel_.bricks.bricks())); }
    void finish() {
        box_.where().synchronize();
        if (kernel_.iterations % 2 == 1) box_.advance();
    }
    /** After finish(): whether a wait or a send has failed. */
    bool failed() const { return words_.download()[failed_at] != 0; }

private:
    static constexpr int others = 32;  // words before those of the bricks: a cache line of their own
    static constexpr int failed_at = 2 * message_sets;
    static_assert(failed_at < others);

    // Rows of a face, cut into tiles.
    std::vector<Real> in_tiles(const std::vector<Real> &rows, int f) const {
        const brick_grid &g = kernel_.bricks;
        const extent3 &size = box_.size();
        const int across = face_axis(f) == 0 ? 1 : 0, along = face_axis(f) == 2 ? 1 : 2;
        std::vector<Real> tiles(std::int64_t{g.tiles(f)} * g.tile_cells(f));
        for (std::int64_t r = 0; r < size[along]; ++r)
            for (std::int64_t c = 0; c < size[across]; ++c) {
                const std::int64_t tile = r / g.size[along] * g.count[across] + c / g.size[across];
                const std::int64_t at = r % g.size[along] * g.size[across] + c % g.size[across];
                tiles[tile * g.tile_cells(f) + at] = rows[r * size[across] + c];
            }
        return tiles;
    }

    subdomain<Real> &box_;
    persistent<Real> kernel_ = {};
    device_array<int> order_, words_;
    device_array<Real> sends_[message_sets][num_faces], ghosts_[message_sets][num_faces], fixed_[num_faces];
};

}  // namespace jacobi3d

#endif  // JACOBI3D_PERSISTENT_BOX_HPP
