// SPDX-License-Identifier: BSD-3-Clause
//
// <mpix/halo.h> from C: small exchanges of which every byte is compared, what the queries say, and wrong arguments, each
// of which is named.
#include <stdlib.h>
#include <string.h>

#include <mpix/halo.h>

#include "tests/errors/expect.h"

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
    OK(MPIX_Halo_grid_box(grid, world_rank, &local));
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
    OK(MPIX_Halo_grid_box(grid, world_rank, &local));
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
                // The right neighbour's lower ghost cells are this rank's last cells, the left one's upper ones its first.
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
            OK(MPIX_Halo_start(x));
            OK(MPIX_Halo_finish(x));
            CHECK(memcmp(whole, whole_expected, sizeof whole) == 0);
            CHECK(memcmp(real, real_expected, sizeof real) == 0);
#undef VALUE
        }
        OK(MPIX_Halo_exchange_free(&x));
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

    int dimensions = 0, periodic[3], rank = -1, ranks = -1, count = -1, neighbours[8];
    int64_t all[3];
    OK(MPIX_Halo_grid_get(grid, &dimensions, all, periodic, &rank, &ranks));
    CHECK(dimensions == 1 && all[0] == extent[0] && all[1] == 1 && all[2] == 1);
    CHECK(periodic[0] == 1 && periodic[1] == 0 && rank == world_rank && ranks == world_size);
    OK(MPIX_Halo_grid_get(grid, NULL, NULL, NULL, NULL, NULL));
    for (int r = 0; r < world_size; ++r) {
        const int64_t cell[] = {8 * r + 3, 0, 0};
        OK(MPIX_Halo_grid_box(grid, r, &box));
        CHECK(memcmp(&box, &slabs[r], sizeof box) == 0);
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
    const int reads[] = {1, 1, 0, -2, 0, 0};
    OK(MPIX_Halo_radius_of(2, reads, radius));
    CHECK(radius[MPIX_HALO_DIRECTION(1, 1, 0)] == 1 && radius[MPIX_HALO_DIRECTION(-1, 0, 0)] == 2);
    CHECK(radius[MPIX_HALO_DIRECTION(0, -1, 0)] == 0);

    double values[8 + 3];
    MPIX_Halo_field field;
    MPIX_Halo_exchange x;
    int messages = -1;
    int64_t bytes = -1;
    OK(MPIX_Halo_field_init(values, MPI_DOUBLE, radius, &field));
    OK(MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_PACKED, &x));
    OK(MPIX_Halo_interior(x, &box));
    CHECK(box.lo[0] == 8 * world_rank + 2 && box.hi[0] == 8 * world_rank + 7);
    OK(MPIX_Halo_boundary(x, sides, &count));
    CHECK(count == 2 && sides[0].hi[0] == box.lo[0] && sides[1].lo[0] == box.hi[0]);
    OK(MPIX_Halo_sent(x, &messages, &bytes));
    CHECK(messages == (world_size > 2 ? 2 : world_size - 1) && bytes == (world_size > 1 ? 24 : 0));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_exchange_create(grid, 0, NULL, MPIX_HALO_PACKED, &x));
    OK(MPIX_Halo_start(x));
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
    OK(MPIX_Halo_grid_free(&grid));
}

// ---- wrong arguments -----------------------------------------------------------------------------------

#define GRID_REFUSED(error_class, words, dimensions, extent)                                                    \
    do {                                                                                                        \
        grid = (MPIX_Halo_grid)&options;                                                                        \
        EXPECT(error_class, words, MPIX_Halo_grid_create(MPI_COMM_WORLD, dimensions, extent, &options, &grid)); \
        CHECK(grid == MPIX_HALO_GRID_NULL);                                                                     \
        options = (MPIX_Halo_grid_options){0};                                                                  \
    } while (0)

