// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_support.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

namespace jacobi3d {

void mpi_check(int error, const char *call) {
    if (error == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    // mpix begins its sentences with the call, MPI libraries do not.
    const bool named = std::string(text).rfind(call, 0) == 0;
    throw std::runtime_error(named ? text : std::string(call) + ": " + text);
}

void broadcast_bool(const std::string &complaint, MPI_Comm comm) {
    int rank, size;
    mpi_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    mpi_check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    const int mine = complaint.empty() ? size : rank;
    int first = size;
    mpi_check(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    if (first == size) return;
    int length = static_cast<int>(complaint.size());
    mpi_check(MPI_Bcast(&length, 1, MPI_INT, first, comm), "MPI_Bcast");
    std::string words = complaint;
    words.resize(length);
    mpi_check(MPI_Bcast(words.data(), length, MPI_CHAR, first, comm), "MPI_Bcast");
    throw usage_error(words);
}

// What all ranks know of all ranks.
struct layout::places {
    struct place {
        int node_leader, node_rank;
    };

    explicit places(MPI_Comm comm) {
        mpi_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
        mpi_check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
        MPI_Comm node;
        mpi_check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
        mpi_check(MPI_Comm_rank(node, &node_rank), "MPI_Comm_rank");
        mpi_check(MPI_Comm_size(node, &node_size), "MPI_Comm_size");
        place mine = {rank, node_rank};
        mpi_check(MPI_Bcast(&mine.node_leader, 1, MPI_INT, 0, node), "MPI_Bcast");
        mpi_check(MPI_Comm_free(&node), "MPI_Comm_free");
        all.resize(size);
        mpi_check(MPI_Allgather(&mine, 2, MPI_INT, all.data(), 2, MPI_INT, comm), "MPI_Allgather");

        std::map<int, int> ranks_of;
        for (const place &p : all) ++ranks_of[p.node_leader];
        nodes = static_cast<int>(ranks_of.size());
        int index = 0;
        for (const auto &[leader, ranks] : ranks_of) {
            node_index[leader] = index++;
            even = even && ranks == size / nodes;
        }
    }

    // Nodes with unequal numbers of ranks are no level of the decomposition.
    std::vector<int> levels() const { return even ? std::vector<int>{nodes, size / nodes} : std::vector<int>{size}; }
    int box_of(int r) const { return even ? node_index.at(all[r].node_leader) * (size / nodes) + all[r].node_rank : r; }

    int rank, size, node_rank, node_size, nodes;
    bool even = true;
    std::vector<place> all;
    std::map<int, int> node_index;  // by leader
};

layout::layout(const extent3 &grid, MPI_Comm comm) : layout(grid, comm, places(comm)) {}

layout::layout(const extent3 &grid, MPI_Comm, const places &p)
    : rank(p.rank),
      size(p.size),
      node_rank(p.node_rank),
      node_size(p.node_size),
      nodes(p.nodes),
      boxes(grid, p.levels()),
      rank_of_box(p.size),
      box(p.box_of(p.rank)) {
    for (int r = 0; r < size; ++r) rank_of_box[p.box_of(r)] = r;
}

namespace {

// A box is sent as its rows along x, in pieces of whole rows.
template <class Real>
std::int64_t rows_per_piece(const extent3 &size) {
    constexpr std::int64_t piece_bytes = std::int64_t{64} << 20;
    return std::max<std::int64_t>(1, piece_bytes / (size[0] * static_cast<std::int64_t>(sizeof(Real))));
}

// Put rows first <= r < first + rows of a box where they belong in the grid.
template <class Real>
void place_rows(const Real *from, const box3 &box, std::int64_t first, std::int64_t rows, const extent3 &grid,
                std::vector<Real> &whole) {
    const extent3 size = box.size();
    for (std::int64_t r = first; r < first + rows; ++r, from += size[0]) {
        const std::int64_t y = box.begin[1] + r % size[1], z = box.begin[2] + r / size[1];
        std::memcpy(&whole[(z * grid[1] + y) * grid[0] + box.begin[0]], from, size[0] * sizeof(Real));
    }
}

}  // namespace

template <class Real>
std::vector<Real> gather(const layout &where, const std::vector<Real> &mine, MPI_Comm comm) {
    constexpr int tag = 0;
    const auto bytes = [](std::int64_t cells) { return static_cast<int>(cells * sizeof(Real)); };
    if (where.rank != 0) {
        const extent3 size = where.my_cells().size();
        const std::int64_t rows = std::int64_t{size[1]} * size[2], piece = rows_per_piece<Real>(size);
        for (std::int64_t r = 0; r < rows; r += piece)
            mpi_check(
                MPI_Send(mine.data() + r * size[0], bytes(std::min(piece, rows - r) * size[0]), MPI_BYTE, 0, tag, comm),
                "MPI_Send");
        return {};
    }

    const extent3 &grid = where.boxes.grid();
    std::vector<Real> whole(box3{{0, 0, 0}, grid}.cells()), buffer;
    for (int b = 0; b < where.boxes.count(); ++b) {
        const box3 box = where.boxes.box(b);
        const extent3 size = box.size();
        const std::int64_t rows = std::int64_t{size[1]} * size[2], piece = rows_per_piece<Real>(size);
        if (b == where.box) {
            place_rows(mine.data(), box, 0, rows, grid, whole);
            continue;
        }
        for (std::int64_t r = 0; r < rows; r += piece) {
            const std::int64_t now = std::min(piece, rows - r);
            buffer.resize(now * size[0]);
            mpi_check(MPI_Recv(buffer.data(), bytes(now * size[0]), MPI_BYTE, where.rank_of_box[b], tag, comm,
                               MPI_STATUS_IGNORE),
                      "MPI_Recv");
            place_rows(buffer.data(), box, r, now, grid, whole);
        }
    }
    return whole;
}

template std::vector<float> gather(const layout &, const std::vector<float> &, MPI_Comm);
template std::vector<double> gather(const layout &, const std::vector<double> &, MPI_Comm);

void print_in_order(const std::string &text, int most, MPI_Comm comm) {
    constexpr int tag = 1;
    int rank, size;
    mpi_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    mpi_check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    if (rank > 0 && rank < most)
        mpi_check(MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, tag, comm), "MPI_Send");
    if (rank != 0) return;
    std::fputs(text.c_str(), stdout);
    for (int r = 1; r < std::min(size, most); ++r) {
        MPI_Status status;
        int length;
        mpi_check(MPI_Probe(r, tag, comm, &status), "MPI_Probe");
        mpi_check(MPI_Get_count(&status, MPI_CHAR, &length), "MPI_Get_count");
        std::string other(length, '\0');
        mpi_check(MPI_Recv(other.data(), length, MPI_CHAR, r, tag, comm, MPI_STATUS_IGNORE), "MPI_Recv");
        std::fputs(other.c_str(), stdout);
    }
    if (size > most) std::printf("... and %d more ranks\n", size - most);
    std::fflush(stdout);
}

}  // namespace jacobi3d
