// SPDX-License-Identifier: BSD-3-Clause
//
// A field as functions of the host reach it: where it is, or, if that is memory of a GPU, by a copy of all that is allocated
// for it.
#ifndef MPIX_HOST_HALO_HOST_FIELD_H
#define MPIX_HOST_HALO_HOST_FIELD_H

#include <cstddef>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"
#include "host/halo/grid_state.h"
#include "transport/select.h"
#include "transport/status.h"

namespace mpix::halo {

class host_field {
public:
    // `view`: of the field, or of the copy, which lives as long as this. Of a field of two allocations, the first is copied.
    // Fails as field_view::make, and if the GPU's memory cannot be read.
    status make(const grid_state &g, const field &f, field_view &view);
    // Copies back what the host has changed. Nothing, if there is no copy.
    status write_back() const;

private:
    struct part {  // of one box
        transport::placement place;
        void *in_gpu;
        std::vector<std::byte> copy;
    };
    std::vector<part> parts_;
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_HOST_FIELD_H
