// SPDX-License-Identifier: BSD-3-Clause
//
// Random exchanges by kernels: grids, periods, decompositions, tiles, fields, radii, sets, blocks, steps. In each step
// the blocks of a persistent kernel wait for the ghost cells of a tile, or of a box, compare every byte around it, write
// the next step's cells, and send them. The host compares every byte of all allocations at the end. Or exchanges in the
// order of a stream: kernels before start() write the cells, and kernels behind finish() compare them.
//
//   kernel [--seed N] [--programs N | --seconds N]
//   kernel --late yes    two ranks; needs a short MPIX_STALL_SECONDS
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <mpix/halo.cuh>
#include <mpix/halo.hpp>

#include "tests/device/executor.hpp"

namespace halo = mpix::halo;
using device_test::executor;
using halo::box;
using halo::index3;

namespace {

constexpr unsigned char poison = 0xd5;
constexpr int most_fields = 3, most_boxes = 3, most_areas = 24;

// What byte `byte` of a cell is in an exchange.
MPIX_FN unsigned char value_at(std::uint64_t field, const index3 &cell, std::int64_t byte, std::uint64_t step) {
    std::uint64_t h = field * 1000003 + step * 7919 + static_cast<std::uint64_t>(byte);
    for (int a = 0; a < 3; ++a)
        h = (h ^ static_cast<std::uint64_t>(cell[static_cast<std::size_t>(a)])) * 0x9e3779b97f4a7c15 + (h >> 29);
    return static_cast<unsigned char>(h >> 56);
}

struct domain {
    index3 extent;
    bool periodic[3];

    // The cell of the domain that a ghost cell is a copy of; false if it lies outside.
    MPIX_FN bool inside(index3 &cell) const {
        for (std::size_t a = 0; a < 3; ++a) {
            if (periodic[a]) cell[a] = (cell[a] % extent[a] + extent[a]) % extent[a];
            if (cell[a] < 0 || cell[a] >= extent[a]) return false;
        }
        return true;
    }
};

// A field as kernels and host find their way in it. Its cells are points, if it is staggered.
struct view {
    domain whole;
    box local;
    index3 more;                                      // points beyond the last cell
    int reach[halo::directions];                      // the radius: kernels cannot look into a std::array
    index3 origin, size;                              // of what is allocated
    std::int64_t value, cell, row, plane, component;  // bytes of one, and from one to the next
    std::int64_t cell_bytes;                          // of all components
    std::int64_t all_bytes;
    std::uint64_t seed;

    // Where byte `byte` of a cell lies, component by component.
    MPIX_FN std::int64_t at(const index3 &c, std::int64_t byte) const {
        return (c[2] - origin[2]) * plane + (c[1] - origin[1]) * row + (c[0] - origin[0]) * cell +
               byte / value * component + byte % value;
    }
    // Of the cells of a tile.
    MPIX_FN box points(const box &cells) const {
        box all = cells;
        for (std::size_t a = 0; a < 3; ++a)
            if (cells.hi[a] == whole.extent[a] - more[a]) all.hi[a] += more[a];
        return all;
    }
    std::size_t bytes() const { return static_cast<std::size_t>(all_bytes); }
};

// Whether a cell is in the box, or a ghost cell that an exchange fills.
MPIX_FN bool is_exchanged(const view &field, index3 cell) {
    int number = 0;
    std::int64_t beyond = 0;
    for (int a = 2; a >= 0; --a) {
        const auto axis = static_cast<std::size_t>(a);
        const std::int64_t below = field.local.lo[axis] - cell[axis], above = cell[axis] - field.local.hi[axis] + 1;
        number = 3 * number + (below > 0 ? 0 : above > 0 ? 2 : 1);
        if (below > beyond) beyond = below;
        if (above > beyond) beyond = above;
    }
    if (number == halo::no_direction) return true;
    return beyond <= field.reach[number] && field.whole.inside(cell);
}

// Calls each(cell) for this thread's cells of a box.
template <class Block, class Each>
DEVICE_FN void for_cells(const Block &block, const box &b, const Each &each) {
    const index3 n = b.size();
    if (b.empty()) return;
    const std::int64_t all = n[0] * n[1] * n[2];
    for (auto i = static_cast<std::int64_t>(block.thread_rank()); i < all;
         i += static_cast<std::int64_t>(block.num_threads()))
        each(index3{b.lo[0] + i % n[0], b.lo[1] + i / n[0] % n[1], b.lo[2] + i / (n[0] * n[1])});
}

struct body {
    halo::device_exchange x;
    view fields[most_fields][most_boxes];
    int count;
    bool two_allocations[most_fields];
    // What is waited for by boxes instead of tiles, or beside these: each is a part of one of the rank's boxes.
    bool by_tiles;
    int areas;
    struct {
        box cells;
        int in;  // the box's position
    } area[most_areas];
    std::uint64_t first_step;  // in the hash
    std::uint64_t *wrong;      // bytes, and failed calls

