// SPDX-License-Identifier: BSD-3-Clause
//
// What a step of a 7-point stencil takes on the host, exchange and computing together: with ghost cells in the fields,
// and with ghost cells that stay in the messages, which the boundary reads by a ghost_reader, cell by cell or by rows.
// The same numbers in one run, by turns.
//
//   halo_step [--cells N] [--rounds N] [--busy yes] [--csv FILE]
//
// --busy: on cores that others use, too, the least of many short measurements in place of the median of nine.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/bench/halo_command_line.hpp"
#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/bench/median.hpp"

namespace halo = mpix::halo;

namespace {

// Two arrays in turn, for the box and so many ghost cells beside each face.
class arrays {
public:
    arrays(const halo::grid &g, int room) : box_(g.local()), room_(room) {
        const halo::index3 n = box_.size();
        row_ = n[0] + 2 * room;
        plane_ = row_ * (n[1] + 2 * room);
        for (auto &values : values_) values.assign(static_cast<std::size_t>(plane_ * (n[2] + 2 * room)), 0.0);
        for (auto z = box_.lo[2]; z < box_.hi[2]; ++z)
            for (auto y = box_.lo[1]; y < box_.hi[1]; ++y)
                for (auto x = box_.lo[0]; x < box_.hi[0]; ++x)
                    values_[0][static_cast<std::size_t>(at(x, y, z))] =
                        static_cast<double>((7 * x + 5 * y + 3 * z) % 11);
    }
    halo::field field() {
        const auto one = [this](std::vector<double> &values) {
            return halo::field(std::span(values), halo::radius::faces(1),
                               {.below = {room_, room_, room_}, .above = {room_, room_, room_}});
        };
        return halo::double_buffered(one(values_[0]), one(values_[1]));
    }
    std::int64_t at(std::int64_t x, std::int64_t y, std::int64_t z) const {
        return (z - box_.lo[2] + room_) * plane_ + (y - box_.lo[1] + room_) * row_ + x - box_.lo[0] + room_;
    }
    // The cells of `b`, from their neighbours in the array.
    void compute(const halo::box &b) {
        const double *const now = values_[which_].data();
        double *const next = values_[1 - which_].data();
        for (auto z = b.lo[2]; z < b.hi[2]; ++z)
            for (auto y = b.lo[1]; y < b.hi[1]; ++y) {
                const std::int64_t first = at(b.lo[0], y, z), last = first + b.hi[0] - b.lo[0];
                for (std::int64_t c = first; c < last; ++c)
                    next[c] = now[c] + 0.1 * (now[c - 1] + now[c + 1] + now[c - row_] + now[c + row_] +
                                              now[c - plane_] + now[c + plane_] - 6 * now[c]);
            }
    }
    // The same by a reader.
    void compute(const halo::box &b, const halo::ghost_reader<double> &read) {
        double *const next = values_[1 - which_].data();
        for (auto z = b.lo[2]; z < b.hi[2]; ++z)
            for (auto y = b.lo[1]; y < b.hi[1]; ++y)
                for (auto x = b.lo[0]; x < b.hi[0]; ++x) {
                    const double centre = read(x, y, z);
                    next[at(x, y, z)] =
                        centre + 0.1 * (read(x - 1, y, z) + read(x + 1, y, z) + read(x, y - 1, z) + read(x, y + 1, z) +
                                        read(x, y, z - 1) + read(x, y, z + 1) - 6 * centre);
                }
    }
    // The same by its rows, and by a pointer where the box has all neighbours along y and z.
    void compute_rows(const halo::box &b, const halo::ghost_reader<double> &read) {
        const double *const now = values_[which_].data();
        double *const next = values_[1 - which_].data();
        for (auto z = b.lo[2]; z < b.hi[2]; ++z)
            for (auto y = b.lo[1]; y < b.hi[1]; ++y) {
                const bool within = y > box_.lo[1] && y + 1 < box_.hi[1] && z > box_.lo[2] && z + 1 < box_.hi[2];
                for (auto x = b.lo[0]; x < b.hi[0];) {
                    const std::int64_t first = at(x, y, z);
                    const double *const c = &now[first];
                    const double *y0 = c - row_, *y1 = c + row_, *z0 = c - plane_, *z1 = c + plane_;
                    std::int64_t n = b.hi[0] - x;
                    if (!within)
                        for (const auto &[dy, dz, row] : {neighbour{-1, 0, &y0}, neighbour{1, 0, &y1},
                                                          neighbour{0, -1, &z0}, neighbour{0, 1, &z1}}) {
                            const std::span<const double> all = read.row(x, y + dy, z + dz);
                            *row = all.data();
                            n = std::min(n, static_cast<std::int64_t>(all.size()));
                        }
                    const auto set = [&](std::int64_t i, double x0, double x1) {
                        next[first + i] = c[i] + 0.1 * (x0 + x1 + y0[i] + y1[i] + z0[i] + z1[i] - 6 * c[i]);
                    };
                    const double before = read(x - 1, y, z), behind = read(x + n, y, z);
                    set(0, before, n > 1 ? c[1] : behind);
                    for (std::int64_t i = 1; i + 1 < n; ++i) set(i, c[i - 1], c[i + 1]);
                    if (n > 1) set(n - 1, c[n - 2], behind);
                    x += n;
                }
            }
    }
    void swap() { which_ = 1 - which_; }
    double sum() const {
        double all = 0;
        for (auto z = box_.lo[2]; z < box_.hi[2]; ++z)
            for (auto y = box_.lo[1]; y < box_.hi[1]; ++y)
                for (auto x = box_.lo[0]; x < box_.hi[0]; ++x)
                    all +=
                        values_[which_][static_cast<std::size_t>(at(x, y, z))] * static_cast<double>(1 + (x + y) % 3);
        return all;
    }

private:
    struct neighbour {
        int dy, dz;
        const double **row;
    };

