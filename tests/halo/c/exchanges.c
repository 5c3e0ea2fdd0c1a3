// SPDX-License-Identifier: BSD-3-Clause
//
// Small exchanges in C, of which every byte is compared.
#include <stdio.h>
#include <string.h>

#include <mpix/halo_gpu.h>

#include "tests/conformance/harness.h"
#include "tests/halo/c/cases.h"

enum { most_bytes = 1 << 14 };

// Two fields of one padded allocation each: int, three components a cell, all directions; and values of three bytes in
// two arrays, across faces only.
struct memory {
    MPIX_Halo_field field;
    int depth, only_faces;
    size_t value, components;
    unsigned char bytes[most_bytes], expected[most_bytes];
};

static unsigned char byte_of(int64_t x, int64_t y, size_t component, size_t byte, int epoch) {
    return (unsigned char)(17 * x + 37 * y + 101 * (int64_t)component + 7 * (int64_t)byte + 59 * epoch);
}

// Bytes of the local cells, or of all that the exchange fills too.
static void store(const struct memory *m, unsigned char *to, MPIX_Halo_box local, int ghosts, int epoch) {
    const MPIX_Halo_layout *l = &m->field.layout;
    const int64_t d = ghosts ? m->depth : 0;
    for (int64_t y = local.lo[1] - d; y < local.hi[1] + d; ++y)
        for (int64_t x = local.lo[0] - d; x < local.hi[0] + d; ++x) {
            const int beyond_x = x < local.lo[0] || x >= local.hi[0], beyond_y = y < local.lo[1] || y >= local.hi[1];
            if (y < 0 || y >= ny || (beyond_x && beyond_y && m->only_faces)) continue;
            for (size_t c = 0; c < m->components; ++c)
                for (size_t b = 0; b < m->value; ++b) {
                    const size_t row = (size_t)(y - local.lo[1] + l->below[1]) * (size_t)l->row_bytes;
                    const size_t column = (size_t)(x - local.lo[0] + l->below[0]);
                    const size_t at = l->interleaved ? row + (column * m->components + c) * m->value + b
                                                     : row + column * m->value + c * (size_t)l->component_bytes + b;
                    to[at] = byte_of((x + nx) % nx, y, c, b, epoch);
                }
        }
}

static void describe(struct memory *m, MPI_Datatype type, int depth, int only_faces, int interleaved, int components,
                     MPIX_Halo_box local) {
    int size = 0, radius[MPIX_HALO_DIRECTIONS];
    OK(MPI_Type_size(type, &size));
    m->depth = depth;
    m->only_faces = only_faces;
    m->value = (size_t)size;
    m->components = (size_t)components;
    OK(only_faces ? MPIX_Halo_radius_faces(depth, radius) : MPIX_Halo_radius_all(depth, radius));
    OK(MPIX_Halo_field_init(m->bytes, type, radius, &m->field));
    CHECK(m->field.layout.components == 1 && m->field.layout.below[2] == -1);
    MPIX_Halo_layout *l = &m->field.layout;
    l->components = components;
    l->interleaved = interleaved;
    for (int a = 0; a < 2; ++a) l->below[a] = l->above[a] = depth + 1 + world_rank % 2;
    const int64_t columns = local.hi[0] - local.lo[0] + l->below[0] + l->above[0];
    const int64_t rows = local.hi[1] - local.lo[1] + l->below[1] + l->above[1];
    l->row_bytes = columns * size * (interleaved ? components : 1) + 5;
    l->plane_bytes = l->row_bytes * rows;
    if (!interleaved) l->component_bytes = l->plane_bytes + 3;
    CHECK(l->plane_bytes * components + 3 * components < most_bytes);
}

static void exchange_all(MPIX_Halo_exchange x, struct memory m[2], MPIX_Halo_box local, int in_steps, int epoch) {
    int flag = -1;
    for (int f = 0; f < 2; ++f) {
        memset(m[f].bytes, poison, most_bytes);
        memset(m[f].expected, poison, most_bytes);
        store(&m[f], m[f].bytes, local, 0, epoch);
        store(&m[f], m[f].expected, local, 1, epoch);
    }
    if (in_steps) {
        OK(MPIX_Halo_begin(x));
        OK(MPIX_Halo_ready(1, x));
        OK(MPIX_Halo_ready(0, x));
    } else {
        OK(MPIX_Halo_start(x));
    }
    OK(MPIX_Halo_active(x, &flag));
    CHECK(flag == 1);
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_active(x, &flag));
    CHECK(flag == 0);
    for (int f = 0; f < 2; ++f) CHECK(memcmp(m[f].bytes, m[f].expected, most_bytes) == 0);
}

