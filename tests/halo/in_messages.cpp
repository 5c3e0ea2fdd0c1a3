// SPDX-License-Identifier: BSD-3-Clause
//
// Ghost cells that stay in the messages: a stencil that reads them there, beside the same with ghost cells in the
// fields; what is refused, and what the report says. Random programs, of which every byte is compared, are in random/.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::ghost_storage;
using halo::radius;
using halo_test::expect;
using halo_test::rank;
using halo_test::refused;

namespace {

constexpr halo::exchange_options in_messages{.ghosts = ghost_storage::in_messages};

template <class Each>
void for_each_cell(const halo::box &b, Each each) {
    for (auto z = b.lo[2]; z < b.hi[2]; ++z)
        for (auto y = b.lo[1]; y < b.hi[1]; ++y)
            for (auto x = b.lo[0]; x < b.hi[0]; ++x) each(x, y, z);
}

double relaxed(double centre, double x0, double x1, double y0, double y1, double z0, double z1) {
    return centre + 0.1 * (x0 + x1 + y0 + y1 + z0 + z1 - 6 * centre);
}

// Heat in two arrays that hold the cells of the box and nothing else.
struct heat {
    explicit heat(const halo::grid &g)
        : box(g.local()), size(box.size()), u(static_cast<std::size_t>(box.cells())), other(u.size()) {}

    halo::field field(std::vector<double> &values) const {
        return {std::span(values), radius::faces(1), {.below = {0, 0, 0}, .above = {0, 0, 0}}};
    }
    std::int64_t at(std::int64_t x, std::int64_t y, std::int64_t z) const {
        return ((z - box.lo[2]) * size[1] + y - box.lo[1]) * size[0] + x - box.lo[0];
    }

    void step(halo::exchange &h) {
        const double *const now = static_cast<const double *>(h.data(0));
        double *const next = now == u.data() ? other.data() : u.data();
        const std::int64_t row = size[0], plane = size[0] * size[1];
        h.start();
        for_each_cell(h.interior(), [&](auto x, auto y, auto z) {
            const auto c = at(x, y, z);
            next[c] =
                relaxed(now[c], now[c - 1], now[c + 1], now[c - row], now[c + row], now[c - plane], now[c + plane]);
        });
        h.finish();
        const halo::ghost_reader<double> read(h, 0);
        for (const halo::box &cells : h.boundary())
            for_each_cell(cells, [&](auto x, auto y, auto z) {
                next[at(x, y, z)] = relaxed(read(x, y, z), read(x - 1, y, z), read(x + 1, y, z), read(x, y - 1, z),
                                            read(x, y + 1, z), read(x, y, z - 1), read(x, y, z + 1));
            });
        h.swap(0);
    }

