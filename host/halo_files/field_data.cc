// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_files/field_data.h"

#include <mpi.h>

#include <algorithm>
#include <cstring>

#include "host/halo/collective.h"

namespace mpix::halo {
namespace {

constexpr int field_tag = 0;

}  // namespace

field_data::field_data(const grid_state &g, const file_field &f, std::int64_t piece_bytes)
    : grid_(g),
      points_(f.points),
      boxes_(static_cast<std::size_t>(g.ranks)),
      rows_(f.view),
      piece_cells_(std::max<std::int64_t>(piece_bytes / rows_.cell_bytes(), 1)) {
    for (std::size_t number = 0; number < points_.boxes.size(); ++number)
        boxes_[static_cast<std::size_t>(points_.owners[number])].push_back(static_cast<int>(number));
    // No piece is longer than the part of a rank, of which that of rank 0 is longest.
    const std::int64_t part = piece_of(0, 0).cells();
    const auto bytes = static_cast<std::size_t>(std::min(piece_cells_, part) * rows_.cell_bytes());
    piece_.resize(bytes);
    by_rank_.resize(bytes);
    message_.resize(bytes);
}

cell_range field_data::piece_of(int rank, std::int64_t round) const {
    const std::int64_t cells = cells_of(points_.extent), least = cells / grid_.ranks, longer = cells % grid_.ranks;
    const auto begin = [&](std::int64_t r) { return r * least + std::min(r, longer); };
    const std::int64_t first = begin(rank) + round * piece_cells_;
    return {first, std::min(first + piece_cells_, begin(rank + 1))};
}

std::int64_t field_data::rounds() const {
    const std::int64_t part = (cells_of(points_.extent) + grid_.ranks - 1) / grid_.ranks;
    return (part + piece_cells_ - 1) / piece_cells_;
}

std::size_t field_data::position_of(int number) const { return static_cast<std::size_t>(grid_.position_of(number)); }

template <class Each>
void field_data::for_each_row_of(int owner, const cell_range &piece, Each each) const {
    for (const int number : boxes_[static_cast<std::size_t>(owner)])
        for_each_row(points_.boxes[static_cast<std::size_t>(number)], points_.extent, piece,
                     [&](const box &row, std::int64_t cell) { each(number, row, cell); });
}

std::int64_t field_data::bytes_in(int owner, const cell_range &piece) const {
    std::int64_t cells = 0;
    for_each_row_of(owner, piece, [&](int, const box &row, std::int64_t) { cells += row.hi[0] - row.lo[0]; });
    return cells * rows_.cell_bytes();
}

std::vector<std::int64_t> field_data::offsets(const cell_range &piece) const {
    std::vector<std::int64_t> begin{0};
    for (int owner = 0; owner < grid_.ranks; ++owner) begin.push_back(begin.back() + bytes_in(owner, piece));
    return begin;
}

status field_data::write(shared_file &file, std::int64_t place) {
    status failed;
    const std::int64_t cell = rows_.cell_bytes(), all = rounds();
    for (std::int64_t round = 0; round < all; ++round) {
        const cell_range mine = piece_of(grid_.rank, round);
        const std::vector<std::int64_t> begin = offsets(mine);
        std::vector<MPI_Request> requests;
        for (int owner = 0; owner < grid_.ranks; ++owner)
            if (const std::int64_t bytes = begin[owner + 1] - begin[owner]; bytes > 0 && owner != grid_.rank)
                demand(MPI_Irecv(by_rank_.data() + begin[owner], static_cast<int>(bytes), MPI_BYTE, owner, field_tag,
                                 grid_.comm, &requests.emplace_back()),
                       "MPI_Irecv");
        // All ranks have posted their receives, or will without waiting for anybody: so these calls return.
        for (int i = 0; i < grid_.ranks; ++i) {
            const int to = (grid_.rank + i) % grid_.ranks;
            std::byte *const into = to == grid_.rank ? by_rank_.data() + begin[to] : message_.data();
            std::int64_t bytes = 0;
            for_each_row_of(grid_.rank, piece_of(to, round), [&](int number, const box &row, std::int64_t) {
                bytes += rows_.to_file(position_of(number), row, into + bytes);
            });
            if (bytes > 0 && to != grid_.rank)
                demand(MPI_Send(into, static_cast<int>(bytes), MPI_BYTE, to, field_tag, grid_.comm), "MPI_Send");
        }
        demand(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        for (int owner = 0; owner < grid_.ranks; ++owner) {
            const std::byte *from = by_rank_.data() + begin[owner];
            for_each_row_of(owner, mine, [&](int, const box &row, std::int64_t number) {
                const auto bytes = static_cast<std::size_t>((row.hi[0] - row.lo[0]) * cell);
                std::memcpy(piece_.data() + (number - mine.first) * cell, from, bytes);
                from += bytes;
            });
        }
        if (failed.ok() && mine.cells() > 0)
            failed = file.write_at(place + mine.first * cell, piece_.data(), mine.cells() * cell);
    }
    return failed;
}

status field_data::read(shared_file &file, std::int64_t place) {
    status failed;
    const std::int64_t cell = rows_.cell_bytes(), all = rounds();
    for (std::int64_t round = 0; round < all; ++round) {
        const cell_range mine = piece_of(grid_.rank, round);
        if (failed.ok() && mine.cells() > 0)
            failed = file.read_at(place + mine.first * cell, piece_.data(), mine.cells() * cell);
        const std::vector<std::int64_t> begin = offsets(mine);
        std::vector<MPI_Request> requests;
        for (int owner = 0; owner < grid_.ranks; ++owner) {
            std::byte *to = by_rank_.data() + begin[owner];
            for_each_row_of(owner, mine, [&](int, const box &row, std::int64_t number) {
                const auto bytes = static_cast<std::size_t>((row.hi[0] - row.lo[0]) * cell);
                std::memcpy(to, piece_.data() + (number - mine.first) * cell, bytes);
                to += bytes;
            });
            if (const std::int64_t bytes = begin[owner + 1] - begin[owner]; bytes > 0 && owner != grid_.rank)
                demand(MPI_Isend(by_rank_.data() + begin[owner], static_cast<int>(bytes), MPI_BYTE, owner, field_tag,
                                 grid_.comm, &requests.emplace_back()),
                       "MPI_Isend");
        }
        for (int i = 0; i < grid_.ranks; ++i) {
            const int from = (grid_.rank + grid_.ranks - i) % grid_.ranks;
            const cell_range piece = piece_of(from, round);
            const std::int64_t bytes = bytes_in(grid_.rank, piece);
            if (bytes > 0 && from != grid_.rank)
                demand(MPI_Recv(message_.data(), static_cast<int>(bytes), MPI_BYTE, from, field_tag, grid_.comm,
                                MPI_STATUS_IGNORE),
                       "MPI_Recv");
            const std::byte *at = from == grid_.rank ? by_rank_.data() + begin[from] : message_.data();
            for_each_row_of(grid_.rank, piece, [&](int number, const box &row, std::int64_t) {
                at += rows_.from_file(at, position_of(number), row);
            });
        }
        demand(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }
    return failed;
}

}  // namespace mpix::halo
