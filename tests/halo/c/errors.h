// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of wrong arguments share, and those of exchanges with options, for main.
#ifndef MPIX_TESTS_HALO_C_ERRORS_H
#define MPIX_TESTS_HALO_C_ERRORS_H

#include <mpix/halo.h>

#include "tests/errors/expect.h"

enum { nx = 9, ny = 7 };

// Of nx * ny cells.
MPIX_Halo_grid plane(void);

// For a `field` that is changed for the call, and is `good` again behind it.
#define EXCHANGE_REFUSED(error_class, words, count, fields, transfer)                             \
    do {                                                                                          \
        x = (MPIX_Halo_exchange)&good;                                                            \
        EXPECT(error_class, words, MPIX_Halo_exchange_create(grid, count, fields, transfer, &x)); \
        CHECK(x == MPIX_HALO_EXCHANGE_NULL);                                                      \
        field = good;                                                                             \
    } while (0)

void wrong_stream_exchanges(void);
void wrong_ghosts(void);
void wrong_node_messages(void);

#endif  // MPIX_TESTS_HALO_C_ERRORS_H
