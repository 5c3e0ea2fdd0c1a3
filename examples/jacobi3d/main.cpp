// SPDX-License-Identifier: BSD-3-Clause
//
// jacobi3d: heat conduction on a 3-D grid, the kernel sending and awaiting the faces by itself.
#include "epochs.hpp"
#include "exchange.hpp"
#include "executor.hpp"
#include "field_input.hpp"
#include "halo_fields.hpp"
#include "image.hpp"
#include "mpi_support.hpp"
#include "options.hpp"
#include "subdomain.hpp"
#include "volume.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

namespace jacobi3d {

namespace {

namespace halo = mpix::halo;

const MPI_Comm world = MPI_COMM_WORLD;

// Below 1/6 the iteration is stable; a power of two keeps rounding out of it.
constexpr double rate = 0.125;

// Of more ranks than this only the first ones' faces are listed.
constexpr int most_ranks_listed = 16;

// The file of --input, opened and checked by rank 0; all ranks get the same answer.
std::optional<field_file> open_input(const options &opt, int rank) {
    if (opt.input.empty()) return std::nullopt;
    field_file file = {opt.input, opt.grid, 0, false, 0};
    agree_on(world, [&] {
        if (rank != 0) return;
        const bool npy = opt.input.size() >= 4 && opt.input.substr(opt.input.size() - 4) == ".npy";
        if (!npy && !opt.grid_given)
            throw std::runtime_error(opt.input + ": a raw file does not say its size; give --grid");
        file = npy ? open_npy(opt.input) : open_raw(opt.input, opt.grid, opt.double_precision ? 8 : 4);
        if (opt.grid_given && file.grid != opt.grid)
            throw std::runtime_error(opt.input + ": has " + to_string(file.grid) + " cells (x, y, z), --grid says " +
                                     to_string(opt.grid));
    });
    long long numbers[6] = {file.grid[0],      file.grid[1],    file.grid[2],
                            file.element_size, file.swap_bytes, static_cast<long long>(file.data_offset)};
    mpi_check(MPI_Bcast(numbers, 6, MPI_LONG_LONG, 0, world), "MPI_Bcast");
    for (int axis = 0; axis < 3; ++axis) file.grid[axis] = static_cast<int>(numbers[axis]);
    file.element_size = static_cast<int>(numbers[3]);
    file.swap_bytes = numbers[4] != 0;
    file.data_offset = static_cast<std::uint64_t>(numbers[5]);
    return file;
}

// Said first, so that nobody takes the one for the other.
const char *what_runs([[maybe_unused]] const options &opt, [[maybe_unused]] int gpus) {
#ifdef JACOBI3D_CUDA
    if (gpus > 0) return "built for GPUs: the kernel runs on GPUs";
    return opt.device == device_kind::host
               ? "built for GPUs: host threads play the kernel's blocks, by --device host"
               : "built for GPUs, but some rank has no GPU, or no driver for it: host threads play the kernel's blocks";
#else
    return "built without CUDA: host threads play the kernel's blocks";
#endif
}

// A GPU for each rank where every rank has one, otherwise threads of the host. Picked before anything is
// allocated.
std::unique_ptr<executor> make_executor(const options &opt, const layout &where) {
    int gpus = 0, fewest = 0;
    agree_on(world, [&] {
        if (opt.device != device_kind::host) gpus = count_gpus();
    });
    mpi_check(MPI_Allreduce(&gpus, &fewest, 1, MPI_INT, MPI_MIN, world), "MPI_Allreduce");
    if (where.rank == 0) std::printf("%s\n", what_runs(opt, fewest));
    if (opt.device == device_kind::cuda && fewest == 0) {
#ifdef JACOBI3D_CUDA
        throw usage_error("--device cuda: no GPU, or no driver for it, on some rank");
#else
        throw usage_error("--device cuda: this program was built without CUDA");
#endif
    }
    if (opt.enqueue && fewest == 0) throw usage_error("--enqueue needs a GPU for each rank");
    std::unique_ptr<executor> result;
    agree_on(world, [&] {
        if (fewest > 0) {
            const int threads = opt.threads ? opt.threads : 256;
            result = make_cuda_executor(where.node_rank % gpus, opt.blocks, threads);
        } else {
            const int share = static_cast<int>(std::thread::hardware_concurrency()) / where.node_size;
            result = make_host_executor(opt.blocks ? opt.blocks : std::max(1, share), std::max(1, opt.threads));
        }
    });
    return result;
}

std::string axes_text(const std::array<bool, 3> &periodic) {
    std::string text;
    for (int axis = 0; axis < 3; ++axis)
        if (periodic[axis]) text += "xyz"[axis];
    return text.empty() ? "none" : text;
}

void print_configuration(const options &opt, const layout &where, const executor &device, std::size_t cell_bytes) {
    if (where.rank == 0) {
        const extent3 &parts = where.boxes.parts();
        std::printf("grid %s, %s, periodic: %s, %d iterations, initial field %s\n",
                    to_string(where.boxes.grid()).c_str(), cell_bytes == 4 ? "float" : "double",
                    axes_text(opt.periodic).c_str(), opt.iterations,
                    opt.input.empty() ? "analytic" : opt.input.c_str());
        std::printf("%d rank%s on %d node%s, boxes %s, the first of %s cells\n", where.size, where.size == 1 ? "" : "s",
                    where.nodes, where.nodes == 1 ? "" : "s", to_string(parts).c_str(),
                    to_string(where.boxes.box(0).size()).c_str());
    }
    print_in_order("rank " + std::to_string(where.rank) + ": " + device.description() + "\n", most_ranks_listed, world);
}

// Times of iterations in seconds; the first one also sets up the connections.
void print_times(std::vector<double> times, std::int64_t cells) {
    if (times.empty()) return;
    std::printf("first iteration %.3f ms\n", 1e3 * times.front());
    if (times.size() == 1) return;
    times.erase(times.begin());
    double sum = 0;
    for (const double t : times) sum += t;
    const double mean = sum / times.size();
    const auto middle = times.begin() + times.size() / 2;
    std::nth_element(times.begin(), middle, times.end());
    std::printf("then, per iteration: median %.3f ms, mean %.3f ms; %.4g cell updates per second\n", 1e3 * *middle,
                1e3 * mean, cells / mean);
}

// Of iterations for which the host has waited once.
void print_whole(const char *what, double seconds, int iterations, std::int64_t cells) {
    if (iterations == 0) return;
    const double each = seconds / iterations;
    std::printf("%s of %.3f ms; per iteration: %.3f us; %.4g cell updates per second\n", what, 1e3 * seconds,
                1e6 * each, cells / each);
}

template <class Real>
bool same_bits(const std::vector<Real> &got, const std::vector<Real> &expected, const extent3 &grid) {
    for (std::size_t i = 0; i < got.size(); ++i)
        if (std::memcmp(&got[i], &expected[i], sizeof(Real)) != 0) {
            const std::size_t nx = grid[0], ny = grid[1];
            std::printf("compare: first difference at cell (%zu, %zu, %zu): %.17g, alone %.17g\n", i % nx, i / nx % ny,
                        i / nx / ny, static_cast<double>(got[i]), static_cast<double>(expected[i]));
            return false;
        }
    std::printf("compare: identical (%zu cells)\n", got.size());
    return true;
}

template <class Real>
void write_output(const std::string &directory, const std::vector<Real> &whole, const extent3 &grid) {
    const std::string volume = directory + "/field.vti", slice = directory + "/slice_z.png";
    write_vti(volume, whole, grid);
    std::printf("wrote %s\n", volume.c_str());
    if (can_write_png()) {
        write_slice_png(slice, whole, grid, grid[2] / 2);
        std::printf("wrote %s (layer z = %d)\n", slice.c_str(), grid[2] / 2);
    } else {
        std::printf("no %s: this program was built without libpng\n", slice.c_str());
    }
}

std::array<int, num_faces> neighbours_of(const options &opt, const layout &where) {
    std::array<int, num_faces> neighbours;
    for (int f = 0; f < num_faces; ++f) {
        const int other = where.boxes.neighbour(where.box, f, opt.periodic);
        neighbours[f] = other < 0 ? -1 : where.rank_of_box[other];
    }
    return neighbours;
}

// All iterations; the time that each took, the slowest rank's, on rank 0.
template <class Real>
std::vector<double> iterate(const options &opt, const layout &where, executor &device, subdomain<Real> &box) {
    const std::array<int, num_faces> neighbours = neighbours_of(opt, where);
    exchange<Real> faces(box, neighbours, world, device.mpix_device());
    device.set_idle_work([&] { faces.poll(); });

    std::vector<double> times(opt.iterations);
    mpi_check(MPI_Barrier(world), "MPI_Barrier");
    const double begin = MPI_Wtime();
    for (int i = 0; i < opt.iterations; ++i) {
        const double before = MPI_Wtime();
        faces.start();
        box.launch(phase_all);
        faces.wait();
        device.synchronize();
        box.advance();
        times[i] = MPI_Wtime() - before;

        if (i == 0) print_in_order(faces.describe(where.rank), most_ranks_listed, world);
        const int done = i + 1;
        if (where.rank == 0 && done % std::max(1, opt.iterations / 10) == 0) {
            std::printf("%d of %d iterations, %.3f s\n", done, opt.iterations, MPI_Wtime() - begin);
            std::fflush(stdout);
        }
    }
    device.set_idle_work({});
    faces.close();

    std::vector<double> slowest(times.size());
    mpi_check(MPI_Reduce(times.data(), slowest.data(), opt.iterations, MPI_DOUBLE, MPI_MAX, 0, world), "MPI_Reduce");
    return slowest;
}

// All iterations enqueued on the stream; the time of all, the slowest rank's, on rank 0.
template <class Real>
double iterate_in_stream(const options &opt, const layout &where, executor &device, subdomain<Real> &box) {
    if (opt.iterations == 0) return 0;
    exchange<Real> faces(box, neighbours_of(opt, where), world, device.mpix_device());
    CUstream_st *const stream = device.stream();
    faces.start();
    mpi_check(MPI_Barrier(world), "MPI_Barrier");
    const double begin = MPI_Wtime();
    for (int i = 0; i < opt.iterations; ++i) {
        faces.start_in(stream);
        box.launch(phase_all);
        faces.wait_in(stream);
        box.advance();
    }
    device.synchronize();
    double took = MPI_Wtime() - begin, slowest = 0;
    faces.wait();
    print_in_order(faces.describe(where.rank), most_ranks_listed, world);
    faces.close();
    mpi_check(MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, world), "MPI_Reduce");
    return slowest;
}

// Two fields of the largest box.
template <class Real>
std::int64_t bytes_of_fields(const layout &where) {
    std::int64_t bytes = 2 * sizeof(Real);
    for (int axis = 0; axis < 3; ++axis) bytes *= (where.boxes.grid()[axis] - 1) / where.boxes.parts()[axis] + 1;
    return bytes;
}

// The bricks of a persistent kernel, the same on all ranks: where faces meet, so do their tiles.
extent3 agreed_brick(const options &opt, const layout &where, const executor &device,
                     const std::array<bool, num_faces> &exchanged, const residency &available) {
    extent3 largest;  // box
    for (int axis = 0; axis < 3; ++axis) largest[axis] = (where.boxes.grid()[axis] - 1) / where.boxes.parts()[axis] + 1;
    extent3 mine = opt.brick, brick;
    if (mine[0] == 0) {
        const std::array<int, 2> base = device.brick_base(largest);
        mine = {std::min(base[0], largest[0]), std::min(base[1], largest[1]),
                brick_depth(largest, exchanged, base, available)};
    }
    mpi_check(MPI_Allreduce(mine.data(), brick.data(), 3, MPI_INT, MPI_MIN, world), "MPI_Allreduce");
    return brick;
}

// All iterations in one launch, whose time, the slowest rank's, is returned on rank 0.
template <class Real>
double iterate_persistently(const options &opt, const layout &where, executor &device, subdomain<Real> &box) {
    std::array<int, num_faces> neighbours = neighbours_of(opt, where);
    std::array<bool, num_faces> exchanged, wrapped;
    for (int f = 0; f < num_faces; ++f) {
        wrapped[f] = neighbours[f] == where.rank;
        if (wrapped[f]) neighbours[f] = -1;  // the kernel needs no message for that
        exchanged[f] = neighbours[f] >= 0;
    }
    residency available{};
    agree_on(world, [&] { available = device.persistent_blocks(bytes_of_fields<Real>(where)); });
    const extent3 brick = agreed_brick(opt, where, device, exchanged, available);
    std::optional<persistent_box<Real>> all;
    agree_on(world, [&] { all.emplace(box, exchanged, wrapped, brick, opt.iterations); });
    epochs<Real> faces(*all, neighbours, world, device.mpix_device());
    device.set_idle_work([] { MPIX_Progress(); });

    mpi_check(MPI_Barrier(world), "MPI_Barrier");
    faces.start();
    print_in_order(faces.describe(where.rank), most_ranks_listed, world);
    mpi_check(MPI_Barrier(world), "MPI_Barrier");
    const double begin = MPI_Wtime();
    all->launch(available);
    device.synchronize();
    double took = MPI_Wtime() - begin, slowest = 0;
    all->finish();
    faces.wait();
    device.set_idle_work({});
    faces.close();
    mpi_check(MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, world), "MPI_Reduce");
    if (where.rank == 0)
        std::printf("bricks of rank 0: %d of %s cells; %d blocks, and those that run the epochs\n",
                    all->bricks().bricks(), to_string(brick).c_str(), all->blocks_of(available.blocks));
    return slowest;
}

