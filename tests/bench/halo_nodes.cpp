// SPDX-License-Identifier: BSD-3-Clause
//
// What node messages of a halo exchange gain between hosts: one field of n^3 doubles for each rank, 26 neighbours,
// radius 1, periodic. Never and automatic by turns: the time of an exchange, what all ranks take of their cores, and
// the packets that leave the host of rank 0 by one of its network devices. Ranks are to be spread evenly over at least
// two hosts.
//
//   halo_nodes [--cells N] [--exchanges N] [--rounds N] [--device eth0] [--csv FILE]
#include <mpi.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/bench/csv_file.hpp"
#include "tests/bench/host_machine.hpp"
#include "tests/bench/median.hpp"

namespace halo = mpix::halo;

namespace {

// Sent by this device of this network namespace; 0 if there is none.
double packets_of(const std::string &device) {
    std::ifstream file("/proc/self/net/dev");
    for (std::string line; std::getline(file, line);) {
        const std::size_t at = line.find(device + ":");
        if (at == std::string::npos) continue;
        std::istringstream words(line.substr(at + device.size() + 1));
        double word = 0;
        for (int i = 0; i < 10; ++i) words >> word;  // eight of what is received, then bytes and packets sent
        return word;
    }
    return 0;
}

double core_seconds() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval &t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct figures {
    double us, core_us, packets;
};

figures measure(halo::exchange &x, int exchanges, const std::string &device) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double packets = packets_of(device), core = core_seconds(), begin = MPI_Wtime();
    for (int i = 0; i < exchanges; ++i) {
        x.start();
        x.finish();
    }
    const double mine[] = {MPI_Wtime() - begin, core_seconds() - core};
    double slowest = 0, all = 0;
    MPI_Allreduce(&mine[0], &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&mine[1], &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return {1e6 * slowest / exchanges, 1e6 * all / exchanges, (packets_of(device) - packets) / exchanges};
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    std::int64_t cells = 16;
    int exchanges = 500, rounds = 5, rank = 0, ranks = 1;
    std::string device = "eth0";
    const char *path = nullptr;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string option = argv[i];
        if (option == "--cells") cells = std::atoi(argv[i + 1]);
        if (option == "--exchanges") exchanges = std::atoi(argv[i + 1]);
        if (option == "--rounds") rounds = std::atoi(argv[i + 1]);
        if (option == "--device") device = argv[i + 1];
        if (option == "--csv") path = argv[i + 1];
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int boxes[3] = {};
    MPI_Dims_create(ranks, 3, boxes);
    {
        const halo::grid g(MPI_COMM_WORLD, {cells * boxes[2], cells * boxes[1], cells * boxes[0]},
                           {.periodic = {true, true, true}});
        halo::array<double> u(g, halo::radius::all(1));
        halo::exchange never(g, {u}), automatic(g, {u}, {.node_messages = halo::node_messages::automatic});
        std::vector<double> all[2][3];
        for (int round = -1; round < rounds; ++round)
            for (int how = 0; how < 2; ++how) {
                const figures f = measure(how == 0 ? never : automatic, exchanges, device);
                if (round < 0) continue;
                all[how][0].push_back(f.us);
                all[how][1].push_back(f.core_us);
                all[how][2].push_back(f.packets);
            }
        const bench::csv_file file(rank == 0 ? path : nullptr);
        if (file.get() != nullptr)
            std::fprintf(file.get(),
                         "# %s, %s, Linux %s, load %s, %s\nranks,cells,node_messages,messages,us,core_us,packets\n",
                         bench::cpu_model().c_str(), bench::library_name().c_str(), bench::kernel_release().c_str(),
                         bench::load().c_str(), bench::today().c_str());
        for (int how = 0; rank == 0 && how < 2; ++how) {
            const char *const name = how == 0 ? "never" : "automatic";
            const int messages = (how == 0 ? never : automatic).messages_sent();
            const double us = bench::median(all[how][0]), core = bench::median(all[how][1]),
                         packets = bench::median(all[how][2]);
            if (file.get() != nullptr)
                std::fprintf(file.get(), "%d,%lld,%s,%d,%.1f,%.1f,%.2f\n", ranks, static_cast<long long>(cells), name,
                             messages, us, core, packets);
            if (file.text() != nullptr)
                std::printf("%d ranks, %-9s: %d messages of rank 0, %8.1f us, %8.1f us of cores, %6.2f packets\n",
                            ranks, name, messages, us, core, packets);
        }
    }
    MPI_Finalize();
    return 0;
}
