// SPDX-License-Identifier: BSD-3-Clause
//
// Elastic waves in a periodic box, by velocity and stress on a staggered grid: 9 fields, differences of eighth order
// (radius 4). A step computes the velocities from the stresses, and then the stresses from these, in place. So there are
// two exchanges per step, and each field has ghost cells only along the axes along which it is differentiated.
//
// A pressure wave and a shear wave run aslant through the box. The result is compared with the exact solution of the
// scheme, and all bits with those of one rank alone.
//
//   mpirun -n 4 elastic_wave
#include <cmath>
#include <numbers>

#include "field.cuh"

using namespace example;

namespace {

// In a cell of size 1: velocity a lies half a cell further along axis a, the stresses aa at the centre, and ab half a
// cell further along a and b.
constexpr int axes[6][2] = {{0, 0}, {1, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}};   // of each stress
BOTH_FN constexpr int stress(int a, int b) { return a == b ? a : 6 - a - b; }  // its number
constexpr double dt = 0.3, density = 1.3, lambda = 1.1, mu = 0.9;
constexpr int nx = 24, ny = 20, nz = 16, steps = 24;

// The difference of eighth order: behind cell c, between it and the next one; or before it.
enum class side { before, behind };
BOTH_FN double weight(int i) {
    constexpr double all[] = {1225. / 1024, -245. / 3072, 49. / 5120, -5. / 7168};
    return all[i];
}
KERNEL_FN double difference(const double *f, std::int64_t c, std::int64_t stride, side where) {
    const double *const above = f + c + (where == side::behind ? stride : 0), *const below = above - stride;
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += weight(i) * (above[i * stride] - below[-i * stride]);
    return sum;
}

struct propagate {
    halo::device_exchange v, s;  // the exchanges of the velocities and of the stresses
    shape at;

    static KERNEL_FN double *data(const halo::device_exchange &x, int field) { return x.data<double>(field, 0); }
    KERNEL_FN void compute_velocities(std::int64_t c) const {
        for (int a = 0; a < 3; ++a) {
            double force = 0;
            for (int b = 0; b < 3; ++b)
                force += difference(data(s, stress(a, b)), c, at.stride(b), a == b ? side::behind : side::before);
            data(v, a)[c] += dt / density * force;
        }
    }
    KERNEL_FN void compute_stresses(std::int64_t c) const {
        double strain[3], all = 0;
        for (int a = 0; a < 3; ++a) all += strain[a] = difference(data(v, a), c, at.stride(a), side::before);
        for (int a = 0; a < 3; ++a) {
            data(s, stress(a, a))[c] += dt * (lambda * all + 2 * mu * strain[a]);
            for (int b = 0; b < a; ++b)
                data(s, stress(a, b))[c] += dt * mu *
                                            (difference(data(v, a), c, at.stride(b), side::behind) +
                                             difference(data(v, b), c, at.stride(a), side::behind));
        }
    }

    // Exchanges of a grid with tiles of one shape number them alike, so a number means the same tile to both.
    template <class Block>
    KERNEL_FN void operator()(const Block &block, int index) const {
        for (int t = index; t < s.tiles(); t += blocks) halo::send(block, s, t, 0);
        for (std::int64_t step = 0; step < s.steps(); ++step) {
            halo::sync_blocks(block, s, blocks);
            if (index == 0 && step > 0) halo::next(block, v, step - 1);
            for (int t = index; t < s.tiles(); t += blocks) {
                halo::wait(block, s, t, step);
                for_each_cell(block, s.tile(t), [&](auto i, auto j, auto k) { compute_velocities(at(i, j, k)); });
                halo::send(block, v, t, step);
            }
            halo::sync_blocks(block, s, blocks);
            if (index == 0) halo::next(block, s, step);
            for (int t = index; t < v.tiles(); t += blocks) {
                halo::wait(block, v, t, step);
                for_each_cell(block, v.tile(t), [&](auto i, auto j, auto k) { compute_stresses(at(i, j, k)); });
                halo::send(block, s, t, step + 1);
            }
        }
    }
};

struct vector {
    double along[3];
    double &operator[](int axis) { return along[axis]; }
    const double &operator[](int axis) const { return along[axis]; }
};

// A plane wave: velocity along `polarisation`. In space the differences multiply by `slope` in place of `number`.
struct plane_wave {
    vector number, slope, polarisation;
    double frequency, rate;  // sin(frequency dt / 2) = rate dt / 2