// The same on mpix's halo exchange. What communicates is all here and in jacobi_on_halo.
template <class Real>
double iterate_on_halo(const options &opt, const layout &where, executor &device, subdomain<Real> &box) {
    residency available{};
    agree_on(world, [&] { available = device.halo_blocks(); });
    // The halo exchange sends faces, so no brick has more work than another.
    const extent3 brick = agreed_brick(opt, where, device, {}, available), &extent = where.boxes.grid();
    std::optional<halo_fields<Real>> fields;
    agree_on(world, [&] { fields.emplace(box); });

    std::vector<halo::box> boxes(static_cast<std::size_t>(where.size));
    for (int b = 0; b < where.size; ++b) {
        const box3 cells = where.boxes.box(b);
        boxes[where.rank_of_box[b]] = {{cells.begin[0], cells.begin[1], cells.begin[2]},
                                       {cells.end[0], cells.end[1], cells.end[2]}};
    }
    const halo::grid grid(world, {extent[0], extent[1], extent[2]}, {.periodic = opt.periodic, .boxes = boxes});
    // With eight sets an exchange begins six iterations before it is needed.
    halo::kernel_exchange faces(grid, {halo::double_buffered(fields->field(0), fields->field(1))},
                                {.tile = {brick[0], brick[1], brick[2]}, .sets = 8});
    const halo::device_exchange in_kernel = faces.start(opt.iterations);
    mpi_check(MPI_Barrier(world), "MPI_Barrier");
    const double begin = MPI_Wtime();
    device.launch(fields->kernel(in_kernel, where.my_cells().begin), std::min(available.blocks, in_kernel.tiles()));
    device.synchronize();
    double took = MPI_Wtime() - begin, slowest = 0;
    faces.finish();  // throws what a call in the kernel has returned
    print_in_order(faces.report().text() + "\n", most_ranks_listed, world);
    fields->take_result(opt.iterations % 2);
    mpi_check(MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, world), "MPI_Reduce");
    return slowest;
}

