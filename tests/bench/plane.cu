// SPDX-License-Identifier: BSD-3-Clause
//
// A 5-point stencil on a plane, all iterations in one kernel: by hand, and on mpix::halo. The plane is cut into rows of
// boxes, one for each GPU. Both compute the same cells (plane_cells.cuh); what differs is how a strip's first and last
// row come to the strips beside it. At each size both results are compared with what the host computes, bit for bit.
//
// By hand, rank 0 drives all GPUs, and each warp of a strip waits for the same warp of the strips beside it, by flags. On
// mpix::halo each rank has a GPU, and the blocks of a rank meet in each iteration.
#include <cooperative_groups.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <mpix/halo.cuh>
#include <mpix/halo.hpp>
#include <mpix/launch.h>

#include "tests/bench/command_line.hpp"
#include "tests/bench/machine.hpp"
#include "tests/bench/plane_cells.cuh"
#include "tests/bench/table.hpp"

namespace halo = mpix::halo;
using namespace bench;

namespace {

constexpr int most_threads = 512, checked_iterations = 21;

template <class Row>
constexpr int columns = static_cast<int>(sizeof(Row) / sizeof(float));
// The thread's columns of a row.
template <class Row>
__device__ float *at_column(float *row) {
    return row + columns<Row> * threadIdx.x;
}
template <class Row>
__device__ Row load_row(const float *row) {
    return __ldcg(reinterpret_cast<const Row *>(row + columns<Row> * threadIdx.x));
}
template <class Row>
__device__ void store_row(float *row, Row cells) {
    __stcg(reinterpret_cast<Row *>(at_column<Row>(row)), cells);
}

// ---- by hand -------------------------------------------------------------------------------------------------------

// Where a strip receives the row of a neighbour, which may be on another GPU. The neighbour writes both: the cells, and for
// each warp a flag, one more than the iteration of its cells.
struct incoming {
    float *rows[2];  // of even and of odd iterations; null: the plane ends here
    unsigned *flags;
};
struct hand_strip {
    incoming from[2], to[2];  // north, south; `to` is the other strip's `from`
};
struct hand_part {
    float *cells;  // the GPU's
    const hand_strip *strips;
    int width;
};

// Sends the row as it is before iteration `t`, and sets the flag to t + 1. Two buffers suffice: the same warp of the
// neighbour sends row t + 1 only after it has read row t.
template <class Row>
__device__ void send_row(const incoming &to, int t, Row row) {
    if (to.flags == nullptr) return;
    store_row(to.rows[t % 2], row);
    __syncwarp();
    // The fence orders the warp's cells before the flag. It pairs with the acquire in await_row, on another GPU too.
    if (threadIdx.x % lanes_of_warp == 0)
        asm volatile(
            "fence.acq_rel.sys; st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to.flags + threadIdx.x / lanes_of_warp),
            "r"(t + 1)
            : "memory");
}
__device__ void await_row(const incoming &from, int t) {
    if (from.flags == nullptr || threadIdx.x % lanes_of_warp != 0) return;
    unsigned seen;
    do
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(from.flags + threadIdx.x / lanes_of_warp)
                     : "memory");
    while (seen < static_cast<unsigned>(t + 1));
}

template <int Rows, class Row, int BlocksPerMultiprocessor>
__global__ void __launch_bounds__(most_threads, BlocksPerMultiprocessor)
    by_hand(const __grid_constant__ hand_part p, int iterations) {
    __shared__ warp_sides<Rows> sides[2];
    const hand_strip mine = p.strips[blockIdx.x];
    float *const cells = at_column<Row>(p.cells + std::int64_t{Rows} * blockIdx.x * p.width);
    plane_cells<Rows, Row> c;
    c.load(cells, p.width);
    for (int t = 0; t < iterations; ++t) {
        send_row(mine.to[0], t, c.row[0]);
        send_row(mine.to[1], t, c.row[Rows - 1]);
        c.put_sides(sides[t % 2]);
        await_row(mine.from[0], t);
        await_row(mine.from[1], t);
        __syncthreads();
        const Row north = mine.from[0].flags != nullptr ? load_row<Row>(mine.from[0].rows[t % 2]) : Row{},
                  south = mine.from[1].flags != nullptr ? load_row<Row>(mine.from[1].rows[t % 2]) : Row{};
        c.step(sides[t % 2], north, south);
    }
    c.store(cells, p.width);
}

