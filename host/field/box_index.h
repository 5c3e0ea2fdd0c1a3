// SPDX-License-Identifier: BSD-3-Clause
//
// Which boxes of a domain are near a place, without a look at all of them.
#ifndef MPIX_HOST_FIELD_BOX_INDEX_H
#define MPIX_HOST_FIELD_BOX_INDEX_H

#include <cstdint>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/domain.h"

namespace mpix::halo {

class box_index {
public:
    // Keeps a reference to the domain.
    explicit box_index(const domain &d);
    // The numbers of the boxes that have cells within `b`, or copies of them beyond the domain's periodic ends; in
    // ascending order.
    std::vector<int> near(const box &b) const;

private:
    const domain &domain_;
    int axis_ = 0;              // along which boxes are shortest, against the domain
    std::int64_t longest_ = 0;  // of the boxes, along it
    std::vector<int> order_;    // by where they begin along it; without those that are empty
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_FIELD_BOX_INDEX_H
