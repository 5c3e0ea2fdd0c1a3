// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges in the order of a stream, and those inside kernels.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <mpix/halo_gpu.h>

#include "host/halo_fortran/call.h"
#include "host/halo_fortran/fields.h"

using namespace mpix;
using namespace mpix::halo;

// ---- in the order of a stream -------------------------------------------------------------------

MPIX_HALO_FORTRAN(stream_create,
                  (const MPIX_Halo_grid *grid, const fint *count, const fortran_field fields[], const fint tile[],
                   const fint *direct, MPIX_Halo_stream_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_stream_create", ierror, [&] {
        const int bad = check_axes("MPIX_Halo_stream_create", collective_call::stream_exchange, *grid, *count, fields);
        if (bad != MPI_SUCCESS) return bad;
        const std::vector<MPIX_Halo_field> in_c = to_c(*count, fields);
        const MPIX_Halo_stream_options options = {{tile[0], tile[1], tile[2]}, *direct};
        return MPIX_Halo_stream_create(*grid, *count, in_c.data(), &options, exchange);
    });
}

MPIX_HALO_FORTRAN(stream_free, (MPIX_Halo_stream_exchange * exchange, fint *ierror)) {
    call("MPIX_Halo_stream_free", ierror, [&] { return MPIX_Halo_stream_free(exchange); });
}

MPIX_HALO_FORTRAN(stream_start, (const MPIX_Halo_stream_exchange *exchange, CUstream_st **stream, fint *ierror)) {
    call("MPIX_Halo_stream_start", ierror, [&] { return MPIX_Halo_stream_start(*exchange, *stream); });
}

MPIX_HALO_FORTRAN(stream_finish, (const MPIX_Halo_stream_exchange *exchange, CUstream_st **stream, fint *ierror)) {
    call("MPIX_Halo_stream_finish", ierror, [&] { return MPIX_Halo_stream_finish(*exchange, *stream); });
}

MPIX_HALO_FORTRAN(stream_run, (const MPIX_Halo_stream_exchange *exchange, CUstream_st **stream, fint *ierror)) {
    call("MPIX_Halo_stream_run", ierror, [&] { return MPIX_Halo_stream_run(*exchange, *stream); });
}

