/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * Halo exchange in C, and for other languages: <mpix/halo.hpp> with opaque handles and plain structures. That
 * header, and docs/halo.md, have the words (domain, box, ghost cell, direction, radius), and say at length what the
 * functions do. <mpix/halo_gpu.h> has the exchanges that kernels run, for fields in GPU memory.
 *
 *     MPIX_Halo_grid grid;
 *     MPIX_Halo_exchange exchange;
 *     MPIX_Halo_field field;
 *     const int64_t extent[] = {nx, ny};
 *     int faces[MPIX_HALO_DIRECTIONS];
 *     MPIX_Halo_radius_faces(1, faces);
 *     MPIX_Halo_grid_create(MPI_COMM_WORLD, 2, extent, NULL, &grid);
 *     MPIX_Halo_field_init(u, MPI_DOUBLE, faces, &field);
 *     MPIX_Halo_exchange_create(grid, 1, &field, MPIX_HALO_AUTOMATIC, &exchange);
 *     MPIX_Halo_start(exchange);
 *     ... compute what MPIX_Halo_interior() gives ...
 *     MPIX_Halo_finish(exchange);
 *     ... compute what MPIX_Halo_boundary() gives ...
 *
 * Errors. All functions return MPI_SUCCESS or an MPI error class, raised through the error handler that the grid's
 * communicator had when the grid was made; of MPI_COMM_WORLD where there is no grid yet and no communicator.
 * MPI_Error_string() of the class gives, in the same thread, the sentence that mpix::halo::error would have; names in
 * it are those of the arguments here. A collective function fails on all ranks if it fails on one, except for a
 * communicator that cannot be used, a null handle, and lack of memory (MPI_ERR_NO_MEM).
 *
 * Handles must be freed before MPI_Finalize. Freeing sets one variable to the null handle; copies of the handle are
 * invalid then, and not noticed. Thread safety is that of <mpix/halo.hpp>. Cells, boxes and directions have
 * three entries also if the domain has fewer axes; x comes first, and is the fastest in memory.
 */
#ifndef MPIX_HALO_H
#define MPIX_HALO_H

#include <stdint.h>

#include <mpix/mpix.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mpix_halo_grid *MPIX_Halo_grid;
typedef struct mpix_halo_exchange *MPIX_Halo_exchange;
typedef struct mpix_halo_step_report *MPIX_Halo_step_report;
#define MPIX_HALO_GRID_NULL ((MPIX_Halo_grid)0)
#define MPIX_HALO_EXCHANGE_NULL ((MPIX_Halo_exchange)0)
#define MPIX_HALO_STEP_REPORT_NULL ((MPIX_Halo_step_report)0)

/** The cells lo <= c < hi along each axis, in global indices. */
typedef struct MPIX_Halo_box {
    int64_t lo[3], hi[3];
} MPIX_Halo_box;

/* ---- directions and radii ---------------------------------------------------------------------
 *
 * A radius is an array of a number of cells for each direction. */

/** How many directions there are, and the number of one; x, y, z are -1, 0 or 1. That of (0, 0, 0) is the box
    itself. */
#define MPIX_HALO_DIRECTIONS 27
#define MPIX_HALO_DIRECTION(x, y, z) ((x) + 1 + 3 * ((y) + 1) + 9 * ((z) + 1))

/** The same in all directions; or across the faces only, with nothing at edges and corners. Errors: MPI_ERR_ARG (a null
    pointer). */
int MPIX_Halo_radius_all(int cells, int radius[MPIX_HALO_DIRECTIONS]);
int MPIX_Halo_radius_faces(int cells, int radius[MPIX_HALO_DIRECTIONS]);
/** What a stencil needs that reads the cells at `count` offsets of three numbers each. Errors: MPI_ERR_COUNT,
    MPI_ERR_ARG (a null pointer; a number that has no negative, as INT_MIN). */
