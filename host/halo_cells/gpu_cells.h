// SPDX-License-Identifier: BSD-3-Clause
//
// Cells in GPU memory, as an exchange that the host makes packs and unpacks them: by MPI_Pack and MPI_Unpack of this
// library, into host memory and out of it.
#ifndef MPIX_HOST_HALO_CELLS_GPU_CELLS_H
#define MPIX_HOST_HALO_CELLS_GPU_CELLS_H

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "host/field/layout.h"

namespace mpix::halo {

// Of count as MPI has it: an int.
int as_count(std::int64_t n);
// Of the cells, relative to the first one. Not committed.
MPI_Datatype type_of(const runs &r);

class gpu_cells {
public:
    // `fields`: which are in GPU memory.
    gpu_cells(MPI_Comm comm, std::vector<bool> fields) : comm_(comm), fields_(std::move(fields)) {}
    ~gpu_cells();
    gpu_cells(const gpu_cells &) = delete;
    gpu_cells &operator=(const gpu_cells &) = delete;

    bool has(std::size_t field) const { return fields_[field]; }
    bool any() const;

    // Before the calls below, for all that they are called with.
    void prepare(std::size_t field, const runs &r);
    // As those in layout.h, which these are for fields in host memory. Any thread.
    std::int64_t pack(std::size_t field, const runs &from, std::byte *to);
    std::int64_t unpack(std::size_t field, const std::byte *from, const runs &to);
    void copy(std::size_t field, const runs &from, const runs &to, std::byte *room);
    void combine(std::size_t field, const std::byte *from, const runs &to, combine_function how);

private:
    using shape = std::array<std::int64_t, 7>;
    static shape shape_of(const runs &r) {
        return {r.bytes, r.count[0], r.count[1], r.count[2], r.stride[0], r.stride[1], r.stride[2]};
    }
    MPI_Datatype type_for(const runs &r) const { return types_.at(shape_of(r)); }

    MPI_Comm comm_;
    std::vector<bool> fields_;
    std::map<shape, MPI_Datatype> types_;
};

// Tests: host memory of all fields plays GPU memory.
extern bool play_gpu_cells;

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_CELLS_GPU_CELLS_H
