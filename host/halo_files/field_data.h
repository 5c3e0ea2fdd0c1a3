// SPDX-License-Identifier: BSD-3-Clause
//
// The data of a field in a file that all ranks have open. Each rank reads or writes an equal part of the data, in large
// pieces without gaps, and the ranks send each other the rows of their boxes.
#ifndef MPIX_HOST_HALO_FILES_FIELD_DATA_H
#define MPIX_HOST_HALO_FILES_FIELD_DATA_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/halo/grid_state.h"
#include "host/halo_files/file_fields.h"
#include "host/halo_files/file_order.h"
#include "host/halo_files/shared_file.h"
#include "transport/status.h"

namespace mpix::halo {

constexpr std::int64_t usual_piece_bytes = std::int64_t{1} << 24;

class field_data {
public:
    // `piece_bytes`: of what is read or written at once, but at least one cell.
    // Keeps references.
    field_data(const grid_state &g, const file_field &f, std::int64_t piece_bytes);
    // Collective; what this rank's reads or writes gave. `place`: of the data in the file. After a failure the rank goes
    // on with the messages. Throw error if one of these fails.
    status write(shared_file &file, std::int64_t place);
    status read(shared_file &file, std::int64_t place);

private:
    // What a rank reads or writes in a round.
    cell_range piece_of(int rank, std::int64_t round) const;
    std::int64_t rounds() const;
    // The bytes of a rank's boxes that are in a piece.
    std::int64_t bytes_in(int owner, const cell_range &piece) const;
    // Calls each(box, row, number) as for_each_row, for each box of the rank; `box` is its number.
    template <class Each>
    void for_each_row_of(int owner, const cell_range &piece, Each each) const;
    // Of a box of this rank.
    std::size_t position_of(int number) const;
    // Where in the rows of a piece those of each rank begin.
    std::vector<std::int64_t> offsets(const cell_range &piece) const;

    const grid_state &grid_;
    const domain &points_;
    std::vector<std::vector<int>> boxes_;  // of each rank
    row_copy rows_;
    std::int64_t piece_cells_;
    // The piece in the order of the file; its rows, those of one rank together; rows for, or of, one other rank.
    std::vector<std::byte> piece_, by_rank_, message_;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FILES_FIELD_DATA_H
