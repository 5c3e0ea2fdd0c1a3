// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges of a random program whose ghost cells stay in the messages, and what the accessors read there.
#include <algorithm>
#include <array>

#include "tests/halo/random/program.hpp"

namespace random_halo {

namespace {

std::byte byte_at(const void *first, std::int64_t offset) { return static_cast<const std::byte *>(first)[offset]; }

}  // namespace

// Each rank's layout has room for all ghost cells, for some, or for none. Its values are aligned.
void program::take_room(test_field &f) {
    const int how = pick_own(0, 2);
    for (int a = 0; a < 3 && how != 2; ++a) {
        f.layout.below[a] = f.below[a] = how == 0 ? 0 : pick_own(0, static_cast<int>(f.below[a]));
        f.layout.above[a] = f.above[a] = how == 0 ? 0 : pick_own(0, static_cast<int>(f.above[a]));
    }
    allocate(f, 16);
}

int program::run_in_messages(const halo::grid &g) {
    std::vector<halo::field> described;
    for (test_field &f : fields_) {
        take_room(f);
        described.push_back(f.description());
    }
    const halo::transfer transfers[] = {halo::transfer::packed, halo::transfer::plain, halo::transfer::automatic};
    std::vector<halo::exchange> x;
    x.emplace_back(
        g, described,
        halo::exchange_options{.transfer = transfers[pick(0, 2)], .ghosts = halo::ghost_storage::in_messages});
    x[0].measure(pick_own(0, 1) == 1);
    std::vector<std::vector<int>> all(1);
    for (int f = 0; f < static_cast<int>(fields_.size()); ++f) all[0].push_back(f);
    int wrong = check_interior(g, x[0], all[0]);

    std::vector<std::vector<std::byte>> held;  // by each allocation in use, and then by the other one
    const auto begin = [&](std::uint64_t epoch) {
        if (pick_own(0, 1)) swap(x, all);
        wrong += check_data(x, all);
        fill(epoch);
        held.clear();
        for (const test_field &f : fields_)
            for (const test_box &b : f.boxes) held.push_back(b.memory), held.push_back(b.second);
        start(x[0], fields_.size());
    };
    const auto check = [&](std::uint64_t epoch) {
        std::size_t at = 0;
        for (int f = 0; f < static_cast<int>(fields_.size()); ++f) {
            const test_field &field = fields_[static_cast<std::size_t>(f)];
            for (const test_box &b : field.boxes)
                for (const std::vector<std::byte> *const now : {&b.memory, &b.second}) wrong += held[at++] != *now;
            wrong += check_pieces(x[0], f, field, epoch) + check_reader(x[0], f, field, epoch);
        }
        // What they read does not change by a swap.
        if (pick_own(0, 1) == 0) return;
        swap(x, all);
        for (int f = 0; f < static_cast<int>(fields_.size()); ++f) {
            const test_field &field = fields_[static_cast<std::size_t>(f)];
            wrong += check_pieces(x[0], f, field, epoch) + check_reader(x[0], f, field, epoch);
        }
    };
    constexpr std::uint64_t last = 4;
    begin(1);
    for (std::uint64_t epoch = 1; epoch <= last; ++epoch) {
        x[0].finish();
        // Some ranks read when others have sent again.
        const bool early = pick_own(0, 1) == 1;
        const auto go_on = [&] {
            check(epoch);
            if (epoch < last) begin(epoch + 1);
        };
        if (early) go_on();
        MPI_Barrier(MPI_COMM_WORLD);
        if (!early) go_on();
    }
    for (test_field &f : fields_) {
        fill(last);
        wrong += check_gather(g, f, last);
    }
    return wrong;
}

// All ghost cells are in one of them, at an address that values of their size may have.
int program::check_pieces(const halo::exchange &x, int field, const test_field &f, std::uint64_t epoch) const {
    int wrong = 0;
    for (std::size_t i = 0; i < f.boxes.size(); ++i) {
        const std::vector<halo::ghost_piece> &pieces = x.ghost_pieces(field, static_cast<int>(i));
        std::int64_t ghosts = 0, found = 0;
        for_each_ghost(f, f.boxes[i].local, [&](const index3 &where, const index3 &cell) {
            ++ghosts;
            for (const halo::ghost_piece &p : pieces) {
                if (!inside(p.cells, where)) continue;
                ++found;
                for (int a = 0; a < 3; ++a) {
                    const int step = (where[a] >= f.boxes[i].local.hi[a]) - (where[a] < f.boxes[i].local.lo[a]);
                    wrong += step != halo::direction(p.direction)[static_cast<std::size_t>(a)];
                }
                for (int c = 0; c < f.layout.components; ++c) {
                    std::int64_t at = c * p.component_stride;
                    for (int a = 0; a < 3; ++a) at += (where[a] - p.cells.lo[a]) * p.stride[a];
                    for (std::size_t byte = 0; byte < f.value; ++byte)
                        wrong += byte_at(p.first, at + static_cast<std::int64_t>(byte)) !=
                                 value_at(f.number, cell, static_cast<std::uint64_t>(c) * f.value + byte, epoch);
                }
            }
        });
        std::int64_t cells = 0;
        for (const halo::ghost_piece &p : pieces) cells += p.cells.cells();
        wrong += found != ghosts || cells != ghosts;
        wrong += !std::is_sorted(pieces.begin(), pieces.end(),
                                 [](const auto &a, const auto &b) { return a.direction < b.direction; });
    }
    return wrong;
}

int program::check_reader(const halo::exchange &x, int field, const test_field &f, std::uint64_t epoch) const {
    switch (f.value) {
        case 1:
            return check_reader_of<1>(x, field, f, epoch);
        case 2:
            return check_reader_of<2>(x, field, f, epoch);
        case 4:
            return check_reader_of<4>(x, field, f, epoch);
        case 8:
            return check_reader_of<8>(x, field, f, epoch);
        case 12:
            return check_reader_of<12>(x, field, f, epoch);
        default:
            return check_reader_of<16>(x, field, f, epoch);
    }
}

// Of values that are aligned as values of that size can be. Cells that nobody has are read where the layout has room.
template <std::size_t Bytes>
int program::check_reader_of(const halo::exchange &x, int field, const test_field &f, std::uint64_t epoch) const {
    constexpr std::size_t alignment = Bytes & (~Bytes + 1);
    struct alignas(alignment) value {
        std::array<std::byte, Bytes> bytes;
    };
    static_assert(sizeof(value) == Bytes);
    int wrong = 0;
    for (std::size_t i = 0; i < f.boxes.size(); ++i) {
        const test_box &b = f.boxes[i];
        if (b.local.empty()) continue;
        const halo::ghost_reader<value> read(x, field, static_cast<int>(i));
        const auto compare = [&](const index3 &where, const auto &expected) {
            for (int c = 0; c < f.layout.components; ++c) {
                const value &found = read(where[0], where[1], where[2], c);
                wrong += reinterpret_cast<std::uintptr_t>(&found) % alignment != 0;
                const auto row = read.row(where[0], where[1], where[2], c);
                for (std::size_t n = 0; n < row.size(); ++n)
                    wrong += &row[n] != &read(where[0] + static_cast<std::int64_t>(n), where[1], where[2], c);
                const bool apart = f.layout.interleaved && f.layout.components > 1;
                wrong += row.empty() || (inside(b.local, where) && !apart &&
                                         row.size() != static_cast<std::size_t>(b.local.hi[0] - where[0]));
                for (std::size_t byte = 0; byte < Bytes; ++byte)
                    wrong += found.bytes[byte] != expected(static_cast<std::uint64_t>(c) * Bytes + byte);
            }
        };
        box room = b.local;
        for (int a = 0; a < 3; ++a) room.lo[a] -= f.below[a], room.hi[a] += f.above[a];
        std::vector<index3> held;
        for_each_held(f, b.local, [&](const index3 &where, const index3 &cell) {
            compare(where, [&](std::uint64_t byte) { return value_at(f.number, cell, byte, epoch); });
            if (inside(room, where)) held.push_back(where);
        });
        std::sort(held.begin(), held.end());
        for_each_cell(room, [&](const index3 &where) {
            if (!std::binary_search(held.begin(), held.end(), where))
                compare(where, [](std::uint64_t) { return poison; });
        });
    }
    return wrong;
}

}  // namespace random_halo
