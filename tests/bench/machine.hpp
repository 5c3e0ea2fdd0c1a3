// SPDX-License-Identifier: BSD-3-Clause
//
// What the benches' tables say of the machine, and their way to end.
#ifndef MPIX_TESTS_BENCH_MACHINE_HPP
#define MPIX_TESTS_BENCH_MACHINE_HPP

#include <cuda_runtime.h>
#include <mpi.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/bench/host_machine.hpp"

namespace bench {

inline void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

inline void must(int code, const char *call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    std::fprintf(stderr, "%s: %s\n", call, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// What a program without a GPU says before it ends with status 77.
inline bool without_gpu() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return false;
    std::puts("skipped: no GPU");
    return true;
}

inline std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The columns that are the same in all rows.
constexpr const char *machine_names = "gpu,driver,cuda,date,mpi";
inline std::string machine_columns(int device) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    int supported = 0, runtime = 0;
    check(cudaDriverGetVersion(&supported), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    std::string driver;
    std::ifstream file("/sys/module/nvidia/version");
    if (!(file >> driver)) driver = "CUDA " + version_text(supported);
    return std::string(properties.name) + "," + driver + "," + version_text(runtime) + "," + today() + "," +
           library_name();
}

}  // namespace bench

#endif  // MPIX_TESTS_BENCH_MACHINE_HPP
