// SPDX-License-Identifier: BSD-3-Clause
//
// Node messages (exchange_options::node_messages), where ranks of this machine play those of two nodes: many exchanges
// without anything else that would make ranks wait for each other, reports, refused options, and ranks that are late.
// Linked with the library's own parts. On four ranks.
//
//   node_messages [stall]
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <mpix/halo.h>
#include <mpix/halo.hpp>

#include "host/halo/node_map.h"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::box;
using halo::index3;
using halo::node_messages;
using halo::radius;
using halo_test::expect;
using halo_test::rank;
using halo_test::refused;

namespace {

constexpr int last_epoch = 300;

// In either half of the ranks a node.
int by_halves(int r) { return r / 2; }
// Rank 0 is a node by itself.
int first_alone(int r) { return r > 0; }

double value(const index3 &cell, int field, int epoch) {
    return static_cast<double>(cell[0] + 100 * cell[1] + 10000 * cell[2]) + 1e6 * epoch + 0.25 * field;
}

class lateness {
public:
    explicit lateness(unsigned seed) : random_(seed * 16 + static_cast<unsigned>(rank)) {}
    void operator()(unsigned one_in, unsigned microseconds) {
        if (random_() % one_in == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % microseconds));
    }

private:
    std::mt19937 random_;
};

void for_each_cell(const box &b, const auto &each) {
    for (auto z = b.lo[2]; z < b.hi[2]; ++z)
        for (auto y = b.lo[1]; y < b.hi[1]; ++y)
            for (auto x = b.lo[0]; x < b.hi[0]; ++x) each(index3{x, y, z});
}

using array = halo::array<double>;

void fill(const halo::grid &g, array &u, int field, int epoch) {
    for_each_cell(g.local(), [&](const index3 &c) { u(c[0], c[1], c[2]) = value(c, field, epoch); });
}

// Whether all ghost cells, one deep and periodic, have the value of the cell that they are copies of.
bool is_right(const halo::grid &g, array &u, int field, int epoch) {
    box all = g.local();
    for (int a = 0; a < 3; ++a) --all.lo[a], ++all.hi[a];
    bool right = true;
    for_each_cell(all, [&](const index3 &c) {
        index3 cell = c;
        for (int a = 0; a < 3; ++a) cell[a] = (c[a] + g.extent()[a]) % g.extent()[a];
        right = right && u(c[0], c[1], c[2]) == value(cell, field, epoch);
    });
    return right;
}

// Two exchanges at once, of fields that are ready one after the other.
void many_exchanges(node_messages how) {
    const halo::grid g(MPI_COMM_WORLD, {8, 8, 6}, {.periodic = {true, true, true}});
    array u(g, radius::all(1)), v(g, radius::all(1)), w(g, radius::all(1));
    halo::exchange a(g, {u, v}, {.node_messages = how}), b(g, {w}, {.node_messages = how});
    expect(a.messages_sent() == 2, "messages: " + std::to_string(a.messages_sent()));
    const halo::exchange each(g, {u, v});
    expect(each.messages_sent() == 3 && each.bytes_sent() == a.bytes_sent(), "the same bytes in more messages");
    lateness late(1);
    for (int epoch = 1; epoch <= last_epoch; ++epoch) {
        late(20, 2000);
        fill(g, u, 0, epoch);
        fill(g, v, 1, epoch);
        fill(g, w, 2, epoch);
        a.begin();
        a.ready(1);
        late(20, 2000);
        b.start();
        a.ready(0);
        late(20, 2000);
        b.finish();
        expect(is_right(g, w, 2, epoch), "wrong in epoch " + std::to_string(epoch));
        a.finish();
        expect(is_right(g, u, 0, epoch) && is_right(g, v, 1, epoch), "wrong in epoch " + std::to_string(epoch));
    }
}