int MPIX_Halo_radius_of(int count, const int offsets[], int radius[MPIX_HALO_DIRECTIONS]);

/* ---- the grid --------------------------------------------------------------------------------- */

/** Measured bandwidths, in bytes per second and in one direction. */
typedef struct MPIX_Halo_links {
    const double *within_node; /* between two ranks of a node, row by row; or null */
    int entries;               /* of it: the square of the number of ranks of a node */
    double network;            /* out of a node, for all its ranks together */
} MPIX_Halo_links;

/** Zeros are the defaults: MPIX_Halo_grid_options options = {0}. */
typedef struct MPIX_Halo_grid_options {
    int periodic[3];
    const MPIX_Halo_box *boxes; /* by their numbers; null: computed */
    int box_count;              /* of them; 0: as many as there are ranks */
    const int *owners;          /* the rank of each; null: box r is that of rank r */
    int boxes_per_rank;         /* if they are computed; 0: 1 */
    int64_t shortest[3];        /* of a computed box; 0: 1 */
    MPIX_Halo_links links;
    const int *typical_radius;     /* MPIX_HALO_DIRECTIONS entries; null: 1 everywhere */
    double typical_bytes_per_cell; /* 0: 8 */
} MPIX_Halo_grid_options;

/**
 * Collective over `comm`, an intracommunicator, which may be freed afterwards. All ranks give the same arguments.
 *
 * dimensions  of the domain, 1 to 3
 * extent      cells of the domain along each of these axes
 * options     may be null
 * grid        receives the handle; MPIX_HALO_GRID_NULL if the call fails
 *
 * Errors: MPI_ERR_COMM, MPI_ERR_DIMS (dimensions, extent), MPI_ERR_ARG (as of mpix::halo::grid, or a null pointer).
 */
int MPIX_Halo_grid_create(MPI_Comm comm, int dimensions, const int64_t extent[], const MPIX_Halo_grid_options *options,
                          MPIX_Halo_grid *grid);

/**
 * Release the handle, and set it to MPIX_HALO_GRID_NULL. Does nothing for a null handle. Exchanges of the grid may
 * still be used. The last of a grid and its exchanges to be freed frees a communicator, which is collective. Free them
 * in the same order on all ranks.
 *
 * Errors: MPI_ERR_ARG (a null pointer).
 */
int MPIX_Halo_grid_free(MPIX_Halo_grid *grid);

/** The arguments that the grid was made with, the caller's rank in it, and the number of boxes of all ranks. Each
    pointer may be null. `extent` has three entries. Errors: MPI_ERR_ARG (a null grid, as in all functions below). */
int MPIX_Halo_grid_get(MPIX_Halo_grid grid, int *dimensions, int64_t extent[3], int periodic[3], int *rank, int *ranks,
                       int *boxes);
/** The numbers of the caller's boxes, in ascending order. Where a function takes a position `i`, it is that of one of
    them in this list, from 0: always 0, if each rank has one box. `size` and `count`: as of MPIX_Halo_grid_neighbours.
    Errors: MPI_ERR_ARG, MPI_ERR_COUNT (size < 0). */
int MPIX_Halo_grid_boxes(MPIX_Halo_grid grid, int size, int numbers[], int *count);
/** A box, and the rank that owns it, which may be a null pointer. If each rank has one box, its number is the rank.
    Errors: MPI_ERR_ARG. */
int MPIX_Halo_grid_box(MPIX_Halo_grid grid, int number, MPIX_Halo_box *box, int *rank);
/** Which rank owns a cell of the domain. Errors: MPI_ERR_ARG (a cell outside of it). */
int MPIX_Halo_grid_owner(MPIX_Halo_grid grid, const int64_t cell[3], int *rank);
/** The points of a field that is staggered along these axes with the indices of these cells, and those beyond the last
    cell at the upper end of a domain that is not periodic, as points() of mpix::halo::grid. Errors: MPI_ERR_ARG. */
