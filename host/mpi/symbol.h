// SPDX-License-Identifier: BSD-3-Clause
//
// The library's entry points: C functions, and the only symbols that leave it.
#ifndef MPIX_HOST_MPI_SYMBOL_H
#define MPIX_HOST_MPI_SYMBOL_H

#define MPIX_SYMBOL extern "C" __attribute__((visibility("default")))

#endif  // MPIX_HOST_MPI_SYMBOL_H
