/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The partitioned calls of an MPI library that has them by name only, as Fortran programs call them: who gets here was
 * not interposed. */
#include <stdio.h>
#include <stdlib.h>

#define REFUSE(name)                                                                \
    void name(void) {                                                               \
        fprintf(stderr, "%s was not taken over by the preloaded library\n", #name); \
        abort();                                                                    \
    }
#define REFUSE_BOTH(name) REFUSE(name##_) REFUSE(name##_f08_)

REFUSE_BOTH(mpi_psend_init)
REFUSE_BOTH(mpi_precv_init)
REFUSE_BOTH(mpi_pready)
REFUSE_BOTH(mpi_pready_range)
REFUSE_BOTH(mpi_pready_list)
REFUSE_BOTH(mpi_parrived)
REFUSE(mpix_refuse_section_)