    DEVICE_FN void tell(bool good) const {
        if (!good) device_test::add_one(wrong);
    }

    template <class Block>
    DEVICE_FN void write(const Block &block, int tile, std::int64_t step) const {
        const int box = x.box_position(tile);
        for (int f = 0; f < count; ++f) {
            const view &v = fields[f][box];
            auto *const memory = x.data<unsigned char>(f, step, box);
            for_cells(block, v.points(x.tile(tile)), [&](const index3 &cell) {
                for (std::int64_t b = 0; b < v.cell_bytes; ++b)
                    memory[v.at(cell, b)] = value_at(v.seed, cell, b, first_step + static_cast<std::uint64_t>(step));
            });
        }
    }

    // These cells, and of those that a stencil of the field's radius reads around them, what the exchange fills.
    template <class Block>
    DEVICE_FN void check(const Block &block, const box &cells, int box_number, std::int64_t step) const {
        for (int f = 0; f < count; ++f) {
            const view &v = fields[f][box_number];
            const auto *const memory = x.data<const unsigned char>(f, step, box_number);
            for (int number = 0; number < halo::directions && !cells.empty(); ++number) {
                box part = v.points(cells);
                const int depth = number == halo::no_direction ? 0 : v.reach[number];
                if (number != halo::no_direction && depth == 0) continue;
                const int steps[3] = {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1};
                for (std::size_t a = 0; a < 3; ++a) {
                    if (steps[a] < 0) part.hi[a] = part.lo[a], part.lo[a] -= depth;
                    if (steps[a] > 0) part.lo[a] = part.hi[a], part.hi[a] += depth;
                }
                for_cells(block, part, [&](const index3 &cell) {
                    index3 source = cell;
                    if (!is_exchanged(v, cell) || !v.whole.inside(source)) return;
                    for (std::int64_t b = 0; b < v.cell_bytes; ++b)
                        tell(memory[v.at(cell, b)] ==
                             value_at(v.seed, source, b, first_step + static_cast<std::uint64_t>(step)));
                });
            }
        }
    }

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int index, int blocks) const {
        // Blocks take tiles in turn, in another order in each step.
        const auto tile_of = [&](int i, std::int64_t step) { return static_cast<int>((i + step * 5) % x.tiles()); };
        // Each tile is once in the order that begins with the boundary.
        if (index == 0 && block.thread_rank() == 0) {
            std::int64_t sum = 0;
            for (int i = 0; i < x.tiles(); ++i) sum += x.tile_boundary_first(i);
            tell(sum == std::int64_t{x.tiles()} * (x.tiles() - 1) / 2 && x.boundary_tiles() <= x.tiles());
            tell(x.tiles() != 0 || x.data<unsigned char>(0, 0) == nullptr);
        }
        for (int i = index; i < x.tiles(); i += blocks) {
            write(block, tile_of(i, 0), 0);
            tell(halo::send(block, x, tile_of(i, 0), 0) == MPI_SUCCESS);
        }
        for (std::int64_t step = 0; step < x.steps(); ++step) {
            halo::sync_blocks(block, x, blocks);
            if (index == static_cast<int>(step) % blocks && step > 0)
                tell(halo::next(block, x, step - 1) == MPI_SUCCESS);
            for (int i = index; i < areas; i += blocks) {
                const auto &one = area[(i + step * 7) % areas];
                tell(halo::wait(block, x, one.cells, step) == MPI_SUCCESS);
                check(block, one.cells, one.in, step);
            }
            for (int i = index; by_tiles && i < x.tiles(); i += blocks) {
                const int t = tile_of(i, step);
                tell(halo::wait(block, x, t, step) == MPI_SUCCESS);
                check(block, x.tile(t), x.box_position(t), step);
            }
            bool in_place = false;
            for (int f = 0; f < count; ++f) in_place = in_place || !two_allocations[f];
            if (in_place) halo::sync_blocks(block, x, blocks);
            for (int i = index; i < x.tiles(); i += blocks) {
                const int t = tile_of(i, step + 3);
                if (step + 1 == x.steps()) continue;
                write(block, t, step + 1);
                tell(halo::send(block, x, t, step + 1) == MPI_SUCCESS);
            }
        }
    }
};

