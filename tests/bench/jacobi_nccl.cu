// SPDX-License-Identifier: BSD-3-Clause
//
// The periodic 7-point stencil of examples/jacobi3d as programs with NCCL do it: one rank for each GPU, the grid cut along
// z. In an iteration a kernel computes the two planes at the ends, NCCL sends them to the ranks below and above, and
// beside that another kernel computes the planes between. Iterations are captured in a CUDA graph, which is launched
// again and again. It is what jacobi3d is compared with on several GPUs; one rank sends to itself.
//
// At the smallest size the field is compared with what the host computes, bit for bit.
#include <mpi.h>
#include <nccl.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/jacobi_cells.hpp"
#include "tests/bench/machine.hpp"
#include "tests/bench/median.hpp"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

constexpr int iterations_of_graph = 20;  // an even number: the fields change places

struct options {
    std::vector<int> sizes = {64, 128, 256, 512};
    int iterations = 0, rounds = 5;
    bool each = false;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line(
        "mpirun -n RANKS ",
        "[--sizes N,...] [--each] [--iterations N] [--rounds N] [--csv FILE]\n"
        "Grids of NxNxN cells, N from 8 to 1024 and at least four times the ranks, or with --each as many for\n"
        "each rank, one above the other. --iterations: of each round (default: 1000, and 200 from 512 on).\n"
        "--csv -: CSV instead of text on the standard output.");
    line.list("sizes", o.sizes);
    line.with("each", o.each);
    line.value("iterations", o.iterations);
    line.value("rounds", o.rounds);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        return o.iterations >= 0 && o.rounds >= 1 &&
               std::all_of(o.sizes.begin(), o.sizes.end(), [](int n) { return n >= 8 && n <= 1024; });
    });
}

void checked(ncclResult_t result, const char *call) {
    if (result == ncclSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, ncclGetErrorString(result));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Planes `first`, first + step, ... of the part, as many as the grid has along z; planes 0 and nz + 1 are ghosts.
__global__ void relax_planes(const float *from, float *to, int n, int first, int step) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    if (x >= n || y >= n) return;
    const int64_t plane = int64_t{n} * n;
    const int last = n - 1;
    const int64_t at = (first + static_cast<int>(blockIdx.z) * step) * plane + int64_t{y} * n + x;
    const float *const u = from + at;
    to[at] = relax(u[0], u[x > 0 ? -1 : last], u[x < last ? 1 : -last], u[y > 0 ? -n : last * n],
                   u[y < last ? n : -last * n], u[-plane], u[plane]);
}

// A rank's planes, in both fields.
class slab {
public:
    slab(int n, int nz, int rank, int ranks, ncclComm_t comm)
        : n_(n), nz_(nz), below_((rank + ranks - 1) % ranks), above_((rank + 1) % ranks), comm_(comm) {
        for (float *&field : fields_) check(cudaMalloc(&field, bytes(nz + 2)), "cudaMalloc");
        // The planes at the ends, and what is sent of them, come before those between.
        int least = 0, greatest = 0;
        check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
        check(cudaStreamCreateWithPriority(&ends_, cudaStreamNonBlocking, greatest), "cudaStreamCreateWithPriority");
        check(cudaStreamCreateWithPriority(&between_, cudaStreamNonBlocking, least), "cudaStreamCreateWithPriority");
        for (cudaEvent_t &e : events_) check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreate");
        for (cudaEvent_t &e : clock_) check(cudaEventCreate(&e), "cudaEventCreate");
        capture();
    }
    ~slab() {
        check(cudaGraphExecDestroy(graph_), "cudaGraphExecDestroy");
        for (cudaEvent_t e : events_) check(cudaEventDestroy(e), "cudaEventDestroy");
        for (cudaEvent_t e : clock_) check(cudaEventDestroy(e), "cudaEventDestroy");
        for (cudaStream_t s : {ends_, between_}) check(cudaStreamDestroy(s), "cudaStreamDestroy");
        for (float *field : fields_) check(cudaFree(field), "cudaFree");
    }
    slab(const slab &) = delete;
    slab &operator=(const slab &) = delete;

    // `cells`: of the whole grid, of which this is part `rank` of `ranks`.
    void load(const std::vector<float> &cells, int rank, int ranks) {
        const int planes = nz_ * ranks;
        for (int z = -1; z <= nz_; ++z)
            check(cudaMemcpy(fields_[0] + (z + 1) * plane(),
                             cells.data() + (rank * nz_ + z + planes) % planes * plane(), bytes(1), cudaMemcpyDefault),
                  "cudaMemcpy");
    }
    std::vector<float> cells() const {
        std::vector<float> result(static_cast<std::size_t>(plane() * nz_));
        check(cudaMemcpy(result.data(), fields_[0] + plane(), bytes(nz_), cudaMemcpyDefault), "cudaMemcpy");
        return result;
    }
    // Microseconds an iteration.
    double run(int graphs) {
        check(cudaEventRecord(clock_[0], ends_), "cudaEventRecord");
        for (int i = 0; i < graphs; ++i) check(cudaGraphLaunch(graph_, ends_), "cudaGraphLaunch");
        check(cudaEventRecord(clock_[1], ends_), "cudaEventRecord");
        check(cudaStreamSynchronize(ends_), "cudaStreamSynchronize");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, clock_[0], clock_[1]), "cudaEventElapsedTime");
        return 1e3 * static_cast<double>(ms) / (graphs * iterations_of_graph);
    }

