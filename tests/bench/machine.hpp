// SPDX-License-Identifier: BSD-3-Clause
//
// What the benches' tables say of the machine, and their way to end.
#ifndef MPIX_TESTS_BENCH_MACHINE_HPP
#define MPIX_TESTS_BENCH_MACHINE_HPP

#include <cuda_runtime.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>

namespace bench {

inline void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

inline std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The columns that are the same in all rows.
inline std::string machine_columns(int device) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    int supported = 0, runtime = 0;
    check(cudaDriverGetVersion(&supported), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    std::string driver;
    std::ifstream file("/sys/module/nvidia/version");
    if (!(file >> driver)) driver = "CUDA " + version_text(supported);
    char date[32], mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
    int length = 0;
    MPI_Get_library_version(mpi, &length);
    std::string name = std::string(mpi).substr(0, std::string(mpi).find('\n'));
    name = name.substr(0, name.find(','));
    std::replace(name.begin(), name.end(), '\t', ' ');
    return std::string(properties.name) + "," + driver + "," + version_text(runtime) + "," + date + "," + name;
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_MACHINE_HPP
