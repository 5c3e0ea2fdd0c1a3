// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_exchange/message.h"
#include "host/profiled_range.h"

#include <cstring>
#include <limits>
#include <utility>

#include <mpix/mpix.h>

#include "host/format.h"
#include "host/halo/collective.h"

namespace mpix::halo {
namespace {

// Exchanges are constructed in one order on all ranks, and MPI matches in the order of the init calls.
constexpr int message_tag = 0;

// All of them, relative to the first.
MPI_Datatype type_of(const std::vector<std::vector<runs>> &parts) {
    std::vector<MPI_Datatype> types;
    std::vector<MPI_Aint> at;
    for (const std::vector<runs> &field : parts)
        for (const runs &r : field) {
            types.push_back(type_of(r));
            MPI_Aint address = 0;
            demand(MPI_Get_address(r.first, &address), "MPI_Get_address");
            at.push_back(address);
        }
    const MPI_Aint first = at.front();
    for (MPI_Aint &address : at) address -= first;
    const std::vector<int> ones(types.size(), 1);
    MPI_Datatype all = MPI_DATATYPE_NULL;
    demand(MPI_Type_create_struct(as_count(static_cast<std::int64_t>(types.size())), ones.data(), at.data(),
                                  types.data(), &all),
           "MPI_Type_create_struct");
    for (MPI_Datatype &type : types) MPI_Type_free(&type);
    demand(MPI_Type_commit(&all), "MPI_Type_commit");
    return all;
}

const runs &first_of(const std::vector<std::vector<runs>> &parts) {
    std::size_t f = 0;
    while (parts[f].empty()) ++f;
    return parts[f].front();
}

}  // namespace

void demand_completion(int code, int error_class, const char *call) {
    if (code != MPI_SUCCESS) throw error(error_class, format("{}::finish: {}", exchange_call, text_of(code, call)));
}

void start_all(std::size_t count, MPI_Request *requests) {
    // Open MPI refuses an empty array without an address.
    if (count != 0) demand(MPI_Startall(static_cast<int>(count), requests), "MPI_Startall");
}

transfer transfer_of(std::int64_t bytes) {
    // A derived datatype saves a copy at each end, and costs more for each run of cells. Its counts are of type int.
    constexpr std::int64_t least = 8192;
    return bytes >= least && bytes <= std::numeric_limits<int>::max() ? transfer::datatype : transfer::packed;
}

message::message(int peer, std::vector<std::vector<runs>> parts, const direction_bytes &by_direction, transfer how,
                 std::int64_t alignment, cell_packer *packer)
    : peer_(peer),
      parts_(std::move(parts)),
      by_direction_(by_direction),
      packer_(packer),
      plain_(how == transfer::plain) {
    std::vector<std::int64_t> field_bytes;
    for (const std::vector<runs> &field : parts_) {
        field_bytes.push_back(0);
        for (const runs &r : field) field_bytes.back() += r.total();
        bytes_ += field_bytes.back();
    }
    if (how == transfer::datatype) {
        type_ = type_of(parts_);
        return;
    }
    cut_ = choose_partitions(field_bytes, host_partition_cost, alignment);
    const auto length = static_cast<std::size_t>(cut_.bytes * cut_.count());
    packed_.reset(static_cast<std::byte *>(::operator new[](length, std::align_val_t{most_alignment})));
    std::memset(packed_.get(), 0, length);  // padding is sent, too
}

message::message(message &&other) noexcept
    : peer_(other.peer_),
      parts_(std::move(other.parts_)),
      by_direction_(other.by_direction_),
      packer_(other.packer_),
      bytes_(other.bytes_),
      cut_(std::move(other.cut_)),
      packed_(std::move(other.packed_)),
      plain_(other.plain_),
      type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}

message::~message() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (type_ != MPI_DATATYPE_NULL && !finalized) MPI_Type_free(&type_);
}

MPI_Request message::request_for_send(MPI_Comm comm) const {
    MPI_Request request = MPI_REQUEST_NULL;
    if (plain_)
        demand(MPI_Send_init(packed_.get(), plain_count(), MPI_BYTE, peer_, message_tag, comm, &request),
               "MPI_Send_init");
    else if (packed_)
        demand(MPI_Psend_init(packed_.get(), cut_.count(), cut_.bytes, MPI_BYTE, peer_, message_tag, comm,
                              MPI_INFO_NULL, &request),
               "MPI_Psend_init");
    else
        demand(MPI_Psend_init(first_of(parts_).first, 1, 1, type_, peer_, message_tag, comm, MPI_INFO_NULL, &request),
               "MPI_Psend_init");
    return request;
}

MPI_Request message::request_for_receive(MPI_Comm comm) const {
    MPI_Request request = MPI_REQUEST_NULL;
    if (plain_)
        demand(MPI_Recv_init(packed_.get(), plain_count(), MPI_BYTE, peer_, message_tag, comm, &request),
               "MPI_Recv_init");
    else if (packed_)
        demand(MPI_Precv_init(packed_.get(), cut_.count(), cut_.bytes, MPI_BYTE, peer_, message_tag, comm,
                              MPI_INFO_NULL, &request),
               "MPI_Precv_init");
    else
        demand(MPI_Precv_init(first_of(parts_).first, 1, 1, type_, peer_, message_tag, comm, MPI_INFO_NULL, &request),
               "MPI_Precv_init");
    return request;
}

int message::plain_count() const { return as_count(cut_.bytes * cut_.count()); }

void message::pack_field(int field, std::byte *packed) const {
    const profiled_range shown(range_name::halo_pack);
    std::byte *to = packed + cut_.offset(field);
    for (const runs &r : parts_[field]) to += packer_->pack(static_cast<std::size_t>(field), r, to);
}

void message::send(int field, MPI_Request request) const {
    if (parts_[field].empty()) return;
    pack_field(field);
    demand(MPI_Pready_range(cut_.first[field], cut_.first[field + 1] - 1, request), "MPI_Pready_range");
}

void message::unpack(const std::byte *packed) const {
    const profiled_range shown(range_name::halo_unpack);
    for (std::size_t f = 0; f < parts_.size(); ++f) {
        const std::byte *from = packed + cut_.offset(static_cast<int>(f));
        for (const runs &r : parts_[f]) from += packer_->unpack(f, from, r);
    }
}

void message::swap(int field) {
    for (runs &r : parts_[field]) std::swap(r.first, r.other);
}

void message::combine(int field, std::size_t part, std::int64_t at, combine_function how) const {
    packer_->combine(static_cast<std::size_t>(field), packed_.get() + at, parts_[field][part], how);
}

std::int64_t message::offset_of(int field, std::size_t part) const {
    std::int64_t at = cut_.offset(field);
    for (std::size_t i = 0; i < part; ++i) at += parts_[field][i].total();
    return at;
}

}  // namespace mpix::halo
