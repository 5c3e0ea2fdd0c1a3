// SPDX-License-Identifier: BSD-3-Clause
//
// The 7-point stencil of examples/jacobi3d by hand, without MPI and mpix: one process, a kernel on each GPU that runs
// all iterations. It is what `jacobi3d --persistent` is compared with.
//
// The grid is cut along z. Where two parts touch, a block computes a tile of the plane, stores it in the other GPU's
// ghost plane as well, and sets the tile's flag there; then the blocks share out the rest, and meet. The cells at the
// grid's ends keep their values, or the grid is periodic along all axes. Of several shapes of blocks the fastest one is
// printed. At the smallest size the whole field is compared with what the host computes, bit for bit.
#include <cooperative_groups.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/command_line.hpp"
#include "tests/bench/jacobi_cells.hpp"
#include "tests/bench/machine.hpp"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

constexpr int lanes = 32;  // threads of a block along x; the others stand along y
constexpr int most_rows = 16;

struct options {
    std::vector<int> sizes = {64, 128, 256, 512}, gpus = {1, 2};
    int iterations = 0;
    bool periodic = false, each = false;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line(
        "",
        "[--sizes N,...] [--gpus N,...] [--periodic] [--each] [--iterations N] [--csv FILE]\n"
        "Grids of NxNxN cells, N from 8 to 1024; on 1 to 8 GPUs, a divisor of N. --periodic: along all axes.\n"
        "--each: NxNxN cells for each GPU, one above the other. --iterations: of each launch (default: 1000, and\n"
        "200 from 512 on). --csv -: CSV instead of text on the standard output.");
    line.list("sizes", o.sizes);
    line.list("gpus", o.gpus);
    line.with("periodic", o.periodic);
    line.with("each", o.each);
    line.value("iterations", o.iterations);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        const auto divides_all = [&o](int g) {
            return g >= 1 && g <= 8 && std::all_of(o.sizes.begin(), o.sizes.end(), [&](int n) {
                       return o.each || (n % g == 0 && n / g > 1);
                   });
        };
        return std::all_of(o.sizes.begin(), o.sizes.end(), [](int n) { return n >= 8 && n <= 1024; }) &&
               std::all_of(o.gpus.begin(), o.gpus.end(), divides_all) && o.iterations >= 0;
    });
}

// ---- kernel --------------------------------------------------------------------------------------------------------

// Where two parts of the grid touch.
struct border {
    float *ghosts[2];      // the other part's plane beyond its end, in either field; null: the grid ends here
    unsigned *flags;       // there, one for each tile
    const unsigned *mine;  // here, set by the other part: the iterations of which the ghost cells have come
};

// Planes 1 to nz are this part's; 0 and nz + 1 are ghosts.
struct part {
    float *fields[2];
    int n, nz;
    border sides[2];  // below, above
};

// A column of a part, and how far away its neighbours' cells are; at the ends of a periodic grid at the other end.
struct column_at {
    int64_t offset;  // of the cell at plane 0; -1: no column, or one that keeps its values
    int west, east, south, north;
};

// Planes z0 to z1 - 1 of one column. The loads of `Batch` cells are under way together.
template <int Batch>
__device__ void march(const part &p, const float *from, float *to, const column_at &column, int z0, int z1) {
    const int64_t plane = int64_t{p.n} * p.n;
    const float *u = from + z0 * plane + column.offset;
    float *v = to + z0 * plane + column.offset;
    float below = u[-plane], here = u[0];
    int z = z0;
    for (; z + Batch <= z1; z += Batch, u += Batch * plane, v += Batch * plane) {
        float west[Batch], east[Batch], south[Batch], north[Batch], above[Batch];
#pragma unroll
        for (int k = 0; k < Batch; ++k) {
            const float *const w = u + k * plane;
            west[k] = w[column.west], east[k] = w[column.east], south[k] = w[column.south];
            north[k] = w[column.north], above[k] = w[plane];
        }
#pragma unroll
        for (int k = 0; k < Batch; ++k) {
            v[k * plane] = relax(here, west[k], east[k], south[k], north[k], below, above[k]);
            below = here;
            here = above[k];
        }
    }
    if constexpr (Batch > 1)
        if (z < z1) march<1>(p, from, to, column, z, z1);
}

