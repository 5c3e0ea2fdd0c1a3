// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of the benches of halo exchanges on the host.
#ifndef MPIX_TESTS_BENCH_HALO_COMMAND_LINE_HPP
#define MPIX_TESTS_BENCH_HALO_COMMAND_LINE_HPP

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace bench {

struct halo_command_line {
    std::vector<int> sizes;
    int rounds = 0;  // 0: as many as the way of measuring needs
    bool busy = false;
    const char *csv = nullptr;

    halo_command_line(int argc, char **argv, std::vector<int> usual_sizes) : sizes(std::move(usual_sizes)) {
        for (int i = 1; i + 1 < argc; i += 2) {
            const std::string option = argv[i];
            if (option == "--cells") sizes = {std::atoi(argv[i + 1])};
            if (option == "--rounds") rounds = std::atoi(argv[i + 1]);
            if (option == "--busy") busy = true;
            if (option == "--csv") csv = argv[i + 1];
        }
        if (rounds <= 0) rounds = busy ? 200 : 9;
    }
};

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_HALO_COMMAND_LINE_HPP
