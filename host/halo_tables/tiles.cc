// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_tables/tiles.h"

#include <algorithm>
#include <utility>

namespace mpix::halo {
namespace {

// Copies in a message begin at multiples of so many bytes, the longest that a thread copies at once.
constexpr std::int64_t packed_alignment = 16;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

tiling::tiling(const box &whole, const index3 &size) : whole_(whole), size_(size), along_{} {
    for (int a = 0; a < 3; ++a) {
        const std::int64_t cells = whole.empty() ? 0 : whole.size()[a];
        if (size_[a] == 0 || size_[a] > cells) size_[a] = std::max<std::int64_t>(cells, 1);
        along_[a] = divide_up(cells, size_[a]);
    }
}

std::int64_t tiling::count() const {
    // Not more than it can hold: a box has at most 2^60 cells.
    return along_[0] * along_[1] * along_[2];
}

box tiling::at(int number) const {
    const index3 where{number % along_[0], number / along_[0] % along_[1], number / (along_[0] * along_[1])};
    box tile;
    for (int a = 0; a < 3; ++a) {
        tile.lo[a] = whole_.lo[a] + where[a] * size_[a];
        tile.hi[a] = std::min(tile.lo[a] + size_[a], whole_.hi[a]);
    }
    return tile;
}

std::vector<int> tiling::touched(const box &part) const {
    const box inside = intersection(part, whole_);
    std::vector<int> numbers;
    if (inside.empty()) return numbers;
    index3 first{}, last{};
    for (int a = 0; a < 3; ++a) {
        first[a] = (inside.lo[a] - whole_.lo[a]) / size_[a];
        last[a] = (inside.hi[a] - 1 - whole_.lo[a]) / size_[a];
    }
    for (auto z = first[2]; z <= last[2]; ++z)
        for (auto y = first[1]; y <= last[1]; ++y)
            for (auto x = first[0]; x <= last[0]; ++x)
                numbers.push_back(static_cast<int>((z * along_[1] + y) * along_[0] + x));
    return numbers;
}

std::vector<int> tiling::touched_by_points(box part) const {
    for (int a = 0; a < 3; ++a)
        if (part.lo[a] == whole_.hi[a] && part.hi[a] == whole_.hi[a] + 1) --part.lo[a];
    return touched(part);
}

index3 choose_tile(const std::vector<box> &boxes, int dimensions, const index3 &given, std::int64_t depth_bytes) {
    // Tiles are halved while their largest side has more than most_side_bytes, or more than enough_side_bytes if that
    // side of the box has fewer than enough_tiles: enough blocks, with enough bytes each. The limits were found by
    // trial between two H200. Each tile costs time when the exchange is made, so there is a limit to their number.
    constexpr std::int64_t parts = 4, least = 8, enough_side_bytes = 32 << 10, most_side_bytes = 128 << 10,
                           enough_tiles = 64, most_tiles = 4096;
    index3 tile = given, longest{1, 1, 1};
    const auto axes = static_cast<std::size_t>(dimensions);
    for (std::size_t a = 0; a < axes; ++a) {
        for (const box &b : boxes) longest[a] = std::max(longest[a], b.empty() ? 0 : b.size()[a]);
        if (tile[a] == 0) tile[a] = std::max(divide_up(longest[a], parts), least);
    }
    // The largest side is perpendicular to the axis along which a tile is shortest. Its bytes for one tile, and how
    // many tiles the box has on that side.
    std::size_t across = 0;
    struct side {
        double bytes, tiles;
    };
    const auto largest_side = [&] {
        across = 0;
        for (std::size_t a = 1; a < axes; ++a)
            if (tile[a] < tile[across]) across = a;
        side largest{static_cast<double>(depth_bytes), 1};
        for (std::size_t a = 0; a < axes; ++a) {
            if (a == across) continue;
            largest.bytes *= static_cast<double>(tile[a]);
            largest.tiles *= static_cast<double>(divide_up(longest[a], tile[a]));
        }
        return largest;
    };
    const auto is_large = [&] {
        const side largest = largest_side();
        return largest.bytes > most_side_bytes || (largest.bytes > enough_side_bytes && largest.tiles < enough_tiles);
    };
    const auto tiles = [&] {
        double all = 1;
        for (std::size_t a = 0; a < axes; ++a) all *= static_cast<double>(divide_up(longest[a], tile[a]));
        return all;
    };
    while (is_large() && tiles() < most_tiles) {
        std::size_t halved = axes;
        for (std::size_t a = 0; a < axes; ++a)
            if (a != across && given[a] == 0 && tile[a] > least && (halved == axes || tile[a] > tile[halved]))
                halved = a;
        if (halved == axes) break;
        tile[halved] = std::max(divide_up(tile[halved], 2), least);
    }
    return tile;
}

namespace {

// Both ends of a message have the same pieces in the same order, so they make the same parcels of them.
class collector {
public:
    collector(const domain &d, const index3 &tile, const exchanged_fields &fields)
        : d_(d), tile_(tile), fields_(fields) {}

