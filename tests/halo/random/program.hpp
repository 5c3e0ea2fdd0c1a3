// SPDX-License-Identifier: BSD-3-Clause
//
// One random program: a grid, fields, and what is done with them.
#ifndef MPIX_TESTS_HALO_RANDOM_PROGRAM_HPP
#define MPIX_TESTS_HALO_RANDOM_PROGRAM_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include <mpix/halo.hpp>

#include "tests/halo/random/values.hpp"

namespace random_halo {

// Of a field, for one box of this rank.
struct test_box {
    int number = 0;
    box local{};  // its points, if the field is staggered
    std::size_t row = 0, plane = 0, component = 0;
    std::vector<std::byte> memory{}, second{};  // second: of a field with two allocations
};

struct test_field {
    std::uint64_t number = 0;
    std::size_t value = 1;
    halo::value_type type = halo::value_type::bytes;
    halo::radius radius;
    halo::field_layout layout;
    index3 below{}, above{};
    std::size_t cell = 0;
    index3 extent{};  // of the domain of its points, if it is staggered
    bool two_allocations = false;
    std::vector<test_box> boxes;

    std::size_t at(const test_box &b, const index3 &where, int c) const {
        index3 o{};
        for (int a = 0; a < 3; ++a) o[a] = where[a] - b.local.lo[a] + below[a];
        return static_cast<std::size_t>(o[0]) * cell + static_cast<std::size_t>(o[1]) * b.row +
               static_cast<std::size_t>(o[2]) * b.plane +
               static_cast<std::size_t>(c) * (layout.interleaved ? value : b.component);
    }
    // Of one box in both ways.
    halo::field description() {
        halo::field f{nullptr, value, radius, layout};
        f.type = type;
        for (test_box &b : boxes)
            f.allocations.push_back({b.memory.data(), two_allocations ? b.second.data() : nullptr, b.memory.size()});
        if (boxes.size() == 1 && number % 2 == 0) {
            f.data = f.allocations[0].data;
            f.other = f.allocations[0].other;
            f.allocated = f.allocations[0].allocated;
            f.allocations.clear();
        }
        return f;
    }
};

// Of all programs: how their exchanges go to other nodes. Other than never: ranks are late at times, too.
inline halo::node_messages to_nodes = halo::node_messages::never;
// Whether exchanges may use derived datatypes.
inline bool uses_datatypes = true;
// Called for each program, if it is there.
inline void (*before_program)(unsigned seed) = nullptr;
// On which node a rank is to be; null: on this machine.
inline int (*fake_node)(int rank) = nullptr;

class program {
public:
    explicit program(unsigned seed);
    // Returns the number of wrong bytes.
    int run();

private:
    // What is done: run.cpp.
    // Some fields' allocations, for all exchanges.
    void swap(std::vector<halo::exchange> &exchanges, const std::vector<std::vector<int>> &sets);

    void fill(std::uint64_t epoch);

    // By start() and finish(), or by the field, or by a thread for each field.
    void exchange(halo::exchange &x, std::size_t fields);
    void start(halo::exchange &x, std::size_t fields);

    // Some ranks come late, if exchanges have node messages.
    void be_late();

    // How it is generated: generate.cpp.
    std::vector<box> random_boxes(int n);

    void make_field(const halo::grid &g, int number);
    // Its memory: room for what its layout says, and gaps of multiples of so many bytes.
    void allocate(test_field &f, int gap);

    // What is compared: check.cpp, reverse.cpp.
    int check_data(const std::vector<halo::exchange> &exchanges, const std::vector<std::vector<int>> &sets) const;

    int check_gather(const halo::grid &g, test_field &f, std::uint64_t epoch);

    // The cells whose stencils, of these fields, read no ghost cell; also as points of the fields.
    int check_interior(const halo::grid &g, const halo::exchange &x, const std::vector<int> &set) const;

    int check(const test_field &f, std::uint64_t epoch) const;

    int check(const test_field &f, const test_box &b, std::uint64_t epoch) const;

    // Ghost cells that stay in the messages: in_messages.cpp.
    int run_in_messages(const halo::grid &g);
    void take_room(test_field &f);
    int check_pieces(const halo::exchange &x, int field, const test_field &f, std::uint64_t epoch) const;
    int check_reader(const halo::exchange &x, int field, const test_field &f, std::uint64_t epoch) const;
    template <std::size_t Bytes>
    int check_reader_of(const halo::exchange &x, int field, const test_field &f, std::uint64_t epoch) const;

