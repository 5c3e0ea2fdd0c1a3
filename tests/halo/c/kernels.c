// SPDX-License-Identifier: BSD-3-Clause
//
// Kernel exchanges from C: every cell that they fill is compared, in each step; and each wrong argument is named.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpix/halo_gpu.h>

#include "tests/errors/expect.h"
#include "tests/halo/c/player.h"

enum { nx = 9, ny = 7, poison = 0xa5 };

// Periodic along x.
static MPIX_Halo_grid plane(void) {
    const int64_t extent[] = {nx, ny};
    const MPIX_Halo_grid_options options = {.periodic = {1, 0, 0}};
    MPIX_Halo_grid grid = MPIX_HALO_GRID_NULL;
    OK(MPIX_Halo_grid_create(MPI_COMM_WORLD, 2, extent, &options, &grid));
    return grid;
}

// ---- the computation -----------------------------------------------------------------------------------

enum { fields = 2 };
// Numbers of eight bytes with two allocations, in all directions; and of two bytes with one, across faces only.
static const int depths[fields] = {2, 1};
static const size_t sizes[fields] = {8, 2};
static MPIX_Halo_box local;
static uint64_t key;  // of an activation
static int looks;

static int64_t columns(int f) { return local.hi[0] - local.lo[0] + 2 * depths[f]; }
static size_t bytes_of(int f) { return (size_t)(columns(f) * (local.hi[1] - local.lo[1] + 2 * depths[f])) * sizes[f]; }

// The value of a cell of the domain in a step.
static uint64_t value(int f, int64_t x, int64_t y, int64_t step) {
    return mix_key(mix_key(key, (uint64_t)step), (uint64_t)(f + 2 * ((x + nx) % nx + nx * y)));
}

static unsigned char *place(int f, void *values, int64_t x, int64_t y) {
    const int64_t cell = (y - local.lo[1] + depths[f]) * columns(f) + x - local.lo[0] + depths[f];
    return (unsigned char *)values + (size_t)cell * sizes[f];
}

static void fill(int f, void *values, MPIX_Halo_box tile, int64_t step) {
    for (int64_t y = tile.lo[1]; y < tile.hi[1]; ++y)
        for (int64_t x = tile.lo[0]; x < tile.hi[0]; ++x) {
            const uint64_t now = value(f, x, y, step);
            memcpy(place(f, values, x, y), &now, sizes[f]);
        }
}

// Cells outside of the domain, and of a field across faces those at the corners, are still as they were.
static void look(int f, void *values, int64_t step) {
    for (int64_t y = local.lo[1] - depths[f]; y < local.hi[1] + depths[f]; ++y)
        for (int64_t x = local.lo[0] - depths[f]; x < local.hi[0] + depths[f]; ++x) {
            const int beyond_x = x < local.lo[0] || x >= local.hi[0], beyond_y = y < local.lo[1] || y >= local.hi[1];
            uint64_t wanted = value(f, x, y, step);
            if (y < 0 || y >= ny || (f == 1 && beyond_x && beyond_y)) memset(&wanted, poison, sizeof wanted);
            CHECK(memcmp(place(f, values, x, y), &wanted, sizes[f]) == 0);
            if (beyond_x || beyond_y) memset(place(f, values, x, y), poison, sizes[f]);
        }
    ++looks;
}

static void *poisoned(int f) {
    void *const memory = malloc(bytes_of(f));
    CHECK(memory != NULL);
    memset(memory, poison, bytes_of(f));
    return memory;
}

static void run_activation(MPIX_Halo_kernel_exchange x, int64_t steps, int groups, int threads, int by_boxes) {
    const struct computation heat = {fields, fill, look};
    MPIX_Halo_device_exchange device;
    int flag = -1;
    key = shared_random();
    looks = 0;
    OK(MPIX_Halo_kernel_start(steps, x, &device));
    OK(MPIX_Halo_kernel_active(x, &flag));
    CHECK(flag == 1);
    CHECK(play_steps(device, heat, groups, threads, by_boxes) == MPI_SUCCESS);
    OK(MPIX_Halo_kernel_finish(x));
    OK(MPIX_Halo_kernel_active(x, &flag));
    CHECK(flag == 0 && looks == fields * steps);
}

// ---- cases ---------------------------------------------------------------------------------------------

