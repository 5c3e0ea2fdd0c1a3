// SPDX-License-Identifier: BSD-3-Clause
//
// GPU memory that other processes of the node cannot map: a receive into it is refused in the init call, by a sentence
// that names the kind of memory; a send from it works, as from cudaMalloc.
#include <mpix/mpix.h>

#include <cstring>
#include <vector>

#include "tests/gpu_program.hpp"

namespace {

constexpr int partitions = 4;
constexpr std::size_t bytes = std::size_t{1} << 16;
int rank = -1;

enum kind { plain, pool, managed };
constexpr const char *names[] = {"cudaMalloc", "cudaMallocAsync", "cudaMallocManaged"};

void *allocate(kind k) {
    void *memory = nullptr;
    if (k == plain) require(cudaMalloc(&memory, bytes) == cudaSuccess, names[k], "no memory");
    if (k == pool) {
        require(cudaMallocAsync(&memory, bytes, cudaStreamPerThread) == cudaSuccess, names[k], "no memory");
        require(cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess, names[k], "no memory");
    }
    if (k == managed) require(cudaMallocManaged(&memory, bytes) == cudaSuccess, names[k], "no memory");
    return memory;
}

bool there_is(kind k) {
    int device = 0, has = 1;
    cudaGetDevice(&device);
    if (k == pool) cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, device);
    if (k == managed) cudaDeviceGetAttribute(&has, cudaDevAttrManagedMemory, device);
    return has != 0;
}

void refuse_receive(kind k) {
    void *const buffer = allocate(k);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Precv_init(buffer, partitions, bytes / partitions, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD,
                                    MPI_INFO_NULL, &request);
    char text[MPI_MAX_ERROR_STRING] = "";
    int error_class = MPI_SUCCESS, length = 0;
    MPI_Error_class(code, &error_class);
    MPI_Error_string(code, text, &length);
    require(error_class == MPI_ERR_BUFFER, names[k], text);
    require(std::strstr(text, names[k]) != nullptr && std::strstr(text, "use memory from cudaMalloc") != nullptr,
            names[k], text);
    cudaFree(buffer);
}

void send_from(kind k) {
    void *const from = allocate(k), *const to = allocate(plain);
    std::vector<unsigned char> bytes_here(bytes);
    MPI_Request both[2];
    MPI_Psend_init(from, partitions, bytes / partitions, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &both[0]);
    MPI_Precv_init(to, partitions, bytes / partitions, MPI_BYTE, 1 - rank, k, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    for (int epoch = 1; epoch <= 3; ++epoch) {
        const auto value = [&](int of, std::size_t at) {
            return static_cast<unsigned char>(at * 7 + static_cast<std::size_t>(epoch * 31 + of * 5 + k));
        };
        for (std::size_t at = 0; at < bytes; ++at) bytes_here[at] = value(rank, at);
        cudaMemcpy(from, bytes_here.data(), bytes, cudaMemcpyDefault);
        cudaMemset(to, 0x5a, bytes);
        cudaDeviceSynchronize();
        require(MPI_Startall(2, both) == MPI_SUCCESS, names[k], "MPI_Startall");
        require(MPI_Pready_range(0, partitions - 1, both[0]) == MPI_SUCCESS, names[k], "MPI_Pready_range");
        require(MPI_Waitall(2, both, MPI_STATUSES_IGNORE) == MPI_SUCCESS, names[k], "MPI_Waitall");
        cudaMemcpy(bytes_here.data(), to, bytes, cudaMemcpyDefault);
        bool right = true;
        for (std::size_t at = 0; at < bytes; ++at) right = right && bytes_here[at] == value(1 - rank, at);
        require(right, names[k], "wrong bytes");
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
    cudaFree(from);
    cudaFree(to);
}

}  // namespace

int main(int argc, char **argv) {
    const int devices = demand_gpus();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    cudaSetDevice(rank % devices);
    for (const kind k : {plain, pool, managed}) {
        if (!there_is(k)) continue;
        send_from(k);
        if (k != plain) refuse_receive(k);
    }
    MPI_Finalize();
    return 0;
}