// Kernels of one step of an exchange in a stream, of one box. The number of the step is in memory, so that a graph of them
// can run several times.
struct step_of_box {
    view fields[most_fields];
    unsigned char *memory[most_fields];  // of each field, the allocation of this step
    int count;
    std::uint64_t *step, *wrong;
};
struct write_box {
    step_of_box s;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int f = 0; f < s.count; ++f) {
            const view &v = s.fields[f];
            for_cells(block, v.local, [&](const index3 &cell) {
                for (std::int64_t b = 0; b < v.cell_bytes; ++b)
                    s.memory[f][v.at(cell, b)] = value_at(v.seed, cell, b, *s.step);
            });
        }
    }
};
// The box, and all ghost cells that the exchange fills.
struct check_box {
    step_of_box s;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        for (int f = 0; f < s.count; ++f) {
            const view &v = s.fields[f];
            if (v.local.empty()) continue;
            box all;
            for (std::size_t a = 0; a < 3; ++a) {
                all.lo[a] = v.origin[a];
                all.hi[a] = v.origin[a] + v.size[a];
            }
            for_cells(block, all, [&](const index3 &cell) {
                index3 source = cell;
                if (!is_exchanged(v, cell) || !v.whole.inside(source)) return;
                for (std::int64_t b = 0; b < v.cell_bytes; ++b)
                    if (s.memory[f][v.at(cell, b)] != value_at(v.seed, source, b, *s.step))
                        device_test::add_one(s.wrong);
            });
        }
    }
};
struct next_step_of_boxes {
    std::uint64_t *step;
    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int) const {
        if (block.thread_rank() == 0) ++*step;
    }
};

class program {
public:
    program(unsigned seed, int rank, executor &where)
        : shared_(seed), own_(64 * seed + static_cast<unsigned>(rank)), where_(where) {}

