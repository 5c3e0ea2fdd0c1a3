// SPDX-License-Identifier: BSD-3-Clause
//
// Tests of the parts that need no MPI: decomposition, tiles, .npy headers, the kernel body on host threads.
#include "decomposition.hpp"
#include "executor.hpp"
#include "field_input.hpp"
#include "image.hpp"
#include "npy.hpp"
#include "options.hpp"
#include "persistent_box.hpp"
#include "subdomain.hpp"
#include "tiles.hpp"

#include <mpix/host_group.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <stdexcept>

#include <stdlib.h>
#include <unistd.h>

using namespace jacobi3d;

namespace {

int failures = 0;

void check(bool good, const std::string &what) {
    if (good) return;
    ++failures;
    std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

// What `work` threw; "" for nothing.
std::string thrown_by(const std::function<void()> &work) {
    try {
        work();
    } catch (const std::exception &error) {
        return error.what();
    }
    return "";
}

bool contains(const std::string &text, const std::string &part) { return text.find(part) != text.npos; }

// Whether `count` equal factors of any kind can be dealt to the axes at all.
bool can_be_cut(const extent3 &grid, int count) {
    for (int x = 1; x <= count; ++x)
        for (int y = 1; count % x == 0 && y <= count / x; ++y)
            if (count / x % y == 0 && x <= grid[0] && y <= grid[1] && count / x / y <= grid[2]) return true;
    return false;
}

void test_one_decomposition(const extent3 &grid, const std::vector<int> &levels) {
    int count = 1;
    std::string name = to_string(grid) + " in";
    for (const int n : levels) {
        count *= n;
        name += ' ';
        name += std::to_string(n);
    }
    std::vector<decomposition> made;
    const std::string error = thrown_by([&] { made.emplace_back(grid, levels); });
    check(can_be_cut(grid, count) == error.empty(), name + ": " + (error.empty() ? "made" : error));
    if (made.empty()) {
        check(contains(error, to_string(grid)), name + ": the message does not name the grid: " + error);
        return;
    }
    const decomposition &d = made.front();
    check(d.count() == count, name + ": number of boxes");

    std::vector<int> owner(box3{{0, 0, 0}, grid}.cells(), -1);
    for (int b = 0; b < count; ++b) {
        check(d.index_at(d.position(b)) == b, name + ": position of box " + std::to_string(b));
        const box3 box = d.box(b);
        check(box.size()[0] > 0 && box.size()[1] > 0 && box.size()[2] > 0, name + ": an empty box");
        for (int z = box.begin[2]; z < box.end[2]; ++z)
            for (int y = box.begin[1]; y < box.end[1]; ++y)
                for (int x = box.begin[0]; x < box.end[0]; ++x) {
                    int &cell = owner[(std::int64_t{z} * grid[1] + y) * grid[0] + x];
                    check(cell == -1, name + ": a cell has two owners");
                    cell = b;
                }
    }
    for (const int cell : owner) check(cell >= 0, name + ": a cell has no owner");

    for (int b = 0; b < count; ++b)
        for (int f = 0; f < num_faces; ++f)
            for (const bool wrap : {false, true}) {
                const int other = d.neighbour(b, f, {wrap, wrap, wrap}), axis = face_axis(f);
                const box3 mine = d.box(b);
                const bool at_end = face_is_upper(f) ? mine.end[axis] == grid[axis] : mine.begin[axis] == 0;
                check((other < 0) == (at_end && !wrap), name + ": a neighbour beyond the end");
                if (other < 0) continue;
                check(d.neighbour(other, opposite_face(f), {wrap, wrap, wrap}) == b, name + ": not mutual");
                const box3 theirs = d.box(other);
                for (int a = 0; a < 3; ++a)
                    if (a != axis)
                        check(theirs.begin[a] == mine.begin[a] && theirs.end[a] == mine.end[a],
                              name + ": faces do not match");
                const int here = face_is_upper(f) ? mine.end[axis] % grid[axis] : mine.begin[axis];
                const int there = face_is_upper(f) ? theirs.begin[axis] : theirs.end[axis] % grid[axis];
                check(here == there, name + ": boxes do not touch");
            }
}

void test_decomposition() {
    const extent3 grids[] = {{1, 1, 1}, {2, 3, 5}, {7, 11, 13}, {16, 16, 16}, {31, 4, 9}, {1, 40, 1}, {6, 4, 3}};
    for (const extent3 &grid : grids)
        for (int ranks = 1; ranks <= 36; ++ranks) {
            test_one_decomposition(grid, {ranks});
            for (int nodes = 1; nodes <= ranks; ++nodes)
                if (ranks % nodes == 0) test_one_decomposition(grid, {nodes, ranks / nodes});
        }
    // The largest factor first, across the longest axis.
    check(decomposition({60, 100, 80}, {12}).parts() == extent3{1, 6, 2} ||
              decomposition({60, 100, 80}, {12}).parts() == extent3{2, 3, 2},
          "60x100x80 in 12");
    check(decomposition({8, 8, 8}, {8}).parts() == extent3{2, 2, 2}, "8x8x8 in 8");
    check(decomposition({8, 8, 64}, {8}).parts() == extent3{1, 1, 8}, "8x8x64 in 8");
    // The boxes of one node form a box.
    const decomposition nodes({16, 16, 16}, {4, 2});
    for (int node = 0; node < 4; ++node) {
        bool together = false;
        for (int f = 0; f < num_faces; ++f)
            together = together || nodes.neighbour(2 * node, f, {false, false, false}) == 2 * node + 1;
        check(together, "ranks of a node are not neighbours");
    }
    check(contains(thrown_by([] { decomposition({5, 5, 5}, {7}); }), "7 boxes"), "7 ranks on 5x5x5");
}

void test_tiles() {
    for (int nx : {1, 2, 7, 40, 300})
        for (int nz : {1, 3, 64})
            for (int tiles : {0, 1, 2, 5, 32, 1000})
                for (int f = 0; f < num_faces; ++f) {
                    const face_shape s = cut_face(nx, 9, nz, f, tiles);
                    check(s.tiles >= 1 && s.tile_rows >= 1 && (tiles == 0 || s.tiles <= tiles), "number of tiles");
                    check((s.tiles - 1) * s.tile_rows < s.rows && s.tiles * s.tile_rows >= s.rows, "tiles cover rows");
                }
    check(contains(thrown_by([] { cut_face(1000000, 1000000, 1, 4, 1); }), "tiles"), "a tile that is too large");
}

std::string npy(int version, const std::string &text) {
    std::string result = "\x93NUMPY";
    result += static_cast<char>(version);
    result += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) result += static_cast<char>(text.size() >> (8 * i));
    return result + text;
}

void test_npy() {
    const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 6, 7), }   \n";
    for (const int version : {1, 2, 3}) {
        const std::string file = npy(version, good);
        const npy_header h = parse_npy_header(file + "the data");
        check(h.element_size == 4 && !h.big_endian && !h.fortran_order, "npy: element type");
        check(h.shape == std::vector<std::uint64_t>{5, 6, 7}, "npy: shape");
        check(h.data_offset == file.size(), "npy: offset");
        for (std::size_t cut = 0; cut < file.size(); ++cut)
            check(!thrown_by([&] { parse_npy_header(std::string_view(file).substr(0, cut)); }).empty(),
                  "npy: cut after " + std::to_string(cut) + " bytes");
    }
    const npy_header h = parse_npy_header(npy(1, "{\"shape\":(4L,),\"descr\":\">f8\",\"fortran_order\":True}"));
    check(h.element_size == 8 && h.big_endian && h.fortran_order && h.shape.size() == 1, "npy: other spelling");
    check(parse_npy_header(npy(1, "{'descr':'<f8','fortran_order':False,'shape':()}")).shape.empty(), "npy: scalar");

    const struct {
        std::string file, message;
    } bad[] = {
        {"", "not a .npy file"},
        {"PK\x03\x04 a zip archive", "not a .npy file"},
        {npy(4, good), "version 4"},
        {npy(1, ""), "expected '{'"},
        {npy(1, "{"), "malformed"},
        {npy(1, "{}"), "no key 'descr'"},
        {npy(1, "{'descr': '<f4', 'fortran_order': False}"), "no key 'shape'"},
        {npy(1, "{'descr': '<f4', 'shape': (1,2,3)}"), "no key 'fortran_order'"},
        {npy(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1,2,3)}"), "'<i4'"},
        {npy(1, "{'descr': '\x01\xff', 'fortran_order': False, 'shape': (1,2,3)}"), "element type"},
        {npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,2,3)}"), "structured"},
        {npy(1, "{'descr': '<f4', 'fortran_order': No, 'shape': (1,2,3)}"), "neither True nor False"},
        {npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,-2,3)}"), "no integer"},
        {npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}"), "expected ')'"},
        {npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"), "64 bits"},
        {npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': 3}"), "expected '('"},
        {npy(1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"), "twice"},
        {npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}"), "unknown key"},
        {npy(1, good + "x"), "follows"},
        {npy(1, "{'descr: }"), "closing quote"},
        {npy(2, good).substr(0, 8) + std::string(4, '\xff'), "no plain array"},
    };
    for (const auto &b : bad) {
        const std::string error = thrown_by([&] { parse_npy_header(b.file); });
        check(contains(error, b.message), "npy: expected '" + b.message + "', got '" + error + "'");
    }
}

// Files written here, read back box by box.
void test_files() {
    char directory[] = "/tmp/jacobi3d_selftest.XXXXXX";
    if (!mkdtemp(directory)) return check(false, "mkdtemp");
    const std::string path = std::string(directory) + "/field.npy";
    const auto write = [&](const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; };

    const extent3 grid = {5, 4, 3};
    std::string big;  // big-endian doubles, cell i is i
    for (int i = 0; i < 60; ++i) {
        const double value = i;
        unsigned char bytes[8];
        std::memcpy(bytes, &value, 8);
        for (int b = 7; b >= 0; --b) big += static_cast<char>(bytes[b]);
    }
    const std::string head = npy(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (3, 4, 5), }\n");
    write(head + big);
    const field_file file = open_npy(path);
    check(file.grid == grid, "npy: the grid is " + to_string(file.grid));
    for (const box3 &box : {box3{{0, 0, 0}, grid}, box3{{1, 2, 0}, {4, 3, 3}}, box3{{0, 1, 1}, {5, 4, 2}}}) {
        const std::vector<float> cells = read_box<float>(file, box);
        std::size_t at = 0;
        for (int z = box.begin[2]; z < box.end[2]; ++z)
            for (int y = box.begin[1]; y < box.end[1]; ++y)
                for (int x = box.begin[0]; x < box.end[0]; ++x)
                    check(cells[at++] == static_cast<float>((z * 4 + y) * 5 + x), "npy: a cell's value");
    }
    const std::string raw_bytes = "0123456789abcdef";
    write(raw_bytes);
    const std::vector<float> raw = read_box<float>(open_raw(path, {2, 1, 2}, 4), {{1, 0, 1}, {2, 1, 2}});
    check(std::memcmp(raw.data(), "cdef", 4) == 0, "raw file: the last cell");

    const auto expect = [&](const std::string &bytes, const std::string &message) {
        write(bytes);
        const std::string error = thrown_by([&] { open_npy(path); });
        check(contains(error, path) && contains(error, message),
              "npy file: expected '" + message + "', got '" + error + "'");
    };
    expect(head + big.substr(1), "cut short");
    expect("", "not a .npy file");
    expect(npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1,1,1)}") + "1234", "Fortran");
    expect(npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1)}") + "1234", "2 axes");
    expect(npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,0,1)}") + "1234", "axis of 0");
    expect(npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,4294967297)}") + "1234", "4294967297");
    check(contains(thrown_by([&] { open_raw(path, {3, 3, 3}, 4); }), "108"), "raw file of another size");
    check(contains(thrown_by([&] { open_npy(directory); }), "not a regular file"), "a directory");
    unlink(path.c_str());
    check(contains(thrown_by([&] { open_npy(path); }), "No such file"), "a missing file");
    rmdir(directory);
}