// The thread's column of a tile.
template <bool Periodic>
__device__ column_at column_of(const part &p, int tile, int along_x, int rows) {
    const int x = tile % along_x * lanes + static_cast<int>(threadIdx.x) % lanes;
    const int y = tile / along_x * rows + static_cast<int>(threadIdx.x) / lanes;
    const int last = p.n - 1, around = last * p.n;
    if constexpr (Periodic)
        return {x <= last && y <= last ? int64_t{y} * p.n + x : -1, x > 0 ? -1 : last, x < last ? 1 : -last,
                y > 0 ? -p.n : around, y < last ? p.n : -around};
    return {x > 0 && x < last && y > 0 && y < last ? int64_t{y} * p.n + x : -1, -1, 1, -p.n, p.n};
}

// Four cells at once take 64 registers, one takes 32, so that twice as many threads have room.
template <bool Periodic, int Batch>
__global__ void __launch_bounds__(lanes *most_rows, Batch > 1 ? 2 : 4)
    iterate(const __grid_constant__ part p, int iterations, int depth) {
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const int rows = static_cast<int>(blockDim.x) / lanes, blocks = static_cast<int>(gridDim.x);
    const int along_x = (p.n + lanes - 1) / lanes, tiles = along_x * ((p.n + rows - 1) / rows);
    const int64_t plane = int64_t{p.n} * p.n;
    // What is left when the planes at borders are done, and those at a grid's ends are left as they are.
    const int z0 = 2, z1 = p.nz, layers = (z1 - z0 + depth - 1) / depth;
    for (int t = 0; t < iterations; ++t) {
        const float *const from = p.fields[t % 2];
        float *const to = p.fields[(t + 1) % 2];
        for (int i = static_cast<int>(blockIdx.x); i < 2 * tiles; i += blocks) {
            const border &side = p.sides[i / tiles];
            if (side.ghosts[0] == nullptr) continue;
            const int tile = i % tiles, z = i < tiles ? 1 : p.nz;
            if (threadIdx.x == 0) {
                unsigned seen;
                do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(side.mine + tile) : "memory");
                while (seen < static_cast<unsigned>(t));
            }
            __syncthreads();
            if (const column_at column = column_of<Periodic>(p, tile, along_x, rows); column.offset >= 0) {
                march<1>(p, from, to, column, z, z + 1);
                side.ghosts[(t + 1) % 2][column.offset] = to[z * plane + column.offset];
            }
            __syncthreads();
            if (threadIdx.x == 0)
                asm volatile("fence.acq_rel.sys; st.relaxed.sys.global.u32 [%0], %1;" ::"l"(side.flags + tile),
                             "r"(t + 1)
                             : "memory");
        }
        for (int i = static_cast<int>(blockIdx.x); i < tiles * layers; i += blocks) {
            const int first = z0 + i / tiles * depth;
            if (const column_at column = column_of<Periodic>(p, i % tiles, along_x, rows); column.offset >= 0)
                march<Batch>(p, from, to, column, first, min(first + depth, z1));
        }
        grid.sync();
    }
}

// ---- the parts -----------------------------------------------------------------------------------------------------

struct shape {
    int rows, depth, per_multiprocessor, batch;
    bool periodic;

    auto kernel() const {
        if (periodic) return batch > 1 ? iterate<true, 4> : iterate<true, 1>;
        return batch > 1 ? iterate<false, 4> : iterate<false, 1>;
    }
    // How many blocks a multiprocessor holds.
    int most_blocks() const {
        int blocks = 0;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel(), rows * lanes, 0),
              "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        return blocks;
    }
};

// Those that are tried on parts of so many planes.
std::vector<shape> shapes(int planes, bool periodic) {
    std::vector<shape> all;
    for (const int batch : {1, 4})
        for (const int rows : {4, 8, most_rows})
            for (const int depth : {1, 4, 8, 16, 32, 64, 128})
                for (const int blocks : {1, 2, 4, 8, 16}) {
                    const shape s{rows, depth, blocks, batch, periodic};
                    if (depth <= planes && depth % batch == 0 && blocks <= s.most_blocks()) all.push_back(s);
                }
    return all;
}