    plane_wave(vector k, bool pressure) : number(k) {
        for (int a = 0; a < 3; ++a) {
            slope[a] = 0;
            for (int i = 0; i < 4; ++i) slope[a] += 2 * weight(i) * std::sin((i + 0.5) * k[a]);
        }
        const double all = std::hypot(slope[0], slope[1], slope[2]), flat = std::hypot(slope[0], slope[1]);
        polarisation = pressure ? vector{slope[0] / all, slope[1] / all, slope[2] / all}
                                : vector{slope[1] / flat, -slope[0] / flat, 0};
        rate = std::sqrt((pressure ? lambda + 2 * mu : mu) / density) * all;
        frequency = 2 / dt * std::asin(rate * dt / 2);
    }
    double phase(vector at, double time) const {
        return std::cos(number[0] * at[0] + number[1] * at[1] + number[2] * at[2] - frequency * time);
    }
    double velocity(int a, vector at, double time) const {
        at[a] += 0.5;
        return polarisation[a] * phase(at, time);
    }
    double stress(int a, int b, vector at, double time) const {
        if (a != b) at[a] += 0.5, at[b] += 0.5;
        double all = 0;
        for (int c = 0; c < 3; ++c) all += slope[c] * polarisation[c];
        const double sheared = mu * (slope[a] * polarisation[b] + slope[b] * polarisation[a]);
        return -((a == b ? lambda * all : 0) + sheared) / rate * phase(at, time);
    }
};

struct result {
    std::vector<double> cells;
    double error = 0;
};

result compute(const halo::grid &g) {
    constexpr double pi = std::numbers::pi;
    const plane_wave waves[] = {{{2 * pi / nx, 2 * pi / ny, 2 * pi / nz}, true},
                                {{4 * pi / nx, -2 * pi / ny, 2 * pi / nz}, false}};
    // After so many steps. Fields 0 to 2 are the velocities, 3 to 8 the stresses.
    const auto exact = [&](int f, auto x, auto y, auto z, double step) {
        const vector at{static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)};
        const auto of = [&](const plane_wave &w) {
            return f < 3 ? w.velocity(f, at, dt * (step - 0.5))
                         : w.stress(axes[f - 3][0], axes[f - 3][1], at, dt * step);
        };
        return of(waves[0]) + of(waves[1]);
    };

    std::vector<values> memory;
    std::vector<halo::field> velocities, stresses;
    for (int f = 0; f < 9; ++f) {
        memory.emplace_back(g, 4);
        memory.back().set([&](auto x, auto y, auto z) { return exact(f, x, y, z, 0); });
        halo::radius reach;
        for (int a = 0; a < 3; ++a) {
            // The stresses ab are differentiated along a and b only.
            if (f >= 3 && axes[f - 3][0] != a && axes[f - 3][1] != a) continue;
            reach.set(a == 0, a == 1, a == 2, 4).set(-(a == 0), -(a == 1), -(a == 2), 4);
        }
        (f < 3 ? velocities : stresses).push_back(memory.back().field(reach));
    }
    halo::kernel_exchange v(g, velocities, {.tile = {8, 8, 8}}), s(g, stresses, {.tile = {8, 8, 8}});
    launch(blocks, propagate{v.start(steps), s.start(steps), shape(g, 4)});
    v.finish();
    s.finish();

    result all;
    for (int f = 0; f < 9; ++f)
        memory[static_cast<std::size_t>(f)].get([&](auto x, auto y, auto z, double value) {
            all.cells.push_back(value);
            all.error = std::max(all.error, std::abs(value - exact(f, x, y, z, steps)));
        });
    return all;
}

int run() {
    const std::vector<std::int64_t> extent{nx, ny, nz};
    const halo::grid_options periodic{.periodic = {true, true, true}};
    const halo::grid g(MPI_COMM_WORLD, extent, periodic), alone(MPI_COMM_SELF, extent, periodic);
    const result mine = compute(g);
    const bool right = all_say(mine.error < 1e-12 && same_bits(g, mine.cells, compute(alone).cells));
    if (g.rank() == 0) std::printf("%d steps on %d ranks: %s\n", steps, g.ranks(), right ? "right" : "wrong");
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) { return with_mpi(argc, argv, run); }
