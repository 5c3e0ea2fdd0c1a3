// SPDX-License-Identifier: BSD-3-Clause
//
// Files of VTK: random grids, decompositions and fields, written for check_vti.py, with what the files should have; and
// what write_vti() refuses.
//
//   vti FOLDER PROGRAMS
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/file_test.hpp"
#include "tests/halo/sample_fields.hpp"

using namespace file_test;
using namespace sample_fields;

namespace {

struct vtk_type {
    const char *name;
    std::size_t bytes;
    halo::value_type number;
};
constexpr std::array<vtk_type, 10> types{{{"Int8", 1, halo::value_type::int8},
                                          {"Int16", 2, halo::value_type::int16},
                                          {"Int32", 4, halo::value_type::int32},
                                          {"Int64", 8, halo::value_type::int64},
                                          {"UInt8", 1, halo::value_type::uint8},
                                          {"UInt16", 2, halo::value_type::uint16},
                                          {"UInt32", 4, halo::value_type::uint32},
                                          {"UInt64", 8, halo::value_type::uint64},
                                          {"Float32", 4, halo::value_type::float32},
                                          {"Float64", 8, halo::value_type::float64}}};

// ---- for check_vti.py ----------------------------------------------------------------------------------

void write_random(const std::string &path, unsigned seed) {
    std::mt19937 shared(seed), own(seed * 64 + static_cast<unsigned>(world_rank));
    const auto pick = [&](int least, int most) {
        return least + static_cast<int>(shared() % static_cast<unsigned>(most - least + 1));
    };
    std::vector<std::int64_t> extent;
    for (int a = 0, dimensions = pick(1, 3); a < dimensions; ++a) extent.push_back(pick(a == 0 ? 4 : 1, 9));
    if (seed == 1) extent = {40, 30, 20};  // more than is written at once
    halo::grid_options options;
    if (pick(0, 2) > 0) choose_boxes(extent, world_size, shared, options);
    const halo::grid g(MPI_COMM_WORLD, extent, options);
    halo::vti_options place;
    for (std::size_t a = 0; a < 3; ++a) {
        place.origin[a] = pick(-1000, 1000) / 7.0;
        place.spacing[a] = pick(1, 1000) / 1e7;
    }
    std::vector<memory> all;
    std::vector<halo::named_field> fields;
    std::vector<shape> shapes;
    std::ostringstream expected;  // lines of text, and of each field the bytes of all cells in hexadecimal digits
    expected.precision(17);
    const box domain = domain_of(extent);
    for (std::size_t a = 0; a < 3; ++a)
        expected << (a < extent.size() ? extent[a] : 0) << ' ' << place.origin[a] << ' ' << place.spacing[a] << '\n';
    for (int f = pick(seed == 1 ? 3 : 0, 4); f > 0; --f) {
        const vtk_type &type = types[static_cast<std::size_t>(pick(0, 9))];
        const std::string name = "<" + std::to_string(f) + "&amp;\"'>";
        shapes.push_back({name, type.bytes, type.number, pick(1, 4), shared()});
        expected << name << ' ' << type.name << ' ' << shapes.back().components << ' ';
        for_each_cell(domain, [&](const index3 &cell) {
            for (std::size_t byte = 0; byte < shapes.back().cell(); ++byte) {
                const auto value = static_cast<unsigned>(shapes.back().at(cell, byte));
                expected << "0123456789abcdef"[value / 16] << "0123456789abcdef"[value % 16];
            }
        });
        expected << '\n';
    }
    for (const shape &s : shapes) all.emplace_back(g, s, own);
    for (memory &m : all) {
        m.fill();
        fields.push_back(m.description());
    }
    halo::write_vti(g, path, fields, place);
    for (const memory &m : all) expect(m.is_filled(), "writing has changed a field");
    if (world_rank == 0) std::ofstream(path + ".expected") << expected.str();
}

// ---- refused -------------------------------------------------------------------------------------------

void refuse(const std::string &path) {
    const std::string in = "mpix::halo::write_vti, ", last = in + "rank " + std::to_string(world_size - 1) + ": ";
    const bool am_last = world_rank == world_size - 1;
    const halo::grid g(MPI_COMM_WORLD, {40, 30});
    std::mt19937 random(1);
    memory u(g, {"u", 8, halo::value_type::float64, 2, 5}, random);
    u.fill();
    const auto with = [&](int error_class, const std::string &words, auto change) {
        std::vector<halo::named_field> fields{u.description()};
        std::string where = path;
        halo::vti_options place;
        change(where, fields, place);
        refused(error_class, words, [&] { halo::write_vti(g, where, fields, place); });
    };
    halo::write_vti(g, path, {u.description()});
    const auto piece_of = [&](int rank) {
        return path.substr(0, path.size() - 5) + "_" + std::to_string(rank) + ".vti";
    };
    const std::string piece = piece_of(world_rank);
    const bytes list = content_of(path), mine = content_of(piece);

    with(MPI_ERR_ARG, in + "rank 0: path is none.vti; it ends in .pvti",
         [](auto &p, auto &, auto &) { p = "none.vti"; });
    with(MPI_ERR_ARG, in + "rank 0: fields[0].name is empty", [](auto &, auto &f, auto &) { f[0].name.clear(); });
    with(MPI_ERR_ARG, in + "rank 0: options.origin[2] is inf; it is finite",
         [](auto &, auto &, auto &o) { o.origin[2] = INFINITY; });
    with(MPI_ERR_ARG, in + "rank 0: options.spacing[1] is 0; it is above 0 and finite",
         [](auto &, auto &, auto &o) { o.spacing[1] = 0; });
    with(MPI_ERR_TYPE, in + "rank 0: fields[0].field.type is bytes; VTK has integers of 1 to 8 bytes, float and double",
         [](auto &, auto &f, auto &) { f[0].field.type = halo::value_type::bytes; });
    with(MPI_ERR_ARG, in + "rank 0: fields[1].field.layout.staggered[0]: a file of VTK has values of cells",
         [](auto &, auto &f, auto &) {
             f.push_back(f[0]);
             f[1].name = "staggered";
             f[1].field.radius = halo::radius{};
             f[1].field.layout = {.staggered = {true, false, false}};
             f[1].field.type = halo::value_type::float64;
         });
    with(MPI_ERR_BUFFER, last + "fields[0].field.data is null", [&](auto &, auto &f, auto &) {
        if (am_last) f[0].field.data = nullptr;
    });
    with(MPI_ERR_NO_SUCH_FILE, "_0.vti.partial: create: No such file or directory",
         [](auto &p, auto &, auto &) { p = "no folder/a.pvti"; });
    if (world_size > 1)
        with(MPI_ERR_ARG, last + "options.spacing[0] is 2 here, and 1 on rank 0; all ranks give the same",
             [&](auto &, auto &, auto &o) { o.spacing[0] = am_last ? 2 : 1; });
    // On the last rank alone.
    std::signal(SIGXFSZ, SIG_IGN);
    if (am_last) limit_files(1000);
    with(MPI_ERR_IO, last, [](auto &, auto &, auto &) {});
    limit_files(0);
    MPI_Barrier(MPI_COMM_WORLD);
    expect(content_of(path) == list && content_of(piece) == mine, "a file has changed");
    expect(content_of(piece + ".partial").empty() && content_of(path + ".partial").empty(), "a temporary file is left");
    // Where it would write its file there is a folder.
    if (am_last) std::filesystem::create_directory(piece + ".partial");
    with(-1, last + piece_of(world_size - 1) + ".partial: ", [](auto &, auto &, auto &) {});
    if (am_last) std::filesystem::remove(piece + ".partial");
    MPI_Barrier(MPI_COMM_WORLD);
    expect(content_of(path) == list && content_of(piece) == mine, "a file has changed");
    expect(open_files(piece) == 0 && content_of(path + ".partial").empty(), "a temporary file is left, or open");
    MPI_Barrier(MPI_COMM_WORLD);
    // In place of the list there is a folder.
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0 && (std::remove(path.c_str()) != 0 || ::mkdir(path.c_str(), 0777) != 0)) ++failures;
    with(MPI_ERR_BAD_FILE, in + "rank 0: " + path + ": rename: Is a directory", [](auto &, auto &, auto &) {});
    MPI_Barrier(MPI_COMM_WORLD);  // rank 0 removes it
    expect(content_of(path + ".partial").empty(), "a temporary file is left");
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (argc != 3) return 2;
    int total = 0;
    try {
        for (int seed = 1; seed <= std::atoi(argv[2]); ++seed)
            write_random(std::string(argv[1]) + "/" + std::to_string(seed) + ".pvti", static_cast<unsigned>(seed));
        refuse(std::string(argv[1]) + "/refused.pvti");
    } catch (const halo::error &e) {
        std::printf("rank %d: %s\n", world_rank, e.what());
        std::fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return total > 0;
}
