// SPDX-License-Identifier: BSD-3-Clause
//
// A band on the GPU, or in host memory for host threads, and its requests: four for each field, and a handle for each.
#ifndef MIGRATION_REQUESTS_CUH
#define MIGRATION_REQUESTS_CUH

#include "gpu_or_host.cuh"

#include "band.cuh"

#include <mpix/device.cuh>

struct handles {
    MPIX_Prequest of_field[2][4];  // from above, from below, to below, to above
};

/** A band with its memory, and its first rows in it. */
inline band allocate_band() {
    band b = own_band();
    for (double *&field : b.fields) field = example::allocate<double>(b.field_cells());
    const std::vector<double> rows = first_rows(b);
    example::copy(b.row(0, 1), rows.data(), rows.size());
    return b;
}

inline void print_and_free_band(const band &b) {
    std::vector<double> rows(static_cast<std::size_t>(b.rows) * COLUMNS);
    example::copy(rows.data(), static_cast<const double *>(b.row(STEPS, 1)), rows.size());
    print_rows(b, rows);
    for (double *field : b.fields) example::release_memory(field);
}

inline handles make_requests(const band &b, MPI_Request (&requests)[2][4]) {
    handles all;
    for (int f = 0; f < 2; ++f) {
        const MPI_Comm world = MPI_COMM_WORLD;
        MPI_Request *const r = requests[f];
        const int down = 2 * f, up = down + 1;  // tags
        MPI_Precv_init(b.row(f, 0), 1, COLUMNS, MPI_DOUBLE, b.above, down, world, MPI_INFO_NULL, &r[0]);
        MPI_Precv_init(b.row(f, b.rows + 1), 1, COLUMNS, MPI_DOUBLE, b.below, up, world, MPI_INFO_NULL, &r[1]);
        MPI_Psend_init(b.row(f, b.rows), 1, COLUMNS, MPI_DOUBLE, b.below, down, world, MPI_INFO_NULL, &r[2]);
        MPI_Psend_init(b.row(f, 1), 1, COLUMNS, MPI_DOUBLE, b.above, up, world, MPI_INFO_NULL, &r[3]);
        for (int i = 0; i < 4; ++i) MPIX_Prequest_create(r[i], MPI_INFO_NULL, &all.of_field[f][i]);
    }
    return all;
}

inline void free_requests(MPI_Request (&requests)[2][4], handles &all) {
    for (int f = 0; f < 2; ++f)
        for (int i = 0; i < 4; ++i) {
            MPIX_Prequest_free(&all.of_field[f][i]);
            MPI_Request_free(&requests[f][i]);
        }
}

#endif  // MIGRATION_REQUESTS_CUH
