// SPDX-License-Identifier: BSD-3-Clause
//
// Lattice Boltzmann, D3Q19 and D3Q27, one relaxation time: a shear wave that runs aslant through a periodic box decays
// by the viscosity. In each step the populations move to the neighbour that their velocity points to, and collide
// there. So a cell reads population i of the cell at -velocity(i) only: each population is a field with a radius of its
// own. Of the 19 a face of a box gets 5, and an edge 1, from 18 neighbours. Of the 27 a face gets 9, an edge 3, and a
// corner 1, from 26.
//
// Mass is conserved, the viscosity is that of the relaxation time, and all bits are those of one rank alone.
//
//   mpirun -n 4 lattice_boltzmann
#include <cmath>
#include <numbers>

#include "field.cuh"

using namespace example;

namespace {

struct velocity {
    int x, y, z;
};
BOTH_FN constexpr velocity velocity_of(int i) {
    constexpr velocity all[] = {{0, 0, 0},                                                        //
                                {1, 0, 0},   {-1, 0, 0},   {0, 1, 0},   {0, -1, 0},               //
                                {0, 0, 1},   {0, 0, -1},   {1, 1, 0},   {-1, -1, 0}, {1, -1, 0},  //
                                {-1, 1, 0},  {1, 0, 1},    {-1, 0, -1}, {1, 0, -1},  {-1, 0, 1},  //
                                {0, 1, 1},   {0, -1, -1},  {0, 1, -1},  {0, -1, 1},               //
                                {1, 1, 1},   {-1, -1, -1}, {1, 1, -1},  {-1, -1, 1}, {1, -1, 1},
                                {-1, 1, -1}, {-1, 1, 1},   {1, -1, -1}};
    return all[i];
}

// Density, and the fluid's velocity.
struct fluid {
    double mass, x, y, z;
};
template <int q>
BOTH_FN fluid moments(const double *f) {
    fluid sum{0, 0, 0, 0};
    for (int i = 0; i < q; ++i) {
        const velocity v = velocity_of(i);
        sum.mass += f[i], sum.x += v.x * f[i], sum.y += v.y * f[i], sum.z += v.z * f[i];
    }
    return {sum.mass, sum.x / sum.mass, sum.y / sum.mass, sum.z / sum.mass};
}
template <int q>
BOTH_FN double weight_of(int i) {
    if (q == 19) return i == 0 ? 1. / 3 : i < 7 ? 1. / 18 : 1. / 36;
    return i == 0 ? 8. / 27 : i < 7 ? 2. / 27 : i < 19 ? 1. / 54 : 1. / 216;
}
template <int q>
BOTH_FN double equilibrium(int i, const fluid &u) {
    const velocity v = velocity_of(i);
    const double along = v.x * u.x + v.y * u.y + v.z * u.z;
    return weight_of<q>(i) * u.mass * (1 + 3 * along + 4.5 * along * along - 1.5 * (u.x * u.x + u.y * u.y + u.z * u.z));
}

template <int q>
struct lattice {
    halo::device_exchange x;
    shape at;
    double relaxation_time;  // in steps

    KERNEL_FN double *population(int i, std::int64_t step) const { return x.data<double>(i, step); }

    KERNEL_FN void compute(std::int64_t c, std::int64_t step) const {
        double f[q];
        for (int i = 0; i < q; ++i) {
            const velocity v = velocity_of(i);
            f[i] = population(i, step)[c - v.x - v.y * at.stride(1) - v.z * at.stride(2)];
        }
        const fluid u = moments<q>(f);
        for (int i = 0; i < q; ++i) population(i, step + 1)[c] = f[i] + (equilibrium<q>(i, u) - f[i]) / relaxation_time;
    }