template <class Real>
int run(const options &opt, const layout &where, const std::optional<field_file> &input) {
    const extent3 &grid = where.boxes.grid();
    const box3 mine = where.my_cells();
    const std::unique_ptr<executor> device = make_executor(opt, where);
    print_configuration(opt, where, *device, sizeof(Real));

    const auto initial = [&](const box3 &box) {
        return input ? read_box<Real>(*input, box) : analytic_box<Real>(grid, box);
    };
    std::optional<subdomain<Real>> box;
    agree_on(world, [&] {
        std::array<bool, num_faces> sends;
        for (int f = 0; f < num_faces; ++f) sends[f] = where.boxes.neighbour(where.box, f, opt.periodic) >= 0;
        box.emplace(*device, mine.size(), sends, opt.tiles, static_cast<Real>(rate));
        box->load(initial(mine));
        if (where.rank == 0 && !opt.output.empty()) std::filesystem::create_directories(opt.output);
    });

    std::vector<double> times;
    double all_of_it = 0;
    if (opt.persistent)
        all_of_it = iterate_persistently(opt, where, *device, *box);
    else if (opt.halo)
        all_of_it = iterate_on_halo(opt, where, *device, *box);
    else if (opt.enqueue)
        all_of_it = iterate_in_stream(opt, where, *device, *box);
    else
        times = iterate(opt, where, *device, *box);
    const bool need_whole = opt.compare || !opt.output.empty();
    const std::vector<Real> whole = need_whole ? gather(where, box->cells(), world) : std::vector<Real>();
    box.reset();

    int status = 0;
    if (where.rank == 0) {
        const box3 all = {{0, 0, 0}, grid};
        if (opt.persistent || opt.halo || opt.enqueue)
            print_whole(opt.enqueue ? "enqueued launches" : "one launch", all_of_it, opt.iterations, all.cells());
        else
            print_times(times, all.cells());
        if (opt.compare) {
            const std::vector<Real> expected =
                compute_alone(*device, grid, opt.periodic, static_cast<Real>(rate), initial(all), opt.iterations);
            if (!same_bits(whole, expected, grid)) status = 1;
        }
        if (!opt.output.empty()) write_output(opt.output, whole, grid);
    }
    mpi_check(MPI_Bcast(&status, 1, MPI_INT, 0, world), "MPI_Bcast");
    return status;
}