static void wrong_grids(void) {
    const int last = world_size - 1;
    char words[80];
    int64_t extent[] = {16, 16, 16};
    const double bandwidth[] = {1, 1, 1};
    MPIX_Halo_grid_options options = {0};
    MPIX_Halo_grid grid;
    EXPECT(MPI_ERR_COMM, "comm is MPI_COMM_NULL", MPIX_Halo_grid_create(MPI_COMM_NULL, 2, extent, NULL, &grid));
    EXPECT(MPI_ERR_ARG, "rank 0: grid is null", MPIX_Halo_grid_create(MPI_COMM_WORLD, 2, extent, NULL, NULL));
    GRID_REFUSED(MPI_ERR_DIMS, "rank 0: dimensions is 4; it is 1 to 3", 4, extent);
    GRID_REFUSED(MPI_ERR_DIMS, "rank 0: dimensions is -1;", -1, extent);
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: extent is null", 2, NULL);
    options.shortest[0] = -2;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.shortest[0] is -2; it is at least 1", 2, extent);
    options.periodic[2] = 1;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.periodic[2]: the domain has 2 axes", 2, extent);
    options.links.entries = 3;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.links.within_node is null, and has 3 entries", 2, extent);
    options.links.within_node = bandwidth;
    options.links.entries = 3;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.links.within_node has 3 entries", 2, extent);
    options.links.entries = -1;
    GRID_REFUSED(MPI_ERR_ARG, "rank 0: options.links.entries is -1; it is at least 0", 2, extent);
    // One rank alone.
    snprintf(words, sizeof words, "rank %d: extent[1] is 0; it is at least 1", last);
    if (world_rank == last) extent[1] = 0;
    GRID_REFUSED(MPI_ERR_DIMS, words, 2, extent);
    extent[1] = 16;
    snprintf(words, sizeof words, "rank %d: extent is null", last);
    GRID_REFUSED(MPI_ERR_ARG, words, 2, world_rank == last ? NULL : extent);

    int64_t cell[] = {16, 0, 0};
    int rank = 0, count = 0;
    MPIX_Halo_box box;
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_grid_free(NULL));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_grid_box(MPIX_HALO_GRID_NULL, 0, &box));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_grid_get(MPIX_HALO_GRID_NULL, &rank, NULL, NULL, NULL, NULL));
    grid = make_grid(2, extent, 0);
    EXPECT(MPI_ERR_RANK, "rank is -1; there are", MPIX_Halo_grid_box(grid, -1, &box));
    EXPECT(MPI_ERR_ARG, "box is null", MPIX_Halo_grid_box(grid, 0, NULL));
    EXPECT(MPI_ERR_ARG, "[16, 0, 0] is not in the domain", MPIX_Halo_grid_owner(grid, cell, &rank));
    EXPECT(MPI_ERR_ARG, "cell is null", MPIX_Halo_grid_owner(grid, NULL, &rank));
    EXPECT(MPI_ERR_ARG, "rank is null", MPIX_Halo_grid_owner(grid, cell, NULL));
    EXPECT(MPI_ERR_ARG, "direction is 13; it is 0 to 26, and not 13",
           MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(0, 0, 0), 1, 1, &rank, &count));
    EXPECT(MPI_ERR_ARG, "direction is 27;", MPIX_Halo_grid_neighbours(grid, 27, 1, 1, &rank, &count));
    EXPECT(MPI_ERR_ARG, "direction is 4 (-z); the domain has 2 axes",
           MPIX_Halo_grid_neighbours(grid, MPIX_HALO_DIRECTION(0, 0, -1), 1, 1, &rank, &count));
    EXPECT(MPI_ERR_ARG, "depth is -1; it is at least 0", MPIX_Halo_grid_neighbours(grid, 14, -1, 1, &rank, &count));
    EXPECT(MPI_ERR_COUNT, "size is -1; it is at least 0", MPIX_Halo_grid_neighbours(grid, 14, 1, -1, &rank, &count));
    EXPECT(MPI_ERR_ARG, "ranks is null", MPIX_Halo_grid_neighbours(grid, 14, 1, 1, NULL, &count));
    EXPECT(MPI_ERR_ARG, "count is null", MPIX_Halo_grid_neighbours(grid, 14, 1, 1, &rank, NULL));
    OK(MPIX_Halo_grid_free(&grid));
    EXPECT(MPI_ERR_ARG, "radius is null", MPIX_Halo_radius_all(1, NULL));
    EXPECT(MPI_ERR_ARG, "radius is null", MPIX_Halo_radius_faces(1, NULL));
    EXPECT(MPI_ERR_COUNT, "count is -1", MPIX_Halo_radius_of(-1, &rank, &rank));
    EXPECT(MPI_ERR_ARG, "offsets is null", MPIX_Halo_radius_of(1, NULL, &rank));
}

