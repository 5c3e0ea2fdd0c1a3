// SPDX-License-Identifier: BSD-3-Clause
//
// How an exchange that the host makes packs and unpacks the cells of its fields: in host memory by the functions of
// layout.h, in GPU memory by MPI_Pack and MPI_Unpack of this library, with the messages in host memory.
#ifndef MPIX_HOST_HALO_PACKING_CELL_PACKER_H
#define MPIX_HOST_HALO_PACKING_CELL_PACKER_H

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "host/field/layout.h"

namespace mpix::halo {

// `n` as an MPI count. Throws if it does not fit into an int.
int as_count(std::int64_t n);
// A type for these cells, relative to the first one; not committed.
MPI_Datatype type_of(const runs &r);

class cell_packer {
public:
    // `in_gpu`: for each field, whether it is in GPU memory.
    cell_packer(MPI_Comm comm, std::vector<bool> in_gpu) : comm_(comm), in_gpu_(std::move(in_gpu)) {}
    ~cell_packer();
    cell_packer(const cell_packer &) = delete;
    cell_packer &operator=(const cell_packer &) = delete;

    bool is_in_gpu(std::size_t field) const { return in_gpu_[field]; }
    bool has_gpu_fields() const;

    // Makes the datatype for these cells, if they are in GPU memory. Call it before the functions below.
    void prepare(std::size_t field, const runs &r);
    // Like the functions of layout.h. Any thread may call them.
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
    std::vector<bool> in_gpu_;
    std::map<shape, MPI_Datatype> types_;
};

// For tests: treats the host memory of all fields as GPU memory, which the CPU cannot write, or can (managed).
enum class fake_memory { none, device, managed };
extern fake_memory fake_gpu_memory;

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_PACKING_CELL_PACKER_H
