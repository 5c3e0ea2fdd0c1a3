// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_exchange/ghosts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace mpix::halo {
namespace {

std::int64_t bytes_along_x(const field_view &view) {
    return view.value_bytes() * (view.interleaved() ? view.components() : 1);
}

// As message::pack_field() puts them, one after the other: along x, y, z, and then components that are not interleaved.
ghost_piece packed_piece(const field_view &view, const piece &p, const std::byte *first) {
    const index3 size = p.ghosts.size();
    const std::int64_t cell = bytes_along_x(view), row = size[0] * cell, plane = size[1] * row;
    const std::int64_t component = view.interleaved() ? view.value_bytes() : size[2] * plane;
    return {p.ghosts, p.direction, first, {cell, row, plane}, component};
}

// In a field's memory, where rows_of() says.
ghost_piece piece_in_memory(const field_view &view, const box &cells, int direction, const runs &rows) {
    const std::int64_t component = view.interleaved() ? view.value_bytes() : rows.stride[2];
    return {cells, direction, rows.first, {bytes_along_x(view), rows.stride[0], rows.stride[1]}, component};
}

struct found_piece {
    ghost_piece piece;
    const void *other;
};

// Of one box of this rank. Sorts them.
box_to_read box_of(const field_view &view, std::size_t i, const box &local, std::vector<found_piece> &found) {
    box_to_read made;
    const box &allocated = view.allocated_cells(i);
    const runs rows = view.rows_of(i, allocated);
    const ghost_piece all = piece_in_memory(view, allocated, no_direction, rows);
    made.cells = {local, allocated, rows.first, all.stride, all.component_stride};
    made.other_cells = rows.other;
    std::stable_sort(found.begin(), found.end(),
                     [](const found_piece &a, const found_piece &b) { return a.piece.direction < b.piece.direction; });
    for (const found_piece &f : found) {
        made.pieces.push_back(f.piece);
        made.other_pieces.push_back(f.other);
        ++made.cells.first_piece[static_cast<std::size_t>(f.piece.direction) + 1];
    }
    std::partial_sum(made.cells.first_piece.begin(), made.cells.first_piece.end(), made.cells.first_piece.begin());
    made.cells.pieces = made.pieces.data();
    return made;
}

}  // namespace

std::vector<box_to_read> boxes_to_read(const grid_state &g, int field, const field_view &view,
                                       const std::vector<piece> &ghosts, const std::vector<message> &receives) {
    const std::vector<box> local = g.local_points(view.staggered());
    std::vector<std::vector<found_piece>> found(local.size());
    std::map<int, const std::byte *> next;  // in each rank's message, whose pieces are in the same order
    for (const piece &p : ghosts) {
        std::vector<found_piece> &of_box = found[static_cast<std::size_t>(g.position_of(p.receiver))];
        const int rank = g.domain.owners[p.owner];
        if (rank == g.rank) {
            const runs rows = view.rows_of(static_cast<std::size_t>(g.position_of(p.owner)), p.source);
            of_box.push_back({piece_in_memory(view, p.ghosts, p.direction, rows), rows.other});
            continue;
        }
        const auto [at, is_first] = next.try_emplace(rank);
        if (is_first) {
            const auto m = std::partition_point(receives.begin(), receives.end(),
                                                [rank](const message &some) { return some.peer() < rank; });
            at->second = m->received() + m->offset_of(field, 0);
        }
        of_box.push_back({packed_piece(view, p, at->second), nullptr});
        at->second += p.ghosts.cells() * view.components() * view.value_bytes();
    }
    std::vector<box_to_read> all;
    for (std::size_t i = 0; i < local.size(); ++i) all.push_back(box_of(view, i, local[i], found[i]));
    return all;
}

void read_other(std::vector<box_to_read> &boxes) {
    for (box_to_read &b : boxes) {
        if (b.other_cells != nullptr) std::swap(b.cells.first, b.other_cells);
        for (std::size_t n = 0; n < b.pieces.size(); ++n)
            if (b.other_pieces[n] != nullptr) std::swap(b.pieces[n].first, b.other_pieces[n]);
    }
}

std::int64_t alignment_of(const std::vector<field_view> &fields) {
    std::int64_t most = 1;
    for (const field_view &f : fields) most = std::max(most, f.value_bytes() & -f.value_bytes());
    return std::min(most, message::most_alignment);
}

}  // namespace mpix::halo