// By hand on all GPUs; rank 0 drives them.
class hand {
public:
    hand(int width, int height, int rows, int threads, int gpus)
        : width_(width), rows_(rows), threads_(threads), height_per_gpu_(height / gpus) {
        const int strips = height_per_gpu_ / rows, warps = threads / lanes_of_warp;
        std::vector<std::vector<hand_strip>> all;
        for (int g = 0; g < gpus; ++g) {
            check(cudaSetDevice(g), "cudaSetDevice");
            for (int other = 0; other < gpus; ++other) {
                if (other == g) continue;
                const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
                if (error != cudaErrorPeerAccessAlreadyEnabled) check(error, "cudaDeviceEnablePeerAccess");
                (void)cudaGetLastError();
            }
            one o{};
            check(cudaStreamCreateWithFlags(&o.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
            check(cudaMalloc(&o.p.cells, bytes()), "cudaMalloc");
            const std::size_t flags = 2 * static_cast<std::size_t>(strips * warps);
            flag_bytes_ = flags * sizeof(unsigned);
            check(cudaMalloc(&o.flags, flag_bytes_), "cudaMalloc");
            check(cudaMalloc(&o.rows, 4 * static_cast<std::size_t>(strips * width) * sizeof(float)), "cudaMalloc");
            check(cudaMalloc(&o.strips, static_cast<std::size_t>(strips) * sizeof(hand_strip)), "cudaMalloc");
            o.p.strips = o.strips;
            o.p.width = width;
            all_.push_back(o);
            std::vector<hand_strip> each(static_cast<std::size_t>(strips));
            for (int s = 0; s < strips; ++s)
                for (int side = 0; side < 2; ++side) {
                    const int at = 2 * s + side;
                    if ((side == 0 && g == 0 && s == 0) || (side == 1 && g + 1 == gpus && s + 1 == strips)) continue;
                    each[static_cast<std::size_t>(s)].from[side] = {
                        {o.rows + 2 * at * width, o.rows + (2 * at + 1) * width}, o.flags + at * warps};
                }
            all.push_back(each);
        }
        for (int g = 0; g < gpus; ++g) {
            auto &each = all[static_cast<std::size_t>(g)];
            for (int s = 0; s < strips; ++s)
                for (int side = 0; side < 2; ++side) {
                    const int beside = g * strips + s + (side == 0 ? -1 : 1);
                    if (beside < 0 || beside >= gpus * strips) continue;
                    each[static_cast<std::size_t>(s)].to[side] =
                        all[static_cast<std::size_t>(beside / strips)][static_cast<std::size_t>(beside % strips)]
                            .from[1 - side];
                }
            check(cudaMemcpy(all_[static_cast<std::size_t>(g)].strips, each.data(), each.size() * sizeof(hand_strip),
                             cudaMemcpyDefault),
                  "cudaMemcpy");
        }
    }
    ~hand() {
        for (const one &o : all_) {
            for (void *memory : {static_cast<void *>(o.p.cells), static_cast<void *>(o.flags),
                                 static_cast<void *>(o.rows), static_cast<void *>(o.strips)})
                check(cudaFree(memory), "cudaFree");
            check(cudaStreamDestroy(o.stream), "cudaStreamDestroy");
        }
    }
    hand(const hand &) = delete;
    hand &operator=(const hand &) = delete;

    // Microseconds an iteration, with the launch.
    template <int Rows, class Row, int BlocksPerMultiprocessor>
    double run(int iterations) {
        for (std::size_t g = 0; g < all_.size(); ++g) {
            check(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
            check(cudaMemset(all_[g].flags, 0, flag_bytes_), "cudaMemset");
            cudaFuncAttributes attributes;  // loads it
            check(cudaFuncGetAttributes(&attributes, by_hand<Rows, Row, BlocksPerMultiprocessor>),
                  "cudaFuncGetAttributes");
        }
        synchronize();
        const auto begin = std::chrono::steady_clock::now();
        for (std::size_t g = 0; g < all_.size(); ++g) {
            check(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
            void *arguments[] = {&all_[g].p, &iterations};
            check(cudaLaunchCooperativeKernel(by_hand<Rows, Row, BlocksPerMultiprocessor>,
                                              dim3(static_cast<unsigned>(height_per_gpu_ / rows_)),
                                              dim3(static_cast<unsigned>(threads_)), arguments, 0, all_[g].stream),
                  "cudaLaunchCooperativeKernel");
        }
        synchronize();
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        return took.count() / iterations;
    }
    void load(const std::vector<float> &cells) { copy(const_cast<float *>(cells.data()), true); }
    std::vector<float> cells() {
        std::vector<float> all(bytes() / sizeof(float) * all_.size());
        copy(all.data(), false);
        return all;
    }

private:
    struct one {
        hand_part p;
        float *rows;
        unsigned *flags;
        hand_strip *strips;
        cudaStream_t stream;
    };

    std::size_t bytes() const {
        return static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_per_gpu_) * sizeof(float);
    }
    void copy(float *host, bool to_gpus) {
        for (std::size_t g = 0; g < all_.size(); ++g) {
            float *const part = host + g * bytes() / sizeof(float);
            check(cudaMemcpy(to_gpus ? all_[g].p.cells : part, to_gpus ? part : all_[g].p.cells, bytes(),
                             cudaMemcpyDefault),
                  "cudaMemcpy");
        }
    }
    void synchronize() {
        for (std::size_t g = 0; g < all_.size(); ++g) {
            check(cudaSetDevice(static_cast<int>(g)), "cudaSetDevice");
            check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        }
    }

    int width_, rows_, threads_, height_per_gpu_;
    std::size_t flag_bytes_ = 0;
    std::vector<one> all_;
};

// ---- on mpix::halo -------------------------------------------------------------------------------------------------

constexpr int most_tile_width = 1024, next_blocks = 4;  // blocks that only run next(), each for every fourth exchange

struct halo_part {
    halo::device_exchange x;
    int width, tile_width;
};

// Not inlined: a strip at the border would need too many registers. Across a call the compiler keeps part of the cells in
// local memory (docs/performance/stencil.md).
__device__ __noinline__ void run_next(const halo_part &p, int blocks, int first) {
    halo::run_next(cooperative_groups::this_thread_block(), p.x, blocks, first, next_blocks);
}
__device__ __noinline__ void begin_tiles(const halo_part &p, halo::prepared_tile *tiles, int first, int count) {
    const auto block = cooperative_groups::this_thread_block();
    for (int i = 0; i < count; ++i) {
        halo::prepare(block, p.x, first + i, tiles[i]);
        halo::send(block, p.x, tiles[i], 0);
    }
}
__device__ __noinline__ void send_tiles(const halo_part &p, halo::prepared_tile *tiles, int count, std::int64_t step) {
    for (int i = 0; i < count; ++i) halo::send(cooperative_groups::this_thread_block(), p.x, tiles[i], step);
}
__device__ __noinline__ void await_tiles(const halo_part &p, int blocks, halo::prepared_tile *tiles, int count,
                                         std::int64_t step) {
    halo::sync_blocks(cooperative_groups::this_thread_block(), p.x, blocks, tiles, count, step);
}

// The iterations of a strip, which has `count` tiles to exchange.
template <bool Exchanges, int Rows, class Row>
__device__ void iterate(const halo_part &p, plane_cells<Rows, Row> &c, warp_sides<Rows> (&sides)[2], std::int64_t top,
                        int blocks, halo::prepared_tile *tiles, int count) {
    const std::int64_t width = p.width, steps = p.x.steps();
    for (std::int64_t t = 0; t < steps; ++t) {
        const float *const now = p.x.data<float>(0, t) + top;
        float *const next = p.x.data<float>(0, t + 1) + top;
        c.put_sides(sides[t % 2]);
        if constexpr (Exchanges)
            await_tiles(p, blocks, tiles, count, t);
        else
            halo::sync_blocks(cooperative_groups::this_thread_block(), p.x, blocks);
        c.step(sides[t % 2], load_row<Row>(now - width), load_row<Row>(now + Rows * width));
        store_row(next, c.row[0]);
        store_row(next + (Rows - 1) * width, c.row[Rows - 1]);
        if constexpr (Exchanges) send_tiles(p, tiles, count, t + 1);
    }
}

template <int Rows, class Row, int BlocksPerMultiprocessor>
__global__ void __launch_bounds__(most_threads, BlocksPerMultiprocessor) on_halo(const __grid_constant__ halo_part p) {
    extern __shared__ halo::prepared_tile tiles[];
    __shared__ warp_sides<Rows> sides[2];
    const int index = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x) - next_blocks;
    if (index >= blocks) return run_next(p, blocks, index - blocks);
    const int tiles_across = p.width / p.tile_width;
    plane_cells<Rows, Row> c;
    // Row 0 is a ghost row. Rows beyond the plane stay 0.
    const std::int64_t top = (std::int64_t{Rows} * index + 1) * p.width;
    c.load(at_column<Row>(p.x.data<float>(0, 0) + top), p.width);
    if (index == 0 || index == blocks - 1) {
        begin_tiles(p, tiles, index * tiles_across, tiles_across);
        iterate<true>(p, c, sides, top, blocks, tiles, tiles_across);
    } else {
        iterate<false>(p, c, sides, top, blocks, nullptr, 0);
    }
    c.store(at_column<Row>(p.x.data<float>(0, p.x.steps()) + top), p.width);
}

class on_mpix {
public:
    on_mpix(int width, int height, int rows, int tile_width) : width_(width), rows_(rows), tile_width_(tile_width) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
        height_per_gpu_ = height / ranks_;
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        for (float *&field : fields_) {
            check(cudaMalloc(&field, bytes(height_per_gpu_ + 2)), "cudaMalloc");
            check(cudaMemset(field, 0, bytes(height_per_gpu_ + 2)), "cudaMemset");
        }
        halo::grid_options cut;
        for (int r = 0; r < ranks_; ++r)
            cut.boxes.push_back({{0, r * height_per_gpu_, 0}, {width, (r + 1) * height_per_gpu_, 1}});
        const halo::grid g(MPI_COMM_WORLD, {width, height}, cut);
        halo::radius rows_beside{};
        rows_beside.cells[static_cast<std::size_t>(halo::direction_number(0, -1, 0))] = 1;
        rows_beside.cells[static_cast<std::size_t>(halo::direction_number(0, 1, 0))] = 1;
        const auto field = [&](float *cells) { return halo::field(cells, rows_beside); };
        exchange_ = std::make_unique<halo::kernel_exchange>(
            g, std::vector<halo::field>{halo::double_buffered(field(fields_[0]), field(fields_[1]))},
            halo::kernel_exchange_options{.tile = {tile_width, rows}, .sets = 8});
    }
    ~on_mpix() {
        exchange_.reset();
        for (float *field : fields_) check(cudaFree(field), "cudaFree");
        check(cudaStreamDestroy(stream_), "cudaStreamDestroy");
    }
    on_mpix(const on_mpix &) = delete;
    on_mpix &operator=(const on_mpix &) = delete;

    void load(const std::vector<float> &all) {
        check(cudaMemcpy(static_cast<float *>(exchange_->data(0)) + width_,
                         all.data() + static_cast<std::size_t>(rank_) * bytes(height_per_gpu_) / sizeof(float),
                         bytes(height_per_gpu_), cudaMemcpyDefault),
              "cudaMemcpy");
    }
    // This rank's.
    std::vector<float> cells() {
        std::vector<float> mine(bytes(height_per_gpu_) / sizeof(float));
        check(cudaMemcpy(mine.data(), static_cast<float *>(exchange_->data(0)) + width_, bytes(height_per_gpu_),
                         cudaMemcpyDefault),
              "cudaMemcpy");
        return mine;
    }
    // Microseconds an iteration, with the launch; of the slowest rank.
    template <int Rows, class Row, int BlocksPerMultiprocessor>
    double run(int iterations) {
        const auto kernel = on_halo<Rows, Row, BlocksPerMultiprocessor>;
        const int strips = height_per_gpu_ / rows_;
        const std::size_t shared = static_cast<std::size_t>(width_ / tile_width_) * sizeof(halo::prepared_tile);
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
              "cudaFuncSetAttribute");
        const halo_part p{exchange_->start(iterations), width_, tile_width_};
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        MPI_Barrier(MPI_COMM_WORLD);
        const auto begin = std::chrono::steady_clock::now();
        const mpix::launch_status launched =
            mpix::launch_cooperative(kernel, dim3(static_cast<unsigned>(strips + next_blocks)),
                                     dim3(static_cast<unsigned>(width_ / columns<Row>)), shared, stream_, p);
        check(launched.error, launched.message.c_str());
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        exchange_->finish();
        double mine = took.count() / iterations, slowest = 0;
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return slowest;
    }

private:
    std::size_t bytes(int rows) const {
        return static_cast<std::size_t>(width_) * static_cast<std::size_t>(rows) * sizeof(float);
    }

