// SPDX-License-Identifier: BSD-3-Clause
//
// A plan as bytes, for another process on a machine of this kind.
#ifndef MPIX_HOST_DATATYPE_PLAN_WIRE_H
#define MPIX_HOST_DATATYPE_PLAN_WIRE_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/datatype/plan.h"

namespace mpix {

std::vector<char> to_bytes(const plan &type);

// Null, with a failure in `error`, if these are not the bytes of a plan. Nothing in them is trusted: all memory that
// the plan speaks of lies within what span_of says.
std::shared_ptr<const plan> plan_from_bytes(const void *bytes, std::size_t length, status &error);

// The memory of `elements` elements of a type that has bytes, at least one: bytes [low, high) from the buffer's address
// on.
struct memory_span {
    std::int64_t low, high;
};
memory_span span_of(const plan &type, std::int64_t elements);

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_PLAN_WIRE_H
