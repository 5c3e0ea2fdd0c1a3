// SPDX-License-Identifier: BSD-3-Clause
//
// The header of a checkpoint: what fields there are, and where in the file. A table of 64-bit numbers in the byte order
// of the machine that writes it, and names; docs/halo.md describes it.
#ifndef MPIX_HOST_HALO_FILES_CHECKPOINT_HEADER_H
#define MPIX_HOST_HALO_FILES_CHECKPOINT_HEADER_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <mpix/halo.hpp>

#include "transport/status.h"

namespace mpix::halo {

struct checkpoint_field {
    std::string name;
    index3 extent{1, 1, 1};  // in cells
    std::int64_t value_bytes = 1, components = 1;
    value_type type = value_type::bytes;

    std::int64_t cell_bytes() const { return value_bytes * components; }
    std::int64_t bytes() const { return extent[0] * extent[1] * extent[2] * cell_bytes(); }
};

struct checkpoint_header {
    std::int64_t step = 0;
    index3 extent{1, 1, 1};  // of the domain
    std::vector<checkpoint_field> fields = {};

    std::int64_t bytes() const;  // of itself
    // Where in the file the data of a field begin, or, of the number of fields, where the file ends.
    std::int64_t place_of(std::size_t field) const;
};

// A header's first bytes, from which header_bytes_of() says how long it is.
constexpr std::size_t preamble_bytes = 24;
// No header is longer, or has more fields.
constexpr std::int64_t most_header_bytes = std::int64_t{1} << 20, most_fields = 1024;
// Of the values of one cell.
constexpr std::int64_t most_cell_bytes = std::int64_t{1} << 30;

// Of a field's name; empty if it can be in a file.
std::string why_no_name(std::string_view name);

// Of a header that parse() would accept.
std::vector<std::byte> to_bytes(const checkpoint_header &header);

// A file from elsewhere may have any bytes. A failure names the member that is wrong.
status header_bytes_of(std::span<const std::byte> preamble, std::int64_t &bytes);
status parse(std::span<const std::byte> bytes, checkpoint_header &made);
// What the last bytes of a header are.
std::uint64_t checksum_of(std::span<const std::byte> bytes);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_FILES_CHECKPOINT_HEADER_H
