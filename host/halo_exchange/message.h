// SPDX-License-Identifier: BSD-3-Clause
//
// A message between two ranks: the parts of all fields that one of them owns, and the other has as ghost cells.
#ifndef MPIX_HOST_HALO_EXCHANGE_MESSAGE_H
#define MPIX_HOST_HALO_EXCHANGE_MESSAGE_H

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"
#include "host/field/partitions.h"
#include "host/halo_packing/cell_packer.h"
#include "host/halo_report/message_report.h"

namespace mpix::halo {

constexpr const char *exchange_call = "mpix::halo::exchange";

// Throws, if `call` of finish() has failed. `error_class`: of the request that has.
void demand_completion(int code, int error_class, const char *call);

// MPI_Startall, of none as well.
void start_all(std::size_t count, MPI_Request *requests);

// How a message of so many bytes goes if the program leaves that to the library (transfer::automatic). Both ranks find
// the same.
transfer transfer_of(std::int64_t bytes);

class message {
public:
    static constexpr std::int64_t most_alignment = 64;
    // `parts`: of each field, what is sent, or where it is received. `alignment`: of each field in a packed message,
    // the same on both ranks. `packer` outlives the message.
    message(int peer, std::vector<std::vector<runs>> parts, const direction_bytes &by_direction, transfer how,
            std::int64_t alignment, cell_packer *packer);
    ~message();
    message(message &&other) noexcept;
    message &operator=(message &&) = delete;

    int peer() const { return peer_; }
    std::int64_t bytes() const { return bytes_; }  // without padding
    const direction_bytes &by_direction() const { return by_direction_; }
    MPI_Request request_for_send(MPI_Comm comm) const;
    MPI_Request request_for_receive(MPI_Comm comm) const;

    // Made by a derived datatype: it is neither packed nor unpacked, and leaves as a whole.
    bool typed() const { return type_ != MPI_DATATYPE_NULL; }
    // Not typed: pack a field. Of transfer::packed: send it, too, by its partitions of the active request.
    void pack_field(int field) const { pack_field(field, packed_.get()); }
    void send(int field, MPI_Request request) const;
    // Not typed: unpack all fields.
    void unpack() const { unpack(packed_.get()); }
    // The same in other memory, of so many bytes, after give_up_memory().
    void pack_field(int field, std::byte *packed) const;
    void unpack(const std::byte *packed) const;
    std::int64_t packed_bytes() const { return cut_.bytes * cut_.count(); }
    void give_up_memory() { packed_.reset(); }
    // Combine a part of a field, which begins so many bytes behind the message's beginning, with what is there.
    void combine(int field, std::size_t part, std::int64_t at, combine_function how) const;
    std::int64_t offset_of(int field, std::size_t part) const;
    // Not typed: where the message is received.
    const std::byte *received() const { return packed_.get(); }

    // Of fields with two allocations: go on with the other one.
    void swap(int field);

private:
    struct aligned_delete {
        void operator()(std::byte *memory) const { ::operator delete[](memory, std::align_val_t{most_alignment}); }
    };

    int plain_count() const;  // in bytes, with padding

    int peer_;
    std::vector<std::vector<runs>> parts_;
    direction_bytes by_direction_;
    cell_packer *packer_;
    std::int64_t bytes_ = 0;
    partitions cut_;
    std::unique_ptr<std::byte[], aligned_delete> packed_;  // with packed and plain
    bool plain_ = false;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;  // with datatype: of all parts, relative to the first one
};

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGE_MESSAGE_H