int MPIX_Halo_points(MPIX_Halo_grid grid, const MPIX_Halo_box *cells, const int staggered[3], MPIX_Halo_box *points);
/** The global index of a cell that is counted from the lowest cell of a box of the caller, as global_index() of
    mpix::halo::grid. Errors: MPI_ERR_ARG. */
int MPIX_Halo_global_index(MPIX_Halo_grid grid, int i, const int64_t local[3], int64_t global[3]);
/**
 * The ranks that own ghost cells of the caller's boxes in a direction, in ascending order; perhaps the caller itself.
 *
 * direction  MPIX_HALO_DIRECTION(x, y, z)
 * depth      of the ghost cells, in cells
 * size       entries of `ranks`; 0 and a null pointer ask for the number only
 * count      receives the number, which may be more than `size`; then the first ones are stored
 *
 * Errors: MPI_ERR_ARG, MPI_ERR_COUNT (size < 0).
 */
int MPIX_Halo_grid_neighbours(MPIX_Halo_grid grid, int direction, int depth, int size, int ranks[], int *count);

/* ---- several steps for each exchange ------------------------------------------------------------
 *
 * As mpix::halo::deep_halo. `stencil`: what one step reads; `every`: steps for each exchange. */

/** The radius that the fields need. Errors: MPI_ERR_ARG (every < 1, a radius below 0 or too large, a null pointer). */
int MPIX_Halo_deep_radius(MPIX_Halo_grid grid, const int stencil[MPIX_HALO_DIRECTIONS], int every,
                          int radius[MPIX_HALO_DIRECTIONS]);
/** The cells whose values are right so many steps after an exchange; what step `steps` is to compute. `staggered`: the
    points of a field that is staggered along these axes; null: along none. Errors: as above, and MPI_ERR_ARG (steps not
    from 0 to every). */
int MPIX_Halo_deep_valid(MPIX_Halo_grid grid, int i, const int stencil[MPIX_HALO_DIRECTIONS], int every, int steps,
                         const int staggered[3], MPIX_Halo_box *box);

/** The cells of `outer` that are not in `inner`, as `count` boxes, of which there are at most six; as the first step
    computes after an exchange of which it has computed the interior. Errors: MPI_ERR_ARG (a null pointer). */
int MPIX_Halo_difference(const MPIX_Halo_box *outer, const MPIX_Halo_box *inner, MPIX_Halo_box boxes[6], int *count);

/* ---- fields ----------------------------------------------------------------------------------- */

/**
 * How a field lies in memory, as mpix::halo::field_layout. Value c of the cell (x, y, z) lies this many bytes behind
 * `data`, where lo is that of the box:
 *
 *     (z - lo[2] + below[2]) * plane_bytes + (y - lo[1] + below[1]) * row_bytes
 *         + ((x - lo[0] + below[0]) * components + c) * value_bytes           if they are interleaved
 *         + c * component_bytes + (x - lo[0] + below[0]) * value_bytes        if not
 *
 * value_bytes is the size of `type`. A distance of 0 and a `below` of -1 stand for what is computed. Of a staggered
 * field a cell is a point, and the box that of MPIX_Halo_points.
 */
typedef struct MPIX_Halo_layout {
    int components;                                  /* values per cell */
    int interleaved;                                 /* whether those of a cell are next to each other */
    int64_t below[3], above[3];                      /* cells allocated beyond the box; -1: as the radius needs */
    int64_t row_bytes, plane_bytes, component_bytes; /* from one to the next; 0: without a gap */
    int staggered[3]; /* whether the values are at points between the cells, along each axis */
} MPIX_Halo_layout;

/** A field's memory for one box. */
typedef struct MPIX_Halo_allocation {
    void *data, *other; /* as of MPIX_Halo_field */
    int64_t allocated;
} MPIX_Halo_allocation;