// The plainest way to compute it, with nothing of the kernel but the cell's formula.
template <class Real>
std::vector<Real> compute_plainly(const extent3 &n, const std::array<bool, 3> &periodic, Real rate,
                                  const std::vector<Real> &initial, int iterations) {
    std::vector<Real> now = initial, next = initial;
    for (int i = 0; i < iterations; ++i) {
        for (int z = 0; z < n[2]; ++z)
            for (int y = 0; y < n[1]; ++y)
                for (int x = 0; x < n[0]; ++x) {
                    const auto at = [&](int axis, int by) {
                        extent3 c = {x, y, z};
                        const std::size_t here = (std::size_t(z) * n[1] + y) * n[0] + x;
                        c[axis] += by;
                        const bool outside = c[axis] < 0 || c[axis] >= n[axis];
                        if (outside && !periodic[axis]) return initial[here];
                        c[axis] = (c[axis] + n[axis]) % n[axis];
                        return now[(std::size_t(c[2]) * n[1] + c[1]) * n[0] + c[0]];
                    };
                    next[(std::size_t(z) * n[1] + y) * n[0] + x] =
                        relax(at(0, 0), at(0, -1), at(0, 1), at(1, -1), at(1, 1), at(2, -1), at(2, 1), rate);
                }
        std::swap(now, next);
    }
    return now;
}