// Bytes go one way only, so that nothing keeps a carrier from going ahead of the ranks that read what it has received;
// rank 1, which has no cells, carries.
struct one_way {
    static halo::grid_options options() {
        return {
            .boxes = {{{0, 0, 0}, {4, 8, 1}}, {{4, 0, 0}, {4, 0, 1}}, {{4, 0, 0}, {8, 4, 1}}, {{4, 4, 0}, {8, 8, 1}}}};
    }
    static radius below() {
        radius r = radius::all(0);
        r.cells[halo::direction_number(-1, 0, 0)] = 1;
        return r;
    }
    void check(int epoch) {
        const box b = g.local();
        for (auto y = b.lo[1]; rank >= 2 && y < b.hi[1]; ++y)
            expect(u(3, y, 0) == value({3, y, 0}, 0, epoch), "one way: wrong in epoch " + std::to_string(epoch));
    }

    // As long as the grid is made.
    struct other_nodes {
        other_nodes() { halo::fake_node = first_alone; }
        ~other_nodes() { halo::fake_node = by_halves; }
        other_nodes(const other_nodes &) = delete;
        other_nodes &operator=(const other_nodes &) = delete;
    };
    static halo::grid made() {
        const other_nodes played;
        return {MPI_COMM_WORLD, {8, 8}, options()};
    }

    halo::grid g = made();
    array u{g, below()};
};

void carrier_ahead() {
    one_way made;
    halo::exchange x(made.g, {made.u}, {.node_messages = node_messages::automatic});
    expect(x.messages_sent() == (rank == 0 ? 1 : 0), "one way: messages");
    lateness late(2);
    for (int epoch = 1; epoch <= last_epoch; ++epoch) {
        fill(made.g, made.u, 0, epoch);
        x.start();
        if (rank >= 2) late(5, 3000);
        x.finish();
        made.check(epoch);
    }
}

// Two allocations, by turns.
void swaps() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8, 6}, {.periodic = {true, true, true}});
    array u(g, radius::all(1)), v(g, radius::all(1));
    halo::exchange x(g, {halo::double_buffered(u, v)}, {.node_messages = node_messages::always});
    for (int epoch = 1; epoch <= 20; ++epoch) {
        array &now = epoch % 2 == 1 ? u : v;
        fill(g, now, 0, epoch);
        x.start();
        x.finish();
        expect(is_right(g, now, 0, epoch), "swapped: wrong in epoch " + std::to_string(epoch));
        x.swap(0);
    }
}

void report() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8, 6}, {.periodic = {true, true, true}});
    array u(g, radius::all(1));
    halo::exchange x(g, {u}, {.node_messages = node_messages::automatic});
    x.measure(true);
    x.start();
    x.finish();
    const halo::exchange_report r = x.report();
    const int other = 2 - rank / 2 * 2,
              carrier = other + rank % 2;  // the other node's first rank; whoever has this place
    int there = 0, carried_here = 0;
    for (const halo::message_report &m : r.sent) there += m.carrier == carrier && m.rank / 2 == other / 2;
    for (const halo::message_report &m : r.received) {
        if (m.carrier < 0) continue;
        expect(m.carrier / 2 == rank / 2 && m.carrier % 2 == m.rank % 2 && m.mean_seconds > 0, "received");
        expect((m.path == "shared memory") == (m.carrier != rank) && m.path != "unmatched", "path " + m.path);
        ++carried_here;
    }
    expect(r.sent.size() == 3 && r.received.size() == 3 && there == 2 && carried_here == 2, "messages in the report");
    const std::string text = r.text();
    const std::regex to("\n  to rank " + std::to_string(other) +
                        " \\([^\n]*\\): [0-9]+ bytes by [a-z_]+, packed, in one message to its node by rank " +
                        std::to_string(carrier) + "\n"),
        from(
            "\n  from rank [0-3] \\([^\n]*\\): [0-9]+ bytes by shared memory, packed, in one message to this node by "
            "rank " +
            std::to_string(rank ^ 1) + ", there after [0-9.]+ us");
    expect(std::regex_search(text, to) && std::regex_search(text, from), text);
}