private:
    int64_t plane() const { return int64_t{n_} * n_; }
    std::size_t bytes(int planes) const { return static_cast<std::size_t>(planes * plane()) * sizeof(float); }

    void iterate(const float *from, float *to) {
        const dim3 block(32, 8), over((static_cast<unsigned>(n_) + 31) / 32, (static_cast<unsigned>(n_) + 7) / 8, 1);
        const auto cells = static_cast<std::size_t>(plane());
        check(cudaEventRecord(events_[0], ends_), "cudaEventRecord");
        check(cudaStreamWaitEvent(between_, events_[0], 0), "cudaStreamWaitEvent");
        relax_planes<<<dim3(over.x, over.y, 2), block, 0, ends_>>>(from, to, n_, 1, nz_ - 1);
        checked(ncclGroupStart(), "ncclGroupStart");
        checked(ncclSend(to + plane(), cells, ncclFloat, below_, comm_, ends_), "ncclSend");
        checked(ncclRecv(to + (nz_ + 1) * plane(), cells, ncclFloat, above_, comm_, ends_), "ncclRecv");
        checked(ncclSend(to + nz_ * plane(), cells, ncclFloat, above_, comm_, ends_), "ncclSend");
        checked(ncclRecv(to, cells, ncclFloat, below_, comm_, ends_), "ncclRecv");
        checked(ncclGroupEnd(), "ncclGroupEnd");
        relax_planes<<<dim3(over.x, over.y, static_cast<unsigned>(nz_ - 2)), block, 0, between_>>>(from, to, n_, 2, 1);
        check(cudaEventRecord(events_[1], between_), "cudaEventRecord");
        check(cudaStreamWaitEvent(ends_, events_[1], 0), "cudaStreamWaitEvent");
    }
    void capture() {
        cudaGraph_t graph = nullptr;
        check(cudaStreamBeginCapture(ends_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        for (int i = 0; i < iterations_of_graph; ++i) iterate(fields_[i % 2], fields_[(i + 1) % 2]);
        check(cudaStreamEndCapture(ends_, &graph), "cudaStreamEndCapture");
        check(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
        check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    }

    int n_, nz_, below_, above_;
    ncclComm_t comm_;
    float *fields_[2] = {};
    cudaStream_t ends_ = nullptr, between_ = nullptr;
    cudaEvent_t events_[2] = {}, clock_[2] = {};
    cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, o)) return 2;
    if (without_gpu()) return 77;
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1, devices = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (ranks > devices) {
        if (rank == 0) std::printf("skipped: %d ranks, %d GPUs\n", ranks, devices);
        MPI_Finalize();
        return 77;
    }
    check(cudaSetDevice(rank), "cudaSetDevice");
    setenv("NCCL_NVLS_ENABLE", "0", 1);  // no multicast
    ncclUniqueId id;
    if (rank == 0) checked(ncclGetUniqueId(&id), "ncclGetUniqueId");
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    ncclComm_t comm = nullptr;
    checked(ncclCommInitRank(&comm, ranks, id, rank), "ncclCommInitRank");
    int wrong = 0;
    {
        std::optional<table> t;
        if (rank == 0)
            t.emplace("7-point stencil, periodic, kernels and NCCL in a CUDA graph (us an iteration)", o.csv,
                      std::vector<column>{"cells", "planes", "gpus", "us", "nccl"}, machine_names, machine_columns(0));
        int version = 0;
        checked(ncclGetVersion(&version), "ncclGetVersion");
        const int least = *std::min_element(o.sizes.begin(), o.sizes.end());
        for (const int n : o.sizes) {
            const int each = o.each ? n : n / ranks, planes = each * ranks;
            if (each < 4 || (!o.each && n % ranks != 0)) {
                std::fprintf(stderr, "--sizes: %d planes cannot be cut into %d parts of 4 planes or more\n", n, ranks);
                MPI_Abort(MPI_COMM_WORLD, 2);
            }
            slab s(n, each, rank, ranks, comm);
            const std::vector<float> first = initial_cells(n, planes);
            s.load(first, rank, ranks);
            MPI_Barrier(MPI_COMM_WORLD);
            s.run(1);
            if (n == least) {
                const std::vector<float> right = computed_by_host(n, planes, true, first, iterations_of_graph);
                const std::vector<float> found = s.cells();
                const int differs =
                    std::memcmp(found.data(), right.data() + static_cast<std::size_t>(rank) * found.size(),
                                found.size() * sizeof(float)) != 0;
                MPI_Allreduce(&differs, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
                if (wrong != 0 && rank == 0) std::fprintf(stderr, "%d cells along each axis: the result is wrong\n", n);
            }
            const int iterations = o.iterations != 0 ? o.iterations : n >= 512 ? 200 : 1000;
            std::vector<double> all;
            for (int r = 0; r < o.rounds; ++r) {
                MPI_Barrier(MPI_COMM_WORLD);
                const double us = s.run((iterations + iterations_of_graph - 1) / iterations_of_graph);
                double slowest = 0;
                MPI_Allreduce(&us, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
                all.push_back(slowest);
            }
            if (t)
                t->row({cell(n), cell(planes), cell(ranks), cell(median(all), 2),
                        std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100)});
        }
    }
    checked(ncclCommDestroy(comm), "ncclCommDestroy");
    MPI_Finalize();
    return wrong;
}
