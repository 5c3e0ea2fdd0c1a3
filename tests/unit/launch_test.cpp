// SPDX-License-Identifier: BSD-3-Clause
//
// Cooperative launches, on a CUDA runtime that this test plays.
#include <mpix/launch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.hpp"

extern "C" cudaError_t launch_in_c(const void *kernel, unsigned blocks, char *message, std::size_t size);

namespace {

// What the runtime answers, and what it was asked for.
struct runtime {
    int fit = 4;  // on a multiprocessor
    bool cooperative = true;
    cudaError_t on_launch = cudaSuccess, on_attributes = cudaSuccess;
    int launches = 0, errors_taken = 0, occupancies = 0;
    const void *kernel = nullptr;
    dim3 grid, block;
    std::size_t shared = 0;
    cudaStream_t stream = nullptr;
    std::vector<double> values;
} played;

struct large {
    std::uint64_t words[100];
};

void kernel(int, double, const large *, large) {}
void without_arguments() {}

cudaStream_t stream() { return reinterpret_cast<cudaStream_t>(std::uintptr_t{64}); }

}  // namespace

extern "C" {
cudaError_t CUDARTAPI cudaGetDevice(int *device) {
    *device = 3;
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetLastError() {
    ++played.errors_taken;
    return cudaSuccess;
}
const char *CUDARTAPI cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorNotSupported ? "operation not supported" : "some error";
}
cudaError_t CUDARTAPI cudaFuncGetAttributes(cudaFuncAttributes *a, const void *) {
    *a = {};
    a->maxThreadsPerBlock = 512;
    a->maxDynamicSharedSizeBytes = 49152;
    a->numRegs = 64;
    return played.on_attributes;
}
cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int device) {
    CHECK(device == 3);
    *value = what == cudaDevAttrMultiProcessorCount             ? 10
             : what == cudaDevAttrMaxThreadsPerMultiProcessor   ? 2048
             : what == cudaDevAttrMaxBlocksPerMultiprocessor    ? 32
             : what == cudaDevAttrMaxRegistersPerMultiprocessor ? 65536
             : what == cudaDevAttrCooperativeLaunch             ? played.cooperative
                                                                : 0;
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int, std::size_t) {
    ++played.occupancies;
    *blocks = played.fit;
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(const void *what, dim3 grid, dim3 block, void **arguments,
                                                  std::size_t shared, cudaStream_t stream) {
    ++played.launches;
    played.kernel = what;
    played.grid = grid;
    played.block = block;
    played.shared = shared;
    played.stream = stream;
    if (what == reinterpret_cast<const void *>(kernel))
        played.values = {static_cast<double>(*static_cast<int *>(arguments[0])), *static_cast<double *>(arguments[1]),
                         static_cast<double>((*static_cast<const large **>(arguments[2]))->words[99]),
                         static_cast<double>(static_cast<large *>(arguments[3])->words[0])};
    return played.on_launch;
}
}

TEST_CASE("a grid that fits is launched with its arguments") {
    played = {};
    large far{}, near{};
    far.words[99] = 7;
    near.words[0] = 11;
    const mpix::launch_status launch =
        mpix::launch_cooperative(kernel, dim3(5, 4, 2), dim3(16, 16), 96, stream(), 'a', 2.5f, &far, near);
    CHECK(launch.ok());
    CHECK(launch.message.empty());
    CHECK(played.launches == 1);
    CHECK(played.kernel == reinterpret_cast<const void *>(kernel));
    CHECK((played.grid.x == 5 && played.grid.y == 4 && played.grid.z == 2));
    CHECK((played.block.x == 16 && played.block.y == 16 && played.block.z == 1));
    CHECK(played.shared == 96);
    CHECK(played.stream == stream());
    CHECK(played.values == std::vector<double>{'a', 2.5, 7, 11});
    CHECK(mpix::launch_cooperative(without_arguments, 1, 1, 0, stream()).ok());
}

TEST_CASE("a grid that does not fit is not launched") {
    played = {};
    const mpix::launch_status launch = mpix::launch_cooperative(without_arguments, dim3(41), dim3(256), 0, stream());
    CHECK(launch.error == cudaErrorCooperativeLaunchTooLarge);
    CHECK(launch.message ==
          "the grid has 41 blocks of 256 threads, of which 40 fit on device 3 at the same time: 4 on each of 10 "
          "multiprocessors, limited by the 64 registers of each thread");
    CHECK(played.launches == 0);
    // More blocks than 32 bits can count.
    CHECK(mpix::launch_cooperative(without_arguments, dim3(1u << 31, 2), dim3(1), 0, stream()).error ==
          cudaErrorCooperativeLaunchTooLarge);
    // A block that is too large by itself; the runtime is not asked.
    const int asked = played.occupancies;
    const mpix::launch_status block = mpix::launch_cooperative(without_arguments, dim3(1), dim3(513), 0, stream());
    CHECK(block.error == cudaErrorCooperativeLaunchTooLarge);
    CHECK(block.message.find("has at most 512 threads") != std::string::npos);
    CHECK(mpix::launch_cooperative(without_arguments, dim3(1), dim3(1), 49153, stream()).error ==
          cudaErrorCooperativeLaunchTooLarge);
    CHECK(played.occupancies == asked);
    CHECK(played.launches == 0);
}

TEST_CASE("errors of the runtime") {
    played = {};
    played.cooperative = false;
    mpix::launch_status launch = mpix::launch_cooperative(without_arguments, dim3(2), dim3(32), 0, stream());
    CHECK(launch.error == cudaErrorNotSupported);
    CHECK(launch.message == "the cooperative launch of 2 blocks of 32 threads: operation not supported");
    CHECK(played.launches == 0);
    played = {};
    played.on_launch = cudaErrorInvalidValue;
    launch = mpix::launch_cooperative(without_arguments, dim3(2), dim3(32), 0, stream());
    CHECK(launch.error == cudaErrorInvalidValue);
    CHECK(launch.message == "the cooperative launch of 2 blocks of 32 threads: some error");
    CHECK(played.errors_taken == 1);
    played = {};
    played.on_attributes = cudaErrorInvalidDeviceFunction;
    MPIX_Occupancy o{};
    CHECK(mpix::get_occupancy(kernel, 32, 0, &o) == cudaErrorInvalidDeviceFunction);
    CHECK(mpix::launch_cooperative(without_arguments, dim3(2), dim3(32), 0, stream()).error ==
          cudaErrorInvalidDeviceFunction);
    CHECK(played.launches == 0);
}

TEST_CASE("how many blocks fit") {
    played = {};
    MPIX_Occupancy o{};
    REQUIRE(mpix::get_occupancy(kernel, 256, 0, &o) == cudaSuccess);
    CHECK((o.blocks == 40 && o.blocks_per_multiprocessor == 4 && o.multiprocessors == 10));
    CHECK(o.limit == MPIX_LIMIT_REGISTERS);
    // The C form, without a sentence, and compiled as C.
    CHECK(MPIX_Launch_cooperative(reinterpret_cast<const void *>(without_arguments), 41, 256, nullptr, 0, stream(),
                                  nullptr, 0) == cudaErrorCooperativeLaunchTooLarge);
    char message[300];
    CHECK(launch_in_c(reinterpret_cast<const void *>(without_arguments), 41, message, sizeof message) ==
          cudaErrorCooperativeLaunchTooLarge);
    CHECK(std::string(message).find("of which 40 fit on device 3") != std::string::npos);
    CHECK(launch_in_c(reinterpret_cast<const void *>(without_arguments), 40, message, sizeof message) == cudaSuccess);
    CHECK(std::string(message).empty());
}