class parts {
public:
    parts(int n, int nz, int gpus, bool periodic) : n_(n), nz_(nz), periodic_(periodic) {
        const int most_tiles = ((n + lanes - 1) / lanes) * n;
        for (int g = 0; g < gpus; ++g) {
            check(cudaSetDevice(g), "cudaSetDevice");
            for (const int other : {neighbour(g, 0, gpus), neighbour(g, 1, gpus)}) {
                if (other < 0 || other == g) continue;
                const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
                if (error != cudaErrorPeerAccessAlreadyEnabled) check(error, "cudaDeviceEnablePeerAccess");
                (void)cudaGetLastError();
            }
            one o{};
            check(cudaStreamCreateWithFlags(&o.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
            for (float *&field : o.p.fields) check(cudaMalloc(&field, bytes(nz_ + 2)), "cudaMalloc");
            flag_bytes_ = static_cast<std::size_t>(most_tiles) * sizeof(unsigned);
            for (unsigned *&flags : o.flags) check(cudaMalloc(&flags, flag_bytes_), "cudaMalloc");
            o.p.n = n;
            o.p.nz = nz_;
            // Loaded now: while a kernel waits for another GPU's, that one could not be.
            cudaFuncAttributes attributes;
            for (const int batch : {1, 4})
                check(cudaFuncGetAttributes(&attributes, shape{0, 0, 0, batch, periodic}.kernel()),
                      "cudaFuncGetAttributes");
            all_.push_back(o);
        }
        for (int g = 0; g < gpus; ++g)
            for (int side = 0; side < 2; ++side) {
                const int there = neighbour(g, side, gpus);
                if (there < 0) continue;
                one &o = all_[static_cast<std::size_t>(g)];
                const one &other = all_[static_cast<std::size_t>(there)];
                for (int f = 0; f < 2; ++f)
                    o.p.sides[side].ghosts[f] = other.p.fields[f] + (side == 1 ? 0 : plane() * (nz_ + 1));
                o.p.sides[side].flags = other.flags[1 - side];
                o.p.sides[side].mine = o.flags[side];
            }
    }
    ~parts() {
        for (std::size_t g = 0; g < all_.size(); ++g) {
            check(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
            for (float *field : all_[g].p.fields) check(cudaFree(field), "cudaFree");
            for (unsigned *flags : all_[g].flags) check(cudaFree(flags), "cudaFree");
            check(cudaStreamDestroy(all_[g].stream), "cudaStreamDestroy");
        }
    }
    parts(const parts &) = delete;
    parts &operator=(const parts &) = delete;

    void load(const std::vector<float> &cells) {
        const int planes = nz_ * static_cast<int>(all_.size());
        for (std::size_t g = 0; g < all_.size(); ++g)
            for (float *field : all_[g].p.fields)
                for (int z = -1; z <= nz_; ++z) {  // with the planes beyond; those beyond the grid nobody reads
                    const int from = (static_cast<int>(g) * nz_ + z + planes) % planes;
                    check(cudaMemcpy(field + (z + 1) * plane(), cells.data() + from * plane(), bytes(1),
                                     cudaMemcpyDefault),
                          "cudaMemcpy");
                }
    }
    std::vector<float> cells(int iterations) const {
        std::vector<float> result(static_cast<std::size_t>(plane() * nz_) * all_.size());
        for (std::size_t g = 0; g < all_.size(); ++g)
            check(cudaMemcpy(result.data() + static_cast<int>(g) * nz_ * plane(),
                             all_[g].p.fields[iterations % 2] + plane(), bytes(nz_), cudaMemcpyDefault),
                  "cudaMemcpy");
        return result;
    }

    // Microseconds an iteration, with the launch.
    double run(const shape &s, int iterations) {
        for (std::size_t g = 0; g < all_.size(); ++g) {
            check(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");  // others may not reach its memory
            for (unsigned *flags : all_[g].flags) check(cudaMemset(flags, 0, flag_bytes_), "cudaMemset");
        }
        synchronize();
        const auto begin = std::chrono::steady_clock::now();
        for (std::size_t g = 0; g < all_.size(); ++g) {
            check(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
            int multiprocessors = 0;
            check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, static_cast<int>(g)),
                  "cudaDeviceGetAttribute");
            int depth = s.depth;
            void *arguments[] = {&all_[g].p, &iterations, &depth};
            check(cudaLaunchCooperativeKernel(
                      s.kernel(), dim3(static_cast<unsigned>(s.per_multiprocessor * multiprocessors)),
                      dim3(static_cast<unsigned>(s.rows * lanes)), arguments, 0, all_[g].stream),
                  "cudaLaunchCooperativeKernel");
        }
        synchronize();
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        return took.count() / iterations;
    }

private:
    struct one {
        part p;
        unsigned *flags[2];
        cudaStream_t stream;
    };

    // The part below or above; -1: none.
    int neighbour(int part, int side, int all) const {
        const int other = part + (side == 1 ? 1 : -1);
        return periodic_ ? (other + all) % all : other < all ? other : -1;
    }
    int64_t plane() const { return int64_t{n_} * n_; }
    std::size_t bytes(int planes) const { return static_cast<std::size_t>(planes * plane()) * sizeof(float); }
    void synchronize() {
        for (std::size_t g = 0; g < all_.size(); ++g) {
            check(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
            check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        }
    }

    int n_, nz_;
    bool periodic_;
    std::size_t flag_bytes_ = 0;
    std::vector<one> all_;
};

// ---- checking ------------------------------------------------------------------------------------------------------

bool result_is_right(parts &p, int n, int planes, const shape &s) {
    constexpr int iterations = 21;
    const std::vector<float> first = initial_cells(n, planes);
    p.load(first);
    p.run(s, iterations);
    return std::memcmp(p.cells(iterations).data(), computed_by_host(n, planes, s.periodic, first, iterations).data(),
                       first.size() * sizeof(float)) == 0;
}

// How many GPUs, from the first on, can all store to each other.
int gpus_together() {
    int devices = 0;
    check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    for (int g = 1; g < devices; ++g)
        for (int other = 0; other < g; ++other) {
            int can = 0;
            check(cudaDeviceCanAccessPeer(&can, g, other), "cudaDeviceCanAccessPeer");
            if (can == 0) return g;
        }
    return devices;
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, o)) return 2;
    if (without_gpu()) return 77;
    MPI_Init(&argc, &argv);
    const int together = gpus_together();
    bool right = true;
    {
        table t("7-point stencil by hand, all iterations in one kernel (us an iteration)", o.csv,
                std::vector<column>{"cells", "planes", "periodic", "gpus", "us", "rows", "depth", "batch", "blocks"},
                machine_names, machine_columns(0));
        const int least = *std::min_element(o.sizes.begin(), o.sizes.end());
        for (const int n : o.sizes)
            for (const int gpus : o.gpus) {
                const int each = o.each ? n : n / gpus, planes = each * gpus;
                std::vector<std::string> row = {cell(n), cell(planes), o.periodic ? "yes" : "no", cell(gpus)};
                if (gpus > together) {
                    row.insert(row.end(), {absent, unmeasured, unmeasured, unmeasured, unmeasured});
                    t.row(row);
                    continue;
                }
                parts p(n, each, gpus, o.periodic);
                p.load(initial_cells(n, planes));
                const int iterations = o.iterations != 0 ? o.iterations : n >= 512 ? 200 : 1000;
                double best_us = 0;
                shape best{};
                for (const shape &s : shapes(each, o.periodic)) {
                    p.run(s, 10);
                    const double us = p.run(s, iterations);
                    if (best_us != 0 && us >= best_us) continue;
                    best_us = us;
                    best = s;
                }
                row.insert(row.end(), {cell(best_us, 2), cell(best.rows), cell(best.depth), cell(best.batch),
                                       cell(best.per_multiprocessor)});
                t.row(row);
                if (n == least && !result_is_right(p, n, planes, best)) {
                    std::fprintf(stderr, "%d cells along each axis, %d GPUs: the result is wrong\n", n, gpus);
                    right = false;
                }
            }
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
