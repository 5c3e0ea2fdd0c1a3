/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How many blocks of a kernel fit on a GPU at the same time, what limits that, and the sentence that says so. Without
 * CUDA, so that it can be tested where there is none. */
#ifndef MPIX_DETAIL_OCCUPANCY_H
#define MPIX_DETAIL_OCCUPANCY_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How many blocks of a kernel are resident on a device at the same time. */
typedef struct MPIX_Occupancy {
    int blocks; /* on the whole device */
    int blocks_per_multiprocessor;
    int multiprocessors;
    int limit; /* MPIX_LIMIT_... */
} MPIX_Occupancy;

/** What no further block of a multiprocessor finds room in. */
enum {
    MPIX_LIMIT_UNKNOWN,
    MPIX_LIMIT_THREADS,       /* threads of a multiprocessor */
    MPIX_LIMIT_BLOCKS,        /* blocks of a multiprocessor */
    MPIX_LIMIT_REGISTERS,     /* registers of a multiprocessor */
    MPIX_LIMIT_SHARED_MEMORY, /* shared memory of a multiprocessor */
    MPIX_LIMIT_BLOCK_THREADS, /* the kernel's limit on a block's threads; no block fits */
    MPIX_LIMIT_BLOCK_SHARED   /* the kernel's limit on a block's dynamic shared memory; no block fits */
};

/* What a block needs. Memory in bytes. */
struct mpix_block_needs {
    int threads, most_threads;       /* asked for; that the kernel allows */
    long long dynamic, most_dynamic; /* the same, of shared memory */
    long long fixed;                 /* the kernel's own shared memory */
    int registers;                   /* of a thread */
};

/* What a multiprocessor has. */
struct mpix_multiprocessor {
    int threads, blocks, registers;
    long long shared, reserved; /* memory in bytes; that the system takes of it for each block */
};

static inline long long mpix_round_up(long long n, long long unit) { return (n + unit - 1) / unit * unit; }

/* What limits the blocks of a multiprocessor to `found`, which the CUDA runtime says. */
static inline int mpix_occupancy_limit(const struct mpix_block_needs *b, const struct mpix_multiprocessor *m,
                                       int found) {
    /* Registers are given to whole warps, in units of 256, by each quarter of a multiprocessor. */
    const long long warp = 32, register_unit = 256, quarters = 4, shared_unit = 128;
    const long long warps = (b->threads + warp - 1) / warp;
    const long long registers = mpix_round_up(b->registers * warp, register_unit);
    const long long shared = b->fixed + b->dynamic;
    if (b->threads > b->most_threads) return MPIX_LIMIT_BLOCK_THREADS;
    if (b->dynamic > b->most_dynamic) return MPIX_LIMIT_BLOCK_SHARED;
    if (warps > 0 && m->threads / warp / warps == found) return MPIX_LIMIT_THREADS;
    if (m->blocks == found) return MPIX_LIMIT_BLOCKS;
    if (shared > 0 && m->shared / mpix_round_up(shared + m->reserved, shared_unit) == found)
        return MPIX_LIMIT_SHARED_MEMORY;
    if (warps > 0 && registers > 0 && m->registers / quarters / registers * quarters / warps == found)
        return MPIX_LIMIT_REGISTERS;
    return MPIX_LIMIT_UNKNOWN;
}

/* Why a grid does not fit, into a text of `size` characters. */
static inline void mpix_occupancy_sentence(char *text, size_t size, unsigned long long grid, int device,
                                           const MPIX_Occupancy *o, const struct mpix_block_needs *b,
                                           const struct mpix_multiprocessor *m) {
    char limit[128] = "";
    switch (o->limit) {
        case MPIX_LIMIT_THREADS:
            snprintf(limit, sizeof limit, ", limited by a multiprocessor's %d threads", m->threads);
            break;
        case MPIX_LIMIT_BLOCKS:
            snprintf(limit, sizeof limit, ", limited by a multiprocessor's %d blocks", m->blocks);
            break;
        case MPIX_LIMIT_REGISTERS:
            snprintf(limit, sizeof limit, ", limited by the %d registers of each thread", b->registers);
            break;
        case MPIX_LIMIT_SHARED_MEMORY:
            snprintf(limit, sizeof limit, ", limited by the %lld bytes of shared memory of each block",
                     b->fixed + b->dynamic);
            break;
        case MPIX_LIMIT_BLOCK_THREADS:
            snprintf(limit, sizeof limit, ", because a block of this kernel has at most %d threads", b->most_threads);
            break;
        case MPIX_LIMIT_BLOCK_SHARED:
            snprintf(limit, sizeof limit,
                     ", because a block has at most %lld bytes of dynamic shared memory, not %lld "
                     "(cudaFuncAttributeMaxDynamicSharedMemorySize)",
                     b->most_dynamic, b->dynamic);
            break;
        default:
            break;
    }
    snprintf(text, size,
             "the grid has %llu blocks of %d threads, of which %d fit on device %d at the same time: %d on each of %d "
             "multiprocessors%s",
             grid, b->threads, o->blocks, device, o->blocks_per_multiprocessor, o->multiprocessors, limit);
}

#ifdef __cplusplus
}
#endif

#endif /* MPIX_DETAIL_OCCUPANCY_H */
