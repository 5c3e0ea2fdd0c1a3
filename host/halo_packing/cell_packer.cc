// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_packing/cell_packer.h"

#include <algorithm>
#include <climits>

#include <mpix/mpix.h>

#include "host/format.h"
#include "host/halo/collective.h"

namespace mpix::halo {
namespace {

// Replaces `type` by a vector of it, and frees it.
void wrap(MPI_Datatype &type, std::int64_t count, std::int64_t stride) {
    if (count == 1) return;
    MPI_Datatype wrapped = MPI_DATATYPE_NULL;
    const int code = MPI_Type_create_hvector(as_count(count), 1, static_cast<MPI_Aint>(stride), type, &wrapped);
    MPI_Type_free(&type);
    demand(code, "MPI_Type_create_hvector");
    type = wrapped;
}

}  // namespace

fake_memory fake_gpu_memory = fake_memory::none;

int as_count(std::int64_t n) {
    if (n > INT_MAX)
        throw error(
            MPI_ERR_COUNT,
            "more than 2^31 - 1 bytes or rows of a field in one message; a transfer that is packed can be longer");
    return static_cast<int>(n);
}

MPI_Datatype type_of(const runs &r) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    demand(MPI_Type_contiguous(as_count(r.bytes), MPI_BYTE, &type), "MPI_Type_contiguous");
    for (int loop = 0; loop < 3; ++loop) wrap(type, r.count[loop], r.stride[loop]);
    return type;
}

cell_packer::~cell_packer() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    for (auto &[key, type] : types_)
        if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
}

bool cell_packer::has_gpu_fields() const { return std::find(in_gpu_.begin(), in_gpu_.end(), true) != in_gpu_.end(); }

void cell_packer::prepare(std::size_t field, const runs &r) {
    if (!is_in_gpu(field) || r.total() == 0) return;
    if (r.total() > INT_MAX)
        throw error(MPI_ERR_COUNT, format("fields[{}]: more than 2^31 - 1 bytes of GPU memory in one piece; only a "
                                          "stream_exchange and a kernel_exchange take so many",
                                          field));
    MPI_Datatype &type = types_.try_emplace(shape_of(r), MPI_DATATYPE_NULL).first->second;
    if (type != MPI_DATATYPE_NULL) return;
    type = type_of(r);
    demand(MPI_Type_commit(&type), "MPI_Type_commit");
}

std::int64_t cell_packer::pack(std::size_t field, const runs &from, std::byte *to) {
    if (!is_in_gpu(field)) return halo::pack(from, to);
    int position = 0;
    demand(MPI_Pack(from.first, 1, type_for(from), to, static_cast<int>(from.total()), &position, comm_), "MPI_Pack");
    return from.total();
}

std::int64_t cell_packer::unpack(std::size_t field, const std::byte *from, const runs &to) {
    if (!is_in_gpu(field)) return halo::unpack(from, to);
    int position = 0;
    demand(MPI_Unpack(from, static_cast<int>(to.total()), &position, to.first, 1, type_for(to), comm_), "MPI_Unpack");
    return to.total();
}

void cell_packer::copy(std::size_t field, const runs &from, const runs &to, std::byte *room) {
    if (!is_in_gpu(field)) return halo::copy(from, to, room);
    pack(field, from, room);
    unpack(field, room, to);
}

void cell_packer::combine(std::size_t field, const std::byte *from, const runs &to, combine_function how) {
    if (!is_in_gpu(field)) {
        halo::combine(from, to, how);
        return;
    }
    std::vector<std::byte> cells(static_cast<std::size_t>(to.total()));
    pack(field, to, cells.data());
    halo::combine(from, {.first = cells.data(), .bytes = to.total()}, how);
    unpack(field, cells.data(), to);
}

}  // namespace mpix::halo
