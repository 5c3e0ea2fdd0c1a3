// SPDX-License-Identifier: BSD-3-Clause
//
// The two fields of a box for mpix's halo exchange: with ghost cells around, in an executor's memory. Calls nothing of MPI.
#ifndef JACOBI3D_HALO_FIELDS_HPP
#define JACOBI3D_HALO_FIELDS_HPP

#include "bricks.hpp"
#include "executor.hpp"
#include "subdomain.hpp"
#include "update_cells.hpp"

#include <mpix/halo.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace jacobi3d {

template <class Real>
class halo_fields {
public:
    /** `box` has its initial cells, and gets the result's. */
    explicit halo_fields(subdomain<Real> &box)
        : box_(box),
          width_((row_alignment + box.size()[0] + row_alignment) / row_alignment * row_alignment),
          plane_(width_ * (box.size()[1] + 2)) {
        check_layer(plane_, most_in_batch);
        const extent3 &size = box.size();
        const std::vector<Real> cells = box.cells();
        std::vector<Real> field(static_cast<std::size_t>(plane_ * (size[2] + 2)));
        // Ghost cells begin as the cells that they touch. Beyond the grid they stay so; elsewhere an exchange fills them.
        const auto clamped = [&](int at, int axis) { return std::int64_t{std::clamp(at, 0, size[axis] - 1)}; };
        for (int z = -1; z <= size[2]; ++z)
            for (int y = -1; y <= size[1]; ++y)
                for (int x = -1; x <= size[0]; ++x)
                    field[first() + z * plane_ + y * width_ + x] =
                        cells[(clamped(z, 2) * size[1] + clamped(y, 1)) * size[0] + clamped(x, 0)];
        for (device_array<Real> &one : fields_) {
            one = device_array<Real>(box.where(), static_cast<std::int64_t>(field.size()));
            one.upload(field);
        }
    }
    halo_fields(const halo_fields &) = delete;
    halo_fields &operator=(const halo_fields &) = delete;

    /** One of them, as the exchange needs it. */
    mpix::halo::field field(int which) const {
        return {std::span<Real>(fields_[which].data(), static_cast<std::size_t>(fields_[which].size())),
                mpix::halo::radius::faces(1),
                {.below = {row_alignment, 1, 1}, .above = {width_ - row_alignment - box_.size()[0], 1, 1}}};
    }
    /** What the kernel is told of them. */
    halo_step<Real> kernel(const mpix::halo::device_exchange &exchange, const extent3 &origin) const {
        return {exchange, {origin[0], origin[1], origin[2]}, first(), width_, plane_, box_.rate()};
    }

    /** The subdomain then has the cells of one of them as its current field. */
    void take_result(int which) {
        const extent3 &size = box_.size();
        const std::vector<Real> field = fields_[which].download();
        std::vector<Real> cells(static_cast<std::size_t>(box3{{0, 0, 0}, size}.cells()));
        auto to = cells.begin();
        for (int z = 0; z < size[2]; ++z)
            for (int y = 0; y < size[1]; ++y)
                to = std::copy_n(field.begin() + first() + z * plane_ + y * width_, size[0], to);
        box_.where().upload(box_.field(0), cells.data(), cells.size() * sizeof(Real));
    }

private:
    // Rows, and the boxes' cells in them, begin at multiples of so many elements: of 32 bytes, a sector of the GPU's memory.
    static constexpr int row_alignment = 32 / sizeof(Real);

    std::int64_t first() const { return plane_ + width_ + row_alignment; }

    subdomain<Real> &box_;
    std::int64_t width_, plane_;
    std::array<device_array<Real>, 2> fields_;
};

}  // namespace jacobi3d

#endif  // JACOBI3D_HALO_FIELDS_HPP