void exchanges(void) {
    static struct memory m[2];
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_exchange x[2];
    MPIX_Halo_box local;
    MPI_Datatype three_bytes;
    OK(MPIX_Halo_grid_box(grid, world_rank, &local, NULL));
    OK(MPI_Type_contiguous(3, MPI_BYTE, &three_bytes));
    describe(&m[0], MPI_INT, 2, 0, 1, 3, local);
    describe(&m[1], three_bytes, 1, 1, 0, 2, local);
    for (int transfer = MPIX_HALO_PACKED; transfer <= MPIX_HALO_DATATYPE; ++transfer) {
        const MPIX_Halo_field fields[] = {m[0].field, m[1].field};
        OK(MPIX_Halo_exchange_create(grid, 2, fields, transfer, &x[transfer]));
    }
    OK(MPI_Type_free(&three_bytes));
    OK(MPIX_Halo_grid_free(&grid));  // the exchanges go on
    CHECK(grid == MPIX_HALO_GRID_NULL);
    for (int epoch = 0; epoch < 6; ++epoch) exchange_all(x[epoch % 2], m, local, epoch % 3 == 1, epoch);
    for (int i = 0; i < 2; ++i) {
        OK(MPIX_Halo_exchange_free(&x[i]));
        CHECK(x[i] == MPIX_HALO_EXCHANGE_NULL);
    }
}

// Each rank's ghost cells go to both of its neighbours in a ring, which are one on two ranks, and itself on one.
void reverse_exchanges(void) {
    enum { cells = 4, ghosts = 2, all = cells + 2 * ghosts };
    const MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX};
    const int64_t extent[] = {cells * world_size};
    MPIX_Halo_grid grid = make_grid(1, extent, 1);
    int radius[MPIX_HALO_DIRECTIONS];
    OK(MPIX_Halo_radius_all(ghosts, radius));
    MPIX_Halo_box local;
    OK(MPIX_Halo_grid_box(grid, world_rank, &local, NULL));
    for (int op = 0; op < 3; ++op) {
        short whole[all], whole_expected[all];
        double real[all], real_expected[all];
        MPIX_Halo_field fields[2];
        MPIX_Halo_exchange x;
        OK(MPIX_Halo_field_init(whole, MPI_SHORT, radius, &fields[0]));
        OK(MPIX_Halo_field_init(real, MPI_DOUBLE, radius, &fields[1]));
        OK(MPIX_Halo_reverse_create(grid, 2, fields, ops[op], &x));
        for (int epoch = 0; epoch < 2; ++epoch) {
            // Of rank r the i-th value of its allocation; those of the boxes are in between those of the ghost cells.
#define VALUE(r, i) \
    (1000 * epoch + 10 * (i) + 5 * ((r) % 2) + ((i) % 3 == 0 ? -300 : 300) * ((i) < ghosts || (i) >= ghosts + cells))
            for (int i = 0; i < all; ++i) {
                whole[i] = whole_expected[i] = (short)VALUE(world_rank, i);
                real[i] = real_expected[i] = VALUE(world_rank, i) + 0.5;
            }
            for (int i = 0; i < ghosts; ++i) {
                // The right neighbour's lower ghost cells are this rank's last cells, the left one's upper its first.
                const int places[] = {cells + i, ghosts + i}, others[] = {i, ghosts + cells + i};
                const int ranks[] = {right_rank, left_rank};
                for (int side = 0; side < 2; ++side) {
                    const int at = places[side];
                    const int value = VALUE(ranks[side], others[side]);
                    if (op == 0) {
                        whole_expected[at] = (short)(whole_expected[at] + value);
                        real_expected[at] += value + 0.5;
                    } else if (op == 1 ? value < whole_expected[at] : value > whole_expected[at]) {
                        whole_expected[at] = (short)value;
                        real_expected[at] = value + 0.5;
                    }
                }
            }
            // The box may be computed until finish().
            for (int i = ghosts; i < ghosts + cells; ++i) real[i] = -1;
            OK(MPIX_Halo_start(x));
            for (int i = ghosts; i < ghosts + cells; ++i) real[i] = VALUE(world_rank, i) + 0.5;
            OK(MPIX_Halo_finish(x));
            CHECK(memcmp(whole, whole_expected, sizeof whole) == 0);
            CHECK(memcmp(real, real_expected, sizeof real) == 0);
#undef VALUE
        }
        OK(MPIX_Halo_exchange_free(&x));
    }
    OK(MPIX_Halo_grid_free(&grid));
}