    // Returns how many bytes, or calls, were wrong.
    std::uint64_t run() {
        dimensions_ = pick(1, 3);
        std::vector<std::int64_t> extent;
        halo::grid_options options;
        domain whole{{1, 1, 1}, {}};
        for (int a = 0; a < dimensions_; ++a) {
            const auto axis = static_cast<std::size_t>(a);
            extent.push_back(dimensions_ == 1 ? pick(8, 60) : pick(a == 0 ? 8 : 1, 12));
            options.periodic[axis] = whole.periodic[axis] = pick(0, 1) == 1;
            whole.extent[axis] = extent.back();
        }
        if (pick(0, 1) == 0) choose_boxes(whole.extent, options);
        const halo::grid g(MPI_COMM_WORLD, extent, options);
        halo::kernel_exchange_options how{.tile = {}, .sets = pick(2, 4)};
        for (int a = 0; a < dimensions_; ++a) how.tile[static_cast<std::size_t>(a)] = pick(0, 5);

        body kernel{};
        how.box_waits = pick(0, 1) == 1;
        kernel.by_tiles = !how.box_waits || pick(0, 2) == 0;
        if (how.box_waits) choose_areas(g, kernel);
        kernel.count = pick(1, most_fields);
        std::vector<halo::field> fields;
        for (int f = 0; f < kernel.count; ++f) fields.push_back(make_field(g, whole, kernel, f));
        kernel.wrong = static_cast<std::uint64_t *>(where_.allocate_shared(sizeof(std::uint64_t)));
        std::uint64_t wrong = 0;
        if (pick(0, 2) == 0) {
            run_in_stream(g, fields, how.tile, kernel);
        } else {
            halo::kernel_exchange h(g, fields, how);
            std::uint64_t done = 0;
            const int activations = pick(1, 3), blocks = pick(1, 4),
                      threads = executor::is_gpu ? 32 * pick(1, 4) : pick(1, 2);
            for (int i = 0; i < activations; ++i) {
                const int steps = pick(0, 9);
                kernel.x = h.start(steps);
                kernel.first_step = done;
                where_.launch_cooperative(blocks, threads, kernel);
                where_.synchronise();
                h.finish();
                done += static_cast<std::uint64_t>(steps);
                wrong += check_data(g, h, kernel, done);
            }
        }
        wrong += *kernel.wrong;
        wrong += check_outside(g, kernel);
        where_.release_shared(kernel.wrong);
        for (void *const memory : memory_) where_.release(memory);
        return wrong;
    }

private:
    int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(shared_); }
    int pick_own(int low, int high) { return std::uniform_int_distribution<int>(low, high)(own_); }

    // Counts what is wrong in kernel.wrong.
    void run_in_stream(const halo::grid &g, const std::vector<halo::field> &fields, const index3 &tile,
                       const body &kernel) {
        halo::stream_exchange h(g, fields, {.tile = tile});
        auto *const step = static_cast<std::uint64_t *>(where_.allocate_shared(sizeof(std::uint64_t)));
        const int threads = executor::is_gpu ? 64 : 2;
        const auto of_each_box = [&](const auto &launch) {
            for (int i = 0; i < h.boxes(); ++i) {
                step_of_box s{};
                s.count = kernel.count;
                s.step = step;
                s.wrong = kernel.wrong;
                for (int f = 0; f < kernel.count; ++f) {
                    s.fields[f] = kernel.fields[f][i];
                    s.memory[f] = static_cast<unsigned char *>(h.data(f, i));
                }
                launch(s);
            }
        };
        const auto one_step = [&] {
            of_each_box([&](const step_of_box &s) { where_.launch(1, threads, write_box{s}); });
            h.start(where_.stream());
            h.finish(where_.stream());
            of_each_box([&](const step_of_box &s) { where_.launch(1, threads, check_box{s}); });
            where_.launch(1, threads, next_step_of_boxes{step});
            h.swap();
        };
        for (int steps = pick(0, 9); steps > 0; --steps) one_step();
        // Graphs of an even number of steps, which end with the allocations with which they began.
        if (const int replays = pick(0, 3); replays != 0)
            where_.repeat(replays, [&] {
                one_step();
                one_step();
            });
        where_.synchronise();
        h.check();
        where_.release_shared(step);
    }

    // Cut along x, of random lengths, of which some may be 0; up to most_boxes for each rank, in any order.
    void choose_boxes(const index3 &extent, halo::grid_options &options) {
        int ranks = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        for (int r = 0; r < ranks; ++r)
            options.owners.insert(options.owners.end(), static_cast<std::size_t>(pick(r == 0, most_boxes)), r);
        std::shuffle(options.owners.begin(), options.owners.end(), shared_);
        std::vector<std::int64_t> cuts{0, extent[0]};
        for (std::size_t i = 1; i < options.owners.size(); ++i) cuts.push_back(pick(0, static_cast<int>(extent[0])));
        std::sort(cuts.begin(), cuts.end());
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
            options.boxes.push_back({{cuts[i], 0, 0}, {cuts[i + 1], extent[1], extent[2]}});
    }

    // Cuts this rank's boxes at random places; some areas overlap these.
    void choose_areas(const halo::grid &g, body &kernel) {
        const auto add = [&](const box &cells, int position) {
            kernel.area[kernel.areas].cells = cells;
            kernel.area[kernel.areas++].in = position;
        };
        const int boxes = static_cast<int>(g.boxes().size());
        for (int i = 0; i < boxes; ++i) {
            const int first = kernel.areas, areas = pick_own(1, most_areas / most_boxes - 1);
            add(g.local(i), i);
            while (kernel.areas < first + areas) {
                box &cut = kernel.area[pick_own(first, kernel.areas - 1)].cells, other = cut;
                const auto axis = static_cast<std::size_t>(pick_own(0, dimensions_ - 1));
                cut.hi[axis] = other.lo[axis] = cut.lo[axis] + pick_own(0, static_cast<int>(cut.size()[axis]));
                add(other, i);
            }
            box more = g.local(i);
            for (int a = 0; a < dimensions_; ++a) {
                const auto axis = static_cast<std::size_t>(a);
                more.lo[axis] += pick_own(0, static_cast<int>(more.size()[axis]));
                more.hi[axis] -= pick_own(0, static_cast<int>(more.size()[axis]));
            }
            add(more, i);
        }
    }

    halo::field make_field(const halo::grid &g, const domain &cells, body &kernel, int f) {
        view v{};
        halo::field_layout layout;
        v.whole = cells;
        for (int a = 0; a < dimensions_; ++a) {
            const auto axis = static_cast<std::size_t>(a);
            layout.staggered[axis] = pick(0, 2) == 0;
            v.more[axis] = layout.staggered[axis] && !cells.periodic[axis] ? 1 : 0;
            v.whole.extent[axis] += v.more[axis];
        }
        v.seed = static_cast<std::uint64_t>(pick(1, 1000000));
        const int how = pick(0, 3);
        halo::radius reach = how == 0 ? halo::radius::faces(pick(1, 3)) : halo::radius::all(pick(1, 2));
        if (how == 3) {
            for (int &depth : reach.cells) depth = pick(0, 2);
            reach.cells[halo::no_direction] = 0;
        }
        for (int number = 0; number < halo::directions; ++number) {
            bool exists = true;
            for (auto a = static_cast<std::size_t>(dimensions_); a < 3; ++a)
                exists = exists && halo::direction(number)[a] == 0;
            v.reach[number] = exists ? reach.cells[static_cast<std::size_t>(number)] : 0;
        }
        const int value = pick(0, 4) == 0 ? pick(1, 9) : 1 << pick(0, 3), components = pick(1, 3);
        v.value = value;
        v.cell_bytes = value * components;
        layout.components = components;
        layout.interleaved = pick(0, 1) == 0;
        v.cell = layout.interleaved ? v.cell_bytes : value;
        const std::array<index3, 2> depth = halo::ghost_depth(reach, dimensions_);
        const int more = pick(0, 2);
        for (std::size_t a = 0; a < 3; ++a) {
            layout.below[a] = depth[0][a] + more;
            layout.above[a] = depth[1][a] + more;
        }
        kernel.two_allocations[f] = pick(0, 2) != 0;

        const int boxes = static_cast<int>(g.boxes().size());
        // Of the only box, some rows and planes are longer than they need be.
        const int longer_row = pick(0, 2) == 0 ? pick(1, 20) : 0, longer_plane = pick(0, 2) == 0 ? pick(1, 20) : 0;
        halo::field made(nullptr, static_cast<std::size_t>(value), reach, layout);
        for (int i = 0; i < boxes; ++i) {
            v.local = g.points(g.local(i), layout.staggered);
            for (std::size_t a = 0; a < 3; ++a) {
                v.origin[a] = v.local.lo[a] - layout.below[a];
                v.size[a] = v.local.size()[a] + layout.below[a] + layout.above[a];
            }
            v.row = v.size[0] * v.cell + (boxes == 1 ? longer_row : 0);
            v.plane = v.size[1] * v.row + (boxes == 1 ? longer_plane : 0);
            v.component = layout.interleaved ? value : v.size[2] * v.plane;
            v.all_bytes = v.size[2] * v.plane * (layout.interleaved ? 1 : components);
            if (boxes == 1) {
                made.layout.row_bytes = static_cast<std::size_t>(v.row);
                made.layout.plane_bytes = static_cast<std::size_t>(v.plane);
            }
            void *both[2] = {};
            for (int copy = 0; copy < (kernel.two_allocations[f] ? 2 : 1); ++copy) {
                both[copy] = where_.allocate(v.bytes() + 1);
                where_.set(both[copy], poison, v.bytes() + 1);
                memory_.push_back(both[copy]);
            }
            made.allocations.push_back({.data = both[0], .other = both[1], .allocated = v.bytes()});
            kernel.fields[f][i] = v;
        }
        return made;
    }

    // After `done` exchanges of the field, data() is what the next one would use.
    std::uint64_t check_data(const halo::grid &g, const halo::kernel_exchange &h, const body &kernel,
                             std::uint64_t done) {
        std::uint64_t wrong = 0;
        std::size_t at = 0;
        for (int f = 0; f < kernel.count; ++f)
            for (int i = 0; i < static_cast<int>(g.boxes().size()); ++i) {
                const int copies = kernel.two_allocations[f] ? 2 : 1;
                wrong += h.data(f, i) != memory_[at + (copies == 2 ? done & 1 : 0)];
                at += static_cast<std::size_t>(copies);
            }
        return wrong;
    }

    // What is neither of the box nor a ghost cell that some tile reads has not been touched.
    std::uint64_t check_outside(const halo::grid &g, const body &kernel) {
        std::uint64_t wrong = 0;
        std::size_t at = 0;
        for (int f = 0; f < kernel.count; ++f)
            for (int box = 0; box < static_cast<int>(g.boxes().size()); ++box)
                for (int copy = 0; copy < (kernel.two_allocations[f] ? 2 : 1); ++copy)
                    wrong += check_allocation(kernel.fields[f][box], memory_[at++]);
        return wrong;
    }
    std::uint64_t check_allocation(const view &v, void *memory) {
        std::vector<unsigned char> bytes(v.bytes() + 1);
        where_.download(bytes.data(), memory, bytes.size());
        std::vector<char> may_change(bytes.size());
        if (!v.local.empty())
            for (std::int64_t i = 0; i < v.size[0] * v.size[1] * v.size[2]; ++i) {
                const index3 cell{v.origin[0] + i % v.size[0], v.origin[1] + i / v.size[0] % v.size[1],
                                  v.origin[2] + i / (v.size[0] * v.size[1])};
                if (!is_exchanged(v, cell)) continue;
                for (std::int64_t b = 0; b < v.cell_bytes; ++b) may_change[static_cast<std::size_t>(v.at(cell, b))] = 1;
            }
        std::uint64_t wrong = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) wrong += !may_change[i] && bytes[i] != poison;
        return wrong;
    }

    std::mt19937 shared_, own_;  // the same on all ranks; this rank's
    executor &where_;
    int dimensions_ = 3;
    std::vector<void *> memory_;
};

