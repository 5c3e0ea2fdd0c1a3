// SPDX-License-Identifier: BSD-3-Clause
//
// Wrong arguments of exchanges in the order of a stream, with ghost cells in messages, and with node messages.
#include <stdio.h>

#include <mpix/halo_gpu.h>

#include "tests/halo/c/errors.h"

void wrong_stream_exchanges(void) {
    static short cells[(nx + 2) * (ny + 2)];
    int radius[MPIX_HALO_DIRECTIONS], count = 0;
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_field field;
    MPIX_Halo_stream_exchange x = MPIX_HALO_STREAM_EXCHANGE_NULL;
    char text[10];
    MPIX_Halo_box box;
    void *data = NULL;
    const MPIX_Halo_stream_options options = {.tile = {4, -1}};
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(cells, MPI_SHORT, radius, &field));
    EXPECT(MPI_ERR_ARG, "rank 0: exchange is null", MPIX_Halo_stream_create(grid, 1, &field, NULL, NULL));
    EXPECT(MPI_ERR_ARG, "rank 0: fields is null", MPIX_Halo_stream_create(grid, 1, NULL, NULL, &x));
    EXPECT(MPI_ERR_COUNT, "rank 0: count is -1; it is at least 0", MPIX_Halo_stream_create(grid, -1, NULL, NULL, &x));
    EXPECT(MPI_ERR_ARG, "rank 0: options.tile[1] is -1; it is at least 0",
           MPIX_Halo_stream_create(grid, 1, &field, &options, &x));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_stream_create(MPIX_HALO_GRID_NULL, 1, &field, NULL, &x));
    field.type = MPI_DATATYPE_NULL;
    EXPECT(MPI_ERR_TYPE, "rank 0: fields[0].type is MPI_DATATYPE_NULL",
           MPIX_Halo_stream_create(grid, 1, &field, NULL, &x));
    CHECK(x == MPIX_HALO_STREAM_EXCHANGE_NULL);
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_start(x, NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_finish(x, NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_run(x, NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_check(x));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_swap(x));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_data(0, 0, x, &data));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_interior(0, x, &box));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_boundary(0, x, &box, &count));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_sent(x, &count, NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_measure(1, x));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_report(x, text, 10));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_stream_free(NULL));
    field.type = MPI_SHORT;
    OK(MPIX_Halo_stream_create(grid, 1, &field, NULL, &x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is not started", MPIX_Halo_stream_finish(x, NULL));
    EXPECT(MPI_ERR_ARG, "stream is not null, and the fields are in host memory",
           MPIX_Halo_stream_start(x, (struct CUstream_st *)cells));
    EXPECT(MPI_ERR_ARG, "stream is not null, and the fields are in host memory",
           MPIX_Halo_stream_run(x, (struct CUstream_st *)cells));
    EXPECT(MPI_ERR_ARG, "field is 1; there are 1", MPIX_Halo_stream_data(1, 0, x, &data));
    EXPECT(MPI_ERR_ARG, "data is null", MPIX_Halo_stream_data(0, 0, x, NULL));
    EXPECT(MPI_ERR_ARG, "box is null", MPIX_Halo_stream_interior(0, x, NULL));
    EXPECT(MPI_ERR_ARG, "boxes is null", MPIX_Halo_stream_boundary(0, x, NULL, &count));
    EXPECT(MPI_ERR_ARG, "count is null", MPIX_Halo_stream_boundary(0, x, &box, NULL));
    EXPECT(MPI_ERR_ARG, "text is null", MPIX_Halo_stream_report(x, NULL, 10));
    EXPECT(MPI_ERR_ARG, "size is 0; it is at least 1", MPIX_Halo_stream_report(x, text, 0));
    OK(MPIX_Halo_stream_start(x, NULL));
    EXPECT(MPI_ERR_REQUEST, "the exchange is started; finish it first", MPIX_Halo_stream_measure(1, x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is started; finish it first", MPIX_Halo_stream_report(x, text, 10));
    EXPECT(MPI_ERR_REQUEST, "the exchange is started; finish it first", MPIX_Halo_stream_start(x, NULL));
    EXPECT(MPI_ERR_REQUEST, "the exchange is started; finish it first", MPIX_Halo_stream_run(x, NULL));
    EXPECT(MPI_ERR_REQUEST, "the exchange is started; finish it first", MPIX_Halo_stream_swap(x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is started; finish it first", MPIX_Halo_stream_free(&x));
    OK(MPIX_Halo_stream_finish(x, NULL));
    OK(MPIX_Halo_stream_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
}

void wrong_ghosts(void) {
    double values[(nx + 2) * (ny + 2)];
    int radius[MPIX_HALO_DIRECTIONS], count = 0;
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_exchange x;
    MPIX_Halo_field field;
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(values, MPI_DOUBLE, radius, &field));
    EXPECT(MPI_ERR_ARG, "transfer is datatype, and the storage of ghost cells (MPIX_HALO_IN_MESSAGES) is in_messages",
           MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_DATATYPE | MPIX_HALO_IN_MESSAGES, &x));
    EXPECT(MPI_ERR_ARG, "transfer is 24;", MPIX_Halo_exchange_create(grid, 1, &field, 8 | MPIX_HALO_IN_MESSAGES, &x));
    OK(MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_AUTOMATIC | MPIX_HALO_IN_MESSAGES, &x));
    EXPECT(MPI_ERR_ARG, "field is 1; there are 1", MPIX_Halo_ghost_pieces(1, 0, x, 0, NULL, &count));
    EXPECT(MPI_ERR_ARG, "i is 1; this rank has 1 boxes", MPIX_Halo_ghost_pieces(0, 1, x, 0, NULL, &count));
    EXPECT(MPI_ERR_COUNT, "size is -1; it is at least 0", MPIX_Halo_ghost_pieces(0, 0, x, -1, NULL, &count));
    EXPECT(MPI_ERR_ARG, "pieces is null", MPIX_Halo_ghost_pieces(0, 0, x, 1, NULL, &count));
    EXPECT(MPI_ERR_ARG, "count is null", MPIX_Halo_ghost_pieces(0, 0, x, 0, NULL, NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_ghost_pieces(0, 0, MPIX_HALO_EXCHANGE_NULL, 0, NULL, &count));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_PACKED, &x));
    EXPECT(MPI_ERR_ARG, "make the exchange with MPIX_HALO_IN_MESSAGES",
           MPIX_Halo_ghost_pieces(0, 0, x, 0, NULL, &count));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
}

void wrong_node_messages(void) {
    static double values[(nx + 2) * (ny + 2)];
    const int last = world_size - 1, automatic = MPIX_HALO_NODE_MESSAGES_AUTOMATIC;
    const int always = MPIX_HALO_NODE_MESSAGES_ALWAYS;
    int radius[MPIX_HALO_DIRECTIONS];
    char words[150];
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_exchange x;
    MPIX_Halo_field good, field;
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(values, MPI_DOUBLE, radius, &good));
    field = good;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: transfer has MPIX_HALO_NODE_MESSAGES_AUTOMATIC and MPIX_HALO_NODE_MESSAGES_",
                     1, &field, MPIX_HALO_PACKED | automatic | always);
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: transfer is -1;", 1, &field, -1);
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: transfer is 39;", 1, &field, 7 | automatic);
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: transfer is 77;", 1, &field, 77);
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: transfer is 128;", 1, &field, 128);
    EXCHANGE_REFUSED(MPI_ERR_ARG,
                     "rank 0: the choice of node messages (MPIX_HALO_NODE_MESSAGES_) is always, and transfer is plain;",
                     1, &field, MPIX_HALO_PLAIN | always);
    EXCHANGE_REFUSED(MPI_ERR_ARG,
                     "rank 0: the choice of node messages (MPIX_HALO_NODE_MESSAGES_) is always, and the storage of "
                     "ghost cells (MPIX_HALO_IN_MESSAGES) is in_messages;",
                     1, &field, MPIX_HALO_PACKED | always | MPIX_HALO_IN_MESSAGES);
    const int choices[][2] = {{0, automatic}, {automatic, always}, {always, 0}};
    const char *const names[][2] = {{"never", "automatic"}, {"automatic", "always"}, {"always", "never"}};
    for (int i = 0; i < 3 && world_size > 1; ++i) {
        snprintf(words, sizeof words,
                 "rank %d: the choice of node messages (MPIX_HALO_NODE_MESSAGES_) is %s here, and "
                 "%s on rank 0",
                 last, names[i][1], names[i][0]);
        EXCHANGE_REFUSED(MPI_ERR_ARG, words, 1, &field, MPIX_HALO_PACKED | choices[i][world_rank == last]);
    }
    // On one node nothing changes.
    for (int i = 0; i < 3; ++i) {
        OK(MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_AUTOMATIC | choices[i][0], &x));
        OK(MPIX_Halo_start(x));
        OK(MPIX_Halo_finish(x));
        OK(MPIX_Halo_exchange_free(&x));
    }
    OK(MPIX_Halo_grid_free(&grid));
}
