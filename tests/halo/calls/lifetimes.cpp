// SPDX-License-Identifier: BSD-3-Clause
//
// Fields whose memory is freed before their exchange.
#include <mpi.h>
#include <sys/mman.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpix/halo.cuh>
#include <mpix/halo.hpp>
#include <mpix/host_group.hpp>

#include "tests/halo/calls/calls.hpp"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using halo::radius;
using halo_test::expect;
using halo_test::rank;
using halo_test::refused;

namespace {

const std::string outlive = "; it must live as long as the exchange";
std::string in(const std::string &function) {
    return "mpix::halo::" + function + ": rank " + std::to_string(rank) + ": ";
}
// What a field of one ghost cell along y was to get. Rank 1 lies above rank 0.
std::string while_active() {
    return " while the exchange was active (its ghost cells: " + std::string(rank == 0 ? "+y" : "-y") + " from rank " +
           std::to_string(1 - rank) + ")";
}

using array = halo::array<int>;

void fill(const halo::grid &g, array &u) {
    for (auto y = g.local().lo[1]; y < g.local().hi[1]; ++y)
        for (auto x = g.local().lo[0]; x < g.local().hi[0]; ++x) u(x, y) = static_cast<int>(10 * y + x);
}

// The next allocation of the same size gets memory that has just been freed.
void use_again(std::size_t values) {
    const std::vector<int> again(values, -7);
    expect(again.back() == -7, "other memory");
}

// Rank 0 destroys the second field of an active exchange; rank 1 gets its ghost cells all the same.
void destroyed_while_active(halo::transfer how, int n) {
    const halo::grid g(MPI_COMM_WORLD, {n, 8}, {.boxes = {{{}, {n, 4, 1}}, {{0, 4, 0}, {n, 8, 1}}}});
    auto u = std::make_unique<array>(g, radius::faces(1)), v = std::make_unique<array>(g, radius::faces(1));
    fill(g, *u);
    fill(g, *v);
    halo::exchange x(g, {*u, *v}, {.transfer = how});
    if (rank == 0) {
        x.begin();
        v.reset();
        use_again(static_cast<std::size_t>((n + 2) * 6));
        x.ready(0);
        x.ready(1);
        refused("an array that is destroyed", MPI_ERR_BUFFER,
                in("exchange::finish") + "the array of fields[1] was destroyed" + while_active() + outlive,
                [&] { x.finish(); });
        refused("after that", MPI_ERR_BUFFER, in("exchange::start") + "the array of fields[1] was destroyed" + outlive,
                [&] { x.start(); });
        expect(!x.active() && (*u)(1, 4) == 41, "the other field");
        return;
    }
    x.start();
    x.finish();
    expect((*u)(1, 3) == 31 && (*v)(n - 1, 3) == 30 + n - 1, "the neighbour's ghost cells");
}

void destroyed_before(const halo::grid &g) {
    std::optional<array> u(std::in_place, g, radius::faces(1));
    halo::exchange x(g, {*u});
    halo::kernel_exchange k(g, {*u});
    halo::stream_exchange s(g, {*u});
    // The memory stays where it is.
    array moved = std::move(*u);
    u.reset();
    array other = moved;
    std::swap(moved, other);
    moved = other;
    other = array(g, radius::faces(1));
    expect(moved(0, g.local().lo[1]) == 0, "the array's values");
    const std::string ended = "the array of fields[0] was destroyed" + outlive;
    refused("start", MPI_ERR_BUFFER, in("exchange::start") + ended, [&] { x.start(); });
    refused("begin", MPI_ERR_BUFFER, in("exchange::begin") + ended, [&] { x.begin(); });
    refused("kernel start", MPI_ERR_BUFFER, in("kernel_exchange::start") + ended, [&] { k.start(1); });
    refused("stream start", MPI_ERR_BUFFER, in("stream_exchange::start") + ended, [&] { s.start(nullptr); });
    refused("stream run", MPI_ERR_BUFFER, in("stream_exchange::run") + ended, [&] { s.run(nullptr); });
    expect(!x.active() && !k.active(), "nothing is active");
}

// A move, and an assignment that fits, leave the values where they are.
void moved_and_assigned(const halo::grid &g) {
    array u(g, radius::faces(1)), v(g, radius::faces(1));
    halo::exchange x(g, {u});
    x.start();
    array moved = std::move(u);
    fill(g, v);
    x.finish();
    moved = v;
    x.start();
    x.finish();
    expect(moved(2, rank == 0 ? 4 : 3) == (rank == 0 ? 42 : 32), "the ghost cells");
    x.start();
    moved = std::move(v);  // frees the memory of `moved`
    refused("an assignment", MPI_ERR_BUFFER,
            in("exchange::finish") + "the array of fields[0] was destroyed" + while_active() + outlive,
            [&] { x.finish(); });
}

// An array that has got the values of one that was moved away has none, but its memory still.
void emptied(const halo::grid &g) {
    std::optional<array> u(std::in_place, g, radius::faces(1));
    halo::exchange x(g, {*u});
    array without(g, radius::faces(1));
    const array with = std::move(without);
    *u = without;  // NOLINT(bugprone-use-after-move)
    u.reset();
    use_again(36);
    refused("an array without values", MPI_ERR_BUFFER,
            in("exchange::start") + "the array of fields[0] was destroyed" + outlive, [&] { x.start(); });
}

// Where the memory would do, too: the cells would lie elsewhere in it.
void assigned_of_another_size(const halo::grid &g) {
    const std::string ended = "the array of fields[0] was destroyed" + outlive;
    const array small(g, radius::faces(1));
    array u(g, radius::faces(2)), v(g, radius::faces(1)), empty(g, radius::faces(1));
    halo::exchange x(g, {u}), y(g, {v});
    u = small;
    refused("of a smaller array", MPI_ERR_BUFFER, in("exchange::start") + ended, [&] { x.start(); });
    const array moved = std::move(empty);
    v = empty;  // NOLINT(bugprone-use-after-move): that is the case
    refused("of an array without memory", MPI_ERR_BUFFER, in("exchange::start") + ended, [&] { y.start(); });
}

void by_kernels(const halo::grid &g) {
    auto u = std::make_unique<array>(g, radius::faces(1));
    fill(g, *u);
    const std::string ended = "the array of fields[0] was destroyed" + while_active() + outlive;
    {
        halo::kernel_exchange k(g, {*u});
        const halo::device_exchange d = k.start(1);
        const auto play = [&](auto call) { mpix::host_launch(1, 1, call); };
        play([&](const auto &block) { expect(halo::send(block, d, 0, 0) == MPI_SUCCESS, "send"); });
        u.reset();
        use_again(36);
        play([&](const auto &block) { expect(halo::wait(block, d, 0, 0) == MPI_SUCCESS, "wait"); });
        refused("of a kernel exchange", MPI_ERR_BUFFER, in("kernel_exchange::finish") + ended, [&] { k.finish(); });
    }
    u = std::make_unique<array>(g, radius::faces(1));
    halo::stream_exchange s(g, {*u});
    s.start(nullptr);
    u.reset();
    use_again(36);
    refused("of a stream exchange", MPI_ERR_BUFFER, in("stream_exchange::finish") + ended, [&] { s.finish(nullptr); });
}

}  // namespace