    int width_, rows_, tile_width_, height_per_gpu_ = 0, rank_ = 0, ranks_ = 1;
    cudaStream_t stream_ = nullptr;
    float *fields_[2];
    std::unique_ptr<halo::kernel_exchange> exchange_;
};

// ---- a size --------------------------------------------------------------------------------------------------------

struct result {
    double hand_us, halo_us;
    bool right;
};

bool all_say(bool mine) {
    int yes = mine ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &yes, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return yes != 0;
}

template <int Rows, class Row, int BlocksPerMultiprocessor = 1>
result measure(int width, int height, int tile_width, int iterations) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::vector<float> first = initial_plane(width, height),
                             last = plane_by_host(width, height, first, checked_iterations);
    result r{};
    bool hand_right = true;
    if (rank == 0) {
        hand h(width, height, Rows, width / columns<Row>, ranks);
        h.load(first);
        h.run<Rows, Row, BlocksPerMultiprocessor>(checked_iterations);
        const std::vector<float> all = h.cells();
        hand_right = std::memcmp(all.data(), last.data(), all.size() * sizeof(float)) == 0;
        r.hand_us = h.run<Rows, Row, BlocksPerMultiprocessor>(iterations);
    }
    check(cudaSetDevice(rank), "cudaSetDevice");
    MPI_Bcast(&r.hand_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    on_mpix h(width, height, Rows, tile_width);
    h.load(first);
    h.run<Rows, Row, BlocksPerMultiprocessor>(checked_iterations);
    const std::vector<float> mine = h.cells();
    const bool halo_right = std::memcmp(mine.data(), last.data() + static_cast<std::size_t>(rank) * mine.size(),
                                        mine.size() * sizeof(float)) == 0;
    if (!hand_right) std::fprintf(stderr, "%dx%d, by hand: the result is wrong\n", width, height);
    if (!halo_right) std::fprintf(stderr, "%dx%d, rank %d: the result is wrong\n", width, height, rank);
    r.right = all_say(hand_right && halo_right);
    r.halo_us = h.run<Rows, Row, BlocksPerMultiprocessor>(iterations);
    return r;
}

}  // namespace