typedef struct MPIX_Halo_field {
    void *data;        /* the lowest cell of the allocation, as of mpix::halo::field; the caller's */
    MPI_Datatype type; /* of a value: any without gaps. It may be freed once the exchange is made */
    int radius[MPIX_HALO_DIRECTIONS];
    MPIX_Halo_layout layout;
    void *other;       /* a second allocation of the same layout, or null; for MPIX_Halo_swap */
    int64_t allocated; /* bytes at data, and at other; 0: unknown, not checked */
    /* Where the caller has several boxes, or none, of each of them; then data, other and allocated are not used. Null
       otherwise. */
    const MPIX_Halo_allocation *allocations;
    int allocation_count;
} MPIX_Halo_field;

/** Fill a description: one component, as many ghost cells as the radius needs, no gaps, not staggered, no second
    allocation, and `allocated` unknown. The caller may change it then. Errors: MPI_ERR_ARG (a null pointer, other than
    `data`). */
int MPIX_Halo_field_init(void *data, MPI_Datatype type, const int radius[MPIX_HALO_DIRECTIONS], MPIX_Halo_field *field);

/** The bytes that a field takes for a box of the caller, from its first allocated cell to its last: what `allocated` is
    compared with. The field's memory is not used. 0 if the box is empty. Local. Errors: MPI_ERR_ARG, MPI_ERR_COUNT,
    MPI_ERR_TYPE as of MPIX_Halo_exchange_create. */
int MPIX_Halo_field_bytes(MPIX_Halo_grid grid, int i, const MPIX_Halo_field *field, int64_t *bytes);

/** Copy the cells of all boxes into one array without gaps on rank `root`, as mpix::halo::gather. Collective. `global`
    is not used on other ranks. Errors: MPI_ERR_ROOT, and those of MPIX_Halo_exchange_create. */
int MPIX_Halo_gather(MPIX_Halo_grid grid, const MPIX_Halo_field *from, void *global, int root);

/* ---- files ------------------------------------------------------------------------------------ */

/** A field to be written to a file, or read from one, as mpix::halo::named_field. */
typedef struct MPIX_Halo_named_field {
    const char *name; /* 1 to 255 printable characters of ASCII */
    MPIX_Halo_field field;
} MPIX_Halo_named_field;

/**
 * Write fields to one file, from which any number of ranks can go on, as mpix::halo::write_checkpoint. Collective over
 * the grid's ranks. The file is complete, or the one that was there before is still there.
 *
 * path    of the file, on a file system that all ranks share; the file takes the place of a symbolic link
 * count   of fields; 0 is allowed
 * step    any number of the program's
 *
 * Errors: MPI_ERR_ARG, MPI_ERR_COUNT; MPI_ERR_NO_SUCH_FILE, MPI_ERR_ACCESS, MPI_ERR_NO_SPACE, MPI_ERR_IO and the like;
 * and those of MPIX_Halo_exchange_create.
 */
int MPIX_Halo_write_checkpoint(MPIX_Halo_grid grid, const char *path, int count, const MPIX_Halo_named_field fields[],
                               int64_t step);
/** Read fields by their names from such a file, as mpix::halo::read_checkpoint. Collective. `step` receives that of the
    file, and may be null. Errors: as above, and MPI_ERR_ARG (the file has another domain, or other fields), MPI_ERR_IO
    (it is no such file, or damaged). */
int MPIX_Halo_read_checkpoint(MPIX_Halo_grid grid, const char *path, int count, const MPIX_Halo_named_field fields[],
                              int64_t *step);

/** Zeros are the defaults: MPIX_Halo_vti_options options = {0}. */
typedef struct MPIX_Halo_vti_options {
    double origin[3];  /* where the lower corner of the cell (0, 0, 0) lies */
    double spacing[3]; /* how long a cell is along each axis; 0: 1 */
} MPIX_Halo_vti_options;

