// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures: planes of random fields, written for check_png.py, with their values; and what write_png() refuses. 77 if
// mpix was built without libpng.
//
//   png FOLDER PROGRAMS
#include <cstdio>
#include <cstdlib>
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

// How Python's struct calls a type, its size, and its number here.
struct number_type {
    char name;
    std::size_t bytes;
    halo::value_type number;
};
constexpr number_type types[] = {{'b', 1, halo::value_type::int8},    {'h', 2, halo::value_type::int16},
                                 {'i', 4, halo::value_type::int32},   {'q', 8, halo::value_type::int64},
                                 {'B', 1, halo::value_type::uint8},   {'H', 2, halo::value_type::uint16},
                                 {'I', 4, halo::value_type::uint32},  {'Q', 8, halo::value_type::uint64},
                                 {'f', 4, halo::value_type::float32}, {'d', 8, halo::value_type::float64}};

void write_random(const std::string &path, unsigned seed) {
    std::mt19937 shared(seed), own(seed * 64 + static_cast<unsigned>(world_rank));
    const auto pick = [&](int least, int most) {
        return least + static_cast<int>(shared() % static_cast<unsigned>(most - least + 1));
    };
    std::vector<std::int64_t> extent;
    for (int a = 0, dimensions = pick(1, 3); a < dimensions; ++a) extent.push_back(pick(a == 0 ? 4 : 1, 15));
    halo::grid_options options;
    if (pick(0, 2) > 0) choose_boxes(extent, world_size, shared, options);
    const halo::grid g(MPI_COMM_WORLD, extent, options);
    // Of random floats every 256th is none.
    const number_type &type = types[pick(0, 1) ? 8 : pick(0, 9)];
    shape s{"u", type.bytes, type.number, pick(1, 3), shared()};
    for (std::size_t a = 0; a < extent.size(); ++a) s.staggered[a] = pick(0, 2) == 0;
    memory u(g, s, own);
    u.fill();

    box cells = domain_of(extent, s.staggered);
    halo::slice shown;
    shown.axis = pick(0, 2);
    shown.at = pick(0, static_cast<int>(cells.hi[static_cast<std::size_t>(shown.axis)]) - 1);
    shown.component = pick(0, s.components - 1);
    shown.colors = static_cast<halo::color_map>(pick(0, 1));
    if (pick(0, 1)) shown.low = pick(-100, 50), shown.high = shown.low + pick(1, 200);
    halo::write_png(g, path, u.description().field, shown);
    expect(u.is_filled(), "writing has changed the field");
    if (world_rank != 0) return;
    cells.lo[static_cast<std::size_t>(shown.axis)] = shown.at;
    cells.hi[static_cast<std::size_t>(shown.axis)] = shown.at + 1;
    std::ofstream expected(path + ".expected");
    expected << type.name << ' ' << cells.size()[shown.axis == 0 ? 1 : 0] << ' '
             << cells.size()[shown.axis == 2 ? 1 : 2] << ' ' << static_cast<int>(shown.colors) << ' ' << shown.low
             << ' ' << shown.high << '\n';
    for_each_cell(cells, [&](const index3 &cell) {
        for (std::size_t byte = 0; byte < s.value; ++byte) {
            const auto value =
                static_cast<unsigned>(s.at(cell, static_cast<std::size_t>(shown.component) * s.value + byte));
            expected << "0123456789abcdef"[value / 16] << "0123456789abcdef"[value % 16];
        }
    });
}

void refuse(const std::string &path) {
    const std::string in = "mpix::halo::write_png, rank 0: ";
    const std::string last = "mpix::halo::write_png, rank " + std::to_string(world_size - 1) + ": ";
    const bool am_last = world_rank == world_size - 1;
    const halo::grid g(MPI_COMM_WORLD, {12, 5});
    std::mt19937 random(1);
    memory u(g, {"u", 8, halo::value_type::float64, 2, 5}, random);
    const auto with = [&](int error_class, const std::string &words, auto change) {
        std::string where = path, told = "nothing";
        halo::field field = u.description().field;
        halo::slice shown;
        int found = -1;
        change(where, field, shown);
        try {
            halo::write_png(g, where, field, shown);
        } catch (const halo::error &e) {
            told = e.what();
            found = e.error_class();
        }
        expect(found == error_class && told.find(words) == 0, "not \"" + words + "\" but \"" + told + "\"");
    };
    with(MPI_ERR_ARG, in + "path is empty", [](auto &p, auto &, auto &) { p.clear(); });
    with(MPI_ERR_ARG, in + "shown.axis is 3; it is 0 to 2", [](auto &, auto &, auto &s) { s.axis = 3; });
    with(MPI_ERR_ARG, in + "shown.at is 5; it is 0 to 4", [](auto &, auto &, auto &s) { s.axis = 1, s.at = 5; });
    with(MPI_ERR_ARG, in + "shown.at is -1; it is 0 to 0", [](auto &, auto &, auto &s) { s.at = -1; });
    with(MPI_ERR_ARG, in + "shown.component is 2; it is 0 to 1", [](auto &, auto &, auto &s) { s.component = 2; });
    with(MPI_ERR_ARG, in + "shown.low is 3, and shown.high is 3; the first is less, or both are 0",
         [](auto &, auto &, auto &s) { s.low = s.high = 3; });
    with(MPI_ERR_ARG, in + "shown.colors is 2; it is 0 (grey) or 1 (blue_red)",
         [](auto &, auto &, auto &s) { s.colors = static_cast<halo::color_map>(2); });
    with(MPI_ERR_TYPE, in + "from.type is bytes; a picture needs numbers",
         [](auto &, auto &f, auto &) { f.type = halo::value_type::bytes; });
    with(MPI_ERR_BUFFER, last + "from.data is null", [&](auto &, auto &f, auto &) {
        if (am_last) f.data = nullptr;
    });
    with(MPI_ERR_NO_SUCH_FILE, in + "no folder/a.png.partial: create: No such file or directory",
         [](auto &p, auto &, auto &) { p = "no folder/a.png"; });
    if (world_size > 1)
        with(MPI_ERR_ARG, last + "shown.component is 1 here, and 0 on rank 0; all ranks give the same",
             [&](auto &, auto &, auto &s) { s.component = am_last; });
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (argc != 3) return 2;
    int total = 0, status = 0;
    try {
        for (int seed = 1; seed <= std::atoi(argv[2]); ++seed)
            write_random(std::string(argv[1]) + "/" + std::to_string(seed) + ".png", static_cast<unsigned>(seed));
        refuse(std::string(argv[1]) + "/refused.png");
    } catch (const halo::error &e) {  // on all ranks
        std::printf("rank %d: %s\n", world_rank, e.what());
        status = std::string(e.what()).find("built without libpng") != std::string::npos ? 77 : 1;
    }
    MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return total > 0 ? 1 : status;
}
