// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: a field and its name in files.
#ifndef MPIX_HALO_NAMED_FIELD_HPP
#define MPIX_HALO_NAMED_FIELD_HPP

#include <string>

#include <mpix/halo/field.hpp>

namespace mpix::halo {

/**
 * A field to be written to a file, or read from one. Files hold the cells of the ranks' boxes, without ghost cells. How
 * the field lies in memory, its radius, and the second allocation (`other`) do not matter for the file.
 */
struct named_field {
    std::string name;   ///< 1 to 255 printable characters of ASCII
    halo::field field;  ///< remains the caller's; used until the function returns
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_NAMED_FIELD_HPP
