// SPDX-License-Identifier: BSD-3-Clause
//
// A datatype's plan: which byte of memory is which packed byte, in a form that is small, quick to execute, and the
// same for all datatypes that say the same.
#ifndef MPIX_HOST_DATATYPE_PLAN_H
#define MPIX_HOST_DATATYPE_PLAN_H

#include <mpix/detail/plan.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/status.h"

namespace mpix {

struct typemap;

// One element of a datatype. Immutable; whoever uses it keeps it alive, also after the datatype has been freed.
struct plan {
    std::int64_t size = 0;    // packed bytes
    std::int64_t extent = 0;  // from one element to the next
    // What is regular, by the first packed byte; and the other runs, in packing order.
    std::vector<mpix_box> boxes;
    std::vector<mpix_run> loose;
    mutable std::shared_ptr<const typemap> lookup;  // typemap_of makes it at its first call

    // Any number of elements is one contiguous piece of memory, from the buffer's address on.
    bool contiguous() const;
    // Of packed byte 0; there must be one.
    std::int64_t first_offset() const;
};

// A part of a type map: like mpix_box, in any number of dimensions.
struct strided {
    std::int64_t offset, packed, run;
    std::vector<mpix_dimension> dimensions;
};

// A type map as its constructors give it, in any order.
struct type_map {
    std::vector<strided> parts;
    std::int64_t size = 0, extent = 0;
    std::vector<mpix_run> runs = {};  // the parts of no dimensions: there may be very many of them

    // All of it `count` times, `stride` bytes apart.
    void repeat(std::int64_t count, std::int64_t stride);
    // Another one behind it, `at` bytes from the start.
    void append(const type_map &other, std::int64_t at);
    // A run of its own behind it.
    void append_run(std::int64_t offset, std::int64_t length);
    // Any number of elements is one run.
    bool is_one_run() const;
};

// The plan of a type map; equal maps of up to `flatten_limit` runs give the same object, as long as anybody has it.
// Null, with a failure in `error`, if it has too many blocks with no order in them.
std::shared_ptr<const plan> make_plan(type_map &&map, status &error);

constexpr std::int64_t flatten_limit = std::int64_t{1} << 22;
constexpr std::size_t most_boxes = 32;
constexpr std::int64_t smallest_box = 8;  // runs, where there are more than most_boxes pieces

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_PLAN_H
