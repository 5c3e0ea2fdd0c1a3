// SPDX-License-Identifier: BSD-3-Clause
//
// <mpix/halo.h> from C: small exchanges and gathers, of which every byte is compared, and what the queries say.
#include <stdio.h>
#include <string.h>

#include <mpix/halo.h>

#include "tests/conformance/harness.h"

enum { nx = 9, ny = 7, poison = 0xa5, most_bytes = 1 << 14 };

static MPIX_Halo_grid make_grid(int dimensions, const int64_t extent[], int periodic_x) {
    MPIX_Halo_grid_options options = {0};
    MPIX_Halo_grid grid = MPIX_HALO_GRID_NULL;
    options.periodic[0] = periodic_x;
    OK(MPIX_Halo_grid_create(MPI_COMM_WORLD, dimensions, extent, &options, &grid));
    CHECK(grid != MPIX_HALO_GRID_NULL);
    return grid;
}

static MPIX_Halo_grid plane(void) {
    const int64_t extent[] = {nx, ny};
    return make_grid(2, extent, 1);
}

// ---- exchanges -----------------------------------------------------------------------------------------

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

static void exchanges(void) {
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
static void reverse_exchanges(void) {
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
static void swaps(void) {
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
static void stream_exchanges(void) {
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
    const int64_t tile[] = {4, 3, 0};
    OK(MPIX_Halo_exchange_create(grid, 2, fields, MPIX_HALO_PACKED, &same));
    OK(MPIX_Halo_stream_create(grid, 2, fields, tile, &x));
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
        OK(MPIX_Halo_stream_start(x, NULL));
        OK(MPIX_Halo_stream_finish(x, NULL));
        OK(MPIX_Halo_stream_check(x));
        for (int f = 0; f < 2; ++f) CHECK(memcmp(used[f]->bytes, used[f]->expected, most_bytes) == 0);
        OK(MPIX_Halo_stream_swap(x));
    }
    OK(MPIX_Halo_exchange_free(&same));
    OK(MPIX_Halo_stream_free(&x));
    CHECK(x == MPIX_HALO_STREAM_EXCHANGE_NULL);
    OK(MPIX_Halo_stream_free(&x));
}

// Interleaved pairs on the lower and upper faces of cells, gathered on the last rank, while an exchange of the same grid is active.
static void gathers(void) {
    enum { rows = ny + 1 };
    static short cells[(nx + 2) * (rows + 2)][2];
    const int root = world_size - 1;
    short all[nx * rows + 1][2], expected[nx * rows + 1][2];
    double other[(nx + 2) * (ny + 2)];
    int radius[MPIX_HALO_DIRECTIONS];
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_field field, busy;
    MPIX_Halo_exchange x;
    MPIX_Halo_box box, local;
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(cells, MPI_SHORT, radius, &field));
    field.layout.components = 2;
    field.layout.interleaved = 1;
    field.layout.staggered[1] = 1;
    OK(MPIX_Halo_field_init(other, MPI_DOUBLE, radius, &busy));
    OK(MPIX_Halo_exchange_create(grid, 1, &busy, MPIX_HALO_PACKED, &x));
    OK(MPIX_Halo_start(x));
    OK(MPIX_Halo_grid_box(grid, world_rank, &box, NULL));
    OK(MPIX_Halo_points(grid, &box, field.layout.staggered, &local));
    CHECK(local.hi[1] == box.hi[1] + (box.hi[1] == ny) && local.hi[0] == box.hi[0] && local.lo[1] == box.lo[1]);
    memset(cells, poison, sizeof cells);
    memset(all, poison, sizeof all);
    memset(expected, poison, sizeof expected);
    for (int64_t y = -1; y <= local.hi[1] - local.lo[1]; ++y)
        for (int64_t x_local = -1; x_local <= local.hi[0] - local.lo[0]; ++x_local) {
            const int64_t from[] = {x_local, y, 0}, width = local.hi[0] - local.lo[0] + 2;
            int64_t to[3];
            OK(MPIX_Halo_global_index(grid, 0, from, to));
            CHECK(to[0] == (local.lo[0] + x_local + nx) % nx && to[1] == local.lo[1] + y && to[2] == 0);
            for (int c = 0; c < 2; ++c) cells[(y + 1) * width + x_local + 1][c] = (short)(100 * to[1] + 2 * to[0] + c);
        }
    for (int i = 0; i < nx * rows && world_rank == root; ++i)
        for (int c = 0; c < 2; ++c) expected[i][c] = (short)(100 * (i / nx) + 2 * (i % nx) + c);
    OK(MPIX_Halo_gather(grid, &field, world_rank == root ? all : NULL, root));
    CHECK(memcmp(all, expected, sizeof all) == 0);
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
}

// Two boxes of each rank in a ring, those of rank r numbers r and r + the number of ranks. Also cut by the library.
static void several_boxes(void) {
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

// ---- files ---------------------------------------------------------------------------------------------

static void checkpoints(void) {
    static short cells[(nx + 2) * (ny + 2)][2], expected[(nx + 2) * (ny + 2)][2];
    char path[40];
    int radius[MPIX_HALO_DIRECTIONS];
    int64_t step = -1;
    MPIX_Halo_box local;
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_named_field field = {.name = "velocity"};
    OK(MPIX_Halo_grid_box(grid, world_rank, &local, NULL));
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(cells, MPI_SHORT, radius, &field.field));
    field.field.layout.components = 2;
    field.field.layout.interleaved = 1;
    memset(cells, poison, sizeof cells);
    memset(expected, poison, sizeof expected);
    for (int64_t y = local.lo[1]; y < local.hi[1]; ++y)
        for (int64_t x = local.lo[0]; x < local.hi[0]; ++x)
            for (int c = 0; c < 2; ++c) {
                const int64_t at = (y - local.lo[1] + 1) * (local.hi[0] - local.lo[0] + 2) + x - local.lo[0] + 1;
                expected[at][c] = cells[at][c] = (short)(100 * y + 2 * x + c);
            }
    snprintf(path, sizeof path, "c_interface.np%d.checkpoint", world_size);
    OK(MPIX_Halo_write_checkpoint(grid, path, 1, &field, 77));
    memset(cells, poison, sizeof cells);
    OK(MPIX_Halo_read_checkpoint(grid, path, 1, &field, &step));
    CHECK(step == 77);
    CHECK(memcmp(cells, expected, sizeof cells) == 0);
    OK(MPIX_Halo_write_checkpoint(grid, path, 0, NULL, 78));
    OK(MPIX_Halo_read_checkpoint(grid, path, 0, NULL, NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (world_rank == 0) remove(path);
    OK(MPIX_Halo_grid_free(&grid));
}

// The place in the list, and that each rank has a file; halo.vti compares all bytes.
static void vtk_files(void) {
    static double cells[nx * ny];
    char path[40], piece[40], list[4000] = "";
    int radius[MPIX_HALO_DIRECTIONS];
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_named_field field = {.name = "u"};
    const MPIX_Halo_vti_options options = {.origin = {1.5, 0, -2}, .spacing = {0, 0.25, 0}};
    OK(MPIX_Halo_radius_all(0, radius));
    OK(MPIX_Halo_field_init(cells, MPI_DOUBLE, radius, &field.field));
    snprintf(path, sizeof path, "c_interface.np%d.pvti", world_size);
    snprintf(piece, sizeof piece, "c_interface.np%d_%d.vti", world_size, world_rank);
    for (int with_options = 0; with_options < 2; ++with_options) {
        OK(MPIX_Halo_write_vti(grid, path, 1, &field, with_options ? &options : NULL));
        FILE *const file = fopen(path, "r");
        CHECK(file != NULL && fread(list, 1, sizeof list - 1, file) > 0);
        fclose(file);
        CHECK(strstr(list, with_options ? "Origin=\"1.5 0 -2\" Spacing=\"1 0.25 1\""
                                        : "Origin=\"0 0 0\" Spacing=\"1 1 1\"") != NULL);
        CHECK(strstr(list, piece) != NULL);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(remove(piece) == 0);
    CHECK(world_rank != 0 || remove(path) == 0);
    OK(MPIX_Halo_grid_free(&grid));
}

// That there is a picture; halo.png compares all pixels.
static void pictures(void) {
    static double cells[nx * ny];
    char path[40];
    int radius[MPIX_HALO_DIRECTIONS];
    unsigned char head[24] = {0};
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_field field;
    const MPIX_Halo_slice row = {.axis = 1, .at = 3, .high = 1, .colors = MPIX_HALO_BLUE_RED};
    OK(MPIX_Halo_radius_all(0, radius));
    OK(MPIX_Halo_field_init(cells, MPI_DOUBLE, radius, &field));
    snprintf(path, sizeof path, "c_interface.np%d.png", world_size);
    for (int one_row = 0; one_row < 2; ++one_row) {
        const int code = MPIX_Halo_write_png(grid, path, &field, one_row ? &row : NULL);
        if (code == MPI_ERR_UNSUPPORTED_OPERATION) break;  // without libpng
        OK(code);
        FILE *const file = fopen(path, "rb");
        CHECK(file != NULL && fread(head, 1, sizeof head, file) == sizeof head);
        fclose(file);
        CHECK(memcmp(head + 1, "PNG", 3) == 0 && head[19] == nx && head[23] == (one_row ? 1 : ny));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(world_rank != 0 || remove(path) == 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPIX_Halo_grid_free(&grid));
}

// ---- queries -------------------------------------------------------------------------------------------

static void queries(void) {
    const int64_t extent[] = {8 * world_size};
    MPIX_Halo_box slabs[8], box, sides[6];
    MPIX_Halo_grid_options options = {.periodic = {1, 0, 0}, .boxes = slabs};
    MPIX_Halo_grid grid;
    CHECK(world_size <= 8);
    for (int r = 0; r < world_size; ++r) slabs[r] = (MPIX_Halo_box){{8 * r, 0, 0}, {8 * r + 8, 1, 1}};
    OK(MPIX_Halo_grid_create(MPI_COMM_WORLD, 1, extent, &options, &grid));

    int dimensions = 0, periodic[3], rank = -1, ranks = -1, boxes = -1, count = -1, neighbours[8];
    int64_t all[3];
    OK(MPIX_Halo_grid_get(grid, &dimensions, all, periodic, &rank, &ranks, &boxes));
    CHECK(dimensions == 1 && all[0] == extent[0] && all[1] == 1 && all[2] == 1);
    CHECK(periodic[0] == 1 && periodic[1] == 0 && rank == world_rank && ranks == world_size);
    CHECK(boxes == world_size);
    OK(MPIX_Halo_grid_get(grid, NULL, NULL, NULL, NULL, NULL, NULL));
    for (int r = 0; r < world_size; ++r) {
        const int64_t cell[] = {8 * r + 3, 0, 0};
        OK(MPIX_Halo_grid_box(grid, r, &box, &rank));
        CHECK(memcmp(&box, &slabs[r], sizeof box) == 0 && rank == r);
        OK(MPIX_Halo_grid_owner(grid, cell, &rank));
        CHECK(rank == r);
    }
    OK(MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(1, 0, 0), 8, 8, neighbours, &count));
    CHECK(count == 1 && neighbours[0] == right_rank);
    OK(MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(-1, 0, 0), 1, 8, neighbours, &count));
    CHECK(count == 1 && neighbours[0] == left_rank);
    OK(MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(-1, 0, 0), 0, 0, NULL, &count));
    CHECK(count == 0);
    neighbours[1] = -7;
    OK(MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(1, 0, 0), 9, 1, neighbours, &count));
    CHECK(count == (world_size > 1 ? 2 : 1) && neighbours[1] == -7);

    int radius[MPIX_HALO_DIRECTIONS];
    const int reads[] = {1, 1, 0, -2, 0, 0};  // in one dimension: (1) and (-2)
    OK(MPIX_Halo_radius_of(2, reads, radius));
    CHECK(radius[MPIX_HALO_DIRECTION(1, 1, 0)] == 1 && radius[MPIX_HALO_DIRECTION(-1, 0, 0)] == 2);
    CHECK(radius[MPIX_HALO_DIRECTION(0, -1, 0)] == 0);

    int deep[MPIX_HALO_DIRECTIONS];
    OK(MPIX_Halo_deep_radius(grid, radius, 3, deep));
    CHECK(deep[MPIX_HALO_DIRECTION(1, 0, 0)] == 3 && deep[MPIX_HALO_DIRECTION(-1, 0, 0)] == 6);
    OK(MPIX_Halo_deep_valid(grid, 0, radius, 3, 1, NULL, &box));
    CHECK(box.lo[0] == 8 * world_rank - 4 && box.hi[0] == 8 * world_rank + 10 && box.lo[1] == 0 && box.hi[2] == 1);

    const MPIX_Halo_box outer = {{0, 0, 0}, {5, 4, 3}}, inner = {{1, 0, -9}, {5, 4, 2}};
    OK(MPIX_Halo_difference(&outer, &inner, sides, &count));
    CHECK(count == 2 && sides[0].lo[2] == 2 && sides[0].hi[0] == 5 && sides[1].hi[0] == 1 && sides[1].hi[2] == 2);

    double values[8 + 3];
    MPIX_Halo_field field;
    MPIX_Halo_exchange x;
    int messages = -1;
    int64_t bytes = -1;
    OK(MPIX_Halo_field_init(values, MPI_DOUBLE, radius, &field));
    OK(MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_PACKED, &x));
    OK(MPIX_Halo_interior(0, x, &box));
    CHECK(box.lo[0] == 8 * world_rank + 2 && box.hi[0] == 8 * world_rank + 7);
    OK(MPIX_Halo_boundary(0, x, sides, &count));
    CHECK(count == 2 && sides[0].hi[0] == box.lo[0] && sides[1].lo[0] == box.hi[0]);
    OK(MPIX_Halo_sent(x, &messages, &bytes));
    CHECK(messages == (world_size > 2 ? 2 : world_size - 1) && bytes == (world_size > 1 ? 24 : 0));
    char text[2000], cut[9], wanted[64];
    OK(MPIX_Halo_measure(1, x));
    OK(MPIX_Halo_start(x));
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_report(x, text, sizeof text));
    snprintf(wanted, sizeof wanted, "mpix::halo::exchange, rank %d: packed, 1 finished, ", world_rank);
    CHECK(strncmp(text, wanted, strlen(wanted)) == 0);
    CHECK((strstr(text, ", there after ") != NULL) == (world_size > 1));
    OK(MPIX_Halo_measure(0, x));
    OK(MPIX_Halo_report(x, text, sizeof text));
    CHECK(strstr(text, "packed, 0 finished") != NULL);
    OK(MPIX_Halo_report(x, cut, sizeof cut));
    CHECK(strcmp(cut, "mpix::ha") == 0);
    double seconds[3] = {-1, -1, -1};
    int fastest = -1;
    OK(MPIX_Halo_compare_transfers(grid, 1, &field, 3, seconds, &fastest));
    CHECK(fastest >= 0 && fastest < 3);
    for (int how = 0; how < 3; ++how) CHECK(seconds[how] >= seconds[fastest] && seconds[fastest] > 0);
    MPIX_Halo_step_report report;
    OK(MPIX_Halo_step_report_create(grid, 100, bytes, &report));
    OK(MPIX_Halo_step_report_done(0, report));
    OK(MPIX_Halo_step_report_done(3, report));
    OK(MPIX_Halo_step_report_free(&report)); /* rank 0 prints a line */
    CHECK(report == MPIX_HALO_STEP_REPORT_NULL);
    OK(MPIX_Halo_step_report_free(&report));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_exchange_create(grid, 0, NULL, MPIX_HALO_PACKED, &x));
    OK(MPIX_Halo_start(x));
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
    OK(MPIX_Halo_grid_free(&grid));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"exchanges", 1, exchanges},
        {"reverse exchanges", 1, reverse_exchanges},
        {"swaps", 1, swaps},
        {"stream exchanges", 1, stream_exchanges},
        {"gathers", 1, gathers},
        {"several boxes", 1, several_boxes},
        {"checkpoints", 1, checkpoints},
        {"files of VTK", 1, vtk_files},
        {"pictures", 1, pictures},
        {"queries", 1, queries},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