static void kernel_exchanges(void) {
    static const MPIX_Halo_kernel_options tiles = {.tile = {3, 2, 0}, .sets = 2};
    static const MPIX_Halo_kernel_options boxes = {.tile = {4, 0, 0}, .sets = 3, .box_waits = 1};
    const MPIX_Halo_kernel_options *const all_options[] = {NULL, &tiles, &boxes};
    for (int i = 0; i < 3; ++i) {
        const MPIX_Halo_kernel_options *const options = all_options[i];
        int radius[fields][MPIX_HALO_DIRECTIONS], messages = -1;
        int64_t bytes = -1;
        MPIX_Halo_field described[fields];
        MPIX_Halo_kernel_exchange x;
        MPIX_Halo_grid grid = plane();
        void *data = NULL;
        OK(MPIX_Halo_grid_box(grid, world_rank, &local, NULL));
        OK(MPIX_Halo_radius_all(depths[0], radius[0]));
        OK(MPIX_Halo_radius_faces(depths[1], radius[1]));
        void *const now = poisoned(0), *const other = poisoned(0), *const only = poisoned(1);
        OK(MPIX_Halo_field_init(now, MPI_UINT64_T, radius[0], &described[0]));
        OK(MPIX_Halo_field_init(only, MPI_SHORT, radius[1], &described[1]));
        described[0].other = other;
        for (int f = 0; f < fields; ++f) described[f].allocated = (int64_t)bytes_of(f);
        OK(MPIX_Halo_kernel_create(grid, fields, described, options, &x));
        OK(MPIX_Halo_grid_free(&grid));  // the exchange goes on
        OK(MPIX_Halo_kernel_sent(x, &messages, &bytes));
        CHECK((messages > 0) == (world_size > 1) && (bytes > 0) == (world_size > 1));
        OK(MPIX_Halo_kernel_sent(x, NULL, NULL));
        OK(MPIX_Halo_kernel_data(0, 0, x, &data));
        CHECK(data == now);
        const int by_boxes = options == &boxes;
        OK(MPIX_Halo_kernel_measure(1, x));
        run_activation(x, 0, 1, 1, by_boxes);
        run_activation(x, 5, 1, 1, by_boxes);
        // An odd number of exchanges: the next one is of the other allocation, and its cells are those that the kernel
        // wrote.
        OK(MPIX_Halo_kernel_data(0, 0, x, &data));
        CHECK(data == other);
        const uint64_t wanted = value(0, local.lo[0], local.lo[1], 5);
        CHECK(memcmp(place(0, data, local.lo[0], local.lo[1]), &wanted, sizeof wanted) == 0);
        run_activation(x, 8, 3, 2, by_boxes);
        OK(MPIX_Halo_kernel_data(0, 0, x, &data));
        CHECK(data == other);
        OK(MPIX_Halo_kernel_data(1, 0, x, &data));
        CHECK(data == only);

        char text[4000], cut[9], begin[80];
        OK(MPIX_Halo_kernel_report(x, text, sizeof text));
        snprintf(begin, sizeof begin, "mpix::halo::kernel_exchange, rank %d: 13 finished, ", world_rank);
        CHECK(strncmp(text, begin, strlen(begin)) == 0 && strstr(text, "between start() and finish()") != NULL);
        OK(MPIX_Halo_kernel_measure(0, x));
        OK(MPIX_Halo_kernel_report(x, text, sizeof text));
        CHECK(strstr(text, "0 finished") != NULL && strstr(text, "between start() and finish()") == NULL);
        OK(MPIX_Halo_kernel_report(x, cut, sizeof cut));
        CHECK(strcmp(cut, "mpix::ha") == 0);
        OK(MPIX_Halo_kernel_free(&x));
        CHECK(x == MPIX_HALO_KERNEL_EXCHANGE_NULL);
        OK(MPIX_Halo_kernel_free(&x));
        free(now);
        free(other);
        free(only);
    }
}

#define REFUSED(error_class, words, count, field, options)                                    \
    do {                                                                                      \
        x = (MPIX_Halo_kernel_exchange)cells;                                                 \
        EXPECT(error_class, words, MPIX_Halo_kernel_create(grid, count, field, options, &x)); \
        CHECK(x == MPIX_HALO_KERNEL_EXCHANGE_NULL);                                           \
    } while (0)