    halo::box box;
    halo::index3 size;
    std::vector<double> u, other;
};

// The same by overlap(), and by a reader in the interior, too.
void step_by_overlap(halo::exchange &h, heat &u) {
    double *const next = h.data(0) == u.u.data() ? u.other.data() : u.u.data();
    halo::overlap(h, [&](const halo::box &cells) {
        const halo::ghost_reader<double> read(h, 0);
        for_each_cell(cells, [&](auto x, auto y, auto z) {
            next[u.at(x, y, z)] = relaxed(read(x, y, z), read(x - 1, y, z), read(x + 1, y, z), read(x, y - 1, z),
                                          read(x, y + 1, z), read(x, y, z - 1), read(x, y, z + 1));
        });
    });
    h.swap(0);
}

// The same numbers, with ghost cells in the fields.
void step_with_room(halo::exchange &h, halo::array<double> &now, halo::array<double> &next) {
    halo::overlap(h, [&](const halo::box &cells) {
        for_each_cell(cells, [&](auto x, auto y, auto z) {
            next(x, y, z) = relaxed(now(x, y, z), now(x - 1, y, z), now(x + 1, y, z), now(x, y - 1, z),
                                    now(x, y + 1, z), now(x, y, z - 1), now(x, y, z + 1));
        });
    });
    h.swap(0);
}

void stencil() {
    const halo::grid g(MPI_COMM_WORLD, {11, 7, 6}, {.periodic = {true, true, true}});
    heat mine(g), overlapped(g);
    halo::array<double> with_room[2] = {{g, radius::faces(1)}, {g, radius::faces(1)}};
    halo::exchange h(g, {halo::double_buffered(mine.field(mine.u), mine.field(mine.other))}, in_messages);
    halo::exchange too(g, {halo::double_buffered(overlapped.field(overlapped.u), overlapped.field(overlapped.other))},
                       in_messages);
    halo::exchange same(g, {halo::double_buffered(with_room[0], with_room[1])});
    std::mt19937_64 random(static_cast<std::uint64_t>(rank) + 1);
    for_each_cell(g.local(), [&](auto x, auto y, auto z) {
        mine.u[static_cast<std::size_t>(mine.at(x, y, z))] = with_room[0](x, y, z) =
            static_cast<double>(random() >> 12);
    });
    overlapped.u = mine.u;
    constexpr int steps = 7;
    for (int step = 0; step < steps; ++step) {
        mine.step(h);
        step_by_overlap(too, overlapped);
        step_with_room(same, with_room[step % 2], with_room[1 - step % 2]);
    }
    int wrong = 0;
    for (const halo::exchange *const each : {&h, &too}) {
        const auto *const found = static_cast<const double *>(each->data(0));
        for_each_cell(g.local(), [&](auto x, auto y, auto z) {
            wrong += found[mine.at(x, y, z)] != with_room[steps % 2](x, y, z);
        });
    }
    expect(wrong == 0, "a stencil that reads in the messages: " + std::to_string(wrong) + " cells differ");
}

// A reader that was made once, of a field with one allocation; ghost cells of this rank follow its cells.
void one_allocation() {
    const halo::grid g(MPI_COMM_WORLD, {12}, {.periodic = {true, false, false}});
    std::vector<int> u(static_cast<std::size_t>(g.local().cells()));
    halo::exchange h(g, {{std::span(u), radius::all(14), {.below = {0, 0, 0}, .above = {0, 0, 0}}}}, in_messages);
    const halo::ghost_reader<int> read(h, 0);
    const auto lo = g.local().lo[0], hi = g.local().hi[0];
    for (int step = 0; step < 4; ++step) {
        for (auto x = lo; x < hi; ++x) u[static_cast<std::size_t>(x - lo)] = static_cast<int>(100 * step + x);
        h.start();
        h.finish();
        for (auto x = lo - 14; x < hi + 14; ++x)
            expect(read(x) == 100 * step + (x + 24) % 12, "cell " + std::to_string(x));
    }
    for (int &value : u) value += 1000;
    for (auto x = lo - 14; x < hi + 14; ++x) {
        const auto cell = (x + 24) % 12;
        expect(read(x) == 300 + cell + (cell >= lo && cell < hi ? 1000 : 0), "own cells are no copies");
    }
}

std::int64_t ranks() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

// Ranks that have sent again before the others have read, short messages and long ones.
void sent_again() {
    for (const halo::transfer how : {halo::transfer::packed, halo::transfer::plain})
        for (const int n : {4, 300}) {
            const halo::grid g(MPI_COMM_WORLD, {2 * ranks(), n, n}, {.periodic = {true, true, true}});
            halo::array<std::int64_t> u(g, radius::all(1));
            halo::exchange h(g, {u}, {.transfer = how, .ghosts = ghost_storage::in_messages});
            const auto value = [n](int step, auto x, auto y, auto z) {
                const std::int64_t planes = 2 * ranks(), x_in = (x + planes) % planes, y_in = (y + n) % n;
                return ((step * planes + x_in) * n + y_in) * n + (z + n) % n;
            };
            const auto begin = [&](int step) {
                for_each_cell(g.local(), [&](auto x, auto y, auto z) { u(x, y, z) = value(step, x, y, z); });
                h.start();
            };
            begin(0);
            for (int step = 0; step < 6; ++step) {
                h.finish();
                const bool ahead = (rank + step) % 2 == 0;
                const auto read_all = [&] {
                    const halo::ghost_reader<std::int64_t> read(h, 0);
                    int wrong = 0;
                    for (const halo::ghost_piece &p : h.ghost_pieces(0))
                        for_each_cell(p.cells,
                                      [&](auto x, auto y, auto z) { wrong += read(x, y, z) != value(step, x, y, z); });
                    expect(wrong == 0,
                           std::to_string(wrong) + " ghost cells are wrong in step " + std::to_string(step));
                };
                if (ahead) read_all();
                if (ahead) begin(step + 1);
                MPI_Barrier(MPI_COMM_WORLD);
                if (ahead) continue;
                // Messages would come in now, if they could.
                for (int i = 0, flag = 0; i < 20; ++i) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
                }
                read_all();
                begin(step + 1);
            }
            h.finish();
        }
}