// Two arrays in turn.
void swaps(void) {
    enum { cells = 4, all = cells + 2 };
    const int64_t extent[] = {cells * world_size};
    MPIX_Halo_grid grid = make_grid(1, extent, 1);
    int radius[MPIX_HALO_DIRECTIONS], u[2][all], expected[2][all];
    MPIX_Halo_field field;
    MPIX_Halo_exchange x;
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(u[0], MPI_INT, radius, &field));
    CHECK(field.other == NULL);
    field.other = u[1];
    OK(MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_PACKED, &x));
    for (int epoch = 0; epoch < 5; ++epoch) {
        memset(u, poison, sizeof u);
        memset(expected, poison, sizeof expected);
        for (int i = 0; i < all; ++i) {
            const int cell = (cells * world_rank + i - 1 + cells * world_size) % (cells * world_size);
            expected[epoch % 2][i] = 100 * epoch + cell;
            if (i > 0 && i <= cells) u[epoch % 2][i] = 100 * epoch + cell;
        }
        OK(MPIX_Halo_start(x));
        OK(MPIX_Halo_finish(x));
        CHECK(memcmp(u, expected, sizeof u) == 0);
        OK(MPIX_Halo_swap(0, x));
    }
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
}

// In the order of a stream, which is null for host memory: two fields of one allocation each, and one of two.
void stream_exchanges(void) {
    static struct memory m[2], other;
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_exchange same;
    MPIX_Halo_stream_exchange x;
    MPIX_Halo_box local, inner, expected_inner, boxes[6], expected_boxes[6];
    int count = -1, expected_count = -1, messages = -1;
    int64_t bytes = -1;
    void *data = NULL;
    OK(MPIX_Halo_grid_box(grid, world_rank, &local, NULL));
    describe(&m[0], MPI_INT, 2, 0, 1, 3, local);
    describe(&m[1], MPI_SHORT, 1, 1, 0, 2, local);
    other = m[1];
    m[1].field.other = other.bytes;
    const MPIX_Halo_field fields[] = {m[0].field, m[1].field};
    const MPIX_Halo_stream_options options = {.tile = {4, 3}, .direct = world_rank != 0};
    OK(MPIX_Halo_exchange_create(grid, 2, fields, MPIX_HALO_PACKED, &same));
    OK(MPIX_Halo_stream_create(grid, 2, fields, &options, &x));
    OK(MPIX_Halo_grid_free(&grid));
    OK(MPIX_Halo_interior(0, same, &expected_inner));
    OK(MPIX_Halo_stream_interior(0, x, &inner));
    CHECK(memcmp(&inner, &expected_inner, sizeof inner) == 0);
    OK(MPIX_Halo_boundary(0, same, expected_boxes, &expected_count));
    OK(MPIX_Halo_stream_boundary(0, x, boxes, &count));
    CHECK(count == expected_count && memcmp(boxes, expected_boxes, (size_t)count * sizeof *boxes) == 0);
    OK(MPIX_Halo_stream_sent(x, &messages, &bytes));
    CHECK((messages > 0) == (world_size > 1) && (bytes > 0) == (world_size > 1));
    OK(MPIX_Halo_stream_sent(x, NULL, NULL));
    OK(MPIX_Halo_stream_measure(1, x));
    for (int epoch = 0; epoch < 4; ++epoch) {
        struct memory *const used[] = {&m[0], epoch % 2 == 0 ? &m[1] : &other};
        OK(MPIX_Halo_stream_data(1, 0, x, &data));
        CHECK(data == used[1]->bytes);
        for (int f = 0; f < 2; ++f) {
            memset(used[f]->bytes, poison, most_bytes);
            memset(used[f]->expected, poison, most_bytes);
            store(used[f], used[f]->bytes, local, 0, epoch);
            store(used[f], used[f]->expected, local, 1, epoch);
        }
        if (epoch < 2) {
            OK(MPIX_Halo_stream_start(x, NULL));
            OK(MPIX_Halo_stream_finish(x, NULL));
        } else {
            if (epoch == 3) OK(MPIX_Halo_stream_measure(0, x));
            OK(MPIX_Halo_stream_run(x, NULL));
        }
        OK(MPIX_Halo_stream_check(x));
        for (int f = 0; f < 2; ++f) CHECK(memcmp(used[f]->bytes, used[f]->expected, most_bytes) == 0);
        OK(MPIX_Halo_stream_swap(x));
    }
    char text[4000], cut[9], wanted[80];
    OK(MPIX_Halo_stream_report(x, text, sizeof text));
    snprintf(wanted, sizeof wanted, "mpix::halo::stream_exchange, rank %d: ", world_rank);
    CHECK(strncmp(text, wanted, strlen(wanted)) == 0 && strstr(text, "1 finished") != NULL);
    OK(MPIX_Halo_stream_measure(1, x));
    OK(MPIX_Halo_stream_run(x, NULL));
    OK(MPIX_Halo_stream_report(x, text, sizeof text));
    CHECK(strstr(text, "1 finished") != NULL && strstr(text, " us in start() and ") != NULL);
    OK(MPIX_Halo_stream_measure(0, x));
    OK(MPIX_Halo_stream_report(x, text, sizeof text));
    CHECK(strstr(text, "0 finished") != NULL);
    OK(MPIX_Halo_stream_report(x, cut, sizeof cut));
    CHECK(strcmp(cut, "mpix::ha") == 0);
    OK(MPIX_Halo_exchange_free(&same));
    OK(MPIX_Halo_stream_free(&x));
    CHECK(x == MPIX_HALO_STREAM_EXCHANGE_NULL);
    OK(MPIX_Halo_stream_free(&x));
}