#define EXCHANGE_REFUSED(error_class, words, count, fields, transfer)                             \
    do {                                                                                          \
        x = (MPIX_Halo_exchange)&good;                                                            \
        EXPECT(error_class, words, MPIX_Halo_exchange_create(grid, count, fields, transfer, &x)); \
        CHECK(x == MPIX_HALO_EXCHANGE_NULL);                                                      \
        field = good;                                                                             \
    } while (0)

static void wrong_exchanges(void) {
    static double values[2][(nx + 2) * (ny + 2)];
    const int last = world_size - 1;
    const MPI_Datatype none = MPI_DATATYPE_NULL;
    int radius[MPIX_HALO_DIRECTIONS];
    char words[100];
    MPI_Datatype with_gaps;
    MPIX_Halo_field good, field;
    MPIX_Halo_exchange x;
    MPIX_Halo_grid grid = plane();
    OK(MPI_Type_create_resized(MPI_INT, 0, 12, &with_gaps));
    OK(MPI_Type_commit(&with_gaps));
    OK(MPIX_Halo_radius_all(1, radius));
    EXPECT(MPI_ERR_ARG, "field is null", MPIX_Halo_field_init(values, MPI_DOUBLE, radius, NULL));
    EXPECT(MPI_ERR_ARG, "radius is null", MPIX_Halo_field_init(values, MPI_DOUBLE, NULL, &good));
    OK(MPIX_Halo_field_init(values[0], MPI_DOUBLE, radius, &good));
    field = good;

    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_exchange_create(MPIX_HALO_GRID_NULL, 1, &good, 0, &x));
    EXPECT(MPI_ERR_ARG, "rank 0: exchange is null", MPIX_Halo_exchange_create(grid, 1, &good, 0, NULL));
    EXCHANGE_REFUSED(MPI_ERR_COUNT, "rank 0: count is -1; it is at least 0", -1, &good, 0);
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields is null", 1, NULL, 0);
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: options.transfer is 2, which is none", 1, &good, 2);
    field.data = NULL;
    EXCHANGE_REFUSED(MPI_ERR_BUFFER, "rank 0: fields[0].data is null", 1, &field, 0);
    field.type = none;
    EXCHANGE_REFUSED(MPI_ERR_TYPE, "rank 0: fields[0].type is MPI_DATATYPE_NULL", 1, &field, 0);
    field.type = with_gaps;
    EXCHANGE_REFUSED(MPI_ERR_TYPE, "rank 0: fields[0].type has 4 bytes, and an extent of 12", 1, &field, 0);
    field.reach[MPIX_HALO_DIRECTION(1, 1, 0)] = -1;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].reach is -1 in direction +x+y; it is at least 0", 1, &field, 0);
    field.layout.components = 0;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].layout.components is 0; it is at least 1", 1, &field, 0);
    field.layout.above[1] = 0;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].layout.above[1] is 0; the radius needs 1", 1, &field, 0);
    field.layout.row_bytes = 8;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].layout.row_bytes is 8; its cells take", 1, &field, 0);
    field.layout.plane_bytes = -8;
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[0].layout.plane_bytes is -8; it is at least 0", 1, &field, 0);
    const MPIX_Halo_field twice[] = {good, good};
    EXCHANGE_REFUSED(MPI_ERR_ARG, "rank 0: fields[1].data is that of fields[0], too", 2, twice, 0);
    // One rank alone.
    snprintf(words, sizeof words, "rank %d: fields[0].type is MPI_DATATYPE_NULL", last);
    if (world_rank == last) field.type = none;
    EXCHANGE_REFUSED(MPI_ERR_TYPE, words, 1, &field, 0);
    if (world_size > 1) {
        snprintf(words, sizeof words, "rank %d: fields[0].value_bytes is 4 here, and 8 on rank 0", last);
        if (world_rank == last) field.type = MPI_FLOAT;
        EXCHANGE_REFUSED(MPI_ERR_ARG, words, 1, &field, 0);
    }

    EXPECT(MPI_ERR_OP, "rank 0: op is not MPI_SUM, MPI_MIN or MPI_MAX",
           MPIX_Halo_reverse_create(grid, 1, &good, MPI_PROD, &x));
    CHECK(x == MPIX_HALO_EXCHANGE_NULL);
    field.type = MPI_BYTE;
    EXPECT(MPI_ERR_TYPE, "rank 0: fields[0].type is bytes; a reverse exchange needs an arithmetic type",
           MPIX_Halo_reverse_create(grid, 1, &field, MPI_SUM, &x));
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_reverse_create(MPIX_HALO_GRID_NULL, 1, &good, MPI_SUM, &x));

    int flag = 0;
    MPIX_Halo_box box;
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_start(MPIX_HALO_EXCHANGE_NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_ready(0, MPIX_HALO_EXCHANGE_NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_interior(MPIX_HALO_EXCHANGE_NULL, &box));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_exchange_free(NULL));
    OK(MPIX_Halo_exchange_create(grid, 1, &good, MPIX_HALO_PACKED, &x));
    EXPECT(MPI_ERR_ARG, "flag is null", MPIX_Halo_active(x, NULL));
    EXPECT(MPI_ERR_ARG, "box is null", MPIX_Halo_interior(x, NULL));
    EXPECT(MPI_ERR_ARG, "boxes is null", MPIX_Halo_boundary(x, NULL, &flag));
    EXPECT(MPI_ERR_ARG, "count is null", MPIX_Halo_boundary(x, &box, NULL));
    EXPECT(MPI_ERR_REQUEST, "it is not active", MPIX_Halo_finish(x));
    EXPECT(MPI_ERR_REQUEST, "it is not active", MPIX_Halo_ready(0, x));
    OK(MPIX_Halo_begin(x));
    EXPECT(MPI_ERR_REQUEST, "it is active", MPIX_Halo_begin(x));
    EXPECT(MPI_ERR_REQUEST, "it is active", MPIX_Halo_start(x));
    EXPECT(MPI_ERR_ARG, "field is 1; there are 1", MPIX_Halo_ready(1, x));
    EXPECT(MPI_ERR_REQUEST, "field 0 is not ready", MPIX_Halo_finish(x));
    EXPECT(MPI_ERR_REQUEST, "exchange is active", MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_ready(0, x));
    EXPECT(MPI_ERR_REQUEST, "field 0 is ready already", MPIX_Halo_ready(0, x));
    OK(MPIX_Halo_finish(x));
    OK(MPIX_Halo_exchange_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
    OK(MPI_Type_free(&with_gaps));
}

