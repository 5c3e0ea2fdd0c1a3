// SPDX-License-Identifier: BSD-3-Clause
//
// What a halo exchange costs on the host: by each transfer (automatic, packed, datatype, plain), packed with ghost
// cells that stay in the messages, and by hand (isend: MPI_Isend of a derived datatype to each neighbour). The same
// fields in one run, by turns.
//
//   halo [--cells N] [--rounds N] [--busy yes] [--csv FILE]
//
// --busy: on cores that others use, too, the least of many short measurements in place of the median of nine.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/bench/halo_command_line.hpp"
#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/bench/median.hpp"

namespace halo = mpix::halo;

namespace {

struct sample {
    const char *name;
    halo::radius radius;
    int fields;
    bool across_x = false;  // the domain is cut across x only, along which cells lie together
};

constexpr halo::exchange_options ways[] = {
    {.transfer = halo::transfer::automatic},
    {.transfer = halo::transfer::packed},
    {.transfer = halo::transfer::packed, .ghosts = halo::ghost_storage::in_messages},
    {.transfer = halo::transfer::datatype},
    {.transfer = halo::transfer::plain}};

// How many boxes there are along each axis.
std::array<int, 3> shape_of(int ranks, const sample &s) {
    if (s.across_x) return {ranks, 1, 1};
    std::array<int, 3> boxes{};
    MPI_Dims_create(ranks, 3, boxes.data());
    return {boxes[2], boxes[1], boxes[0]};
}

// What a program writes that has MPI alone: each field's cells to each neighbour, itself too, by a message.
class by_hand {
public:
    by_hand(const halo::grid &g, std::vector<halo::array<double>> &fields, const sample &s)
        : room_(halo::ghost_depth(s.radius, 3)) {
        const halo::radius &r = s.radius;
        const auto number = [](const std::array<int, 3> &d) {
            return static_cast<std::size_t>(halo::direction_number(d[0], d[1], d[2]));
        };
        const std::array<int, 3> boxes = shape_of(g.ranks(), s);
        const int dims[] = {boxes[2], boxes[1], boxes[0]}, periods[] = {1, 1, 1};  // MPI counts the last axis fastest
        MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &cart_);
        int here[3], rank = 0;
        MPI_Comm_rank(cart_, &rank);
        MPI_Cart_coords(cart_, rank, 3, here);
        for (int dz = -1; dz <= 1; ++dz)
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx)
                    if (const std::array<int, 3> d{dx, dy, dz}; r.cells[number(d)] != 0)
                        add(g.local().size(), d, r.cells[number(d)], here);
        for (const halo::field f : fields) fields_.push_back(f.data);
        requests_.resize(2 * messages_.size() * fields_.size());
    }
    ~by_hand() {
        for (message &m : messages_) {
            MPI_Type_free(&m.out);
            MPI_Type_free(&m.in);
        }
        MPI_Comm_free(&cart_);
    }
    by_hand(const by_hand &) = delete;
    by_hand &operator=(const by_hand &) = delete;

    void exchange() {
        std::size_t n = 0;
        int tag = 0;
        for (void *const f : fields_)
            for (const message &m : messages_) MPI_Irecv(f, 1, m.in, m.from, tag++, cart_, &requests_[n++]);
        tag = 0;
        for (void *const f : fields_)
            for (const message &m : messages_) MPI_Isend(f, 1, m.out, m.to, tag++, cart_, &requests_[n++]);
        MPI_Waitall(static_cast<int>(n), requests_.data(), MPI_STATUSES_IGNORE);
    }

