// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges, and what they tell of themselves.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <mpix/halo.h>
#include <mpix/halo.hpp>

#include "host/halo_fortran/call.h"
#include "host/halo_fortran/fields.h"

using namespace mpix;
using namespace mpix::halo;

namespace {

// The module's type MPIX_Halo_ghost_piece.
struct fortran_ghost_piece {
    fortran_box cells;
    fint direction[3];
    const void *first;
    int64_t stride[3], component_stride;
};

fortran_ghost_piece piece_to_fortran(const MPIX_Halo_ghost_piece &p) {
    const auto [x, y, z] = halo::direction(p.direction);
    return {to_fortran(p.cells), {x, y, z}, p.first, {p.stride[0], p.stride[1], p.stride[2]}, p.component_stride};
}

}  // namespace

MPIX_HALO_FORTRAN(exchange_create, (const MPIX_Halo_grid *grid, const fint *count, const fortran_field fields[],
                                    const fint *transfer, MPIX_Halo_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_exchange_create", ierror, [&] {
        const int bad = check_axes("MPIX_Halo_exchange_create", collective_call::exchange, *grid, *count, fields);
        if (bad != MPI_SUCCESS) return bad;
        const std::vector<MPIX_Halo_field> in_c = to_c(*count, fields);
        return MPIX_Halo_exchange_create(*grid, *count, in_c.data(), *transfer, exchange);
    });
}

MPIX_HALO_FORTRAN(reverse_create, (const MPIX_Halo_grid *grid, const fint *count, const fortran_field fields[],
                                   const fint *op, MPIX_Halo_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_reverse_create", ierror, [&] {
        const int bad = check_axes("MPIX_Halo_reverse_create", collective_call::exchange, *grid, *count, fields);
        if (bad != MPI_SUCCESS) return bad;
        const std::vector<MPIX_Halo_field> in_c = to_c(*count, fields);
        return MPIX_Halo_reverse_create(*grid, *count, in_c.data(), MPI_Op_f2c(*op), exchange);
    });
}

MPIX_HALO_FORTRAN(exchange_free, (MPIX_Halo_exchange * exchange, fint *ierror)) {
    call("MPIX_Halo_exchange_free", ierror, [&] { return MPIX_Halo_exchange_free(exchange); });
}

MPIX_HALO_FORTRAN(start, (const MPIX_Halo_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_start", ierror, [&] { return MPIX_Halo_start(*exchange); });
}

MPIX_HALO_FORTRAN(finish, (const MPIX_Halo_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_finish", ierror, [&] { return MPIX_Halo_finish(*exchange); });
}

MPIX_HALO_FORTRAN(begin, (const MPIX_Halo_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_begin", ierror, [&] { return MPIX_Halo_begin(*exchange); });
}

MPIX_HALO_FORTRAN(ready, (const fint *field, const MPIX_Halo_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_ready", ierror, [&] { return MPIX_Halo_ready(*field - 1, *exchange); });
}

MPIX_HALO_FORTRAN(active, (const MPIX_Halo_exchange *exchange, fint *flag, fint *ierror)) {
    call("MPIX_Halo_active", ierror, [&] { return MPIX_Halo_active(*exchange, flag); });
}

MPIX_HALO_FORTRAN(swap, (const fint *field, const MPIX_Halo_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_swap", ierror, [&] { return MPIX_Halo_swap(*field - 1, *exchange); });
}

MPIX_HALO_FORTRAN(data,
                  (const fint *field, const fint *i, const MPIX_Halo_exchange *exchange, void **data, fint *ierror)) {
    call("MPIX_Halo_data", ierror, [&] { return MPIX_Halo_data(*field - 1, *i - 1, *exchange, data); });
}

MPIX_HALO_FORTRAN(interior, (const fint *i, const MPIX_Halo_exchange *exchange, fortran_box *box, fint *ierror)) {
    call("MPIX_Halo_interior", ierror, [&] {
        MPIX_Halo_box made;
        const int code = MPIX_Halo_interior(*i - 1, *exchange, &made);
        if (code == MPI_SUCCESS) *box = to_fortran(made);
        return code;
    });
}

MPIX_HALO_FORTRAN(boundary,
                  (const fint *i, const MPIX_Halo_exchange *exchange, fortran_box boxes[], fint *count, fint *ierror)) {
    call("MPIX_Halo_boundary", ierror, [&] {
        MPIX_Halo_box made[6];
        const int code = MPIX_Halo_boundary(*i - 1, *exchange, made, count);
        if (code == MPI_SUCCESS)
            std::transform(made, made + *count, boxes, [](const MPIX_Halo_box &b) { return to_fortran(b); });
        return code;
    });
}

MPIX_HALO_FORTRAN(ghost_pieces, (const fint *field, const fint *i, const MPIX_Halo_exchange *exchange, const fint *size,
                                 fortran_ghost_piece pieces[], fint *count, fint *ierror)) {
    call("MPIX_Halo_ghost_pieces", ierror, [&] {
        std::vector<MPIX_Halo_ghost_piece> made(static_cast<std::size_t>(*size));
        const int code = MPIX_Halo_ghost_pieces(*field - 1, *i - 1, *exchange, *size, made.data(), count);
        if (code == MPI_SUCCESS)
            std::transform(made.begin(), made.begin() + std::min(*size, *count), pieces, piece_to_fortran);
        return code;
    });
}

MPIX_HALO_FORTRAN(sent, (const MPIX_Halo_exchange *exchange, fint *messages, int64_t *bytes, fint *ierror)) {
    call("MPIX_Halo_sent", ierror, [&] { return MPIX_Halo_sent(*exchange, messages, bytes); });
}

MPIX_HALO_FORTRAN(measure, (const fint *flag, const MPIX_Halo_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_measure", ierror, [&] { return MPIX_Halo_measure(*flag, *exchange); });
}

MPIX_HALO_FORTRAN(report, (const MPIX_Halo_exchange *exchange, char *text, const fint *length, fint *ierror)) {
    call("MPIX_Halo_report", ierror, [&] {
        return give_report([&](char *to, int size) { return MPIX_Halo_report(*exchange, to, size); }, text, *length);
    });
}

MPIX_HALO_FORTRAN(compare_transfers, (const MPIX_Halo_grid *grid, const fint *count, const fortran_field fields[],
                                      const fint *exchanges, double seconds[], fint *fastest, fint *ierror)) {
    call("MPIX_Halo_compare_transfers", ierror, [&] {
        const int bad = check_axes("MPIX_Halo_compare_transfers", collective_call::exchange, *grid, *count, fields);
        if (bad != MPI_SUCCESS) return bad;
        const std::vector<MPIX_Halo_field> in_c = to_c(*count, fields);
        return MPIX_Halo_compare_transfers(*grid, *count, in_c.data(), *exchanges, seconds, fastest);
    });
}
