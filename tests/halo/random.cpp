// SPDX-License-Identifier: BSD-3-Clause
//
// Random halo programs: grids, periods, decompositions, fields, radii, subsets. After each exchange every byte of every
// allocation is compared: ghost cells with a function of their global index, all others with what they held before.
// After a reverse exchange: cells with what a serial program makes of them and of all ranks' ghost cells.
//
//   random [--seed N] [--programs N | --seconds N]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

#include <mpix/halo.hpp>

namespace halo = mpix::halo;
using halo::box;
using halo::index3;

namespace {

constexpr auto poison = std::byte{0xd5};

// What a byte of a cell is, in an epoch.
std::byte value_at(std::uint64_t field, const index3 &cell, std::uint64_t byte, std::uint64_t epoch) {
    std::uint64_t h = field * 1000003 + epoch * 7919 + byte;
    for (const std::int64_t c : cell.along) h = (h ^ static_cast<std::uint64_t>(c)) * 0x9e3779b97f4a7c15 + (h >> 29);
    return static_cast<std::byte>(h >> 56);
}

// The same for values of an arithmetic type; of real numbers such that each order of a sum gives other bits. `holder`:
// the number of the box beside which it lies, or whose it is.
template <class T>
T number_at(std::uint64_t field, const index3 &cell, std::uint64_t component, std::uint64_t epoch, int holder) {
    std::uint64_t bits = 0;
    for (std::uint64_t byte = 0; byte < 8; ++byte)
        bits |= static_cast<std::uint64_t>(
                    value_at(field + 100, cell, 8 * component + byte, epoch * 64 + static_cast<std::uint64_t>(holder)))
                << (8 * byte);
    if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(std::ldexp(static_cast<double>(static_cast<std::int64_t>(bits >> 8)) - 0x1p55,
                                         static_cast<int>(bits % 12)));
    else
        return static_cast<T>(bits);
}

template <class T>
T combined(halo::reduction how, T a, T b) {
    if (how == halo::reduction::min) return std::min(a, b);
    if (how == halo::reduction::max) return std::max(a, b);
    if constexpr (std::is_integral_v<T>) {
        using natural = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<natural>(static_cast<natural>(a) + static_cast<natural>(b)));
    } else {
        return a + b;
    }
}

// Calls each(T{}) of the type that has this number.
template <class Each>
void with_type(halo::value_type type, Each each) {
    using halo::value_type;
    const auto one_of = [&]<class... T>(T... values) {
        ((halo::value_type_of<T>() == type ? each(values) : static_cast<void>(0)), ...);
    };
    one_of(std::int8_t{}, std::int16_t{}, std::int32_t{}, std::int64_t{}, std::uint8_t{}, std::uint16_t{},
           std::uint32_t{}, std::uint64_t{}, float{}, double{});
}

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

class program {
public:
    explicit program(unsigned seed) : shared_(seed) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
        MPI_Comm node = MPI_COMM_NULL;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &node_ranks_);
        MPI_Comm_free(&node);
        own_.seed(seed * 64 + static_cast<unsigned>(rank_));
    }

    // Returns the number of wrong bytes.
    int run() {
        dimensions_ = pick(1, 3);
        std::vector<std::int64_t> extent;
        for (int a = 0; a < dimensions_; ++a) {
            extent.push_back(dimensions_ == 1 ? pick(8, 40) : pick(a == 0 ? 8 : 1, 9));
            extent_[a] = extent.back();
            options_.periodic[a] = pick(0, 1) == 1;
        }
        const int how = pick(0, 4);
        if (how == 1) options_.boxes = random_boxes(ranks_);
        if (how == 4) {
            options_.boxes = random_boxes(pick(1, 3 * ranks_));
            for (std::size_t i = 0; i < options_.boxes.size(); ++i) options_.owners.push_back(pick(0, ranks_ - 1));
        }
        // So many fit along x.
        if (options_.boxes.empty()) options_.boxes_per_rank = pick(1, std::clamp(8 / ranks_, 1, 3));
        if (how == 2) {  // nodes have equally many ranks in all runs of this program
            options_.links.within_node.assign(static_cast<std::size_t>(node_ranks_ * node_ranks_), 1e9);
            options_.links.network = 1e9;
            for (double &bandwidth : options_.links.within_node) bandwidth *= pick(1, 9);
        }
        const halo::grid g(MPI_COMM_WORLD, extent, options_);
        const int fields = pick(1, 4);
        for (int f = 0; f < fields; ++f) make_field(g, f);

        // All fields; some of them; and the others.
        std::vector<std::vector<int>> sets(3);
        for (int f = 0; f < fields; ++f) {
            sets[0].push_back(f);
            sets[static_cast<std::size_t>(pick(1, 2))].push_back(f);
        }
        std::vector<halo::exchange> exchanges;
        for (const std::vector<int> &set : sets) {
            std::vector<halo::field> described;
            for (const int f : set) described.push_back(fields_[static_cast<std::size_t>(f)].description());
            auto transfer = static_cast<halo::transfer>(pick(0, 2));
            for (const int f : set)
                if (fields_[static_cast<std::size_t>(f)].two_allocations && transfer == halo::transfer::datatype)
                    transfer = halo::transfer::packed;
            exchanges.emplace_back(g, described, halo::exchange_options{transfer});
        }
        if (pick(0, 3) == 0) {  // freed without a start
            exchanges.erase(exchanges.begin());
            sets.erase(sets.begin());
        }
        const bool first_is_all = exchanges.size() == 3;
        int wrong = 0;
        for (std::size_t i = 0; i < exchanges.size(); ++i) wrong += check_interior(g, exchanges[i], sets[i]);
        for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
            swap(exchanges, sets);
            wrong += check_data(exchanges, sets);
            fill(epoch);
            if (first_is_all && pick(0, 1)) {
                exchange(exchanges[0], sets[0].size());
            } else {  // two at once
                halo::exchange &a = exchanges[exchanges.size() - 2], &b = exchanges.back();
                a.start();
                b.start();
                b.finish();
                a.finish();
            }
            for (test_field &f : fields_) wrong += check(f, epoch) + check_gather(g, f, epoch);
        }
        return wrong + run_reverse(g);
    }