private:
    // The ghost cells in one direction, and the cells of which the neighbour on the other side has ghost cells there.
    struct message {
        MPI_Datatype out, in;
        int to, from;
    };

    void add(const halo::index3 &box, const std::array<int, 3> &d, int depth, const int *here) {
        int sizes[3], part[3], out[3], in[3], to[3], from[3];
        for (int a = 0; a < 3; ++a) {
            const auto axis = static_cast<std::size_t>(a);
            const int m = 2 - a, n = static_cast<int>(box[axis]), step = d[axis],
                      below = static_cast<int>(room_[0][axis]);
            sizes[m] = n + below + static_cast<int>(room_[1][axis]);
            part[m] = step == 0 ? n : depth;
            out[m] = below + (step > 0 ? n - depth : 0);
            in[m] = below + (step > 0 ? -depth : step < 0 ? n : 0);
            to[m] = here[m] + step;
            from[m] = here[m] - step;
        }
        message made{};
        MPI_Type_create_subarray(3, sizes, part, out, MPI_ORDER_C, MPI_DOUBLE, &made.out);
        MPI_Type_create_subarray(3, sizes, part, in, MPI_ORDER_C, MPI_DOUBLE, &made.in);
        MPI_Type_commit(&made.out);
        MPI_Type_commit(&made.in);
        MPI_Cart_rank(cart_, to, &made.to);
        MPI_Cart_rank(cart_, from, &made.from);
        messages_.push_back(made);
    }

    std::array<halo::index3, 2> room_;  // of the arrays, below and above the box
    MPI_Comm cart_ = MPI_COMM_NULL;
    std::vector<message> messages_;
    std::vector<void *> fields_;
    std::vector<MPI_Request> requests_;
};

// The seconds of one exchange, of the slowest rank.
template <class Exchange>
double time_of(const Exchange &exchange, int exchanges) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < exchanges; ++i) exchange();
    double mine = (MPI_Wtime() - begin) / exchanges, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

// What stays in the messages, into the fields.
void unpack(const halo::exchange &x, std::vector<halo::array<double>> &arrays) {
    for (std::size_t f = 0; f < arrays.size(); ++f) {
        const halo::ghost_reader<double> read(x, static_cast<int>(f));
        for (const halo::ghost_piece &p : x.ghost_pieces(static_cast<int>(f)))
            for (auto k = p.cells.lo[2]; k < p.cells.hi[2]; ++k)
                for (auto j = p.cells.lo[1]; j < p.cells.hi[1]; ++j)
                    for (auto i = p.cells.lo[0]; i < p.cells.hi[0]; ++i) arrays[f](i, j, k) = read(i, j, k);
    }
}