    template <class Block>
    KERNEL_FN void operator()(const Block &block, int index) const {
        for (int t = index; t < x.tiles(); t += blocks) halo::send(block, x, t, 0);
        for (std::int64_t step = 0; step < x.steps(); ++step) {
            halo::sync_blocks(block, x, blocks);
            if (index == 0 && step > 0) halo::next(block, x, step - 1);
            for (int t = index; t < x.tiles(); t += blocks) {
                halo::wait(block, x, t, step);
                for_each_cell(block, x.tile(t), [&](auto i, auto j, auto k) { compute(at(i, j, k), step); });
                halo::send(block, x, t, step + 1);
            }
        }
    }
};

constexpr int nx = 24, ny = 20, nz = 16, steps = 40;
constexpr double relaxation_time = 0.8, viscosity = (relaxation_time - 0.5) / 3, speed = 0.01;

// A wave of length nx, ny, nz along the axes. The fluid moves across it, in the plane of x and y.
struct wave {
    double a = 2 * std::numbers::pi / nx, b = 2 * std::numbers::pi / ny, c = 2 * std::numbers::pi / nz;
    double square() const { return a * a + b * b + c * c; }
    double at(std::int64_t x, std::int64_t y, std::int64_t z) const {
        return std::sin(a * static_cast<double>(x) + b * static_cast<double>(y) + c * static_cast<double>(z));
    }
    double along_x() const { return b / std::hypot(a, b); }
    double along_y() const { return -a / std::hypot(a, b); }
};

// This rank's populations after all steps.
template <int q>
std::vector<double> compute(const halo::grid &g) {
    const wave w;
    std::vector<values> now, other;
    std::vector<halo::field> fields;
    for (int i = 0; i < q; ++i) {
        const velocity v = velocity_of(i);
        now.emplace_back(g, 1);
        other.emplace_back(g, 1);
        now.back().set([&](auto x, auto y, auto z) {
            const double u = speed * w.at(x, y, z);
            return equilibrium<q>(i, {1, u * w.along_x(), u * w.along_y(), 0});
        });
        const halo::radius reach = halo::radius::of({{-v.x, -v.y, -v.z}});
        fields.push_back(halo::double_buffered(now.back().field(reach), other.back().field(reach)));
    }
    halo::kernel_exchange h(g, fields, {.tile = {8, 8, 8}});
    launch(blocks, lattice<q>{h.start(steps), shape(g, 1), relaxation_time});
    h.finish();
    std::vector<double> cells;
    for (const values &f : steps % 2 == 0 ? now : other)
        f.get([&](auto, auto, auto, double value) { cells.push_back(value); });
    return cells;
}

template <int q>
bool run_with() {
    const std::vector<std::int64_t> extent{nx, ny, nz};
    const halo::grid_options periodic{.periodic = {true, true, true}};
    const halo::grid g(MPI_COMM_WORLD, extent, periodic), alone(MPI_COMM_SELF, extent, periodic);
    const std::vector<double> mine = compute<q>(g);
    bool right = all_say(same_bits(g, mine, compute<q>(alone)));

    const wave w;
    const auto cells = static_cast<std::size_t>(g.local().cells());
    double mass = 0, amplitude = 0;
    std::size_t cell = 0;
    for_each_cell(g.local(), [&](auto x, auto y, auto z) {
        double f[q];
        for (std::size_t i = 0; i < q; ++i) f[i] = mine[i * cells + cell];
        const fluid u = moments<q>(f);
        mass += u.mass;
        amplitude += (u.x * w.along_x() + u.y * w.along_y()) * w.at(x, y, z);
        ++cell;
    });
    constexpr double all = static_cast<double>(nx) * ny * nz;
    mass = sum_of_all(mass) / all;
    amplitude = 2 * sum_of_all(amplitude) / all;
    const double measured = -std::log(amplitude / speed) / (w.square() * steps);
    right = right && std::abs(mass - 1) < 1e-13 && std::abs(measured / viscosity - 1) < 0.04;
    if (g.rank() == 0)
        std::printf("%d steps on %d ranks, D3Q%d, viscosity %.4f for %.4f, mass %.1e: %s\n", steps, g.ranks(), q,
                    measured, viscosity, mass - 1, right ? "right" : "wrong");
    return right;
}

int run() {
    const bool right = run_with<19>();
    return run_with<27>() && right ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) { return with_mpi(argc, argv, run); }