// Sends all tiles of exchange 0 but one, or that one; and then waits for all, and ends the exchange. One block.
struct late_body {
    enum { succeeded, pending, other, others };
    halo::device_exchange x;
    int left_out;         // a tile that is not sent; -1: none
    bool only_left_out;   // that was not sent before
    std::uint64_t *ends;  // how the calls have ended, by the names above

    template <class Block>
    DEVICE_FN void operator()(const Block &block, int, int blocks) const {
        for (int t = 0; t < x.tiles(); ++t)
            if ((t == left_out) == only_left_out) halo::send(block, x, t, 0);
        if (left_out >= 0 && !only_left_out) return;
        halo::sync_blocks(block, x, blocks);
        for (int t = 0; t < x.tiles(); ++t) count(block, halo::wait(block, x, t, 0));
        count(block, halo::next(block, x, 0));
        count(block, halo::send(block, x, x.tile_boundary_first(0), 1));
    }
    template <class Block>
    DEVICE_FN void count(const Block &block, int code) const {
        const int end = code == MPI_SUCCESS ? succeeded : code == MPI_ERR_PENDING ? pending : others;
        if (block.thread_rank() == 0) device_test::add_one(ends + (code == MPI_ERR_OTHER ? other : end));
    }
};

// Rank 1 sends a tile when rank 0 has given up. Three tiles of rank 0 read it, but only the first of them waits until its
// deadline; all calls behind it fail at once. Returns what main does.
int late(executor &where, int rank) {
    const halo::grid g(MPI_COMM_WORLD, {8, 8});
    const halo::field shape(static_cast<void *>(nullptr), sizeof(int), halo::radius::all(1));
    halo::field u = shape;
    u.data = where.allocate(halo::field_bytes(g, shape));
    constexpr int count = late_body::others + 1;
    auto *const ends = static_cast<std::uint64_t *>(where.allocate_shared(count * sizeof(std::uint64_t)));
    bool right = false;
    {
        halo::kernel_exchange h(g, {u}, {.tile = {2, 2, 0}, .sets = 2});
        MPI_Barrier(MPI_COMM_WORLD);
        const halo::device_exchange x = h.start(3);
        const auto launch = [&](const late_body &body) {
            where.launch_cooperative(1, executor::is_gpu ? 64 : 2, body);
            where.synchronise();
        };
        if (rank == 1) launch({x, 1, false, ends});
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) launch({x, -1, false, ends});
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) launch({x, 1, true, ends});
        std::string got;
        try {
            h.finish();
        } catch (const halo::error &e) {
            got = e.what();
        }
        // Four of the eight tiles are beside the other rank.
        if (rank == 0)
            right = ends[late_body::succeeded] == 4 && ends[late_body::pending] == 1 && ends[late_body::other] == 5 &&
                    got.find("wait_arrived of partition 1: timed out") != std::string::npos;
        // The other exchanges have not been made, so it cannot finish, either.
        if (rank == 1) right = ends[late_body::succeeded] == 10 && !got.empty();
        right = right && !h.active();
        if (!right)
            std::printf("rank %d: %d succeeded, %d timed out, %d failed, %d others; finish() says \"%s\"\n", rank,
                        static_cast<int>(ends[0]), static_cast<int>(ends[1]), static_cast<int>(ends[2]),
                        static_cast<int>(ends[3]), got.c_str());
    }
    where.release_shared(ends);
    where.release(u.data);
    return right ? 0 : 1;
}