/**
 * Write fields for ParaView and other programs on VTK, as mpix::halo::write_vti. Collective over the grid's ranks.
 *
 * path     ends in ".pvti"; that of box b's file is `path` with "_b.vti" in place of it
 * fields   of arithmetic types other than long double
 * options  may be null
 *
 * Errors: as of MPIX_Halo_write_checkpoint, and MPI_ERR_TYPE.
 */
int MPIX_Halo_write_vti(MPIX_Halo_grid grid, const char *path, int count, const MPIX_Halo_named_field fields[],
                        const MPIX_Halo_vti_options *options);

/** Which cells a picture shows, and how, as mpix::halo::slice. */
enum { MPIX_HALO_GREY = 0, MPIX_HALO_BLUE_RED = 1 };
typedef struct MPIX_Halo_slice {
    int axis;         /* the plane lies across it: 0, 1 or 2 for x, y, z */
    int64_t at;       /* its cell along that axis */
    int component;    /* of the field */
    double low, high; /* the values that get the first and the last colour; both 0: the least and the greatest */
    int colors;       /* MPIX_HALO_GREY or MPIX_HALO_BLUE_RED */
} MPIX_Halo_slice;

/**
 * Write a plane of a field as a picture (PNG), as mpix::halo::write_png. Collective over the grid's ranks.
 *
 * from   of an arithmetic type
 * shown  null: across z, at 0, component 0, grey, from the least to the greatest value
 *
 * Errors: MPI_ERR_UNSUPPORTED_OPERATION (mpix was built without libpng), MPI_ERR_ARG, MPI_ERR_COUNT, MPI_ERR_TYPE; and
 * as of MPIX_Halo_write_checkpoint.
 */
int MPIX_Halo_write_png(MPIX_Halo_grid grid, const char *path, const MPIX_Halo_field *from,
                        const MPIX_Halo_slice *shown);

/* ---- the exchange ----------------------------------------------------------------------------- */

/** How a message's bytes are gathered and scattered, as mpix::halo::transfer. */
enum { MPIX_HALO_PACKED = 0, MPIX_HALO_DATATYPE = 1, MPIX_HALO_PLAIN = 2, MPIX_HALO_AUTOMATIC = 3 };
/** Added to it by |: received messages are not unpacked, and MPIX_Halo_ghost_pieces says where ghost cells are, as with
    mpix::halo::ghost_storage::in_messages. Then the layouts need no room for ghost cells. */
enum { MPIX_HALO_IN_MESSAGES = 16 };
/** At most one of these may be added to it by |: the messages of a rank to several ranks of another node go there as one. See
    mpix::halo::exchange_options::node_messages for the program's duties. By default none do. */
enum { MPIX_HALO_NODE_MESSAGES_AUTOMATIC = 32, MPIX_HALO_NODE_MESSAGES_ALWAYS = 64 };

/**
 * Collective over the grid's ranks. Makes persistent requests, one message to and from each neighbour.
 *
 * count     of fields; 0 is allowed
 * fields    are copied; their memory stays allocated until the exchange is freed
 * transfer  MPIX_HALO_AUTOMATIC, or MPIX_HALO_PACKED, MPIX_HALO_DATATYPE, MPIX_HALO_PLAIN; MPIX_HALO_IN_MESSAGES may be
 *           added to all but MPIX_HALO_DATATYPE, MPIX_HALO_NODE_MESSAGES_AUTOMATIC to all, and
 *           MPIX_HALO_NODE_MESSAGES_ALWAYS to MPIX_HALO_AUTOMATIC and MPIX_HALO_PACKED, without MPIX_HALO_IN_MESSAGES
 * exchange  receives the handle; MPIX_HALO_EXCHANGE_NULL if the call fails
 *
 * Errors: MPI_ERR_ARG, MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_NO_MEM as of mpix::halo::exchange; MPI_ERR_TYPE (no type,
 * or one with gaps); and what the MPI calls give.
 */
