// SPDX-License-Identifier: BSD-3-Clause
//
// The field of one box, in an executor's memory: two copies of the cells (this iteration's and the next's)
// and the packed faces.
#ifndef JACOBI3D_SUBDOMAIN_HPP
#define JACOBI3D_SUBDOMAIN_HPP

#include "decomposition.hpp"
#include "executor.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace jacobi3d {

template <class Real>
class subdomain {
public:
    /**
     * A box of `size` cells. `sends[f]`: another box needs the cells of face f, and gives its own for the
     * ghost cells there. `tiles` as in cut_face.
     */
    subdomain(executor &where, const extent3 &size, const std::array<bool, num_faces> &sends, int tiles, Real rate)
        : where_(where), size_(size) {
        const std::int64_t cells = box3{{0, 0, 0}, size}.cells();
        for (auto &field : fields_) field = device_array<Real>(where, cells);
        step_.nx = size[0];
        step_.ny = size[1];
        step_.nz = size[2];
        step_.rate = rate;
        step_.brick_x = step_.brick_y = step_.brick_z = 1;
        for (int f = 0; f < num_faces; ++f) {
            face_data<Real> &face = step_.faces[f];
            face.shape = cut_face(size[0], size[1], size[2], f, tiles);
            ghosts_[f] = device_array<Real>(where, face.shape.padded_cells());
            if (sends[f]) sends_[f] = device_array<Real>(where, face.shape.padded_cells());
            face.send = sends_[f].data();
            face.ghost = ghosts_[f].data();
            face.send_request = face.recv_request = MPIX_PREQUEST_NULL;
        }
    }

    /**
     * Set the cells, x fastest. Where no other box gives the ghost cells, they take the value of the cell
     * that they touch and keep it: the fixed boundary of the grid.
     */
    void load(const std::vector<Real> &cells) {
        fields_[0].upload(cells);
        for (int f = 0; f < num_faces; ++f)
            if (!step_.faces[f].send) ghosts_[f].upload(edge_layer(cells, f));
    }

    std::vector<Real> cells() const { return fields_[0].download(); }

    /** Launch `phases` of one iteration; advance() makes its result the current field. */
    void launch(unsigned phases) {
        step_.now = fields_[0].data();
        step_.next = fields_[1].data();
        step_.phases = phases;
        where_.launch(step_);
    }
    void advance() { std::swap(fields_[0], fields_[1]); }

    /** The current field, and the one that the next iteration writes. */
    Real *field(int which) { return fields_[which].data(); }
    const extent3 &size() const { return size_; }
    Real rate() const { return step_.rate; }
    executor &where() { return where_; }
    /** The ghost cells beyond face f, in rows (face_shape). */
    std::vector<Real> ghost_cells(int f) const { return ghosts_[f].download(); }

    face_data<Real> &face(int f) { return step_.faces[f]; }
    const face_data<Real> &face(int f) const { return step_.faces[f]; }
    /** The ghost cells beyond face f, as whoever fills them writes them. */
    Real *ghost(int f) { return ghosts_[f].data(); }

private:
    std::vector<Real> edge_layer(const std::vector<Real> &cells, int f) const {
        const face_shape &shape = step_.faces[f].shape;
        const int axis = face_axis(f);
        std::vector<Real> layer(shape.padded_cells());
        for (std::int64_t r = 0; r < shape.rows; ++r)
            for (std::int64_t c = 0; c < shape.width; ++c) {
                const std::int64_t fixed = face_is_upper(f) ? size_[axis] - 1 : 0;
                const std::int64_t x = axis == 0 ? fixed : c;
                const std::int64_t y = axis == 1 ? fixed : axis == 0 ? c : r;
                const std::int64_t z = axis == 2 ? fixed : r;
                layer[r * shape.width + c] = cells[(z * size_[1] + y) * size_[0] + x];
            }
        return layer;
    }

    executor &where_;
    extent3 size_;
    step<Real> step_ = {};
    device_array<Real> fields_[2];
    device_array<Real> sends_[num_faces];
    device_array<Real> ghosts_[num_faces];
};

/**
 * The whole grid on one executor without any communication: what the distributed run is compared with. In a
 * periodic direction the grid is its own neighbour, so its faces are packed straight into its ghost cells.
 */
template <class Real>
std::vector<Real> compute_alone(executor &where, const extent3 &grid, const std::array<bool, 3> &periodic, Real rate,
                                const std::vector<Real> &initial, int iterations) {
    subdomain<Real> whole(where, grid, {}, 0, rate);
    whole.load(initial);
    for (int f = 0; f < num_faces; ++f)
        if (periodic[face_axis(f)]) whole.face(f).send = whole.ghost(opposite_face(f));
    for (int i = 0; i < iterations; ++i) {
        whole.launch(phase_send);
        whole.launch(phase_interior | phase_boundary);
        where.synchronize();
        whole.advance();
    }
    return whole.cells();
}

}  // namespace jacobi3d

#endif  // JACOBI3D_SUBDOMAIN_HPP
