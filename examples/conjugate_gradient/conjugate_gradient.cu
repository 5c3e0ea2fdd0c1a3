// SPDX-License-Identifier: BSD-3-Clause
//
// Conjugate gradients for Poisson's equation in a box: 7 points, 0 outside. An iteration is two kernels, with the sums of
// the dot products between them on the host. The first kernel exchanges the search direction: it computes and sends the
// tiles that neighbours need, goes on with the tiles that need no ghost cells, and waits for those last.
//
// The solution is known. Checked are the residual, which is computed anew, and the solution itself.
//
//   mpirun -n 4 conjugate_gradient
#include <cmath>

#include "field.cuh"

using namespace example;

namespace {

constexpr int nx = 30, ny = 24, nz = 20;

// What each thread has summed, for the host to add up.
struct thread_sums {
    double *first = allocate<double>(static_cast<std::size_t>(blocks) * threads_per_block);

    KERNEL_FN void set(int index, unsigned thread, double sum) const {
        first[index * threads_per_block + static_cast<int>(thread)] = sum;
    }
    double total() const {
        std::vector<double> all(static_cast<std::size_t>(blocks) * threads_per_block);
        copy(all.data(), static_cast<const double *>(first), all.size());
        double sum = 0;
        for (const double one : all) sum += one;
        return sum_of_all(sum);
    }
};

// p = r + beta p; q = A p; the sum of p q. The exchange's field is p.
struct multiply {
    halo::device_exchange x;
    std::int64_t step;
    shape at;
    double beta;
    const double *r;
    double *q;
    thread_sums sums;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int index) const {
        double *const p = x.data<double>(0, step);
        const auto new_direction = [&](auto i, auto j, auto k) {
            const std::int64_t c = at(i, j, k);
            p[c] = r[c] + beta * p[c];
        };
        double sum = 0;
        const auto product = [&](auto i, auto j, auto k) {
            const std::int64_t c = at(i, j, k), row = at.stride(1), plane = at.stride(2);
            q[c] = 6 * p[c] - p[c - 1] - p[c + 1] - p[c - row] - p[c + row] - p[c - plane] - p[c + plane];
            sum += p[c] * q[c];
        };
        const int boundary = x.boundary_tiles();
        for (int i = index; i < x.tiles(); i += blocks) {
            const int t = x.tile_boundary_first(i);
            for_each_cell(block, x.tile(t), new_direction);
            halo::send(block, x, t, step);
        }
        halo::sync_blocks(block, x, blocks);
        if (index == 0 && step > 0) halo::next(block, x, step - 1);
        for (int i = boundary + index; i < x.tiles(); i += blocks)
            for_each_cell(block, x.tile(x.tile_boundary_first(i)), product);
        for (int i = index; i < boundary; i += blocks) {
            const int t = x.tile_boundary_first(i);
            halo::wait(block, x, t, step);
            for_each_cell(block, x.tile(t), product);
        }
        sums.set(index, block.thread_rank(), sum);
    }
};

// u += alpha p; r -= alpha q; the sum of r r.
struct go_on {
    halo::device_exchange x;
    shape at;
    double alpha;
    const double *p, *q;
    double *u, *r;
    thread_sums sums;

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int index) const {
        double sum = 0;
        for (int t = index; t < x.tiles(); t += blocks)
            for_each_cell(block, x.tile(t), [&](auto i, auto j, auto k) {
                const std::int64_t c = at(i, j, k);
                u[c] += alpha * p[c];
                r[c] -= alpha * q[c];
                sum += r[c] * r[c];
            });
        sums.set(index, block.thread_rank(), sum);
    }
};

// Any numbers; 0 outside.
double solution(std::int64_t x, std::int64_t y, std::int64_t z) {
    if (x < 0 || y < 0 || z < 0 || x >= nx || y >= ny || z >= nz) return 0;
    return std::sin(static_cast<double>(1 + x + nx * (y + ny * z)));
}
double right_side(std::int64_t x, std::int64_t y, std::int64_t z) {
    return 6 * solution(x, y, z) - solution(x - 1, y, z) - solution(x + 1, y, z) - solution(x, y - 1, z) -
           solution(x, y + 1, z) - solution(x, y, z - 1) - solution(x, y, z + 1);
}

int run() {
    const halo::grid g(MPI_COMM_WORLD, {nx, ny, nz});
    const shape at(g, 1);
    values u(g, 1), r(g, 1), p(g, 1), q(g, 1);
    r.set(right_side);
    halo::kernel_exchange h(g, {p.field(halo::radius::faces(1))}, {.tile = {8, 8, 8}});
    const thread_sums sums;

    double square = 0;
    r.get([&](auto, auto, auto, double value) { square += value * value; });
    square = sum_of_all(square);
    const double first = square;
    double beta = 0;
    int iterations = 0;
    while (square > 1e-24 * first && iterations < 300) {
        constexpr int at_once = 10;  // iterations of an activation
        const halo::device_exchange x = h.start(at_once);
        for (int step = 0; step < at_once; ++step, ++iterations) {
            launch(blocks, multiply{x, step, at, beta, r.data(), q.data(), sums});
            const double alpha = square / sums.total();
            launch(blocks, go_on{x, at, alpha, p.data(), q.data(), u.data(), r.data(), sums});
            const double before = square;
            square = sums.total();
            beta = square / before;
        }
        h.finish();
    }

    // q = A u, by way of p.
    launch(blocks, multiply{h.start(1), 0, at, 0, u.data(), q.data(), sums});
    h.finish();
    double residual = 0, error = 0;
    q.get([&](auto x, auto y, auto z, double value) { residual += std::pow(value - right_side(x, y, z), 2); });
    u.get([&](auto x, auto y, auto z, double value) { error = std::max(error, std::abs(value - solution(x, y, z))); });
    residual = std::sqrt(sum_of_all(residual) / first);
    release_memory(sums.first);
    const bool right = all_say(error < 1e-10) && residual < 1e-11;
    if (g.rank() == 0)
        std::printf("%d iterations on %d ranks, residual %.1e: %s\n", iterations, g.ranks(), residual,
                    right ? "right" : "wrong");
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) { return with_mpi(argc, argv, run); }