int run(int argc, char *argv[], int rank) {
    options opt;
    try {
        opt = parse_options(argc, argv);
    } catch (const std::invalid_argument &error) {
        throw usage_error(std::string(error.what()) + "\nTry --help.");
    }
    if (opt.help) {
        if (rank == 0) std::fputs(usage, stdout);
        return 0;
    }
    const std::optional<field_file> input = open_input(opt, rank);
    std::optional<layout> where;
    agree_on(world, [&] { where.emplace(input ? input->grid : opt.grid, world); });
    return opt.double_precision ? run<double>(opt, *where, input) : run<float>(opt, *where, input);
}

}  // namespace

}  // namespace jacobi3d

int main(int argc, char *argv[]) {
    // Only this thread calls MPI; the kernel's threads call the device functions of mpix.
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0, status = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    try {
        status = jacobi3d::run(argc, argv, rank);
    } catch (const jacobi3d::usage_error &error) {
        if (rank == 0) std::fprintf(stderr, "jacobi3d: %s\n", error.what());
        status = 2;
    } catch (const std::exception &error) {
        // On this rank only, perhaps: the others may be waiting for it.
        std::fprintf(stderr, "jacobi3d: rank %d: %s\n", rank, error.what());
        std::fflush(nullptr);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return status;
}