// ---- error handlers ------------------------------------------------------------------------------------

static int handled;

static void count_error(MPI_Comm *comm, int *code, ...) {
    int size = 0;
    MPI_Comm_size(*comm, &size);
    handled += *code == MPI_ERR_REQUEST || *code == MPI_ERR_RANK;
}

// Of the communicator, also when that has been freed.
static void handlers(void) {
    const int64_t extent[] = {4 * world_size};
    MPI_Comm comm;
    MPI_Errhandler counts;
    MPIX_Halo_grid grid;
    MPIX_Halo_exchange x;
    MPIX_Halo_box box;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(count_error, &counts));
    OK(MPI_Comm_set_errhandler(comm, counts));
    OK(MPIX_Halo_grid_create(comm, 1, extent, NULL, &grid));
    OK(MPI_Errhandler_free(&counts));
    OK(MPI_Comm_free(&comm));
    OK(MPIX_Halo_exchange_create(grid, 0, NULL, MPIX_HALO_PACKED, &x));
    EXPECT(MPI_ERR_RANK, "rank is", MPIX_Halo_grid_box(grid, world_size, &box));
    OK(MPIX_Halo_grid_free(&grid));
    EXPECT(MPI_ERR_REQUEST, "it is not active", MPIX_Halo_finish(x));
    OK(MPIX_Halo_exchange_free(&x));
    CHECK(handled == 2);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"exchanges", 1, exchanges},
        {"reverse exchanges", 1, reverse_exchanges},
        {"queries", 1, queries},
        {"wrong grids", 1, wrong_grids},
        {"wrong exchanges", 1, wrong_exchanges},
        {"the communicator's error handler", 1, handlers},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_SINGLE, cases);
}