// All ways leave the same bytes in the fields.
void check_alike(const halo::grid &g, std::vector<halo::array<double>> &arrays,
                 const std::vector<std::function<void()>> &all, const std::vector<halo::exchange> &exchanges) {
    std::vector<std::vector<double>> first;
    for (std::size_t w = 0; w < all.size(); ++w) {
        std::vector<std::vector<double>> now;
        for (const halo::field f : arrays) {
            double *const at = static_cast<double *>(f.data);
            const std::size_t n = halo::field_bytes(g, f) / sizeof(double);
            std::fill(at, at + n, -1.0);
        }
        std::mt19937_64 random(static_cast<std::uint64_t>(g.rank()));
        for (halo::array<double> &u : arrays) {
            const halo::box b = g.local();
            for (auto z = b.lo[2]; z < b.hi[2]; ++z)
                for (auto y = b.lo[1]; y < b.hi[1]; ++y)
                    for (auto x = b.lo[0]; x < b.hi[0]; ++x) u(x, y, z) = static_cast<double>(random() >> 12);
        }
        all[w]();
        if (w < exchanges.size() && ways[w].ghosts == halo::ghost_storage::in_messages) unpack(exchanges[w], arrays);
        for (const halo::field f : arrays) {
            const double *const at = static_cast<double *>(f.data);
            now.emplace_back(at, at + halo::field_bytes(g, f) / sizeof(double));
        }
        if (first.empty()) first = now;
        if (now != first) {
            std::fprintf(stderr, "bench.halo: two ways do not leave the same values\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

// Microseconds by each way, and by hand.
std::vector<double> measure(const halo::grid &g, const sample &s, int rounds, bool busy) {
    std::vector<halo::array<double>> arrays;
    for (int f = 0; f < s.fields; ++f) arrays.emplace_back(g, s.radius);
    std::vector<halo::exchange> exchanges;
    for (const halo::exchange_options &way : ways) {
        std::vector<halo::field> fields(arrays.begin(), arrays.end());
        exchanges.emplace_back(g, fields, way);
    }
    by_hand hand(g, arrays, s);
    std::vector<std::function<void()>> calls;
    for (halo::exchange &x : exchanges)
        calls.emplace_back([&x] {
            x.start();
            x.finish();
        });
    calls.emplace_back([&hand] { hand.exchange(); });
    check_alike(g, arrays, calls, exchanges);
    // About 20 ms for each measurement, or 1 ms; the same number on all ranks.
    double first = time_of(calls[0], 3);
    for (int i = 0; busy && i < 20; ++i) first = std::min(first, time_of(calls[0], 3));
    MPI_Bcast(&first, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const int count = std::max(3, static_cast<int>((busy ? 0.001 : 0.02) / first));
    std::vector<std::vector<double>> all(calls.size());
    for (int round = 0; round < rounds; ++round)
        for (std::size_t w = 0; w < calls.size(); ++w) all[w].push_back(1e6 * time_of(calls[w], count));
    std::vector<double> chosen;
    for (const std::vector<double> &times : all)
        chosen.push_back(busy ? *std::min_element(times.begin(), times.end()) : bench::median(times));
    return chosen;
}

void run(const std::vector<int> &sizes, int rounds, bool busy, const char *csv_name) {
    const sample samples[] = {
        {"faces, radius 1, 1 field", halo::radius::faces(1), 1},
        {"faces, radius 3, 4 fields", halo::radius::faces(3), 4},
        {"26 neighbours, radius 1, 1 field", halo::radius::all(1), 1},
        {"x faces alone, radius 3, 1 field", halo::radius::faces(0).set(-1, 0, 0, 3).set(1, 0, 0, 3), 1, true}};
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::optional<bench::csv_file> csv;
    if (rank == 0) {
        csv.emplace(csv_name);
        if (csv->get() != nullptr)
            std::fprintf(csv->get(),
                         "# %s, %s, Linux %s, load %s, %s\nranks,cells,exchange,automatic us,packed us,in messages "
                         "us,datatype us,plain us,isend us\n",
                         bench::cpu_model().c_str(), bench::library_name().c_str(), bench::kernel_release().c_str(),
                         bench::load().c_str(), bench::today().c_str());
        if (csv->text() != nullptr)
            std::printf("%5s %5s  %-34s %12s %10s %14s %11s %10s %10s\n", "ranks", "cells", "exchange", "automatic us",
                        "packed us", "in messages us", "datatype us", "plain us", "isend us");
    }
    for (const int n : sizes) {
        for (const sample &s : samples) {
            // So many cells along each axis for each rank.
            const std::array<int, 3> shape = shape_of(ranks, s);
            const auto cells = [n](int along) { return std::int64_t{n} * along; };
            halo::grid_options options{.periodic = {true, true, true}};
            for (int r = 0; s.across_x && r < ranks; ++r)
                options.boxes.push_back({{cells(r), 0, 0}, {cells(r + 1), n, n}});
            const halo::grid g(MPI_COMM_WORLD, {cells(shape[0]), cells(shape[1]), cells(shape[2])}, options);
            if (g.local().size() != halo::index3{n, n, n}) continue;  // such a domain is cut in another way
            const std::vector<double> us = measure(g, s, rounds, busy);
            if (rank != 0) continue;
            if (csv->get() != nullptr)
                std::fprintf(csv->get(), "%d,%d,\"%s\",%.2f,%.2f,%.2f,%.2f,%.2f,%.2f\n", ranks, n, s.name, us[0], us[1],
                             us[2], us[3], us[4], us[5]);
            if (csv->text() != nullptr)
                std::printf("%5d %5d  %-34s %12.2f %10.2f %14.2f %11.2f %10.2f %10.2f\n", ranks, n, s.name, us[0],
                            us[1], us[2], us[3], us[4], us[5]);
        }
    }
}

}  // namespace

int main(int argc, char **argv) {
    const bench::halo_command_line given(argc, argv, {16, 64, 128});
    MPI_Init(&argc, &argv);
    run(given.sizes, given.rounds, given.busy, given.csv);
    MPI_Finalize();
    return 0;
}