void refusals() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8});
    std::vector<double> u(200);
    const halo::field f(u.data(), radius::all(1)),
        tight(u.data(), radius::all(1), {.below = {0, 0, 0}, .above = {0, 1, 0}});
    const auto exchange_refused = [&](const char *what, const std::string &sentence, const halo::field &field,
                                      const halo::exchange_options &options) {
        refused(what, MPI_ERR_ARG, "mpix::halo::exchange, " + sentence, [&] { halo::exchange(g, {field}, options); });
    };
    exchange_refused("datatype",
                     "rank 0: transfer is datatype, and options.ghosts is in_messages; a datatype receives into the "
                     "fields",
                     f, {.transfer = halo::transfer::datatype, .ghosts = ghost_storage::in_messages});
    exchange_refused("reduce",
                     "rank 0: options.reduce is max, and options.ghosts is in_messages; a reverse exchange sends ghost "
                     "cells of the fields",
                     f, {.reduce = halo::reduction::max, .ghosts = ghost_storage::in_messages});
    exchange_refused("no storage", "rank 0: options.ghosts is 2; it is in_fields or in_messages (0 or 1)", f,
                     {.ghosts = static_cast<ghost_storage>(2)});
    refused("a radius far too long", MPI_ERR_COUNT,
            "mpix::halo::exchange, rank 0: fields[0]: more than 2^60 bytes, ghost cells included", [&] {
                halo::exchange(g, {{u.data(), radius::all(2000000000), {.below = {0, 0, 0}, .above = {0, 0, 0}}}},
                               in_messages);
            });
    exchange_refused("negative room",
                     "rank 0: fields[0].layout.above[1] is -2; it is at least 0, or -1 for what the radius needs",
                     {u.data(), radius::all(1), {.above = {0, -2, 0}}}, in_messages);
    exchange_refused("no room", "rank 0: fields[0].layout.below[0] is 0; the radius needs 1 cells there", tight, {});
    if (g.ranks() > 1)
        exchange_refused("another storage",
                         "rank 1: options.ghosts is in_messages here, and in_fields on rank 0; all ranks give the same",
                         f, {.ghosts = rank == 1 ? ghost_storage::in_messages : ghost_storage::in_fields});

    const auto n = g.local().size();
    const auto bytes = static_cast<std::size_t>(n[0] * (n[1] + 1)) * sizeof(double);
    expect(halo::field_bytes(g, tight, ghost_storage::in_messages) == bytes, "field_bytes of a tight layout");
    expect(halo::field_bytes(g, tight, 0, ghost_storage::in_messages) == bytes, "the same of a box");
    refused("field_bytes", MPI_ERR_ARG,
            "mpix::halo::field_bytes: field.layout.below[0] is 0; the radius needs 1 cells there",
            [&] { static_cast<void>(halo::field_bytes(g, tight)); });
    refused("too little memory", MPI_ERR_BUFFER, "mpix::halo::exchange, rank 0: fields[0].allocated is*", [&] {
        halo::exchange(g, {{std::span(u).first(bytes / sizeof(double) - 1), tight.radius, tight.layout}}, in_messages);
    });

    const halo::exchange in_fields(g, {f}), h(g, {f}, in_messages);
    const std::string storage =
        "mpix::halo::exchange::ghost_pieces: the ghost cells are in the fields; make the exchange with options.ghosts "
        "= "
        "ghost_storage::in_messages";
    refused("ghosts", MPI_ERR_ARG, storage, [&] { static_cast<void>(in_fields.ghost_pieces(0)); });
    refused("reader", MPI_ERR_ARG, storage, [&] { halo::ghost_reader<double>(in_fields, 0); });
    refused("field", MPI_ERR_ARG, "mpix::halo::exchange::ghost_pieces: field is 1; there are 1",
            [&] { static_cast<void>(h.ghost_pieces(1)); });
    refused("box", MPI_ERR_ARG, "mpix::halo::exchange::ghost_pieces: i is 1; this rank has 1 boxes",
            [&] { static_cast<void>(h.ghost_pieces(0, 1)); });
    refused("box of a reader", MPI_ERR_ARG, "mpix::halo::exchange::ghost_pieces: i is -1; this rank has 1 boxes",
            [&] { halo::ghost_reader<double>(h, 0, -1); });
    refused(
        "another size", MPI_ERR_TYPE,
        "mpix::halo::ghost_reader: it reads values of 4 bytes (float32), and those of field 0 have 8 bytes (float64)",
        [&] { halo::ghost_reader<float>(h, 0); });
    refused("another type", MPI_ERR_TYPE,
            "mpix::halo::ghost_reader: it reads values of 8 bytes (int64), and those of field 0 have 8 bytes (float64)",
            [&] { halo::ghost_reader<std::int64_t>(h, 0); });
}

void reports() {
    const halo::grid g(MPI_COMM_WORLD, {16, 12}, {.periodic = {true, true, false}});
    halo::array<double> u(g, radius::faces(2));
    for (const halo::transfer how : {halo::transfer::automatic, halo::transfer::packed, halo::transfer::plain}) {
        halo::exchange x(g, {u}, {.transfer = how, .ghosts = ghost_storage::in_messages});
        x.measure(true);
        x.start();
        x.finish();
        const halo::exchange_report r = x.report();
        const bool plain = how == halo::transfer::plain;
        expect(r.ghosts == ghost_storage::in_messages && r.own_bytes == 0, "where ghost cells are, and what is copied");
        expect(r.transfer == (plain ? how : halo::transfer::packed), "automatic is packed");
        expect(r.text().find("; messages are not unpacked") != std::string::npos, r.text());
        expect(r.text().find("from and to this rank") == std::string::npos, r.text());
        for (const halo::message_report &m : r.received)
            expect(m.transfer == r.transfer && m.mean_seconds > 0 && m.mean_seconds < 60, "a received message");
    }
    const halo::exchange_report r = halo::exchange(g, {u}).report();
    expect(r.ghosts == ghost_storage::in_fields && r.text().find("not unpacked") == std::string::npos, r.text());
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    stencil();
    one_allocation();
    sent_again();
    refusals();
    reports();
    const int status = halo_test::any_failures();
    MPI_Finalize();
    return status;
}