    // Of the fields that have arithmetic.
    int run_reverse(const halo::grid &g);
    template <class T>
    static void put_numbers(const test_field &f, test_box &b, const index3 &where, std::uint64_t epoch);
    // What a serial program makes of a box's cells.
    template <class T>
    void reduce(const halo::grid &g, const test_field &f, const test_box &b, halo::reduction how, std::uint64_t epoch,
                std::vector<std::byte> &memory) const;

    // Those of a box of cells.
    box points_of(const test_field &f, box cells) const {
        for (int a = 0; a < 3; ++a)
            if (cells.empty())
                break;
            else if (cells.hi[a] == extent_[a])
                cells.hi[a] = f.extent[a];
        return cells;
    }

    static bool inside(const box &b, const index3 &cell) {
        bool is = true;
        for (int a = 0; a < 3; ++a) is = is && cell[a] >= b.lo[a] && cell[a] < b.hi[a];
        return is;
    }

    // Calls each(where, cell) for the ghost cells of a box, in order of their directions; `where` is a place beside the
    // box, and `cell` the one in the domain that it is a copy of.
    template <class Each>
    void for_each_ghost(const test_field &f, const box &local, Each each) const {
        if (local.empty()) return;
        for (int number = 0; number < halo::directions; ++number) {
            const std::array<int, 3> step = halo::direction(number);
            if (number == halo::no_direction || (dimensions_ < 2 && step[1] != 0) || (dimensions_ < 3 && step[2] != 0))
                continue;
            box ghosts = local;
            for (std::size_t a = 0; a < 3; ++a) {
                if (step[a] < 0) ghosts.hi[a] = local.lo[a], ghosts.lo[a] = local.lo[a] - f.radius.cells[number];
                if (step[a] > 0) ghosts.lo[a] = local.hi[a], ghosts.hi[a] = local.hi[a] + f.radius.cells[number];
            }
            for_each_cell(ghosts, [&](const index3 &where) {
                index3 cell = where;
                for (int a = 0; a < 3; ++a) {
                    if (options_.periodic[a]) cell[a] = ((cell[a] % f.extent[a]) + f.extent[a]) % f.extent[a];
                    if (cell[a] < 0 || cell[a] >= f.extent[a]) return;
                }
                each(where, cell);
            });
        }
    }

    // The same, and the box itself first.
    template <class Each>
    void for_each_held(const test_field &f, const box &local, Each each) const {
        for_each_cell(local, [&](const index3 &cell) { each(cell, cell); });
        for_each_ghost(f, local, each);
    }

    template <class Each>
    static void for_each_cell(const box &b, Each each) {
        for (auto z = b.lo[2]; z < b.hi[2]; ++z)
            for (auto y = b.lo[1]; y < b.hi[1]; ++y)
                for (auto x = b.lo[0]; x < b.hi[0]; ++x) each(index3{x, y, z});
    }

    static void put(const test_field &f, const test_box &b, std::vector<std::byte> &memory, const index3 &where,
                    const index3 &cell, std::uint64_t epoch) {
        for (int c = 0; c < f.layout.components; ++c)
            for (std::size_t byte = 0; byte < f.value; ++byte)
                memory[f.at(b, where, c) + byte] =
                    value_at(f.number, cell, static_cast<std::uint64_t>(c) * f.value + byte, epoch);
    }

    static void poison_all(test_field &f) {
        for (test_box &b : f.boxes) {
            std::fill(b.memory.begin(), b.memory.end(), poison);
            std::fill(b.second.begin(), b.second.end(), poison);
        }
    }

    // The same on all ranks.
    int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(shared_); }
    int pick_own(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(own_); }

    std::mt19937 shared_, own_, late_;
    int rank_ = 0, ranks_ = 1, node_ranks_ = 1, dimensions_ = 3;
    index3 extent_{1, 1, 1};
    halo::grid_options options_;
    std::vector<test_field> fields_;
};

}  // namespace random_halo

#endif  // MPIX_TESTS_HALO_RANDOM_PROGRAM_HPP
