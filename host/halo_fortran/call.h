// SPDX-License-Identifier: BSD-3-Clause
//
// What the routines of the module mpix_halo (bindings/fortran/mpix_halo.f90) have in common. Each calls the function of
// <mpix/halo.h> that has its name. Arguments are addresses, null for those that are left out. Cells, positions in lists
// and axes are numbered from 1, and a box has its last cells; ranks and the numbers of boxes are as in C.
#ifndef MPIX_HOST_HALO_FORTRAN_CALL_H
#define MPIX_HOST_HALO_FORTRAN_CALL_H

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <mpix/halo.h>

#include "host/fortran/arguments.h"
#include "host/halo_c/handles.h"
#include "host/halo_fortran/sentences.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"

// The module declares them with these names, whatever the compiler.
#define MPIX_HALO_FORTRAN(name, parameters) MPIX_SYMBOL void mpix_halo_##name##_ parameters

namespace mpix::halo {

using fortran::fint;

struct fortran_box {
    fint lo[3], hi[3];
};

inline MPIX_Halo_box to_c(const fortran_box &b) {
    return {{b.lo[0] - std::int64_t{1}, b.lo[1] - std::int64_t{1}, b.lo[2] - std::int64_t{1}},
            {b.hi[0], b.hi[1], b.hi[2]}};
}
// Fits: extents are INTEGER. Only indices of ghost cells beyond cell 2^31 - 1 would not.
inline fortran_box to_fortran(const MPIX_Halo_box &b) {
    fortran_box made;
    for (int a = 0; a < 3; ++a) {
        made.lo[a] = static_cast<fint>(b.lo[a] + 1);
        made.hi[a] = static_cast<fint>(b.hi[a]);
    }
    return made;
}

// Gives the program what `work` returns, which calls the C function of this name.
template <class Work>
void call(const char *name, fint *ierror, Work work) {
    const auto code = [&]() -> int {
        try {
            const worded_as fortran(in_fortran);
            return work();
        }
        MPIX_BOUNDARY(name, of_world())
    };
    fortran::give(ierror, code());
}

// What a C function writes for `length` characters and a zero, with blanks behind it.
template <class Report>
int give_report(Report report, char *text, fint length) {
    const auto room = static_cast<std::size_t>(length);
    std::vector<char> in_c(room + 1);
    const int code = report(in_c.data(), length + 1);
    if (code == MPI_SUCCESS) fortran::give_text(text, room, in_c.data(), std::strlen(in_c.data()));
    return code;
}

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FORTRAN_CALL_H