int run(int argc, char **argv) {
    unsigned seed = 1;
    int programs = 20, seconds = 0, rank = 0, local_rank = 0;
    bool is_late = false;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string option = argv[i];
        if (option == "--seed") seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
        if (option == "--programs") programs = std::atoi(argv[i + 1]);
        if (option == "--seconds") seconds = std::atoi(argv[i + 1]);
        if (option == "--late") is_late = true;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    MPI_Comm_free(&node);
    executor where(local_rank);
    if (is_late) return late(where, rank);
    const double begin = MPI_Wtime();
    for (int i = 0;; ++i) {
        int more = seconds != 0 ? MPI_Wtime() - begin < seconds : i < programs;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!more) break;
        std::uint64_t wrong = program(seed + static_cast<unsigned>(i), rank, where).run(), all = 0;
        MPI_Allreduce(&wrong, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (all != 0) {
            if (rank == 0)
                std::printf("seed %u: %llu wrong\n", seed + static_cast<unsigned>(i),
                            static_cast<unsigned long long>(all));
            return 1;
        }
        if (rank == 0 && seconds != 0 && i % 1000 == 999) std::printf("%d programs, 0 wrong\n", i + 1);
    }
    if (rank == 0) std::puts("passed");
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (!executor::available()) {
        std::puts("skipped: no GPU");
        return 77;
    }
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    int status = 1;
    try {
        status = run(argc, argv);
    } catch (const halo::error &e) {
        std::fprintf(stderr, "%s\n", e.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return status;
}
