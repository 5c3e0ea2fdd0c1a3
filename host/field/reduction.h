// SPDX-License-Identifier: BSD-3-Clause
//
// Arithmetic on values that are known by their type's number.
#ifndef MPIX_HOST_FIELD_REDUCTION_H
#define MPIX_HOST_FIELD_REDUCTION_H

#include <cstddef>
#include <cstdint>

#include <mpix/halo.hpp>

namespace mpix::halo {

// to[i] = to[i] op from[i], for `bytes` bytes of values. Neither need be aligned.
using combine_function = void (*)(const std::byte *from, std::byte *to, std::int64_t bytes);

// Null if the type has no arithmetic, or for no reduction.
combine_function combine_function_of(value_type type, reduction how);

// In bytes; 0 for value_type::bytes, and for what is no type.
std::size_t size_of(value_type type);
const char *name_of(value_type type);

}  // namespace mpix::halo

#endif  // MPIX_HOST_FIELD_REDUCTION_H