int main(int argc, char **argv) {
    const char *csv = nullptr;
    int rounds = 3, iterations = 5000;
    command_line line(
        "mpirun -n 2 ",
        "[--rounds N] [--iterations N] [--csv FILE]\n--csv -: CSV instead of text on the standard output.");
    line.value("rounds", rounds);
    line.value("iterations", iterations);
    line.value("csv", csv);
    if (!line.read(argc, argv, [&] { return rounds > 0 && iterations > 0; })) return 2;
    if (without_gpu()) return 77;
    int provided = 0, rank = 0, ranks = 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    check(cudaSetDevice(rank), "cudaSetDevice");
    bool right = true;
    {
        std::unique_ptr<table> t;
        if (rank == 0)
            t = std::make_unique<table>(
                "5-point stencil on a plane, all iterations in one kernel (us an iteration)", csv,
                std::vector<column>{"plane", "gpus", "threads", "rows", "hand", "halo", "ratio"}, machine_names,
                machine_columns(0));
        // `threads` of a block, which has `rows` rows.
        const auto add = [&](int width, int threads, int rows, const auto &run) {
            for (int i = 0; i < rounds; ++i) {
                const result r = run(width, width * ranks, std::min(width, most_tile_width), iterations);
                right &= r.right;
                if (t != nullptr)
                    t->row({cell(width) + "x" + cell(width * ranks), cell(ranks), cell(threads), cell(rows),
                            cell(r.hand_us, 2), cell(r.halo_us, 2), cell(r.halo_us / r.hand_us, 2)});
            }
        };
        // Each GPU has 128 strips. The last line has 256, two blocks on each multiprocessor.
        add(256, 64, 2, measure<2, float4>);
        add(256, 128, 2, measure<2, float2>);
        add(512, 128, 4, measure<4, float4>);
        add(512, 256, 4, measure<4, float2>);
        add(1024, 256, 8, measure<8, float4>);
        add(1024, 512, 8, measure<8, float2>);
        add(2048, 512, 16, measure<16, float4>);
        add(2048, 512, 8, measure<8, float4, 2>);
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
