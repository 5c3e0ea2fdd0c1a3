// SPDX-License-Identifier: BSD-3-Clause
//
// An exchange in every k-th step gives the same bits as one in each step, and as a serial program; and what valid()
// says is right holds the right bits, no more and no less deep.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::box;
using halo::index3;
using halo::radius;
using halo_test::expect;

namespace {

template <class Each>
void for_each_cell(const box &b, Each each) {
    for (auto z = b.lo[2]; z < b.hi[2]; ++z)
        for (auto y = b.lo[1]; y < b.hi[1]; ++y)
            for (auto x = b.lo[0]; x < b.hi[0]; ++x) each(x, y, z);
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// One function for all, so that the compiler makes the same of it everywhere.
[[gnu::noinline]] double next_of(double c, double west, double east, double south, double north, double low,
                                 double high) {
    return 0.3 * c + 0.11 * west + 0.13 * east + 0.07 * south + 0.09 * north + 0.17 * low + 0.19 * high;
}

template <class Read>
double step_at(const Read &u, std::int64_t x, std::int64_t y, std::int64_t z) {
    return next_of(u(x, y, z), u(x - 1, y, z), u(x + 1, y, z), u(x, y - 1, z), u(x, y + 1, z), u(x, y, z - 1),
                   u(x, y, z + 1));
}

double start_value(std::int64_t x, std::int64_t y, std::int64_t z) {
    return 1.0 / static_cast<double>(3 + x * x + 5 * y + 7 * z * z);
}

const index3 extent{9, 8, 7};
// That of the points of a field that is staggered along z.
std::int64_t end_of(bool staggered) { return extent[2] + staggered; }

// Periodic along x and y. Outside along z, below 0 and above the last cell or point, values are fixed.
double outside(std::int64_t z) { return z < 0 ? 0.25 : -0.75; }
std::int64_t wrapped(std::int64_t c, std::size_t axis) { return (c % extent[axis] + extent[axis]) % extent[axis]; }

// After each of the steps, the whole domain.
class serial {
public:
    serial(int steps, bool staggered) : end_(end_of(staggered)) {
        const box all{{}, {extent[0], extent[1], end_}};
        states_.resize(static_cast<std::size_t>(steps) + 1, std::vector<double>(static_cast<std::size_t>(all.cells())));
        for_each_cell(all, [&](auto x, auto y, auto z) { states_[0][place(x, y, z)] = start_value(x, y, z); });
        for (int s = 0; s < steps; ++s)
            for_each_cell(all, [&](auto x, auto y, auto z) {
                states_[static_cast<std::size_t>(s) + 1][place(x, y, z)] =
                    step_at([&](auto i, auto j, auto k) { return at(s, i, j, k); }, x, y, z);
            });
    }
    double at(int step, std::int64_t x, std::int64_t y, std::int64_t z) const {
        return z < 0 || z >= end_ ? outside(z) : states_[static_cast<std::size_t>(step)][place(x, y, z)];
    }

private:
    static std::size_t place(std::int64_t x, std::int64_t y, std::int64_t z) {
        return static_cast<std::size_t>((z * extent[1] + wrapped(y, 1)) * extent[0] + wrapped(x, 0));
    }
    std::int64_t end_;
    std::vector<std::vector<double>> states_;
};

// Some steps with an exchange in every k-th; returns the box of this rank. All that is not right is NaN.
std::vector<double> run(const halo::grid &g, int steps, int every, bool staggered, const serial &reference) {
    const std::array<bool, 3> axes{false, false, staggered};
    const box local = g.points(g.local(), axes);
    const halo::deep_halo deep(g, radius::faces(1), every);
    halo::array<double> u[2] = {{g, deep.radius(), axes}, {g, deep.radius(), axes}};
    halo::exchange exchange[2] = {{g, {u[0]}}, {g, {u[1]}}};
    const double nan = std::numeric_limits<double>::quiet_NaN();
    box allocated = local;
    for (int a = 0; a < 3; ++a) allocated.lo[a] -= every, allocated.hi[a] += every;
    const auto in = [](const box &b, auto x, auto y, auto z) {
        return x >= b.lo[0] && x < b.hi[0] && y >= b.lo[1] && y < b.hi[1] && z >= b.lo[2] && z < b.hi[2];
    };
    const auto fill = [&](halo::array<double> &array, const box &kept) {
        for_each_cell(allocated, [&](auto x, auto y, auto z) {
            if (!in(kept, x, y, z)) array(x, y, z) = z < 0 || z >= end_of(staggered) ? outside(z) : nan;
        });
    };
    fill(u[0], {});
    for_each_cell(local, [&](auto x, auto y, auto z) { u[0](x, y, z) = start_value(x, y, z); });
    for (int s = 0; s < steps; ++s) {
        halo::array<double> &now = u[s % 2], &next = u[1 - s % 2];
        const int since = s % every;
        fill(next, {});
        std::vector<box> rest{deep.valid(since + 1, axes)};
        const auto compute = [&](const box &b) {
            for_each_cell(b, [&](auto x, auto y, auto z) { next(x, y, z) = step_at(now, x, y, z); });
        };
        if (since == 0) {
            fill(now, local);
            halo::exchange &h = exchange[s % 2];
            h.start();
            const box inner = g.points(h.interior(), axes);
            compute(inner);
            h.finish();
            rest = halo::difference(deep.valid(1, axes), inner);
        }
        int wrong = 0;
        for_each_cell(deep.valid(since, axes),
                      [&](auto x, auto y, auto z) { wrong += !same_bits(now(x, y, z), reference.at(s, x, y, z)); });
        expect(wrong == 0, std::to_string(wrong) + " valid cells are wrong " + std::to_string(since) + " of " +
                               std::to_string(every) + " steps after an exchange");
        for (const box &b : rest) compute(b);
    }
    std::vector<double> result;
    for_each_cell(local, [&](auto x, auto y, auto z) { result.push_back(u[steps % 2](x, y, z)); });
    return result;
}

void same_bits_as_each_step() {
    const int steps = 12;
    const halo::grid g(MPI_COMM_WORLD, {extent[0], extent[1], extent[2]}, {.periodic = {true, true, false}});
    for (const bool staggered : {false, true}) {
        const serial reference(steps, staggered);
        const std::vector<double> each = run(g, steps, 1, staggered, reference);
        for (const int every : {2, 3, 4}) {
            const std::vector<double> deep = run(g, steps, every, staggered, reference);
            expect(
                each.size() == deep.size() && std::memcmp(each.data(), deep.data(), each.size() * sizeof(double)) == 0,
                "an exchange in every step " + std::to_string(every) + " gives other bits");
        }
    }
}

// An exchange of the radius fills all cells that are valid at first; for stencils that are not symmetrical, too.
void filled_at_first() {
    const radius stencils[] = {radius::faces(1), radius::all(2), radius::of({{1, 0, 0}, {0, -2, 0}}),
                               radius::of({{-1, 2, 1}}), radius::of({{-1, 0, 0}, {2, 0, 0}, {0, 0, 1}})};
    for (int dimensions = 1; dimensions <= 3; ++dimensions) {
        std::vector<std::int64_t> cells(extent.along, extent.along + dimensions);
        cells[0] += 3;
        const halo::grid g(MPI_COMM_WORLD, cells, {.periodic = {true, false, false}});
        for (const radius &stencil : stencils) {
            const halo::deep_halo deep(g, stencil, 2);
            halo::array<std::int64_t> u(g, deep.radius());
            halo::exchange x(g, {u});
            for_each_cell(deep.valid(0), [&](auto i, auto j, auto k) { u(i, j, k) = -1; });
            for_each_cell(g.local(), [&](auto i, auto j, auto k) { u(i, j, k) = i + 100 * j + 10000 * k; });
            x.start();
            x.finish();
            int wrong = 0;
            for_each_cell(deep.valid(0), [&](auto i, auto j, auto k) {
                wrong += u(i, j, k) != (i + cells[0]) % cells[0] + 100 * j + 10000 * k;
            });
            expect(wrong == 0, std::to_string(wrong) + " cells that are valid at first are not filled");
            expect(deep.valid(2) == g.local(), "the box is valid at last");
            const auto depth = halo::ghost_depth(stencil, dimensions);
            const box one = deep.valid(1), &local = g.local();
            bool right = one.lo[0] == local.lo[0] - depth[0][0] && one.hi[0] == local.hi[0] + depth[1][0];
            for (std::size_t a = 1; a < 3; ++a)
                right = right && one.lo[a] == std::max<std::int64_t>(0, local.lo[a] - depth[0][a]) &&
                        one.hi[a] == std::min(g.extent()[a], local.hi[a] + depth[1][a]);
            expect(right, "what is valid after one step");
        }
    }
}

void wrong_arguments() {
    const halo::grid g(MPI_COMM_WORLD, {12, 4});
    const auto deep_refused = [](const std::string &sentence, const std::function<void()> &call) {
        halo_test::refused("deep_halo", MPI_ERR_ARG, "mpix::halo::deep_halo" + sentence, call);
    };
    deep_refused(": every is 0; it is at least 1", [&] { halo::deep_halo(g, radius::all(1), 0); });
    deep_refused(": stencil is -1 in direction +x; it is at least 0, and every times that is at most 2^31 - 1",
                 [&] { halo::deep_halo(g, radius::all(1).set(1, 0, 0, -1), 1); });
    deep_refused(": stencil is 2000000000 in direction -y; it is at least 0, and every times that is at most 2^31 - 1",
                 [&] { halo::deep_halo(g, radius::all(1).set(0, -1, 0, 2000000000), 2); });
    const halo::deep_halo deep(g, radius::all(1), 3);
    deep_refused("::valid: steps is 4; it is 0 to 3", [&] { static_cast<void>(deep.valid(4)); });
    deep_refused("::valid: steps is -1; it is 0 to 3", [&] { static_cast<void>(deep.valid(-1)); });
    deep_refused("::valid: staggered[2]: the domain has 2 axes", [&] {
        static_cast<void>(deep.valid(1, {false, false, true}));
    });
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &halo_test::rank);
    same_bits_as_each_step();
    filled_at_first();
    wrong_arguments();
    const int status = halo_test::any_failures();
    MPI_Finalize();
    return status;
}
