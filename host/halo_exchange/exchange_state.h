// SPDX-License-Identifier: BSD-3-Clause
//
// What an exchange consists of, and how it is made.
#ifndef MPIX_HOST_HALO_EXCHANGE_EXCHANGE_STATE_H
#define MPIX_HOST_HALO_EXCHANGE_EXCHANGE_STATE_H

#include <mpi.h>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"
#include "host/field/field_memory.h"
#include "host/halo/grid_state.h"
#include "host/halo/regions.h"
#include "host/halo_exchange/ghosts.h"
#include "host/halo_packing/cell_packer.h"
#include "host/halo_exchange/message.h"
#include "host/halo_exchange/node_exchange.h"
#include "host/halo_report/stopwatch.h"
#include "transport/status.h"

namespace mpix::halo {

// A copy from cells of a rank to ghost cells of its own, or in a reverse exchange the other way.
struct own_copy {
    runs from, to;
};

// In a reverse exchange, what the ghost cells of one box give to another one.
struct contribution {
    int field = 0;
    int receive = -1;      // position of the message that brings it, or -1: the rank has both boxes
    std::size_t part = 0;  // of the message's field, or of exchange_state::own
    std::int64_t at = 0;   // bytes into the message
};

struct exchange_state {
    exchange_state() = default;
    exchange_state(const exchange_state &) = delete;
    exchange_state &operator=(const exchange_state &) = delete;
    ~exchange_state();

    // Frees the requests that are not active. Whether that is all of them.
    bool free_requests();
    bool reversed() const { return reduce != reduction::none; }
    bool in_messages() const { return ghosts == ghost_storage::in_messages; }
    // The same on all ranks.
    bool may_go_by_node() const {
        return to_nodes != node_messages::never && !reversed() && !in_messages() &&
               (how == transfer::packed || how == transfer::automatic);
    }

    std::shared_ptr<const grid_state> grid;
    transfer how = transfer::packed;
    reduction reduce = reduction::none;
    ghost_storage ghosts = ghost_storage::in_fields;
    node_messages to_nodes = node_messages::never;
    std::vector<combine_function> combine;  // of each field, in a reverse exchange
    std::vector<field_view> fields;
    std::unique_ptr<cell_packer> packer;  // outlives the messages, which use it
    // Of each field, for each box of this rank, the present allocation and the other one.
    std::vector<std::vector<std::array<void *, 2>>> data;
    field_memory memory;                            // of all fields
    std::vector<std::vector<box_to_read>> to_read;  // of each field, if ghost cells stay in messages
    std::vector<bool> read_from_other;              // fields that have been swapped since the last exchange began
    std::vector<message> receives, sends;           // receives by rank
    std::vector<MPI_Request> requests;              // of the receives, then of the sends
    std::unique_ptr<node_exchange> by_node;         // of the messages that go in node messages, if any rank has some
    std::vector<std::vector<own_copy>> own;         // of each field
    std::vector<std::vector<std::byte>> room;       // for these
    std::vector<contribution> contributions;        // of a reverse exchange, in the order in which they are combined
    regions areas;
    exchange_state *kept_before = nullptr;  // see keep()

    std::mutex mutex;  // of what follows
    bool active = false;
    bool failed = false;      // a call has, so some requests may be active and others not
    std::vector<bool> ready;  // fields, in this exchange
    int unready = 0;          // fields whose bytes have not been sent
    bool first_is_over = false;
    bool timed = false;
    std::int64_t exchanges = 0;  // finished, since measure()
    // If it is timed: when the present exchange began; and of all exchanges together, the seconds in calls that send,
    // in finish(), and until each message was found.
    exchange_clock::time_point begun;
    double sending_seconds = 0, waiting_seconds = 0;
    std::vector<double> arrival_seconds;
};

// Whether MPIX_HALO_TRANSFER may take the place of options.transfer.
enum class transfer_choice { by_environment, as_given };

// Collective. `given`: what was wrong on this rank before; then all ranks throw.
std::unique_ptr<exchange_state> make_exchange_state(std::shared_ptr<const grid_state> grid,
                                                    const std::vector<field> &fields, const exchange_options &options,
                                                    const status &given = {},
                                                    transfer_choice choice = transfer_choice::by_environment);

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_EXCHANGE_EXCHANGE_STATE_H