// Several boxes in this process that write straight into each other's ghost cells, one box, and the plain
// computation: all three have to agree in every bit.
template <class Real>
void test_step(const extent3 &grid, int ranks, const std::array<bool, 3> &periodic, int tiles, int blocks,
               int threads) {
    const std::string name = "step of " + to_string(grid) + " in " + std::to_string(ranks);
    const Real rate = Real(0.125);
    constexpr int iterations = 5;
    const std::unique_ptr<executor> host = make_host_executor(blocks, threads);
    const box3 all = {{0, 0, 0}, grid};
    const std::vector<Real> initial = analytic_box<Real>(grid, all);
    const std::vector<Real> plain = compute_plainly(grid, periodic, rate, initial, iterations);
    const std::vector<Real> alone = compute_alone(*host, grid, periodic, rate, initial, iterations);
    check(std::memcmp(plain.data(), alone.data(), plain.size() * sizeof(Real)) == 0, name + ": one box");

    const decomposition d(grid, {ranks});
    std::vector<std::unique_ptr<subdomain<Real>>> boxes;
    for (int b = 0; b < ranks; ++b) {
        std::array<bool, num_faces> sends;
        for (int f = 0; f < num_faces; ++f) sends[f] = d.neighbour(b, f, periodic) >= 0;
        boxes.push_back(std::make_unique<subdomain<Real>>(*host, d.box(b).size(), sends, tiles, rate));
        boxes[b]->load(analytic_box<Real>(grid, d.box(b)));
    }
    for (int b = 0; b < ranks; ++b)
        for (int f = 0; f < num_faces; ++f)
            if (const int other = d.neighbour(b, f, periodic); other >= 0)
                boxes[b]->face(f).send = boxes[other]->ghost(opposite_face(f));
    for (int i = 0; i < iterations; ++i) {
        for (auto &box : boxes) box->launch(phase_send);
        for (auto &box : boxes) box->launch(phase_interior | phase_boundary);
        for (auto &box : boxes) box->advance();
    }
    bool same = true;
    for (int b = 0; b < ranks; ++b) {
        const std::vector<Real> cells = boxes[b]->cells();
        const box3 box = d.box(b);
        std::size_t at = 0;
        for (int z = box.begin[2]; z < box.end[2]; ++z)
            for (int y = box.begin[1]; y < box.end[1]; ++y)
                for (int x = box.begin[0]; x < box.end[0]; ++x, ++at)
                    same = same && std::memcmp(&cells[at], &plain[(std::size_t(z) * grid[1] + y) * grid[0] + x],
                                               sizeof(Real)) == 0;
    }
    check(same, name + ": several boxes");
}