int MPIX_Halo_exchange_create(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[], int transfer,
                              MPIX_Halo_exchange *exchange);

/**
 * The same for a reverse exchange: MPIX_Halo_start sends the ghost cells, and MPIX_Halo_finish combines those of all
 * ranks with the cells that they are copies of. As mpix::halo::exchange_options::reduce.
 *
 * fields  of types of C or Fortran that are integers or real numbers
 * op      MPI_SUM, MPI_MIN or MPI_MAX
 *
 * Errors: as above, and MPI_ERR_TYPE (a type without arithmetic), MPI_ERR_OP.
 */
int MPIX_Halo_reverse_create(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[], MPI_Op op,
                             MPIX_Halo_exchange *exchange);

/** Free an exchange that is not active, or has failed, and set the handle to MPIX_HALO_EXCHANGE_NULL. Does nothing for
    a null handle. The last of a grid and its exchanges to be freed frees a communicator, which is collective. Free them
    in the same order on all ranks.
    Errors: MPI_ERR_ARG (a null pointer), MPI_ERR_REQUEST (it is active; nothing is freed). */
int MPIX_Halo_exchange_free(MPIX_Halo_exchange *exchange);

/** Begin an exchange of all fields, and send; wait until all ghost cells are there. As start() and finish() of
    mpix::halo::exchange: in between, do not write the allocations in use, nor read their ghost cells. Errors:
    MPI_ERR_ARG (a null exchange, as in all functions below), MPI_ERR_REQUEST, MPI_ERR_PENDING (finish, after
    MPIX_STALL_SECONDS; the exchange is still active, and MPIX_Halo_finish may be called again), and what the MPI calls
    give. After an error of the MPI calls the exchange has failed: later calls give MPI_ERR_REQUEST, and it can only be
    freed. */
int MPIX_Halo_start(MPIX_Halo_exchange exchange);
int MPIX_Halo_finish(MPIX_Halo_exchange exchange);
/** In steps: begin an exchange, then say of each field that it is ready, as begin() and ready() of
    mpix::halo::exchange. `field` is its position in the list that the exchange was made with, from 0; also below.
    Errors: MPI_ERR_ARG (no such field), MPI_ERR_REQUEST. */
int MPIX_Halo_begin(MPIX_Halo_exchange exchange);
int MPIX_Halo_ready(int field, MPIX_Halo_exchange exchange);
/** Whether it has begun, is not finished, and has not failed. */
int MPIX_Halo_active(MPIX_Halo_exchange exchange, int *flag);

/** Go on with the other allocation of a field, as swap() of mpix::halo::exchange. Local. Errors: MPI_ERR_ARG (no such
    field, or one without a second allocation), MPI_ERR_REQUEST (the exchange is active). */
int MPIX_Halo_swap(int field, MPIX_Halo_exchange exchange);
/** The allocation of a field for a box of the caller that is in use. Errors: MPI_ERR_ARG (no such field or box, or a
    null pointer). */
int MPIX_Halo_data(int field, int i, MPIX_Halo_exchange exchange, void **data);

/** The cells of a box of the caller whose stencils read no ghost cell that the exchange fills; and the others, as
    `count` boxes, of which there are at most six. */
int MPIX_Halo_interior(int i, MPIX_Halo_exchange exchange, MPIX_Halo_box *box);
int MPIX_Halo_boundary(int i, MPIX_Halo_exchange exchange, MPIX_Halo_box boxes[6], int *count);

/** Ghost cells that lie together, as mpix::halo::ghost_piece. Value c of the cell (x, y, z) lies
    (x - lo[0]) * stride[0] + (y - lo[1]) * stride[1] + (z - lo[2]) * stride[2] + c * component_stride bytes behind
    `first`, where lo is that of `cells`. */