// The same by the flags of <mpix/halo.h>.
void in_c() {
    const std::int64_t extent[] = {8, 8, 6};
    MPIX_Halo_grid_options periodic{};
    std::fill_n(periodic.periodic, 3, 1);
    MPIX_Halo_grid g = MPIX_HALO_GRID_NULL;
    MPIX_Halo_field field;
    int radius[MPIX_HALO_DIRECTIONS];
    const auto right = [](int code, const char *call) { expect(code == MPI_SUCCESS, call); };
    right(MPIX_Halo_grid_create(MPI_COMM_WORLD, 3, extent, &periodic, &g), "MPIX_Halo_grid_create");
    right(MPIX_Halo_radius_all(1, radius), "MPIX_Halo_radius_all");
    std::vector<double> cells(10 * 10 * 8);
    right(MPIX_Halo_field_init(cells.data(), MPI_DOUBLE, radius, &field), "MPIX_Halo_field_init");
    for (const auto &[flag, messages] :
         {std::pair{0, 3}, {MPIX_HALO_NODE_MESSAGES_AUTOMATIC, 2}, {MPIX_HALO_NODE_MESSAGES_ALWAYS, 2}}) {
        MPIX_Halo_exchange x = MPIX_HALO_EXCHANGE_NULL;
        int sent = 0;
        right(MPIX_Halo_exchange_create(g, 1, &field, MPIX_HALO_AUTOMATIC | flag, &x), "MPIX_Halo_exchange_create");
        right(MPIX_Halo_start(x), "MPIX_Halo_start");
        right(MPIX_Halo_finish(x), "MPIX_Halo_finish");
        right(MPIX_Halo_sent(x, &sent, nullptr), "MPIX_Halo_sent");
        expect(sent == messages, "in C, flag " + std::to_string(flag) + ": messages: " + std::to_string(sent));
        right(MPIX_Halo_exchange_free(&x), "MPIX_Halo_exchange_free");
    }
    right(MPIX_Halo_grid_free(&g), "MPIX_Halo_grid_free");
}

void refusals() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8});
    halo::array<double> u(g, radius::all(1));
    const auto no = [&](const halo::exchange_options &o, const std::string &sentence) {
        refused("exchange", MPI_ERR_ARG, "mpix::halo::exchange, rank 0: " + sentence,
                [&] { halo::exchange(g, {u}, o); });
    };
    no({.node_messages = static_cast<node_messages>(7)},
       "options.node_messages is 7; it is never, automatic or always (0 to 2)");
    no({.transfer = halo::transfer::datatype, .node_messages = node_messages::always},
       "options.node_messages is always, and transfer is datatype; node messages are packed");
    no({.transfer = halo::transfer::plain, .node_messages = node_messages::always},
       "options.node_messages is always, and transfer is plain; node messages are packed");
    no({.reduce = halo::reduction::sum, .node_messages = node_messages::always},
       "options.node_messages is always, and options.reduce is sum; a reverse exchange has no node messages");
    no({.ghosts = halo::ghost_storage::in_messages, .node_messages = node_messages::always},
       "options.node_messages is always, and options.ghosts is in_messages; the memory of a node message is used "
       "again");
    refused(
        "differs", MPI_ERR_ARG,
        "mpix::halo::exchange, rank 1: options.node_messages is automatic here, and never on rank 0; all ranks give "
        "the same",
        [&] { halo::exchange(g, {u}, {.node_messages = rank > 0 ? node_messages::automatic : node_messages::never}); });
    // These have no node messages.
    for (const halo::exchange_options &o :
         {halo::exchange_options{.transfer = halo::transfer::plain, .node_messages = node_messages::automatic},
          {.transfer = halo::transfer::datatype, .node_messages = node_messages::automatic},
          {.reduce = halo::reduction::sum, .node_messages = node_messages::automatic}}) {
        halo::exchange x(g, {u}, o);
        x.start();
        x.finish();
        for (const halo::message_report &m : x.report().sent) expect(m.carrier == -1, "a node message");
    }
}

