// SPDX-License-Identifier: BSD-3-Clause
//
// measure_links() gives all ranks the same numbers, and a grid takes them. Four ranks also run as two fake nodes.
// Linked with the library's own objects.
#include <mpi.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "host/halo/node_map.h"
#include "tests/halo/expectations.hpp"

namespace halo = mpix::halo;
using namespace halo_test;

namespace {

void check(const halo::measured_links &links, int ranks, int nodes) {
    const auto each = static_cast<std::size_t>(ranks / nodes);
    expect(links.within_node.size() == each * each, "the bandwidths of each pair");
    for (const double b : links.within_node) expect(std::isfinite(b) && b > 1e3 && b < 1e15, "a bandwidth");
    expect((links.network > 0) == (nodes > 1), "the network");
    expect(links.run_seconds > 0 && links.run_seconds < 1e-3, "the time of a run");
    std::vector<double> mine = links.within_node;
    mine.insert(mine.end(), {links.network, links.run_seconds});
    std::vector<double> root = mine;
    MPI_Bcast(root.data(), static_cast<int>(root.size()), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    expect(mine == root, "the same on all ranks");
    const halo::grid g(MPI_COMM_WORLD, {16, 16, 16}, {.links = links});
    halo::array<float> u(g, halo::radius::all(1));
    halo::exchange h(g, {u});
    for (const halo::message_report &m : h.report().sent) expect(m.predicted_seconds > 0, "a prediction");
}

int node_of_two(int rank) { return rank / 2; }

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    check(halo::measure_links(MPI_COMM_WORLD, {.bytes = 1 << 16, .rounds = 3}), ranks, 1);
    // In the program's memory, whose second half receives.
    std::vector<char> memory(2 * 4096, static_cast<char>(rank + 1));
    check(halo::measure_links(MPI_COMM_WORLD, {.bytes = 4096, .rounds = 2, .memory = memory.data()}), ranks, 1);
    expect(memory[4096] == ranks, "what the last message has left");  // from the last rank
    const auto refused_with = [](const char *what, int error_class, const char *sentence,
                                 const halo::links_measurement &how) {
        refused(what, error_class, sentence, [&] { halo::measure_links(MPI_COMM_WORLD, how); });
    };
    const std::string no_memory = "mpix::halo::measure_links, rank " + std::to_string(ranks - 1) +
                                  ": how.memory: the CPU cannot write 2 * how.bytes there";
    refused_with("no bytes", MPI_ERR_ARG, "mpix::halo::measure_links, rank 0: how.bytes is 0; it is at least 1",
                 {.bytes = 0});
    refused_with("no rounds", MPI_ERR_ARG, "mpix::halo::measure_links, rank 0: how.rounds is 0; it is at least 1",
                 {.rounds = 0});
    if (rank == ranks - 1)
        refused_with("no memory", MPI_ERR_BUFFER, no_memory.c_str(),
                     {.memory = reinterpret_cast<void *>(std::uintptr_t{64})});
    else
        refused_with("no memory of another rank", MPI_ERR_BUFFER, no_memory.c_str(), {});
    if (ranks > 1)
        refused_with("other bytes", MPI_ERR_ARG,
                     "mpix::halo::measure_links, rank 1: how.bytes is 2 here, and 1 on rank 0; all ranks give the same",
                     {.bytes = rank == 0 ? 1 : 2});
    refused("no communicator", MPI_ERR_COMM, "mpix::halo::measure_links: comm is MPI_COMM_NULL",
            [] { halo::measure_links(MPI_COMM_NULL); });
    if (ranks == 4) {
        halo::fake_node = node_of_two;
        check(halo::measure_links(MPI_COMM_WORLD, {.bytes = 1 << 16, .rounds = 3}), ranks, 2);
    }
    const int failed = any_failures();
    MPI_Finalize();
    return failed;
}
