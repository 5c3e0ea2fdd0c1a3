// SPDX-License-Identifier: BSD-3-Clause
//
// The problem of the tutorial: a square of cells whose edges are glued together. In each step a cell becomes the mean of
// the four beside it. Each rank has a band of rows, and the rows beside the band as ghost rows. There are two fields of
// cells; a step reads one and writes the other.
#ifndef TUTORIAL_HEAT_CUH
#define TUTORIAL_HEAT_CUH

#include "barrier.cuh"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tutorial {

inline constexpr int columns = 64, steps = 41, blocks = 4;
static_assert(columns % blocks == 0, "all blocks have as many columns");
static_assert(steps >= 2, "both sets of requests are used");

struct band {
    int rows;           // without the ghost rows
    double *fields[2];  // rows + 2 of them; step s reads fields[s % 2]

    BOTH_FN double *row(int step, int r) const { return fields[step % 2] + r * columns; }
};

/** Computes rows first to last of the next field, in the columns of block `index`. All threads of the block. */
template <class Block>
KERNEL_FN void update(const Block &block, int index, const band &b, int step, int first, int last) {
    constexpr int width = columns / blocks;
    const int rank = static_cast<int>(block.thread_rank()), threads = static_cast<int>(block.num_threads());
    for (int i = rank; i < (last - first + 1) * width; i += threads) {
        const int r = first + i / width, c = index * width + i % width;
        const double *const here = b.row(step, r);
        b.row(step + 1, r)[c] = 0.25 * (here[c - columns] + here[c + columns] +  //
                                        here[(c + columns - 1) % columns] + here[(c + 1) % columns]);
    }
}

/** MPI, this rank's band, and what must come out. */
class heat {
public:
    heat(int argc, char **argv) {
        int provided;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
        if (columns / ranks_ < 2) give_up("heat", "there are too many ranks: each needs two rows");
        choose_gpu();
        band_.rows = columns / ranks_ + (rank_ < columns % ranks_);
        first_row_ = rank_ * (columns / ranks_) + std::min(rank_, columns % ranks_);
        for (double *&field : band_.fields) field = allocate<double>(cells_with_ghosts());
        const std::vector<double> all = at_start();
        copy(band_.row(0, 1), all.data() + first_row_ * columns, cells());
    }
    heat(const heat &) = delete;
    heat &operator=(const heat &) = delete;
    ~heat() {
        for (double *field : band_.fields) release_memory(field);
        MPI_Finalize();
    }

    const band &mine() const { return band_; }
    int above() const { return (rank_ + ranks_ - 1) % ranks_; }
    int below() const { return (rank_ + 1) % ranks_; }

    /** Compares with all steps done by one thread; what main returns. */
    int check() const {
        std::vector<double> now = at_start(), next(now.size()), mine(cells());
        for (int s = 0; s < steps; ++s, now.swap(next))
            for (int r = 0; r < columns; ++r)
                for (int c = 0; c < columns; ++c)
                    next[at(r, c)] =
                        0.25 * (now[at(r - 1, c)] + now[at(r + 1, c)] + now[at(r, c - 1)] + now[at(r, c + 1)]);
        copy(mine.data(), static_cast<const double *>(band_.row(steps, 1)), cells());
        int wrong = 0, all_wrong = 0;
        for (std::size_t i = 0; i < mine.size(); ++i) wrong += mine[i] != now[first_row_ * columns + i];
        MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank_ == 0)
            std::printf("heat: %d steps of %d x %d cells on %d ranks: %d cells are wrong\n", steps, columns, columns,
                        ranks_, all_wrong);
        return all_wrong != 0;
    }

private:
    std::size_t cells() const { return static_cast<std::size_t>(band_.rows) * columns; }
    std::size_t cells_with_ghosts() const { return static_cast<std::size_t>(band_.rows + 2) * columns; }
    static std::size_t at(int r, int c) {
        return static_cast<std::size_t>((r + columns) % columns * columns + (c + columns) % columns);
    }
    static std::vector<double> at_start() {
        std::vector<double> all(static_cast<std::size_t>(columns) * columns);
        std::uint32_t x = 1;
        for (double &cell : all) cell = (x = x * 1664525u + 1013904223u) >> 8;
        return all;
    }

    int rank_ = 0, ranks_ = 1, first_row_ = 0;
    band band_{};
};

/**
 * The requests of a band: the first and the last row go to the neighbours, the ghost rows come from them. Each field has
 * a set of its own. A partition is what one block has of a row.
 */
class requests {
public:
    explicit requests(const heat &h) {
        const band &b = h.mine();
        for (int set = 0; set < 2; ++set) {
            MPI_Request *const r = sets_[set];
            const int up = 2 * set, down = up + 1;  // tags
            const auto send = [&](int row, int to, int tag, MPI_Request *out) {
                MPI_Psend_init(b.row(set, row), blocks, columns / blocks, MPI_DOUBLE, to, tag, MPI_COMM_WORLD,
                               MPI_INFO_NULL, out);
            };
            const auto receive = [&](int row, int from, int tag, MPI_Request *out) {
                MPI_Precv_init(b.row(set, row), blocks, columns / blocks, MPI_DOUBLE, from, tag, MPI_COMM_WORLD,
                               MPI_INFO_NULL, out);
            };
            send(1, h.above(), up, &r[0]);
            send(b.rows, h.below(), down, &r[1]);
            receive(0, h.above(), down, &r[2]);
            receive(b.rows + 1, h.below(), up, &r[3]);
        }
    }
    requests(const requests &) = delete;
    requests &operator=(const requests &) = delete;
    ~requests() {
        for (auto &set : sets_)
            for (MPI_Request &r : set) MPI_Request_free(&r);
    }

    MPI_Request *of(int step) { return sets_[step % 2]; }

private:
    MPI_Request sets_[2][4];
};

/** The same as kernels see them. */
struct handles {
    MPIX_Prequest sets[2][4];

    struct message {
        MPIX_Prequest send_up, send_down, receive_up, receive_down;
    };
    KERNEL_FN message of(int step) const {
        const MPIX_Prequest *const s = sets[step % 2];
        return {s[0], s[1], s[2], s[3]};
    }
};
inline handles export_all(requests &all) {
    handles h;
    for (int set = 0; set < 2; ++set)
        for (int i = 0; i < 4; ++i) MPIX_Prequest_create(all.of(set)[i], MPI_INFO_NULL, &h.sets[set][i]);
    return h;
}
inline void free_all(handles &h) {
    for (auto &set : h.sets)
        for (MPIX_Prequest &handle : set) MPIX_Prequest_free(&handle);
}

}  // namespace tutorial

#endif  // TUTORIAL_HEAT_CUH
