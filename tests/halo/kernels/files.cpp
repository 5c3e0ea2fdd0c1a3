// SPDX-License-Identifier: BSD-3-Clause
//
// Fields in memory of a GPU, in what only the host does: checkpoints, files of VTK, pictures, and a whole field on one rank.
// All of it gives the same as fields in host memory with the same bytes, and nothing but cells is changed.
//
//   files [--programs N]
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/device/executor.hpp"
#include "tests/halo/file_test.hpp"

namespace {

namespace halo = mpix::halo;
using device_test::executor;
using file_test::expect;
using sample_fields::bytes;
using sample_fields::shape;

// The same field once more, where kernels run.
class twin {
public:
    twin(executor &where, sample_fields::memory &of) : where_(where), of_(of), named_(of.description()) {
        std::vector<bytes> &contents = of.contents();
        for (std::size_t i = 0; i < contents.size(); ++i) {
            copies_.push_back(where.allocate(contents[i].size()));
            if (named_.field.allocations.empty())
                named_.field.data = copies_[i];
            else
                named_.field.allocations[i].data = copies_[i];
        }
        upload();
    }
    ~twin() {
        for (void *const copy : copies_) where_.release(copy);
    }
    twin(const twin &) = delete;
    twin &operator=(const twin &) = delete;

    const halo::named_field &named() const { return named_; }
    void upload() {
        for (std::size_t i = 0; i < copies_.size(); ++i)
            where_.upload(copies_[i], of_.contents()[i].data(), of_.contents()[i].size());
    }
    void poison() {
        for (std::size_t i = 0; i < copies_.size(); ++i)
            where_.set(copies_[i], static_cast<int>(sample_fields::poison), of_.contents()[i].size());
    }
    bool is_the_same() const {
        for (std::size_t i = 0; i < copies_.size(); ++i) {
            bytes now(of_.contents()[i].size());
            where_.download(now.data(), copies_[i], now.size());
            if (now != of_.contents()[i]) return false;
        }
        return true;
    }

private:
    executor &where_;
    sample_fields::memory &of_;
    halo::named_field named_;
    std::vector<void *> copies_;
};

// All files whose names begin so, one behind the other, with the names taken out.
bytes files_of(const std::string &base, int boxes) {
    bytes all = file_test::content_of(base + ".pvti");
    for (int i = 0; i < boxes; ++i) {
        const bytes one = file_test::content_of(base + "_" + std::to_string(i) + ".vti");
        all.insert(all.end(), one.begin(), one.end());
    }
    const std::string text(reinterpret_cast<const char *>(all.data()), all.size());
    bytes without;
    for (std::size_t at = 0, next; at < text.size(); at = next + base.size()) {
        next = std::min(text.find(base, at), text.size());
        without.insert(without.end(), all.begin() + static_cast<std::ptrdiff_t>(at),
                       all.begin() + static_cast<std::ptrdiff_t>(next));
    }
    return without;
}

void run_program(unsigned seed, executor &where) {
    std::mt19937 random(seed);  // the same on all ranks
    const auto pick = [&](int least, int most) {
        return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    };
    std::vector<std::int64_t> extent;
    for (int a = pick(2, 3); a > 0; --a) extent.push_back(pick(4, 12));
    halo::grid_options options;
    sample_fields::choose_boxes(extent, file_test::world_size, random, options);
    const halo::grid g(MPI_COMM_WORLD, extent, options);

    std::vector<shape> shapes = {{"density", 8, halo::value_type::float64, 1, random()},
                                 {"velocity", 4, halo::value_type::float32, 3, random()},
                                 {"marks", 1, halo::value_type::uint8, 2, random()}};
    const bool staggered = pick(0, 1) == 1;
    shapes[1].staggered[0] = staggered;
    std::vector<sample_fields::memory> fields;
    for (const shape &s : shapes) fields.emplace_back(g, s, random);
    std::vector<halo::named_field> on_host, on_gpu;
    std::vector<std::unique_ptr<twin>> twins;
    for (sample_fields::memory &f : fields) {
        f.fill();
        on_host.push_back(f.description());
        twins.push_back(std::make_unique<twin>(where, f));
        on_gpu.push_back(twins.back()->named());
    }

    const std::string name = "halo_files_" + std::to_string(file_test::world_size) + executor::name();
    const std::string host = name + ".host", gpu = name + ".gpu";
    halo::write_checkpoint(g, host, on_host, seed);
    halo::write_checkpoint(g, gpu, on_gpu, seed);
    expect(file_test::content_of(host) == file_test::content_of(gpu), "two checkpoints are alike");
    for (const auto &t : twins) t->poison();
    expect(halo::read_checkpoint(g, host, on_gpu) == seed, "the step");
    for (const auto &t : twins) expect(t->is_the_same(), "what was read, and no byte besides");

    const halo::box all = sample_fields::domain_of(extent, shapes[0].staggered);
    std::vector<double> whole[2];
    for (std::vector<double> &w : whole) w.assign(static_cast<std::size_t>(all.cells()), -1);
    halo::gather(g, on_host[0].field, whole[0].data(), file_test::world_size - 1);
    halo::gather(g, on_gpu[0].field, whole[1].data(), file_test::world_size - 1);
    expect(std::memcmp(whole[0].data(), whole[1].data(), whole[0].size() * sizeof(double)) == 0, "two whole fields");

    if (!staggered) {
        const int boxes = static_cast<int>(options.boxes.size());
        halo::write_vti(g, host + ".pvti", on_host);
        halo::write_vti(g, gpu + ".pvti", on_gpu);
        MPI_Barrier(MPI_COMM_WORLD);
        expect(files_of(host, boxes) == files_of(gpu, boxes), "two files of VTK are alike");
    }
    try {
        halo::write_png(g, host + ".png", on_host[2].field, {.axis = 1, .at = 2});
        halo::write_png(g, gpu + ".png", on_gpu[2].field, {.axis = 1, .at = 2});
        expect(file_test::content_of(host + ".png") == file_test::content_of(gpu + ".png"), "two pictures are alike");
    } catch (const halo::error &e) {
        if (e.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) throw;  // built without libpng
    }
    for (const auto &t : twins) expect(t->is_the_same(), "the GPU's memory, which was only read");
    MPI_Barrier(MPI_COMM_WORLD);
    if (file_test::world_rank == 0)
        for (const std::string &base : {host, gpu}) {
            std::filesystem::remove(base);
            for (const char *const end : {".png", ".pvti"}) std::filesystem::remove(base + end);
            for (std::size_t i = 0; i < options.boxes.size(); ++i)
                std::filesystem::remove(base + "_" + std::to_string(i) + ".vti");
        }
    MPI_Barrier(MPI_COMM_WORLD);
}

int run(int argc, char **argv) {
    const int programs = argc > 2 && std::string(argv[1]) == "--programs" ? std::atoi(argv[2]) : 10;
    MPI_Comm_rank(MPI_COMM_WORLD, &file_test::world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &file_test::world_size);
    executor where(file_test::world_rank);
    for (int i = 0; i < programs; ++i) run_program(static_cast<unsigned>(i + 1), where);
    int failures = file_test::failures;
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (file_test::world_rank == 0) std::printf("%d programs, %d failures\n", programs, failures);
    return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char **argv) {
    if (!executor::available()) {
        std::printf("SKIP: no GPU\n");
        return 77;
    }
    MPI_Init(&argc, &argv);
    const int status = run(argc, argv);
    MPI_Finalize();
    return status;
}