private:
    // Some fields' allocations, for all exchanges.
    void swap(std::vector<halo::exchange> &exchanges, const std::vector<std::vector<int>> &sets) {
        for (int f = 0; f < static_cast<int>(fields_.size()); ++f) {
            test_field &field = fields_[static_cast<std::size_t>(f)];
            if (!field.two_allocations || pick_own(0, 1)) continue;
            for (test_box &b : field.boxes) std::swap(b.memory, b.second);
            for (std::size_t x = 0; x < exchanges.size(); ++x)
                for (std::size_t i = 0; i < sets[x].size(); ++i)
                    if (sets[x][i] == f) exchanges[x].swap(static_cast<int>(i));
        }
    }

    int check_data(const std::vector<halo::exchange> &exchanges, const std::vector<std::vector<int>> &sets) const {
        int wrong = 0;
        for (std::size_t x = 0; x < exchanges.size(); ++x)
            for (std::size_t f = 0; f < sets[x].size(); ++f) {
                const std::vector<test_box> &boxes = fields_[static_cast<std::size_t>(sets[x][f])].boxes;
                for (std::size_t i = 0; i < boxes.size(); ++i)
                    wrong += exchanges[x].data(static_cast<int>(f), static_cast<int>(i)) != boxes[i].memory.data();
            }
        return wrong;
    }

    int check_gather(const halo::grid &g, test_field &f, std::uint64_t epoch) {
        std::vector<std::vector<std::byte>> before;
        for (const test_box &b : f.boxes) before.push_back(b.memory);
        const int root = pick(0, ranks_ - 1);
        const auto components = static_cast<std::size_t>(f.layout.components);
        const box all{{}, f.extent};
        const std::size_t cells = static_cast<std::size_t>(all.cells()), bytes = cells * components * f.value;
        std::vector<std::byte> gathered(bytes + 32, poison), expected(bytes + 32, poison);
        halo::gather(g, f.description(), rank_ == root ? gathered.data() : nullptr, root);
        std::size_t number = 0;
        for_each_cell(all, [&](const index3 &cell) {
            for (std::size_t c = 0; rank_ == root && c < components; ++c)
                for (std::size_t byte = 0; byte < f.value; ++byte)
                    expected[(f.layout.interleaved ? number * components + c : c * cells + number) * f.value + byte] =
                        value_at(f.number, cell, c * f.value + byte, epoch);
            ++number;
        });
        int wrong = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) wrong += expected[i] != gathered[i];
        for (std::size_t i = 0; i < before.size(); ++i) wrong += before[i] != f.boxes[i].memory;
        return wrong;
    }

    // Of the fields that have arithmetic.
    int run_reverse(const halo::grid &g) {
        const auto how = static_cast<halo::reduction>(pick(1, 3));
        std::vector<test_field *> set;
        std::vector<halo::field> described;
        for (test_field &f : fields_)
            if (f.type != halo::value_type::bytes) set.push_back(&f), described.push_back(f.description());
        halo::exchange reverse(g, described, {.reduce = how});
        int wrong = 0;
        for (std::uint64_t epoch = 1; epoch <= 2; ++epoch) {
            std::vector<std::vector<std::byte>> expected;
            for (std::size_t i = 0; i < set.size(); ++i) {
                test_field *const f = set[i];
                if (f->two_allocations && pick_own(0, 1)) {
                    for (test_box &b : f->boxes) std::swap(b.memory, b.second);
                    reverse.swap(static_cast<int>(i));
                }
                poison_all(*f);
                with_type(f->type, [&](auto zero) {
                    for (test_box &b : f->boxes) {
                        for_each_held(*f, b.local, [&](const index3 &where, const index3 &) {
                            put_numbers<decltype(zero)>(*f, b, where, epoch);
                        });
                        expected.push_back(b.memory);
                        reduce<decltype(zero)>(g, *f, b, how, epoch, expected.back());
                    }
                });
            }
            exchange(reverse, set.size());
            std::size_t at = 0;
            for (const test_field *f : set)
                for (const test_box &b : f->boxes)
                    wrong += expected[at++] != b.memory ||
                             std::any_of(b.second.begin(), b.second.end(), [](auto c) { return c != poison; });
        }
        // A cell that gets something is not in the interior, nor is a point.
        for (const test_field *f : set)
            for (std::size_t i = 0; i < f->boxes.size(); ++i) {
                const box inner = g.points(reverse.interior(static_cast<int>(i)), f->layout.staggered);
                for (int holder = 0; holder < g.total_boxes(); ++holder)
                    for_each_ghost(*f, points_of(*f, g.box_of(holder)),
                                   [&](const index3 &, const index3 &cell) { wrong += inside(inner, cell); });
            }
        return wrong;
    }

    // Those of a box of cells.
    box points_of(const test_field &f, box cells) const {
        for (int a = 0; a < 3; ++a)
            if (cells.empty())
                break;
            else if (cells.hi[a] == extent_[a])
                cells.hi[a] = f.extent[a];
        return cells;
    }

    // The cells whose stencils, of these fields, read no ghost cell; also as points of the fields.
    int check_interior(const halo::grid &g, const halo::exchange &x, const std::vector<int> &set) const {
        int wrong = 0;
        for (const int number : set) {
            const test_field &f = fields_[static_cast<std::size_t>(number)];
            const std::array<index3, 2> depth = halo::ghost_depth(f.radius, dimensions_);
            for (std::size_t i = 0; i < f.boxes.size(); ++i) {
                const box &local = f.boxes[i].local;
                const box inner = g.points(x.interior(static_cast<int>(i)), f.layout.staggered);
                for_each_ghost(f, local, [&](const index3 &where, const index3 &) {
                    bool read = !inner.empty();
                    for (int a = 0; a < 3; ++a)
                        read = read && where[a] >= inner.lo[a] - depth[0][a] && where[a] < inner.hi[a] + depth[1][a];
                    wrong += read;
                });
                // All points, each once.
                std::int64_t points = inner.cells();
                for (const box &b : x.boundary(static_cast<int>(i))) {
                    const box outer = g.points(b, f.layout.staggered);
                    for_each_cell(outer, [&](const index3 &at) { wrong += !inside(local, at) || inside(inner, at); });
                    points += outer.cells();
                }
                wrong += points != local.cells();
            }
        }
        return wrong;
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

    template <class T>
    static void put_numbers(const test_field &f, test_box &b, const index3 &where, std::uint64_t epoch) {
        for (int c = 0; c < f.layout.components; ++c) {
            const T number = number_at<T>(f.number, where, static_cast<std::uint64_t>(c), epoch, b.number);
            std::memcpy(b.memory.data() + f.at(b, where, c), &number, sizeof number);
        }
    }

    // What a serial program makes of a box's cells.
    template <class T>
    void reduce(const halo::grid &g, const test_field &f, const test_box &b, halo::reduction how, std::uint64_t epoch,
                std::vector<std::byte> &memory) const {
        for (int holder = 0; holder < g.total_boxes(); ++holder)
            for_each_ghost(f, points_of(f, g.box_of(holder)), [&](const index3 &where, const index3 &cell) {
                for (int c = 0; inside(b.local, cell) && c < f.layout.components; ++c) {
                    T sum;
                    std::memcpy(&sum, memory.data() + f.at(b, cell, c), sizeof sum);
                    sum =
                        combined(how, sum, number_at<T>(f.number, where, static_cast<std::uint64_t>(c), epoch, holder));
                    std::memcpy(memory.data() + f.at(b, cell, c), &sum, sizeof sum);
                }
            });
    }

    // The same on all ranks.
    int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(shared_); }
    int pick_own(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(own_); }

    std::vector<box> random_boxes(int n) {
        std::vector<box> boxes{{{}, extent_}};
        while (static_cast<int>(boxes.size()) < n) {
            box &cut = boxes[static_cast<std::size_t>(pick(0, static_cast<int>(boxes.size()) - 1))];
            const int a = pick(0, dimensions_ - 1);
            box other = cut;
            cut.hi[a] = other.lo[a] = cut.lo[a] + pick(0, static_cast<int>(cut.size()[a]));
            boxes.push_back(other);
        }
        std::shuffle(boxes.begin(), boxes.end(), shared_);
        return boxes;
    }

    void make_field(const halo::grid &g, int number) {
        fields_.emplace_back();
        test_field &f = fields_.back();
        f.number = static_cast<std::uint64_t>(number);
        f.extent = extent_;
        for (int a = 0; a < dimensions_; ++a)
            if (pick(0, 2) == 0) {
                f.layout.staggered[a] = true;
                f.extent[a] += !options_.periodic[a];
            }
        const std::size_t values[] = {1, 2, 4, 8, 12, 16};
        f.value = values[pick(0, 5)];
        std::vector<halo::value_type> types{halo::value_type::bytes};
        for (int type = 1; type <= static_cast<int>(halo::value_type::float64); ++type)
            with_type(static_cast<halo::value_type>(type), [&](auto zero) {
                if (sizeof zero == f.value) types.push_back(static_cast<halo::value_type>(type));
            });
        f.type = types[static_cast<std::size_t>(pick(0, 3)) % types.size()];
        f.layout.components = pick(1, 3);
        switch (pick(0, 3)) {
            case 0:
                f.radius = halo::radius::all(pick(0, 3));
                break;
            case 1:
                f.radius = halo::radius::faces(pick(1, 3));
                break;
            default:
                for (int &depth : f.radius.cells) depth = pick(0, 1) * pick(0, 3);
                f.radius.cells[halo::no_direction] = 0;
        }
        f.layout.interleaved = pick(0, 1) == 1;
        // Padding and gaps are each rank's own.
        for (int number_of = 0; number_of < halo::directions; ++number_of)
            for (int a = 0; a < dimensions_; ++a) {
                bool exists = true;
                for (int b = dimensions_; b < 3; ++b) exists = exists && halo::direction(number_of)[b] == 0;
                const std::int64_t depth = exists ? f.radius.cells[number_of] : 0;
                if (halo::direction(number_of)[a] < 0) f.below[a] = std::max(f.below[a], depth);
                if (halo::direction(number_of)[a] > 0) f.above[a] = std::max(f.above[a], depth);
            }
        if (pick_own(0, 1))
            for (int a = 0; a < 3; ++a) {
                f.layout.below[a] = f.below[a] += pick_own(0, 2);
                f.layout.above[a] = f.above[a] += pick_own(0, 2);
            }
        f.cell = f.value * static_cast<std::size_t>(f.layout.interleaved ? f.layout.components : 1);
        for (std::size_t i = 0; i < g.boxes().size(); ++i)
            f.boxes.push_back({.number = g.boxes()[i], .local = points_of(f, g.local(static_cast<int>(i)))});
        // Each distance, of `unit` bytes for each of the cells along an axis; given ones are the same for all boxes.
        const auto distance = [&](std::size_t test_box::*which, int a, const auto &unit, bool may_be_given) {
            std::size_t longest = 0;
            for (test_box &b : f.boxes) {
                b.*which = unit(b) * static_cast<std::size_t>(b.local.size()[a] + f.below[a] + f.above[a]);
                longest = std::max(longest, b.*which);
            }
            if (!pick_own(0, 1) || longest == 0 || !may_be_given) return std::size_t{0};
            longest += static_cast<std::size_t>(pick_own(1, 20));
            for (test_box &b : f.boxes) b.*which = longest;
            return longest;
        };
        f.layout.row_bytes = distance(
            &test_box::row, 0, [&](const test_box &) { return f.cell; }, true);
        f.layout.plane_bytes = distance(
            &test_box::plane, 1, [](const test_box &b) { return b.row; }, true);
        f.layout.component_bytes = distance(
            &test_box::component, 2, [](const test_box &b) { return b.plane; }, !f.layout.interleaved);
        f.two_allocations = pick(0, 2) == 0;
        for (test_box &b : f.boxes) {
            b.memory.resize(b.component * static_cast<std::size_t>(f.layout.interleaved ? 1 : f.layout.components) + 1);
            if (f.two_allocations) b.second.resize(b.memory.size());
        }
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

    void fill(std::uint64_t epoch) {
        for (test_field &f : fields_) {
            poison_all(f);
            for (test_box &b : f.boxes)
                for_each_cell(b.local, [&](const index3 &cell) { put(f, b, b.memory, cell, cell, epoch); });
        }
    }

    // By start() and finish(), or by the field, or by a thread for each field.
    void exchange(halo::exchange &x, std::size_t fields) {
        std::vector<int> order(fields);
        for (std::size_t f = 0; f < fields; ++f) order[f] = static_cast<int>(f);
        std::shuffle(order.begin(), order.end(), own_);
        const int how = pick_own(0, 2);
        if (how == 0) {
            x.start();
        } else if (how == 1) {
            x.begin();
            for (const int f : order) x.ready(f);
        } else {
            x.begin();
            std::vector<std::thread> threads;
            for (const int f : order) threads.emplace_back([&x, f] { x.ready(f); });
            for (std::thread &t : threads) t.join();
        }
        x.finish();
    }

    int check(const test_field &f, std::uint64_t epoch) const {
        int wrong = 0;
        for (const test_box &b : f.boxes) wrong += check(f, b, epoch);
        return wrong;
    }

    int check(const test_field &f, const test_box &b, std::uint64_t epoch) const {
        std::vector<std::byte> expected(b.memory.size(), poison);
        const box &local = b.local;
        box all = local;
        for (int a = 0; a < 3; ++a) {
            all.lo[a] -= f.below[a];
            all.hi[a] += f.above[a];
        }
        if (!local.empty())
            for_each_cell(all, [&](const index3 &where) {
                std::array<int, 3> step{};
                std::int64_t distance = 0;
                index3 cell = where;
                for (int a = 0; a < 3; ++a) {
                    if (where[a] < local.lo[a]) step[a] = -1, distance = std::max(distance, local.lo[a] - where[a]);
                    if (where[a] >= local.hi[a]) step[a] = 1, distance = std::max(distance, where[a] - local.hi[a] + 1);
                    if (options_.periodic[a]) cell[a] = ((cell[a] % f.extent[a]) + f.extent[a]) % f.extent[a];
                    if (cell[a] < 0 || cell[a] >= f.extent[a]) return;
                }
                if (distance > f.radius.cells[halo::direction_number(step[0], step[1], step[2])]) return;
                for (int a = dimensions_; a < 3; ++a)
                    if (step[a] != 0) return;
                put(f, b, expected, where, cell, epoch);
            });
        int wrong = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) wrong += expected[i] != b.memory[i];
        for (const std::byte c : b.second) wrong += c != poison;
        return wrong;
    }

    std::mt19937 shared_, own_;
    int rank_ = 0, ranks_ = 1, node_ranks_ = 1, dimensions_ = 3;
    index3 extent_{1, 1, 1};
    halo::grid_options options_;
    std::vector<test_field> fields_;
};

}  // namespace

int main(int argc, char **argv) {
    int rank = 0, level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level < MPI_THREAD_MULTIPLE) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned first = 1, programs = 40, tried = 0;
    double seconds = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--seed") == 0) first = static_cast<unsigned>(std::strtoull(argv[i + 1], nullptr, 10));
        if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
        if (std::strcmp(argv[i], "--programs") == 0) programs = static_cast<unsigned>(std::atoi(argv[i + 1]));
    }
    // Until the time of rank 0 is over, if a time is given.
    const double start = MPI_Wtime();
    const auto more = [&] {
        if (seconds <= 0) return tried < programs;
        int go_on = MPI_Wtime() - start < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        return go_on != 0;
    };
    int failed = 0;
    for (unsigned seed = first; more(); ++seed, ++tried) {
        try {
            const int wrong = program(seed).run();
            if (wrong > 0) std::printf("rank %d: seed %u: %d bytes are wrong\n", rank, seed, wrong);
            failed += wrong > 0;
        } catch (const halo::error &e) {
            std::printf("rank %d: seed %u: %s\n", rank, seed, e.what());
            ++failed;
        }
    }
    int all = 0;
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) std::printf("%u programs, %d failures\n", tried, all);
    MPI_Finalize();
    return all > 0;
}
