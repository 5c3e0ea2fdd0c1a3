// SPDX-License-Identifier: BSD-3-Clause
//
// The 7-point stencil of examples/jacobi3d by hand, without MPI and mpix: one process, one GPU or two, a kernel on each
// that runs all iterations. It is what `jacobi3d --persistent` is compared with.
//
// The grid is cut along z. Where the two parts touch, a block computes a tile of the plane, stores it in the other GPU's
// ghost plane as well, and sets the tile's flag there; then the blocks share out the rest, and meet. The cells at the
// grid's ends keep their values. Of several shapes of blocks the fastest one is printed. At the smallest size the whole
// field is compared with what the host computes, bit for bit.
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
#include "tests/bench/machine.hpp"
#include "tests/bench/table.hpp"

using namespace bench;

namespace {

constexpr int lanes = 32;  // threads of a block along x; the others stand along y
constexpr int most_rows = 16;
constexpr float rate = 0.125f;

struct options {
    std::vector<int> sizes = {64, 128, 256, 512}, gpus = {1, 2};
    int iterations = 0;
    const char *csv = nullptr;
};

bool parse(int argc, char **argv, options &o) {
    command_line line(
        "",
        "[--sizes N,...] [--gpus N,...] [--iterations N] [--csv FILE]\n"
        "Grids of NxNxN cells, N even and from 8 to 1024; on 1 GPU, 2, or both in turn. --iterations: of each\n"
        "launch (default: 1000, and 200 from 512 on). --csv -: CSV instead of text on the standard output.");
    line.list("sizes", o.sizes);
    line.list("gpus", o.gpus);
    line.value("iterations", o.iterations);
    line.value("csv", o.csv);
    return line.read(argc, argv, [&o] {
        return std::all_of(o.sizes.begin(), o.sizes.end(), [](int n) { return n >= 8 && n <= 1024 && n % 2 == 0; }) &&
               std::all_of(o.gpus.begin(), o.gpus.end(), [](int n) { return n == 1 || n == 2; }) && o.iterations >= 0;
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

// Without fused multiply-adds, as the host computes it.
__device__ float relax(float here, float a, float b, float c, float d, float e, float f) {
    const float around = __fadd_rn(__fadd_rn(__fadd_rn(a, b), __fadd_rn(c, d)), __fadd_rn(e, f));
    return __fadd_rn(here, __fmul_rn(rate, __fadd_rn(around, -__fmul_rn(6.0f, here))));
}

// Planes z0 to z1 - 1 of one column. The loads of `Batch` cells are under way together.
template <int Batch>
__device__ void march(const part &p, const float *from, float *to, int64_t column, int z0, int z1) {
    const int64_t plane = int64_t{p.n} * p.n;
    const float *u = from + z0 * plane + column;
    float *v = to + z0 * plane + column;
    float below = u[-plane], here = u[0];
    int z = z0;
    for (; z + Batch <= z1; z += Batch, u += Batch * plane, v += Batch * plane) {
        float west[Batch], east[Batch], south[Batch], north[Batch], above[Batch];
#pragma unroll
        for (int k = 0; k < Batch; ++k) {
            const float *const w = u + k * plane;
            west[k] = w[-1], east[k] = w[1], south[k] = w[-p.n], north[k] = w[p.n], above[k] = w[plane];
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

// The block's column of a tile; -1: none, or one that keeps its values.
__device__ int64_t column_of(const part &p, int tile, int along_x, int rows) {
    const int x = tile % along_x * lanes + static_cast<int>(threadIdx.x) % lanes;
    const int y = tile / along_x * rows + static_cast<int>(threadIdx.x) / lanes;
    return x > 0 && x < p.n - 1 && y > 0 && y < p.n - 1 ? int64_t{y} * p.n + x : -1;
}

// Four cells at once take 64 registers, one takes 32, so that twice as many threads have room.
template <int Batch>
__global__ void __launch_bounds__(lanes *most_rows, Batch > 1 ? 2 : 4)
    iterate(const __grid_constant__ part p, int iterations, int depth) {
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    const int rows = static_cast<int>(blockDim.x) / lanes, blocks = static_cast<int>(gridDim.x);
    const int along_x = (p.n + lanes - 1) / lanes, tiles = along_x * ((p.n + rows - 1) / rows);
    const int64_t plane = int64_t{p.n} * p.n;
    // What is left when the planes at borders are done, and those at the grid's ends are left as they are.
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
            if (const int64_t column = column_of(p, tile, along_x, rows); column >= 0) {
                march<1>(p, from, to, column, z, z + 1);
                side.ghosts[(t + 1) % 2][column] = to[z * plane + column];
            }
            __syncthreads();
            if (threadIdx.x == 0)
                asm volatile("fence.acq_rel.sys; st.relaxed.sys.global.u32 [%0], %1;" ::"l"(side.flags + tile),
                             "r"(t + 1)
                             : "memory");
        }
        for (int i = static_cast<int>(blockIdx.x); i < tiles * layers; i += blocks) {
            const int first = z0 + i / tiles * depth;
            if (const int64_t column = column_of(p, i % tiles, along_x, rows); column >= 0)
                march<Batch>(p, from, to, column, first, min(first + depth, z1));
        }
        grid.sync();
    }
}

// ---- the parts -----------------------------------------------------------------------------------------------------

struct shape {
    int rows, depth, per_multiprocessor, batch;

    auto kernel() const { return batch > 1 ? iterate<4> : iterate<1>; }
    // How many blocks a multiprocessor holds.
    int most_blocks() const {
        int blocks = 0;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel(), rows * lanes, 0),
              "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        return blocks;
    }
};

// Those that are tried on parts of so many planes.
std::vector<shape> shapes(int planes) {
    std::vector<shape> all;
    for (const int batch : {1, 4})
        for (const int rows : {4, 8, most_rows})
            for (const int depth : {1, 4, 8, 16, 32, 64, 128})
                for (const int blocks : {1, 2, 4, 8, 16}) {
                    const shape s{rows, depth, blocks, batch};
                    if (depth <= planes && depth % batch == 0 && blocks <= s.most_blocks()) all.push_back(s);
                }
    return all;
}

class parts {
public:
    parts(int n, int gpus) : n_(n), nz_(n / gpus) {
        const int most_tiles = ((n + lanes - 1) / lanes) * n;
        for (int g = 0; g < gpus; ++g) {
            check(cudaSetDevice(g), "cudaSetDevice");
            if (gpus > 1) {
                const cudaError_t error = cudaDeviceEnablePeerAccess(1 - g, 0);
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
            // Loaded now: while a kernel waits for the other GPU's, that one could not be.
            cudaFuncAttributes attributes;
            for (const auto kernel : {iterate<1>, iterate<4>})
                check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
            all_.push_back(o);
        }
        for (int side = 0; side < 2; ++side) {  // 1: the first part's upper one, 0: the second part's lower one
            if (gpus == 1) continue;
            one &o = all_[static_cast<std::size_t>(1 - side)];
            const one &other = all_[static_cast<std::size_t>(side)];
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
        for (std::size_t g = 0; g < all_.size(); ++g)
            for (float *field : all_[g].p.fields) {
                check(cudaMemset(field, 0, bytes(nz_ + 2)), "cudaMemset");
                // With the planes beyond, as far as there are any.
                const int first = g == 0 ? 0 : -1, end = nz_ + (g + 1 < all_.size() ? 1 : 0);
                check(cudaMemcpy(field + (first + 1) * plane(),
                                 cells.data() + (static_cast<int>(g) * nz_ + first) * plane(), bytes(end - first),
                                 cudaMemcpyDefault),
                      "cudaMemcpy");
            }
    }
    std::vector<float> cells(int iterations) const {
        std::vector<float> result(static_cast<std::size_t>(plane()) * static_cast<std::size_t>(n_));
        for (std::size_t g = 0; g < all_.size(); ++g)
            check(cudaMemcpy(result.data() + static_cast<int>(g) * nz_ * plane(),
                             all_[g].p.fields[iterations % 2] + plane(), bytes(nz_), cudaMemcpyDefault),
                  "cudaMemcpy");
        return result;
    }

    // Microseconds an iteration, with the launch.
    double run(const shape &s, int iterations) {
        for (const one &o : all_)
            for (unsigned *flags : o.flags) check(cudaMemset(flags, 0, flag_bytes_), "cudaMemset");
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

    int64_t plane() const { return int64_t{n_} * n_; }
    std::size_t bytes(int planes) const { return static_cast<std::size_t>(planes * plane()) * sizeof(float); }
    void synchronize() {
        for (std::size_t g = 0; g < all_.size(); ++g) {
            check(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
            check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        }
    }

    int n_, nz_;
    std::size_t flag_bytes_ = 0;
    std::vector<one> all_;
};

// ---- checking ------------------------------------------------------------------------------------------------------

std::vector<float> initial_cells(int n) {
    std::vector<float> cells(static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    uint32_t state = 1;
    for (float &c : cells) {
        state = state * 1664525u + 1013904223u;
        c = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
    }
    return cells;
}

std::vector<float> computed_by_host(int n, std::vector<float> now, int iterations) {
    std::vector<float> next = now;
    const std::size_t width = static_cast<std::size_t>(n), plane = width * width;
    for (int t = 0; t < iterations; ++t) {
        for (std::size_t z = 1; z + 1 < width; ++z)
            for (std::size_t y = 1; y + 1 < width; ++y)
                for (std::size_t x = 1; x + 1 < width; ++x) {
                    const float *const u = &now[z * plane + y * width + x];
                    const auto at = [u](std::size_t by, bool up) { return up ? *(u + by) : *(u - by); };
                    const float around = ((at(1, false) + at(1, true)) + (at(width, false) + at(width, true))) +
                                         (at(plane, false) + at(plane, true));
                    next[z * plane + y * width + x] = *u + rate * (around - 6.0f * *u);
                }
        std::swap(now, next);
    }
    return now;
}

bool result_is_right(parts &p, int n, const shape &s) {
    constexpr int iterations = 21;
    const std::vector<float> first = initial_cells(n);
    p.load(first);
    p.run(s, iterations);
    return std::memcmp(p.cells(iterations).data(), computed_by_host(n, first, iterations).data(),
                       first.size() * sizeof(float)) == 0;
}

}  // namespace

int main(int argc, char **argv) {
    options o;
    if (!parse(argc, argv, o)) return 2;
    if (without_gpu()) return 77;
    MPI_Init(&argc, &argv);
    int devices = 0, peers = 0;
    check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (devices > 1) check(cudaDeviceCanAccessPeer(&peers, 0, 1), "cudaDeviceCanAccessPeer");
    bool right = true;
    {
        table t("7-point stencil by hand, all iterations in one kernel (us an iteration)", o.csv,
                std::vector<column>{"cells", "gpus", "us", "rows", "depth", "batch", "blocks"}, machine_names,
                machine_columns(0));
        for (const int n : o.sizes)
            for (const int gpus : o.gpus) {
                if (gpus > 1 && peers == 0) {
                    t.row({cell(n), cell(gpus), absent, unmeasured, unmeasured, unmeasured, unmeasured});
                    continue;
                }
                parts p(n, gpus);
                p.load(initial_cells(n));
                const int iterations = o.iterations != 0 ? o.iterations : n >= 512 ? 200 : 1000;
                double best_us = 0;
                shape best{};
                for (const shape &s : shapes(n / gpus)) {
                    p.run(s, 10);
                    const double us = p.run(s, iterations);
                    if (best_us != 0 && us >= best_us) continue;
                    best_us = us;
                    best = s;
                }
                t.row({cell(n), cell(gpus), cell(best_us, 2), cell(best.rows), cell(best.depth), cell(best.batch),
                       cell(best.per_multiprocessor)});
                if (n == *std::min_element(o.sizes.begin(), o.sizes.end()) && !result_is_right(p, n, best)) {
                    std::fprintf(stderr, "%d cells along each axis, %d GPUs: the result is wrong\n", n, gpus);
                    right = false;
                }
            }
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
