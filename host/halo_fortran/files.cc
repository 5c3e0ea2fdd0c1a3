// SPDX-License-Identifier: BSD-3-Clause
//
// Files and pictures of fields, and the line that tells how far a run is.
#include <cstdint>
#include <string>
#include <vector>

#include <mpix/halo.h>

#include "host/halo_fortran/call.h"
#include "host/halo_fortran/fields.h"

using namespace mpix;
using namespace mpix::halo;

namespace {

// Of the module's type MPIX_Halo_named_field, with a blank behind a name that is as long as it may be.
constexpr int name_length = 256;

std::string text_of(const char *f, std::size_t length) {
    while (length > 0 && f[length - 1] == ' ') --length;
    return {f, length};
}

// Fields in C, whose names live as long as this.
class named_fields {
public:
    named_fields(fint count, const char *names, const fortran_field fields[]) {
        for (fint f = 0; f < count; ++f) names_.push_back(text_of(names + f * name_length, name_length));
        for (fint f = 0; f < count; ++f)
            in_c_.push_back({names_[static_cast<std::size_t>(f)].c_str(), to_c(fields[f])});
    }
    const MPIX_Halo_named_field *get() const { return in_c_.data(); }

private:
    std::vector<std::string> names_;
    std::vector<MPIX_Halo_named_field> in_c_;
};

}  // namespace

MPIX_HALO_FORTRAN(write_checkpoint,
                  (const MPIX_Halo_grid *grid, const char *path, const fint *length, const fint *count,
                   const char *names, const fortran_field fields[], const int64_t *step, fint *ierror)) {
    call("MPIX_Halo_write_checkpoint", ierror, [&] {
        const named_fields in_c(*count, names, fields);
        return MPIX_Halo_write_checkpoint(*grid, text_of(path, static_cast<std::size_t>(*length)).c_str(), *count,
                                          in_c.get(), *step);
    });
}

MPIX_HALO_FORTRAN(read_checkpoint, (const MPIX_Halo_grid *grid, const char *path, const fint *length, const fint *count,
                                    const char *names, const fortran_field fields[], int64_t *step, fint *ierror)) {
    call("MPIX_Halo_read_checkpoint", ierror, [&] {
        const named_fields in_c(*count, names, fields);
        return MPIX_Halo_read_checkpoint(*grid, text_of(path, static_cast<std::size_t>(*length)).c_str(), *count,
                                         in_c.get(), step);
    });
}

MPIX_HALO_FORTRAN(write_vti, (const MPIX_Halo_grid *grid, const char *path, const fint *length, const fint *count,
                              const char *names, const fortran_field fields[], const MPIX_Halo_vti_options *options,
                              fint *ierror)) {
    call("MPIX_Halo_write_vti", ierror, [&] {
        const named_fields in_c(*count, names, fields);
        return MPIX_Halo_write_vti(*grid, text_of(path, static_cast<std::size_t>(*length)).c_str(), *count, in_c.get(),
                                   options);
    });
}

MPIX_HALO_FORTRAN(write_png, (const MPIX_Halo_grid *grid, const char *path, const fint *length,
                              const fortran_field *from, const double *low, const double *high, const fint *axis,
                              const fint *at, const fint *component, const fint *colors, fint *ierror)) {
    call("MPIX_Halo_write_png", ierror, [&] {
        const MPIX_Halo_field in_c = to_c(*from);
        const MPIX_Halo_slice shown = {*axis - 1, *at - int64_t{1}, *component - 1, *low, *high, *colors};
        return MPIX_Halo_write_png(*grid, text_of(path, static_cast<std::size_t>(*length)).c_str(), &in_c, &shown);
    });
}

MPIX_HALO_FORTRAN(step_report_create, (const MPIX_Halo_grid *grid, const fint *steps, const int64_t *bytes_sent,
                                       MPIX_Halo_step_report *report, fint *ierror)) {
    call("MPIX_Halo_step_report_create", ierror,
         [&] { return MPIX_Halo_step_report_create(*grid, *steps, *bytes_sent, report); });
}

MPIX_HALO_FORTRAN(step_report_done, (const fint *steps, const MPIX_Halo_step_report *report, fint *ierror)) {
    call("MPIX_Halo_step_report_done", ierror, [&] { return MPIX_Halo_step_report_done(*steps, *report); });
}

MPIX_HALO_FORTRAN(step_report_free, (MPIX_Halo_step_report * report, fint *ierror)) {
    call("MPIX_Halo_step_report_free", ierror, [&] { return MPIX_Halo_step_report_free(report); });
}
