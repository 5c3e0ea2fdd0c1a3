// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bytes of an MPI datatype lie: its type map, as runs of bytes in packing order.
#ifndef MPIX_HOST_DATATYPE_LAYOUT_H
#define MPIX_HOST_DATATYPE_LAYOUT_H

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mpix {

// `length` bytes at `offset` from the buffer's address; `packed` bytes of the element come before them.
struct run {
    std::int64_t offset;
    std::int64_t length;
    std::int64_t packed;
};

// One element of a datatype. Immutable; the request keeps it alive after the datatype has been freed.
struct layout {
    std::int64_t size = 0;    // packed bytes
    std::int64_t extent = 0;  // from one element to the next
    std::vector<run> runs;    // in packing order, neighbours merged

    // Any number of elements is one contiguous piece of memory, from the buffer's address on.
    bool contiguous() const { return size == extent && (size == 0 || (runs.size() == 1 && runs[0].offset == 0)); }
};

// The layout of `datatype`, or null with a sentence in `problem` (a type with more than `layout_limit`
// separate runs, or made by a constructor that MPI_Type_get_contents does not explain).
std::shared_ptr<const layout> layout_of(MPI_Datatype datatype, std::string &problem);

constexpr std::size_t layout_limit = std::size_t{1} << 26;

// Copy `bytes` bytes, from packed byte `begin` on, of a sequence of elements at `buffer`: to `packed`
// (pack), or from it (unpack). Any interval, also in the middle of a run.
void pack_range(const layout &type, const char *buffer, std::int64_t begin, std::int64_t bytes, char *packed);
void unpack_range(const layout &type, char *buffer, std::int64_t begin, std::int64_t bytes, const char *packed);

}  // namespace mpix

#endif  // MPIX_HOST_DATATYPE_LAYOUT_H