// An exchange that is destroyed while it is active keeps its memory, and does not wait for others; another one is made
// after it.
void abandoned() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8, 6}, {.periodic = {true, true, true}});
    array u(g, radius::all(1));
    {
        halo::exchange x(g, {u}, {.node_messages = node_messages::always});
        fill(g, u, 0, 1);
        x.start();
        if (rank % 2 == 0) MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank % 2 == 1) MPI_Barrier(MPI_COMM_WORLD);
    halo::exchange x(g, {u}, {.node_messages = node_messages::always});
    for (int epoch = 1; epoch <= 5; ++epoch) {
        fill(g, u, 0, epoch);
        x.start();
        x.finish();
        expect(is_right(g, u, 0, epoch), "after an abandoned one: wrong in epoch " + std::to_string(epoch));
    }
}

// Rank 2 does not finish the first exchange before the carrier has given up waiting for it, in the third.
void late_reader() {
    one_way made;
    halo::exchange x(made.g, {made.u}, {.node_messages = node_messages::automatic});
    for (int epoch = 1; epoch <= 3; ++epoch) {
        fill(made.g, made.u, 0, epoch);
        x.start();
        if (epoch == 3 && rank == 1)
            refused("finish", MPI_ERR_PENDING, "mpix::halo::exchange::finish: no completion after *",
                    [&] { x.finish(); });
        if (epoch == (rank < 2 ? 3 : 1)) MPI_Barrier(MPI_COMM_WORLD);
        x.finish();
        made.check(epoch);
    }
}

// Rank 3 starts when the carrier of what it sends has given up waiting for it.
void late_sender() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8, 6}, {.periodic = {true, true, true}});
    array u(g, radius::all(1));
    halo::exchange x(g, {u}, {.node_messages = node_messages::automatic});
    for (int epoch = 1; epoch <= 2; ++epoch) {
        fill(g, u, 0, epoch);
        if (rank == 3) MPI_Barrier(MPI_COMM_WORLD);
        x.start();
        if (rank == 1)
            refused("finish", MPI_ERR_PENDING, "mpix::halo::exchange::finish: no completion after *",
                    [&] { x.finish(); });
        if (rank != 3) MPI_Barrier(MPI_COMM_WORLD);
        x.finish();
        expect(is_right(g, u, 0, epoch), "late sender: wrong in epoch " + std::to_string(epoch));
    }
}

// Rank 1 finishes when rank 0 has given up waiting for it.
void late_carrier() {
    const halo::grid g(MPI_COMM_WORLD, {8, 8, 6}, {.periodic = {true, true, true}});
    array u(g, radius::all(1));
    halo::exchange x(g, {u}, {.node_messages = node_messages::always});
    for (int epoch = 1; epoch <= 3; ++epoch) {
        fill(g, u, 0, epoch);
        x.start();
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            refused("finish", MPI_ERR_PENDING, "mpix::halo::exchange::finish: no completion after *",
                    [&] { x.finish(); });
        expect(x.active(), "not active");
        MPI_Barrier(MPI_COMM_WORLD);
        x.finish();
        expect(is_right(g, u, 0, epoch), "late: wrong in epoch " + std::to_string(epoch));
    }
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    halo::fake_node = by_halves;
    if (argc > 1 && std::strcmp(argv[1], "stall") == 0) {
        late_carrier();
        late_sender();
        late_reader();
    } else {
        many_exchanges(node_messages::automatic);
        many_exchanges(node_messages::always);
        carrier_ahead();
        swaps();
        report();
        in_c();
        refusals();
        abandoned();
    }
    const int failed = halo_test::any_failures();
    MPI_Finalize();
    return failed;
}
