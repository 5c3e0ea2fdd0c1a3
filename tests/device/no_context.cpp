// SPDX-License-Identifier: BSD-3-Clause
//
// A program that leaves the GPUs alone has no context on any of them: packing and partitioned messages of host memory
// make none.
#include <mpix/detail/cuda_host.h>
#include <mpix/mpix.h>

#include <vector>

#include "tests/gpu_program.hpp"

namespace {

int contexts(int devices) {
    int sum = 0;
    for (int d = 0; d < devices; ++d) sum += mpix::detail::has_context(d);
    return sum;
}

}  // namespace

int main(int argc, char **argv) {
    const int devices = demand_gpus();
    MPI_Init(&argc, &argv);
    std::vector<int> from(64), to(64), packed(32);
    for (int i = 0; i < 64; ++i) from[static_cast<std::size_t>(i)] = i;
    MPI_Datatype every_other;
    MPI_Type_vector(32, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    int position = 0;
    MPI_Pack(from.data(), 1, every_other, packed.data(), 128, &position, MPI_COMM_WORLD);
    require(position == 128 && packed[31] == 62, "the packed bytes");
    MPI_Request requests[2];
    MPI_Psend_init(from.data(), 4, 16, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(to.data(), 4, 16, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Pready_range(0, 3, requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    require(to == from, "the message");
    require(contexts(devices) == 0, "no context on any GPU");
    // And that the question can be answered with yes.
    void *memory = nullptr;
    require(cudaMalloc(&memory, 256) == cudaSuccess, "cudaMalloc");
    require(contexts(devices) == 1, "one context after cudaMalloc");
    position = 0;
    MPI_Pack(from.data(), 1, every_other, memory, 128, &position, MPI_COMM_WORLD);
    require(cudaMemcpy(packed.data(), memory, 128, cudaMemcpyDeviceToHost) == cudaSuccess && packed[30] == 60,
            "packed bytes on the GPU");
    for (MPI_Request &r : requests) MPI_Request_free(&r);
    MPI_Type_free(&every_other);
    MPI_Finalize();
    std::puts("passed");
    return 0;
}
