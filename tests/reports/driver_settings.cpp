// SPDX-License-Identifier: BSD-3-Clause
//
// driver_settings <loading> <connections>: the expected CUDA_MODULE_LOADING and CUDA_DEVICE_MAX_CONNECTIONS when the program's
// constructors run, before which it cannot initialise CUDA; "unset": not set.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct settings {
    std::string loading, connections;
    bool operator==(const settings &) const = default;
};

std::string value_of(const char *variable) {
    const char *const value = std::getenv(variable);
    return value == nullptr ? "unset" : value;
}

settings settings_now() { return {value_of("CUDA_MODULE_LOADING"), value_of("CUDA_DEVICE_MAX_CONNECTIONS")}; }

void print(const char *when, const settings &s) {
    std::printf("%s: CUDA_MODULE_LOADING %s, CUDA_DEVICE_MAX_CONNECTIONS %s\n", when, s.loading.c_str(),
                s.connections.c_str());
}

const settings before_main = settings_now();

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const settings expected{argv[1], argv[2]};
    MPI_Init(&argc, &argv);
    const settings after = settings_now();
    print("before main", before_main);
    print("after MPI_Init", after);
    print("expected", expected);
    MPI_Finalize();
    return before_main == expected && after == expected ? 0 : 1;
}