void test_steps() {
    for (const extent3 &grid :
         {extent3{1, 1, 1}, {1, 1, 9}, {2, 2, 2}, {3, 1, 4}, {7, 11, 13}, {18, 5, 33}, {40, 3, 2}})
        for (const int ranks : {1, 2, 3, 4, 6, 12})
            for (const int mask : {0, 7, 1, 6}) {
                if (!can_be_cut(grid, ranks)) continue;
                const std::array<bool, 3> periodic = {(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
                test_step<float>(grid, ranks, periodic, ranks % 4, 1, 1);
                test_step<double>(grid, ranks, periodic, 3, 2, 3);
            }
}

void test_bricks() {
    for (const extent3 &box : {extent3{1, 1, 1}, {7, 11, 13}, {40, 3, 2}, {64, 64, 32}, {512, 512, 512}})
        for (const int blocks : {1, 3, 131, 260}) {
            const int depth = brick_depth(box, {}, {32, 8}, {blocks, 8, false});
            check(depth >= 1 && depth <= box[2], "depth of bricks");
            const brick_grid g = cut_box(box, {32, 8, depth});
            for (int axis = 0; axis < 3; ++axis)
                check((g.count[axis] - 1) * g.size[axis] < box[axis] && g.count[axis] * g.size[axis] >= box[axis],
                      "bricks cover the box");
            std::vector<int> on_faces = bricks_on_faces(g, {false, false, false, false, true, true});
            check(static_cast<int>(on_faces.size()) == g.count[0] * g.count[1] * std::min(g.count[2], 2),
                  "bricks on faces");
            check(std::adjacent_find(on_faces.begin(), on_faces.end()) == on_faces.end(), "every brick once");
            for (const int b : on_faces) {
                const int z = g.position(b)[2];
                check(z == 0 || z == g.count[2] - 1, "a brick on a face");
            }
        }
    // At a face not so many that their sides slow each other down, and not so few that the cells take longer. In the cache
    // the blocks for faces have nothing else.
    const std::array<bool, num_faces> upper = {false, false, false, false, false, true};
    for (const extent3 &box : {extent3{64, 64, 32}, {128, 128, 64}, {256, 256, 128}}) {
        const residency available = {260, 8, true};
        const int depth = brick_depth(box, upper, {32, 8}, available);
        check(depth >= box[2] / 8 && depth <= box[2], "depth of bricks at a face");
        const brick_grid g = cut_box(box, {32, 8, depth});
        const int for_faces = blocks_for_faces(g, upper, available);
        check(for_faces >= 1 && (for_faces <= g.tiles(5) || for_faces == available.blocks), "blocks for faces");
    }
    check(blocks_for_faces(cut_box({512, 512, 256}, {32, 8, 64}), upper, {260, 8, false}) == 260, "out of the cache");
    // Faces along three axes: no block for faces without a brick.
    const std::array<bool, num_faces> corner = {true, false, true, false, true, false};
    const residency available = {260, 8, true};
    const brick_grid cube = cut_box({64, 64, 64}, {32, 8, brick_depth({64, 64, 64}, corner, {32, 8}, available)});
    check(blocks_for_faces(cube, corner, available) <= static_cast<int>(bricks_on_faces(cube, corner).size()),
          "blocks for faces along three axes");
    const brick_grid bricks = cut_box({64, 64, 64}, {32, 8, 8});
    check(blocks_for_faces(bricks, {}, {260, 8, true}) == 260, "no faces: all blocks");
    check(blocks_for_faces(bricks, upper, {1, 8, true}) == 1, "one block has both");
    check(blocks_for_faces(bricks, upper, {260, 8, true}) == 16, "a block for each side");
    // One brick for each of almost all blocks, where that is possible.
    check(cut_box({256, 256, 128}, {32, 8, brick_depth({256, 256, 128}, {}, {32, 8}, {260, 8, false})}).bricks() == 256,
          "256x256x128");
    check(contains(thrown_by([] { cut_box({1000000, 1000000, 1}, {1, 1, 1}); }), "do not suit"), "too many bricks");
    check(contains(thrown_by([] { check_layer(1 << 29, 4); }),
                   "a layer of a box has 536870912 elements, more than 536870911"),
          "a layer is too large");
    check_layer((1 << 29) - 1, 4);
}

// One box whose kernel does all iterations, against the plain computation. `Lanes`: 1, as on the host, or as on a GPU.
template <int Lanes, class Real>
void test_persistent(const extent3 &grid, const std::array<bool, 3> &periodic, const extent3 &brick, int iterations,
                     int blocks, int threads) {
    std::string name = to_string(grid) + " in bricks of " + to_string(brick);
    std::array<bool, num_faces> wrapped;
    for (int f = 0; f < num_faces; ++f) wrapped[f] = periodic[face_axis(f)];
    for (int axis = 0; axis < 3; ++axis)
        if (periodic[axis]) name += std::string(", periodic along ") + "xyz"[axis];
    const Real rate = Real(0.125);
    const std::unique_ptr<executor> host = make_host_executor(blocks, threads);
    const std::vector<Real> initial = analytic_box<Real>(grid, {{0, 0, 0}, grid});
    const std::vector<Real> plain = compute_plainly(grid, periodic, rate, initial, iterations);
    subdomain<Real> box(*host, grid, {}, 0, rate);
    box.load(initial);
    persistent_box<Real> all(box, {}, wrapped, brick, iterations);
    if (Lanes == 1) {
        all.launch({blocks, 1, false});
    } else {
        std::vector<block_memory<Real>> own(static_cast<std::size_t>(blocks + 1));
        all.kernel().face_blocks = blocks;
        mpix::host_launch(blocks + 1, threads, [&](const mpix::host_group &block) {
            jacobi_persistent<Lanes>(block, block.group_rank(), blocks, 1, all.kernel(),
                                     own[static_cast<std::size_t>(block.group_rank())]);
        });
    }
    all.finish();
    check(!all.failed(), name + ": failed");
    check(std::memcmp(plain.data(), box.cells().data(), plain.size() * sizeof(Real)) == 0, name + ": cells");
}

void test_all_iterations() {
    for (const extent3 &grid : {extent3{1, 1, 1}, {1, 1, 9}, {7, 11, 13}, {18, 5, 9}, {3, 2, 16}})
        for (const extent3 &brick : {extent3{4, 2, 4}, {32, 8, 64}, {5, 3, 7}})
            for (const std::array<bool, 3> &periodic :
                 {std::array{false, false, false}, {true, false, true}, {true, true, true}, {false, true, false}})
                for (const int iterations : {0, 1, 4}) {
                    test_persistent<1, float>(grid, periodic, brick, iterations, 1, 1);
                    test_persistent<1, double>(grid, periodic, brick, iterations, 2, 1);
                    test_persistent<4, float>(grid, periodic, brick, iterations, 1, 32);
                    test_persistent<2, double>(grid, periodic, brick, iterations, 2, 2);
                }
}

void test_options() {
    const auto parse = [](std::vector<std::string> words) {
        words.insert(words.begin(), "jacobi3d");
        std::vector<char *> argv;
        for (std::string &word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        return parse_options(static_cast<int>(words.size()), argv.data());
    };
    const options o = parse({"--grid", "3x5x7", "--periodic=xz", "--precision=double"});
    check(o.grid == extent3{3, 5, 7} && o.double_precision && o.output.empty(), "options");
    check(o.periodic == std::array<bool, 3>{true, false, true}, "--periodic=xz");
    check(parse({"--periodic"}).periodic == std::array<bool, 3>{true, true, true}, "--periodic");
    const struct {
        std::vector<std::string> words;
        std::string message;
    } bad[] = {
        {{"--grid", "3x5"}, "--grid"},
        {{"--grid", "3x5x"}, "--grid"},
        {{"--grid", "0x5x5"}, "--grid"},
        {{"--grid", "3x5x7x9"}, "--grid"},
        {{"--iterations", "ten"}, "--iterations"},
        {{"--iterations"}, "--iterations: its value"},
        {{"--periodic=w"}, "--periodic"},
        {{"--periodic", "xy"}, "--periodic=xy"},
        {{"--precision", "half"}, "float or double"},
        {{"--device", "tpu"}, "auto, cuda or host"},
        {{"--no-such"}, "--no-such"},
        {{"stray"}, "'stray'"},
        {{"--tiles", "-1"}, "--tiles"},
        {{"--compare=yes"}, "--compare"},
        {{"--brick", "3x5"}, "--brick: '3x5'"},
    };
    for (const auto &b : bad) {
        const std::string error = thrown_by([&] { parse(b.words); });
        check(contains(error, b.message), "options: expected '" + b.message + "', got '" + error + "'");
    }
}

void test_colours() {
    double last = -1;
    for (int i = 0; i <= 100; ++i) {
        const auto c = heat_colour(i / 100.0);
        // Relative luminance of sRGB, which must rise with the value.
        double luminance = 0;
        const double weight[3] = {0.2126, 0.7152, 0.0722};
        for (int k = 0; k < 3; ++k) luminance += weight[k] * std::pow(c[k] / 255.0, 2.2);
        check(luminance > last, "colour " + std::to_string(i) + " is not lighter than the one before");
        last = luminance;
    }
    check(heat_colour(std::nan("")) == heat_colour(std::nan("")), "colour of NaN");
}

}  // namespace

int main() {
    test_decomposition();
    test_tiles();
    test_npy();
    test_files();
    test_options();
    test_colours();
    test_steps();
    test_bricks();
    test_all_iterations();
    if (failures == 0) std::puts("jacobi3d_selftest: all good");
    return failures == 0 ? 0 : 1;
}