    void add(const piece &p, int field, int rank) {
        const std::array<bool, 3> &staggered = fields_[static_cast<std::size_t>(field)].staggered;
        const tiling tiles(d_.boxes[p.owner], tile_);
        for (const int t : tiles.touched_by_points(p.source)) {
            part one{.field = field,
                     .owner = p.owner,
                     .receiver = p.receiver,
                     .direction = p.direction,
                     .source = intersection(p.source, points_of(d_, tiles.at(t), staggered)),
                     .ghosts = {},
                     .packed = 0};
            for (int a = 0; a < 3; ++a) {
                const std::int64_t shift = p.ghosts.lo[a] - p.source.lo[a];
                one.ghosts.lo[a] = one.source.lo[a] + shift;
                one.ghosts.hi[a] = one.source.hi[a] + shift;
            }
            by_rank_[rank][{p.owner, t}].push_back(one);
        }
    }

    std::map<int, parcels> made() {
        std::map<int, parcels> all;
        for (auto &[rank, by_tile] : by_rank_) {
            parcels &its = all[rank];
            for (auto &[where, parts] : by_tile)
                its.all.push_back({.owner = where.first, .tile = where.second, .parts = std::move(parts)});
            lay_out(its);
        }
        return all;
    }

private:
    void lay_out(parcels &p) const {
        std::vector<std::int64_t> bytes;
        for (parcel &one : p.all) {
            bytes.push_back(0);
            for (part &cells : one.parts) {
                cells.packed = bytes.back();
                const std::int64_t its =
                    cells.source.cells() * fields_[static_cast<std::size_t>(cells.field)].cell_bytes;
                bytes.back() += divide_up(its, packed_alignment) * packed_alignment;
            }
        }
        p.cut = choose_partitions(bytes, kernel_partition_cost);
        // Of whole words, so that each parcel begins at one.
        p.cut.bytes = divide_up(p.cut.bytes, packed_alignment) * packed_alignment;
        for (std::size_t i = 0; i < p.all.size(); ++i) {
            p.all[i].first = p.cut.first[i];
            p.all[i].last = p.cut.first[i + 1] - 1;
            for (part &cells : p.all[i].parts) cells.packed += p.cut.offset(static_cast<int>(i));
        }
    }

    const domain &d_;
    const index3 &tile_;
    const exchanged_fields &fields_;
    std::map<int, std::map<std::pair<int, int>, std::vector<part>>> by_rank_;  // by box and tile of the owner
};

}  // namespace

std::map<int, parcels> parcels_received(const domain &d, const std::vector<int> &boxes, const index3 &tile,
                                        const exchanged_fields &fields) {
    const box_index index(d);
    collector all(d, tile, fields);
    for (std::size_t f = 0; f < fields.size(); ++f)
        for (const piece &p : pieces_to(points_of(d, fields[f].staggered), index, boxes, fields[f].radius))
            all.add(p, static_cast<int>(f), d.owners[p.owner]);
    return all.made();
}

std::map<int, parcels> parcels_sent(const domain &d, const std::vector<int> &boxes, const index3 &tile,
                                    const exchanged_fields &fields) {
    const box_index index(d);
    collector all(d, tile, fields);
    for (std::size_t f = 0; f < fields.size(); ++f)
        for (const piece &p : pieces_from(points_of(d, fields[f].staggered), index, boxes, fields[f].radius))
            all.add(p, static_cast<int>(f), d.owners[p.receiver]);
    return all.made();
}

box near(const box &ghosts, const exchanged_field &field) {
    std::int64_t most = 0;
    for (const int depth : field.radius.cells) most = std::max<std::int64_t>(most, depth);
    box grown = ghosts;
    for (int a = 0; a < 3; ++a) grown.lo[a] -= most + field.staggered[a], grown.hi[a] += most;
    return grown;
}

std::vector<int> readers_of(const domain &d, const tiling &tiles, const box &ghosts, const exchanged_field &field) {
    // A tile that is near enough reads some if its own directions say so.
    const halo::radius &radius = field.radius;
    std::vector<int> readers = tiles.touched(near(ghosts, field));
    std::erase_if(readers, [&](int t) {
        const box points = points_of(d, tiles.at(t), field.staggered);
        for (int number = 0; number < directions; ++number)
            if (number != no_direction && radius.cells[number] > 0 &&
                !intersection(ghosts, ghosts_of(points, number, radius.cells[number])).empty())
                return false;
        return true;
    });
    return readers;
}

}  // namespace mpix::halo