void destroyed_arrays() {
    const halo::grid g(MPI_COMM_WORLD, {4, 8});
    destroyed_while_active(halo::transfer::packed, 4);
    destroyed_while_active(halo::transfer::plain, 4);
    destroyed_while_active(halo::transfer::datatype, 4);
    destroyed_while_active(halo::transfer::automatic, 9000);
    destroyed_before(g);
    moved_and_assigned(g);
    emptied(g);
    assigned_of_another_size(g);
    by_kernels(g);
}

// With MPIX_CHECK=1: memory that the program maps itself.
void unmapped_memory() {
    const halo::grid g(MPI_COMM_WORLD, {4, 8});
    const radius faces = radius::faces(1);
    const halo::field shape(static_cast<int *>(nullptr), faces);
    const std::size_t bytes = halo::field_bytes(g, shape);
    const auto mapped = [&] {
        return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    };
    void *const first = mapped(), *const second = mapped();
    array u(g, faces);
    {
        halo::exchange x(g, {u, halo::field(static_cast<int *>(first), faces)});
        x.start();
        munmap(first, bytes);
        refused("memory that is unmapped", MPI_ERR_BUFFER,
                in("exchange::finish") + "the memory of fields[1] was unmapped" + while_active() + outlive,
                [&] { x.finish(); });
    }
    halo::exchange x(g, {u, halo::field(static_cast<int *>(second), faces)});
    munmap(second, bytes);
    refused("before", MPI_ERR_BUFFER, in("exchange::start") + "the memory of fields[1] was unmapped" + outlive,
            [&] { x.start(); });
}
