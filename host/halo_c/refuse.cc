// SPDX-License-Identifier: BSD-3-Clause
//
// For the Python package, which checks arguments itself (bindings/python/mpix/halo/_collective.py).
#include <new>
#include <string>

#include "host/halo/collective.h"
#include "host/mpi/symbol.h"

// What the next collective call of this thread fails with, on all ranks; null: nothing.
MPIX_SYMBOL void mpix_halo_refuse_(const char *sentence) {
    try {
        mpix::halo::refuse_next(sentence == nullptr ? std::string() : sentence);
    } catch (const std::bad_alloc &) {  // then the call fails with a sentence of its own
    }
}