static void wrong_kernel_exchanges(void) {
    static short cells[(nx + 2) * (ny + 2)];
    int radius[MPIX_HALO_DIRECTIONS], count = 0, flag = 0;
    char text[10], words[80];
    void *data = NULL;
    MPIX_Halo_grid grid = plane();
    MPIX_Halo_field field;
    MPIX_Halo_kernel_exchange x = MPIX_HALO_KERNEL_EXCHANGE_NULL;
    MPIX_Halo_kernel_options options = {.tile = {4, -1, 0}};
    MPIX_Halo_device_exchange device, unchanged;
    memset(&unchanged, poison, sizeof unchanged);
    device = unchanged;
    OK(MPIX_Halo_radius_all(1, radius));
    OK(MPIX_Halo_field_init(cells, MPI_SHORT, radius, &field));
    EXPECT(MPI_ERR_ARG, "rank 0: exchange is null", MPIX_Halo_kernel_create(grid, 1, &field, NULL, NULL));
    REFUSED(MPI_ERR_ARG, "rank 0: fields is null", 1, NULL, NULL);
    REFUSED(MPI_ERR_ARG, "rank 0: fields is empty", 0, NULL, NULL);
    REFUSED(MPI_ERR_COUNT, "rank 0: count is -1; it is at least 0", -1, NULL, NULL);
    REFUSED(MPI_ERR_ARG, "rank 0: options.tile[1] is -1; it is at least 0", 1, &field, &options);
    options = (MPIX_Halo_kernel_options){.tile = {0, 0, 2}};
    REFUSED(MPI_ERR_ARG, "rank 0: options.tile[2] is 2; the domain has 2 axes", 1, &field, &options);
    options = (MPIX_Halo_kernel_options){.sets = 1};
    REFUSED(MPI_ERR_ARG, "rank 0: options.sets is 1; it is 2 to 64", 1, &field, &options);
    options = (MPIX_Halo_kernel_options){.sets = 1000000};
    REFUSED(MPI_ERR_ARG, "rank 0: options.sets is 1000000; it is 2 to 64", 1, &field, &options);
    options = (MPIX_Halo_kernel_options){.sets = 4 + (world_rank == 1)};
    if (world_size > 1)
        REFUSED(MPI_ERR_ARG, "rank 1: options.sets is 5 here, and 4 on rank 0; all ranks give the same", 1, &field,
                &options);
    EXPECT(MPI_ERR_ARG, "grid is null", MPIX_Halo_kernel_create(MPIX_HALO_GRID_NULL, 1, &field, NULL, &x));
    // One rank alone.
    snprintf(words, sizeof words, "rank %d: fields[0].type is MPI_DATATYPE_NULL", world_size - 1);
    if (world_rank == world_size - 1) field.type = MPI_DATATYPE_NULL;
    REFUSED(MPI_ERR_TYPE, words, 1, &field, NULL);
    field.type = MPI_SHORT;

    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_kernel_start(1, x, &device));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_kernel_finish(x));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_kernel_active(x, &flag));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_kernel_data(0, 0, x, &data));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_kernel_sent(x, &count, NULL));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_kernel_measure(1, x));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_kernel_report(x, text, 10));
    EXPECT(MPI_ERR_ARG, "exchange is null", MPIX_Halo_kernel_free(NULL));
    options = (MPIX_Halo_kernel_options){.box_waits = world_rank == 0};  // it may differ
    OK(MPIX_Halo_kernel_create(grid, 1, &field, &options, &x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is not active; start it first", MPIX_Halo_kernel_finish(x));
    EXPECT(MPI_ERR_ARG, "steps is -1; it is at least 0", MPIX_Halo_kernel_start(-1, x, &device));
    EXPECT(MPI_ERR_ARG, "device is null", MPIX_Halo_kernel_start(0, x, NULL));
    CHECK(memcmp(&device, &unchanged, sizeof device) == 0);
    EXPECT(MPI_ERR_ARG, "flag is null", MPIX_Halo_kernel_active(x, NULL));
    OK(MPIX_Halo_kernel_active(x, &flag));
    CHECK(flag == 0);
    EXPECT(MPI_ERR_ARG, "field is 1; there are 1", MPIX_Halo_kernel_data(1, 0, x, &data));
    EXPECT(MPI_ERR_ARG, "i is 1; this rank has 1 boxes", MPIX_Halo_kernel_data(0, 1, x, &data));
    EXPECT(MPI_ERR_ARG, "data is null", MPIX_Halo_kernel_data(0, 0, x, NULL));
    EXPECT(MPI_ERR_ARG, "text is null", MPIX_Halo_kernel_report(x, NULL, 10));
    EXPECT(MPI_ERR_ARG, "size is 0; it is at least 1", MPIX_Halo_kernel_report(x, text, 0));
    OK(MPIX_Halo_kernel_start(0, x, &device));
    unchanged = device;
    EXPECT(MPI_ERR_REQUEST, "the exchange is active; finish it first", MPIX_Halo_kernel_start(1, x, &device));
    CHECK(memcmp(&device, &unchanged, sizeof device) == 0);
    EXPECT(MPI_ERR_REQUEST, "the exchange is active; finish it first", MPIX_Halo_kernel_measure(1, x));
    EXPECT(MPI_ERR_REQUEST, "the exchange is active; finish it first", MPIX_Halo_kernel_report(x, text, 10));
    EXPECT(MPI_ERR_REQUEST, "the exchange is active; finish it first", MPIX_Halo_kernel_free(&x));
    CHECK(x != MPIX_HALO_KERNEL_EXCHANGE_NULL);
    OK(MPIX_Halo_kernel_finish(x));
    OK(MPIX_Halo_kernel_free(&x));
    OK(MPIX_Halo_grid_free(&grid));
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"kernel exchanges", 1, kernel_exchanges},
        {"wrong kernel exchanges", 1, wrong_kernel_exchanges},
    };
    return RUN_CASES(argc, argv, MPI_THREAD_MULTIPLE, cases);
}