    halo::box box_;
    std::int64_t room_, row_ = 0, plane_ = 0;
    std::vector<double> values_[2];
    std::size_t which_ = 0;
};

void step_in_fields(halo::exchange &h, arrays &u) {
    halo::overlap(h, [&](const halo::box &cells) { u.compute(cells); });
    h.swap(0);
    u.swap();
}

void step_in_messages(halo::exchange &h, arrays &u, bool by_rows) {
    h.start();
    u.compute(h.interior());
    h.finish();
    const halo::ghost_reader<double> read(h, 0);
    for (const halo::box &cells : h.boundary())
        if (by_rows)
            u.compute_rows(cells, read);
        else
            u.compute(cells, read);
    h.swap(0);
    u.swap();
}

// The seconds of one step, of the slowest rank.
template <class Step>
double time_of(const Step &step, int steps) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < steps; ++i) step();
    double mine = (MPI_Wtime() - begin) / steps, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

// Microseconds: in the fields; in messages, by the cell and by rows.
std::array<double, 3> measure(const halo::grid &g, int rounds, bool busy) {
    arrays with_room(g, 1), by_cell(g, 0), by_row(g, 0);
    const halo::exchange_options in_messages{.ghosts = halo::ghost_storage::in_messages};
    halo::exchange filled(g, {with_room.field()}), kept(g, {by_cell.field()}, in_messages),
        kept_too(g, {by_row.field()}, in_messages);
    const std::function<void()> ways[] = {[&] { step_in_fields(filled, with_room); },
                                          [&] { step_in_messages(kept, by_cell, false); },
                                          [&] { step_in_messages(kept_too, by_row, true); }};
    double first = 1;
    for (int i = 0; i < (busy ? 20 : 1); ++i)
        for (const auto &way : ways) first = std::min(first, time_of(way, 3));
    MPI_Bcast(&first, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const int count = std::max(3, static_cast<int>((busy ? 0.001 : 0.02) / first));
    std::array<std::vector<double>, 3> all;
    for (int round = 0; round < rounds; ++round)
        for (std::size_t w = 0; w < all.size(); ++w) all[w].push_back(1e6 * time_of(ways[w], count));
    for (const arrays *const other : {&by_cell, &by_row})
        if (std::abs(with_room.sum() - other->sum()) > 1e-9 * std::abs(other->sum())) {
            std::fprintf(stderr, "bench.halo_step: two ways do not compute the same values\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    std::array<double, 3> chosen{};
    for (std::size_t w = 0; w < all.size(); ++w)
        chosen[w] = busy ? *std::min_element(all[w].begin(), all[w].end()) : bench::median(all[w]);
    return chosen;
}

void run(const std::vector<int> &sizes, int rounds, bool busy, const char *csv_name) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::optional<bench::csv_file> csv;
    if (rank == 0) {
        csv.emplace(csv_name);
        if (csv->get() != nullptr)
            std::fprintf(
                csv->get(),
                "# %s, %s, Linux %s, load %s, %s\nranks,cells,cut across,in fields us,in messages us,by rows us\n",
                bench::cpu_model().c_str(), bench::library_name().c_str(), bench::kernel_release().c_str(),
                bench::load().c_str(), bench::today().c_str());
        if (csv->text() != nullptr)
            std::printf("%5s %5s  %10s %12s %14s %10s\n", "ranks", "cells", "cut across", "in fields us",
                        "in messages us", "by rows us");
    }
    // So many cells along each axis for each rank, whose boxes lie along one axis.
    for (const int n : sizes)
        for (const std::size_t axis : {0, 2}) {
            std::vector<std::int64_t> extent(3, n);
            extent[axis] *= ranks;
            halo::grid_options options{.periodic = {true, true, true}};
            for (int r = 0; r < ranks; ++r) {
                halo::box b{{}, {n, n, n}};
                b.lo[axis] = std::int64_t{n} * r;
                b.hi[axis] = b.lo[axis] + n;
                options.boxes.push_back(b);
            }
            const std::array<double, 3> us = measure(halo::grid(MPI_COMM_WORLD, extent, options), rounds, busy);
            if (rank != 0) continue;
            const char *const across = axis == 0 ? "x" : "z";
            if (csv->get() != nullptr)
                std::fprintf(csv->get(), "%d,%d,%s,%.2f,%.2f,%.2f\n", ranks, n, across, us[0], us[1], us[2]);
            if (csv->text() != nullptr)
                std::printf("%5d %5d  %10s %12.2f %14.2f %10.2f\n", ranks, n, across, us[0], us[1], us[2]);
        }
}

}  // namespace

int main(int argc, char **argv) {
    const bench::halo_command_line given(argc, argv, {16, 32, 64, 128});
    MPI_Init(&argc, &argv);
    run(given.sizes, given.rounds, given.busy, given.csv);
    MPI_Finalize();
    return 0;
}
