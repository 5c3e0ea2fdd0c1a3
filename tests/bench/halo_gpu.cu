// SPDX-License-Identifier: BSD-3-Clause
//
// What a halo exchange takes on GPUs, without computing. In a stream: by start() and finish(), and by run(). As CUDA
// graphs of two exchanges: the same, and both with direct stores. And inside a persistent kernel, last in the same
// run. Beside them, two empty kernels for each exchange: the least that a stream can take.
//
//   halo_gpu [--rounds N] [--cells N] [--shape N] [--edge CELLS] [--periodic AXES] [--csv FILE]
//
// --cells     only boxes of so many cells along each axis
// --shape     only this one of the shapes below, from 0
// --edge      of the tiles, along each axis. By default a stream's exchange chooses; for the kernel the fastest of
//             several, of which all sizes of blocks are written
// --periodic  along these axes (default: xyz). Two ranks with z alone: cells go to the other rank only
#include <cooperative_groups.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <mpix/halo.cuh>
#include <mpix/halo.hpp>
#include <mpix/launch.h>

#include "tests/bench/csv_file.hpp"
#include "tests/bench/machine.hpp"
#include "tests/bench/median.hpp"

namespace halo = mpix::halo;
using bench::check;

namespace {

constexpr int exchanges = 400, warm_up = 40;

__global__ void nothing() {}

// All tiles of each exchange, by blocks that are resident together. The last block begins exchanges meanwhile.
template <int Threads, int BlocksPerMultiprocessor>
__global__ void __launch_bounds__(Threads, BlocksPerMultiprocessor)
    exchange_all(const __grid_constant__ halo::device_exchange x) {
    const auto block = cooperative_groups::this_thread_block();
    const int index = static_cast<int>(blockIdx.x), movers = static_cast<int>(gridDim.x) - 1;
    const int tiles = index < movers ? x.boundary_tiles() : 0;
    for (std::int64_t step = 0; step < x.steps(); ++step) {
        for (int i = index; i < tiles; i += movers) halo::send(block, x, x.tile_boundary_first(i), step);
        halo::sync_blocks(block, x, movers + 1);
        if (index == movers && step > 0) halo::next(block, x, step - 1);
        for (int i = index; i < tiles; i += movers) halo::wait(block, x, x.tile_boundary_first(i), step);
    }
}

struct launch_shape {
    void (*kernel)(halo::device_exchange);
    int threads, blocks_per_multiprocessor;
};
template <int Threads, int Blocks>
constexpr launch_shape launch_of = {exchange_all<Threads, Blocks>, Threads, Blocks};
constexpr launch_shape launch_shapes[] = {launch_of<256, 1>, launch_of<256, 2>, launch_of<512, 1>, launch_of<512, 2>,
                                          launch_of<1024, 1>};

cudaGraphExec_t graph_of(cudaStream_t stream, const std::function<void()> &enqueue) {
    cudaGraph_t captured;
    cudaGraphExec_t made;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    enqueue();
    check(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&made, captured, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(captured), "cudaGraphDestroy");
    return made;
}

// Microseconds of one of `count` exchanges that `enqueue` puts into the stream; of the slowest rank.
double time_of(cudaStream_t stream, int count, const std::function<void()> &enqueue) {
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    enqueue();
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    double mine = (MPI_Wtime() - begin) * 1e6 / count, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

// What is exchanged: with the 6 neighbours beyond the faces, or with all 26.
struct shape {
    int neighbours, radius, fields;
};
constexpr shape shapes[] = {{6, 1, 1}, {6, 3, 4}, {26, 1, 1}, {26, 3, 4}};

// The cells of a grid in which each rank has a box of n cells along each axis: z is cut first, then y, then x.
std::vector<std::int64_t> all_boxes(int n) {
    std::vector<std::int64_t> cells = {n, n, n};
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (std::size_t axis = 2; ranks > 1; axis = (axis + 2) % 3) {
        int factor = 2;
        while (ranks % factor != 0) ++factor;
        cells[axis] *= factor;
        ranks /= factor;
    }
    return cells;
}

struct way {
    const char *name;
    std::function<void(int count)> enqueue;
    std::vector<double> us = {};
    int edge = 0;  // of its tiles; 0: chosen by the library, or none
    int threads = 0, blocks = 0;
};

// Of the tiles of a box of n cells along each axis, the longest first.
std::vector<int> edges_to_try(int n) {
    std::vector<int> edges;
    for (int parts = 1; parts <= 32; parts *= 2)
        if (const int edge = n / parts; edge >= 8 && edge <= 128) edges.push_back(edge);
    return edges;
}

double fastest(const std::vector<way> &ways) {
    double us = bench::median(ways.front().us);
    for (const way &w : ways) us = std::min(us, bench::median(w.us));
    return us;
}

// By blocks of each size.
std::vector<way> in_kernel(cudaStream_t stream, const halo::grid &g, const std::vector<halo::field> &fields, int edge,
                           int rounds) {
    halo::kernel_exchange exchange(g, fields, {.tile = {edge, edge, edge}});
    int device = 0, multiprocessors = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    std::vector<way> ways;
    for (const launch_shape &s : launch_shapes) {
        way &w =
            ways.emplace_back(way{"kernel", {}, {}, edge, s.threads, s.blocks_per_multiprocessor * multiprocessors});
        for (int round = -1; round < rounds; ++round) {
            const int count = round < 0 ? warm_up : exchanges;
            const halo::device_exchange x = exchange.start(count);
            const double us = time_of(stream, count, [&] {
                const mpix::launch_status launched =
                    mpix::launch_cooperative(s.kernel, dim3(static_cast<unsigned>(w.blocks)),
                                             dim3(static_cast<unsigned>(s.threads)), 0, stream, x);
                check(launched.error, launched.message.c_str());
            });
            exchange.finish();
            if (round >= 0) w.us.push_back(us);
        }
    }
    return ways;
}

// One row for each way, and for each size of blocks in a kernel.
void measure(std::FILE *csv, cudaStream_t stream, int n, const shape &what, int edge, int rounds,
             const std::string &periodic, const std::string &columns) {
    const halo::radius radius =
        what.neighbours == 6 ? halo::radius::faces(what.radius) : halo::radius::all(what.radius);
    const auto along = [&](char axis) { return periodic.find(axis) != std::string::npos; };
    const halo::grid g(MPI_COMM_WORLD, all_boxes(n), {.periodic = {along('x'), along('y'), along('z')}});
    std::vector<halo::field> fields;
    for (int i = 0; i < what.fields; ++i) {
        halo::field &u = fields.emplace_back(static_cast<double *>(nullptr), radius);
        const std::size_t bytes = halo::field_bytes(g, u);
        check(cudaMalloc(&u.data, bytes), "cudaMalloc");
        check(cudaMemset(u.data, 0, bytes), "cudaMemset");
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    {
        const halo::index3 tile{edge, edge, edge};
        halo::stream_exchange in_stream(g, fields, {.tile = tile}), direct(g, fields, {.tile = tile, .direct = true});
        const auto both = [&](halo::stream_exchange &h) {
            h.start(stream);
            h.finish(stream);
        };
        const auto pair_of = [&](const auto &exchange) {
            return graph_of(stream, [&] {
                exchange();
                exchange();
            });
        };
        cudaGraphExec_t const graphs[] = {pair_of([&] { both(in_stream); }), pair_of([&] { both(direct); }),
                                          pair_of([&] { in_stream.run(stream); }),
                                          pair_of([&] { direct.run(stream); })};
        const auto repeat = [&](cudaGraphExec_t graph, int count) {
            for (int i = 0; i < count; i += 2) check(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
        };
        std::vector<way> ways;
        ways.push_back({"two empty kernels", [&](int count) {
                            for (int i = 0; i < 2 * count; ++i) nothing<<<1, 32, 0, stream>>>();
                        }});
        ways.push_back({"stream", [&](int count) {
                            for (int i = 0; i < count; ++i) both(in_stream);
                        }});
        ways.push_back({"graph", [&](int count) { repeat(graphs[0], count); }});
        ways.push_back({"graph direct", [&](int count) { repeat(graphs[1], count); }});
        ways.push_back({"stream run", [&](int count) {
                            for (int i = 0; i < count; ++i) in_stream.run(stream);
                        }});
        ways.push_back({"graph run", [&](int count) { repeat(graphs[2], count); }});
        ways.push_back({"graph run direct", [&](int count) { repeat(graphs[3], count); }});
        for (int round = -1; round < rounds; ++round) {
            const int count = round < 0 ? warm_up : exchanges;
            for (way &w : ways) {
                const double us = time_of(stream, count, [&] { w.enqueue(count); });
                if (round >= 0) w.us.push_back(us);
            }
        }
        in_stream.check();
        direct.check();
        std::vector<way> persistent;
        for (const int side : edge != 0 ? std::vector<int>{edge} : edges_to_try(n)) {
            std::vector<way> these = in_kernel(stream, g, fields, side, rounds);
            if (persistent.empty() || fastest(these) < fastest(persistent)) persistent = std::move(these);
        }
        ways.insert(ways.end(), persistent.begin(), persistent.end());
        for (cudaGraphExec_t graph : graphs) check(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
        for (way &w : ways) {
            if (csv != nullptr)
                std::fprintf(csv, "%d,%d,%s,%d,%d,%d,%s,%d,%d,%d,%.2f,%.2f,%lld,%d,%s\n", g.ranks(), n,
                             periodic.c_str(), what.neighbours, what.radius, what.fields, w.name, w.edge, w.threads,
                             w.blocks, bench::median(w.us), *std::min_element(w.us.begin(), w.us.end()),
                             static_cast<long long>(in_stream.bytes_sent()), in_stream.messages_sent(),
                             columns.c_str());
        }
        if (csv != nullptr) std::fflush(csv);
    }
    for (halo::field &u : fields) check(cudaFree(u.data), "cudaFree");
}

}  // namespace

int main(int argc, char **argv) {
    if (bench::without_gpu()) return 77;
    int provided = 0, rank = 0, local_rank = 0, devices = 0, rounds = 9, edge = 0, cells = 0, shape_number = -1;
    const char *path = "-";
    std::string periodic = "xyz";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::string(argv[i]) == "--rounds") rounds = std::atoi(argv[i + 1]);
        if (std::string(argv[i]) == "--cells") cells = std::atoi(argv[i + 1]);
        if (std::string(argv[i]) == "--shape") shape_number = std::atoi(argv[i + 1]);
        if (std::string(argv[i]) == "--edge") edge = std::atoi(argv[i + 1]);
        if (std::string(argv[i]) == "--periodic") periodic = argv[i + 1];
        if (std::string(argv[i]) == "--csv") path = argv[i + 1];
    }
    if (periodic.find_first_not_of("xyz") != std::string::npos) {
        std::fprintf(stderr, "--periodic is %s; it is some of x, y and z\n", periodic.c_str());
        return 2;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    MPI_Comm_free(&node);
    check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    check(cudaSetDevice(local_rank % devices), "cudaSetDevice");
    const std::string columns = bench::machine_columns(local_rank % devices);
    const bench::csv_file file(rank == 0 ? path : nullptr);
    std::FILE *const csv = file.get();
    if (csv != nullptr)
        std::fprintf(csv,
                     "ranks,cells,periodic,neighbours,radius,fields,way,tile,threads,blocks,median_us,least_us,bytes,"
                     "messages,%s\n",
                     bench::machine_names);
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    try {
        for (const shape &what : shapes)
            for (const int n : {32, 64, 128, 256, 512})
                if ((cells == 0 || cells == n) && (shape_number < 0 || &what == shapes + shape_number))
                    measure(csv, stream, n, what, edge, rounds, periodic, columns);
    } catch (const halo::error &e) {
        std::fprintf(stderr, "%s\n", e.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    MPI_Finalize();
    return 0;
}
