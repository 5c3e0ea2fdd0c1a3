// SPDX-License-Identifier: BSD-3-Clause
//
// Fields of a halo exchange, in the memory where kernels run, and how kernels find a cell in them.
#ifndef EXAMPLES_FIELD_CUH
#define EXAMPLES_FIELD_CUH

#include <mpix/halo.cuh>
#include <mpix/halo.hpp>

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "gpu_or_host.cuh"

namespace example {

namespace halo = mpix::halo;

/** Enough for small boxes, and not too many for the smaller GPUs: all blocks must be resident. */
#ifdef __CUDACC__
inline constexpr int blocks = 64;
#else
inline constexpr int blocks = 2;
#endif

/** Where the values of a rank's cells and ghost cells lie; by global indices, in any allocation of that shape. */
struct shape {
    halo::index3 lo, size;  // of what is allocated

    shape(const halo::grid &g, int depth) : lo(g.local().lo), size(g.local().size()) {
        for (std::size_t a = 0; a < static_cast<std::size_t>(g.dimensions()); ++a) lo[a] -= depth, size[a] += 2 * depth;
    }
    BOTH_FN std::int64_t operator()(std::int64_t x, std::int64_t y, std::int64_t z = 0) const {
        return ((z - lo[2]) * size[1] + y - lo[1]) * size[0] + x - lo[0];
    }
    /** From a cell to the next one along an axis. */
    BOTH_FN std::int64_t stride(std::size_t axis) const {
        return axis == 0 ? 1 : axis == 1 ? size[0] : size[0] * size[1];
    }
    std::size_t cells() const { return static_cast<std::size_t>(size[0] * size[1] * size[2]); }
};

/** Calls each(x, y, z) for this thread's cells of a box. */
template <class Block, class Each>
KERNEL_FN void for_each_cell(const Block &block, const halo::box &b, const Each &each) {
    const auto nx = static_cast<int>(b.hi[0] - b.lo[0]), ny = static_cast<int>(b.hi[1] - b.lo[1]);
    const int all = nx * ny * static_cast<int>(b.hi[2] - b.lo[2]);
    for (auto i = static_cast<int>(block.thread_rank()); i < all; i += static_cast<int>(block.num_threads()))
        each(b.lo[0] + i % nx, b.lo[1] + i / nx % ny, b.lo[2] + i / nx / ny);
}

/** The same on the host, for all cells in order. */
template <class Each>
void for_each_cell(const halo::box &b, const Each &each) {
    for (auto z = b.lo[2]; z < b.hi[2]; ++z)
        for (auto y = b.lo[1]; y < b.hi[1]; ++y)
            for (auto x = b.lo[0]; x < b.hi[0]; ++x) each(x, y, z);
}

/** Memory where kernels run: zeroed values, one for each of this rank's cells and of its ghost cells up to `depth`. */
class values {
public:
    values(const halo::grid &g, int depth)
        : box_(g.local()), depth_(depth), shape_(g, depth), first_(allocate<double>(shape_.cells())) {}
    values(const values &) = delete;
    values &operator=(const values &) = delete;
    values(values &&other) noexcept
        : box_(other.box_), depth_(other.depth_), shape_(other.shape_), first_(std::exchange(other.first_, nullptr)) {}
    values &operator=(values &&) = delete;
    ~values() {
        if (first_ != nullptr) release_memory(first_);
    }

    double *data() const { return first_; }

    halo::field field(const halo::radius &reach) const {
        const halo::index3 beside{shape_.lo[0] == box_.lo[0] ? 0 : depth_, shape_.lo[1] == box_.lo[1] ? 0 : depth_,
                                  shape_.lo[2] == box_.lo[2] ? 0 : depth_};
        return {std::span<double>(first_, shape_.cells()), reach, {.below = beside, .above = beside}};
    }

    /** Sets each cell of the box to of(x, y, z). */
    template <class Of>
    void set(const Of &of) {
        std::vector<double> all(shape_.cells());
        for_each_cell(box_, [&](auto x, auto y, auto z) { all[place(x, y, z)] = of(x, y, z); });
        copy(first_, all.data(), all.size());
    }
    /** Calls each(x, y, z, value) for each cell of the box. */
    template <class Each>
    void get(const Each &each) const {
        std::vector<double> all(shape_.cells());
        copy(all.data(), static_cast<const double *>(first_), all.size());
        for_each_cell(box_, [&](auto x, auto y, auto z) { each(x, y, z, all[place(x, y, z)]); });
    }

private:
    std::size_t place(std::int64_t x, std::int64_t y, std::int64_t z) const {
        return static_cast<std::size_t>(shape_(x, y, z));
    }

    halo::box box_;
    int depth_;
    shape shape_;
    double *first_;
};

/** Whether this rank's cells of some fields are, bit for bit, those that one rank computed alone. Each field's cells come
    behind those of the one before, x fastest. */
inline bool same_bits(const halo::grid &g, const std::vector<double> &mine, const std::vector<double> &alone) {
    const halo::index3 n = g.extent();
    const auto place = [&](auto x, auto y, auto z) { return static_cast<std::size_t>((z * n[1] + y) * n[0] + x); };
    const auto all = static_cast<std::size_t>(n[0] * n[1] * n[2]);
    std::size_t at = 0, wrong = 0;
    for (std::size_t first = 0; first < alone.size(); first += all)
        for_each_cell(g.local(), [&](auto x, auto y, auto z) {
            wrong += std::memcmp(&mine.at(at++), &alone[first + place(x, y, z)], sizeof(double)) != 0;
        });
    return wrong == 0 && at == mine.size();
}

/** The sum over all ranks, and whether all say yes. */
inline double sum_of_all(double mine) {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}
inline bool all_say(bool mine) { return sum_of_all(mine ? 0 : 1) == 0; }

}  // namespace example

#endif  // EXAMPLES_FIELD_CUH