typedef struct MPIX_Halo_ghost_piece {
    MPIX_Halo_box cells; /* beyond a periodic end outside of the domain */
    int direction;       /* MPIX_HALO_DIRECTION(x, y, z): where they lie, seen from the box */
    const void *first;
    int64_t stride[3], component_stride;
} MPIX_Halo_ghost_piece;

/**
 * Of an exchange with MPIX_HALO_IN_MESSAGES: where the ghost cells of a field are beside a box of the caller, in the
 * order of their directions. Values may be read from MPIX_Halo_finish until the next MPIX_Halo_begin or _start. What
 * the call gives remains the same; of a field with two allocations, ask again after each MPIX_Halo_finish. What is said
 * of ghost_pieces() of mpix::halo::exchange holds.
 *
 * size   entries of `pieces`; 0 and a null pointer ask for the number only
 * count  receives the number, which may be more than `size`; then the first ones are stored
 *
 * Errors: MPI_ERR_ARG (no such field or box, ghost cells in the fields, a null pointer), MPI_ERR_COUNT (size < 0).
 */
int MPIX_Halo_ghost_pieces(int field, int i, MPIX_Halo_exchange exchange, int size, MPIX_Halo_ghost_piece pieces[],
                           int *count);
/** Messages that this rank sends in each exchange, and their bytes. Each pointer may be null. */
int MPIX_Halo_sent(MPIX_Halo_exchange exchange, int *messages, int64_t *bytes);

/** Time the exchanges from now on, or no longer, as measure() of mpix::halo::exchange. Errors: MPI_ERR_REQUEST (the
    exchange is active). */
int MPIX_Halo_measure(int flag, MPIX_Halo_exchange exchange);
/** What is sent and received, by what path, and how long it takes, for people: text() of mpix::halo::exchange_report,
    with a line for each message, cut to `size` bytes including the zero at its end. Errors: MPI_ERR_ARG (a null
    pointer, size < 1), MPI_ERR_REQUEST (the exchange is active). */
int MPIX_Halo_report(MPIX_Halo_exchange exchange, char *text, int size);
/**
 * Exchange the fields by each of packed, datatype and plain, and tell how long that takes, as
 * mpix::halo::compare_transfers. Collective over
 * the grid's ranks. Fills ghost cells.
 *
 * exchanges  by each transfer, at least 1
 * seconds    receives the time of one exchange by each transfer, by the transfer's number; 0: not possible
 * fastest    receives the number of the fastest transfer
 *
 * Errors: as of MPIX_Halo_exchange_create, and MPI_ERR_ARG (a null pointer, exchanges).
 */
int MPIX_Halo_compare_transfers(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[], int exchanges,
                                double seconds[3], int *fastest);

/**
 * Tell on rank 0 how far a long run is, by at most one line in a second, as mpix::halo::step_report: make the report
 * before the loop, call MPIX_Halo_step_report_done in each step, and free it behind the loop, which prints the last
 * line. MPIX_Halo_step_report_create is collective over the grid's ranks, the others are local.
 *
 * steps       of the run, the same on all ranks; 0: not known. Of MPIX_Halo_step_report_done: how many more are done
 * bytes_sent  by this rank in a step, such as those of MPIX_Halo_sent; 0 on all ranks: none are told
 * report      receives the handle; MPIX_HALO_STEP_REPORT_NULL if the call fails
 *
 * Errors: MPI_ERR_ARG (a null pointer or handle, a negative number, other steps than rank 0).
 */
int MPIX_Halo_step_report_create(MPIX_Halo_grid grid, int64_t steps, int64_t bytes_sent, MPIX_Halo_step_report *report);
int MPIX_Halo_step_report_done(int64_t steps, MPIX_Halo_step_report report);
/** Sets the handle to MPIX_HALO_STEP_REPORT_NULL. Does nothing for a null handle. */
int MPIX_Halo_step_report_free(MPIX_Halo_step_report *report);

#ifdef __cplusplus
}
#endif

#endif /* MPIX_HALO_H */