// Two boxes of each rank in a ring, those of rank r numbers r and r + the number of ranks. Also cut by the library.
void several_boxes(void) {
    enum { cells = 3, all = cells + 2 };
    const int64_t extent[] = {2 * cells * world_size};
    int owners[16], radius[MPIX_HALO_DIRECTIONS];
    MPIX_Halo_box slabs[16];
    MPIX_Halo_grid_options options = {.periodic = {1, 0, 0}};
    CHECK(world_size <= 8);
    for (int number = 0; number < 2 * world_size; ++number) {
        slabs[number] = (MPIX_Halo_box){{cells * number, 0, 0}, {cells * number + cells, 1, 1}};
        owners[number] = number % world_size;
    }
    OK(MPIX_Halo_radius_all(1, radius));
    for (int given = 0; given < 2; ++given) {
        options.boxes = given ? slabs : NULL;
        options.box_count = given ? 2 * world_size : 0;
        options.owners = given ? owners : NULL;
        options.boxes_per_rank = given ? 0 : 2;
        MPIX_Halo_grid grid;
        OK(MPIX_Halo_grid_create(MPI_COMM_WORLD, 1, extent, &options, &grid));
        int numbers[2] = {-1, -1}, count = -1, rank = -1, boxes = -1;
        OK(MPIX_Halo_grid_boxes(grid, 2, numbers, &count));
        OK(MPIX_Halo_grid_get(grid, NULL, NULL, NULL, NULL, NULL, &boxes));
        CHECK(count == 2 && boxes == 2 * world_size);
        int u[2][all], expected[2][all], now = 0;
        MPIX_Halo_allocation allocations[2] = {{u[0], NULL, sizeof u[0]}, {u[1], NULL, sizeof u[1]}};
        MPIX_Halo_field field;
        OK(MPIX_Halo_field_init(NULL, MPI_INT, radius, &field));
        CHECK(field.allocations == NULL && field.allocation_count == 0);
        field.allocations = allocations;
        field.allocation_count = 2;
        MPIX_Halo_exchange x;
        OK(MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_PACKED, &x));
        for (int i = 0; i < 2; ++i) {
            MPIX_Halo_box box, inner, valid, sides[6];
            CHECK(numbers[i] == (given ? world_rank + i * world_size : 2 * world_rank + i));
            OK(MPIX_Halo_grid_box(grid, numbers[i], &box, &rank));
            CHECK(rank == world_rank && memcmp(&box, &slabs[numbers[i]], sizeof box) == 0);
            OK(MPIX_Halo_interior(i, x, &inner));
            OK(MPIX_Halo_boundary(i, x, sides, &count));
            CHECK(inner.lo[0] == box.lo[0] + 1 && inner.hi[0] == box.hi[0] - 1 && count == 2);
            OK(MPIX_Halo_deep_valid(grid, i, radius, 2, 1, NULL, &valid));
            CHECK(valid.lo[0] == box.lo[0] - 1 && valid.hi[0] == box.hi[0] + 1);
            const int64_t below[] = {-1, 0, 0};
            int64_t global[3], bytes = 0;
            OK(MPIX_Halo_global_index(grid, i, below, global));
            CHECK(global[0] == (box.lo[0] + extent[0] - 1) % extent[0]);
            OK(MPIX_Halo_field_bytes(grid, i, &field, &bytes));
            CHECK(bytes == sizeof u[i]);
            void *data = NULL;
            OK(MPIX_Halo_data(0, i, x, &data));
            CHECK(data == u[i]);
            for (int c = 0; c < all; ++c) {
                expected[i][c] = (int)((box.lo[0] + c - 1 + extent[0]) % extent[0]);
                u[i][c] = c == 0 || c == all - 1 ? poison : expected[i][c];
            }
        }
        OK(MPIX_Halo_start(x));
        OK(MPIX_Halo_finish(x));
        CHECK(memcmp(u, expected, sizeof u) == 0);
        OK(MPIX_Halo_sent(x, &now, NULL));
        CHECK(now == (world_size > 2 ? 2 : world_size - 1));
        OK(MPIX_Halo_exchange_free(&x));
        OK(MPIX_Halo_grid_free(&grid));
    }
}