MPIX_HALO_FORTRAN(stream_check, (const MPIX_Halo_stream_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_stream_check", ierror, [&] { return MPIX_Halo_stream_check(*exchange); });
}

MPIX_HALO_FORTRAN(stream_swap, (const MPIX_Halo_stream_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_stream_swap", ierror, [&] { return MPIX_Halo_stream_swap(*exchange); });
}

MPIX_HALO_FORTRAN(stream_data, (const fint *field, const fint *i, const MPIX_Halo_stream_exchange *exchange,
                                void **data, fint *ierror)) {
    call("MPIX_Halo_stream_data", ierror, [&] { return MPIX_Halo_stream_data(*field - 1, *i - 1, *exchange, data); });
}

MPIX_HALO_FORTRAN(stream_interior,
                  (const fint *i, const MPIX_Halo_stream_exchange *exchange, fortran_box *box, fint *ierror)) {
    call("MPIX_Halo_stream_interior", ierror, [&] {
        MPIX_Halo_box made;
        const int code = MPIX_Halo_stream_interior(*i - 1, *exchange, &made);
        if (code == MPI_SUCCESS) *box = to_fortran(made);
        return code;
    });
}

MPIX_HALO_FORTRAN(stream_boundary, (const fint *i, const MPIX_Halo_stream_exchange *exchange, fortran_box boxes[],
                                    fint *count, fint *ierror)) {
    call("MPIX_Halo_stream_boundary", ierror, [&] {
        MPIX_Halo_box made[6];
        const int code = MPIX_Halo_stream_boundary(*i - 1, *exchange, made, count);
        if (code == MPI_SUCCESS)
            std::transform(made, made + *count, boxes, [](const MPIX_Halo_box &b) { return to_fortran(b); });
        return code;
    });
}

MPIX_HALO_FORTRAN(stream_sent,
                  (const MPIX_Halo_stream_exchange *exchange, fint *messages, int64_t *bytes, fint *ierror)) {
    call("MPIX_Halo_stream_sent", ierror, [&] { return MPIX_Halo_stream_sent(*exchange, messages, bytes); });
}

MPIX_HALO_FORTRAN(stream_measure, (const fint *flag, const MPIX_Halo_stream_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_stream_measure", ierror, [&] { return MPIX_Halo_stream_measure(*flag, *exchange); });
}

MPIX_HALO_FORTRAN(stream_report,
                  (const MPIX_Halo_stream_exchange *exchange, char *text, const fint *length, fint *ierror)) {
    call("MPIX_Halo_stream_report", ierror, [&] {
        return give_report([&](char *to, int size) { return MPIX_Halo_stream_report(*exchange, to, size); }, text,
                           *length);
    });
}

// ---- inside kernels -----------------------------------------------------------------------------

MPIX_HALO_FORTRAN(kernel_create,
                  (const MPIX_Halo_grid *grid, const fint *count, const fortran_field fields[], const fint tile[],
                   const fint *sets, const fint *box_waits, MPIX_Halo_kernel_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_kernel_create", ierror, [&] {
        const int bad = check_axes("MPIX_Halo_kernel_create", collective_call::kernel_exchange, *grid, *count, fields);
        if (bad != MPI_SUCCESS) return bad;
        const std::vector<MPIX_Halo_field> in_c = to_c(*count, fields);
        const MPIX_Halo_kernel_options options = {{tile[0], tile[1], tile[2]}, *sets, *box_waits};
        return MPIX_Halo_kernel_create(*grid, *count, in_c.data(), &options, exchange);
    });
}

MPIX_HALO_FORTRAN(kernel_free, (MPIX_Halo_kernel_exchange * exchange, fint *ierror)) {
    call("MPIX_Halo_kernel_free", ierror, [&] { return MPIX_Halo_kernel_free(exchange); });
}

MPIX_HALO_FORTRAN(kernel_start, (const fint *steps, const MPIX_Halo_kernel_exchange *exchange,
                                 MPIX_Halo_device_exchange *device, fint *ierror)) {
    call("MPIX_Halo_kernel_start", ierror, [&] { return MPIX_Halo_kernel_start(*steps, *exchange, device); });
}

MPIX_HALO_FORTRAN(kernel_finish, (const MPIX_Halo_kernel_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_kernel_finish", ierror, [&] { return MPIX_Halo_kernel_finish(*exchange); });
}

MPIX_HALO_FORTRAN(kernel_active, (const MPIX_Halo_kernel_exchange *exchange, fint *flag, fint *ierror)) {
    call("MPIX_Halo_kernel_active", ierror, [&] { return MPIX_Halo_kernel_active(*exchange, flag); });
}

MPIX_HALO_FORTRAN(kernel_data, (const fint *field, const fint *i, const MPIX_Halo_kernel_exchange *exchange,
                                void **data, fint *ierror)) {
    call("MPIX_Halo_kernel_data", ierror, [&] { return MPIX_Halo_kernel_data(*field - 1, *i - 1, *exchange, data); });
}

MPIX_HALO_FORTRAN(kernel_sent,
                  (const MPIX_Halo_kernel_exchange *exchange, fint *messages, int64_t *bytes, fint *ierror)) {
    call("MPIX_Halo_kernel_sent", ierror, [&] { return MPIX_Halo_kernel_sent(*exchange, messages, bytes); });
}

MPIX_HALO_FORTRAN(kernel_measure, (const fint *flag, const MPIX_Halo_kernel_exchange *exchange, fint *ierror)) {
    call("MPIX_Halo_kernel_measure", ierror, [&] { return MPIX_Halo_kernel_measure(*flag, *exchange); });
}

MPIX_HALO_FORTRAN(kernel_report,
                  (const MPIX_Halo_kernel_exchange *exchange, char *text, const fint *length, fint *ierror)) {
    call("MPIX_Halo_kernel_report", ierror, [&] {
        return give_report([&](char *to, int size) { return MPIX_Halo_kernel_report(*exchange, to, size); }, text,
                           *length);
    });
}
