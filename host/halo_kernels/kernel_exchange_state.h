// SPDX-License-Identifier: BSD-3-Clause
//
// What an exchange by kernels consists of, and how it is made.
#ifndef MPIX_HOST_HALO_KERNELS_KERNEL_EXCHANGE_STATE_H
#define MPIX_HOST_HALO_KERNELS_KERNEL_EXCHANGE_STATE_H

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"
#include "host/field/field_memory.h"
#include "host/halo/grid_state.h"
#include "host/halo_tables/device_memory.h"
#include "host/halo_kernels/report_data.h"
#include "host/halo_tables/tables.h"
#include "host/halo_tables/tiles.h"
#include "transport/select.h"
#include "transport/status.h"

namespace mpix::halo {

struct kernel_exchange_state {
    kernel_exchange_state() = default;
    kernel_exchange_state(const kernel_exchange_state &) = delete;
    kernel_exchange_state &operator=(const kernel_exchange_state &) = delete;
    ~kernel_exchange_state();

    // Frees the handles and requests that are not active. Whether that is all of them.
    bool free_requests();
    // Of a set; of an activation of so many steps.
    int messages() const { return device.receives_ + device.sends_; }
    int requests_of(std::int64_t steps) const;
    // Throws if a field's array has been destroyed. `while_active`: since the exchange began; the error then says so.
    void demand_arrays(const char *kind, const char *function, bool while_active) const;

    std::shared_ptr<const grid_state> grid;
    transport::placement where;
    exchanged_fields fields;
    std::vector<field_view> views;  // of these
    index3 tile{};                  // the option
    std::vector<box> tiles;
    std::vector<parcel_origin> parcels;
    // Of each field, of each box: the allocation that exchange 0 of the first activation uses, and the other one.
    std::vector<std::array<void *, 2>> data;
    field_memory memory;  // of all fields
    std::int64_t bytes_sent = 0;
    device_memory messages_memory, tables;
    std::vector<MPI_Request> requests;   // of each set the receives, then the sends
    std::vector<MPIX_Prequest> handles;  // of these
    device_exchange device{};            // what the next activation's kernels get
    report_data report;
    bool starting = false;  // the requests are active, and neighbours are waited for
    bool active = false;
    bool failed = false;
    kernel_exchange_state *kept_before = nullptr;  // see keep()
};

// Collective. `caller`: for errors. `given`: what was wrong before.
std::unique_ptr<kernel_exchange_state> make_kernel_exchange_state(std::shared_ptr<const grid_state> grid,
                                                                  const std::vector<field> &fields,
                                                                  const kernel_exchange_options &options,
                                                                  ghost_waiters waiters, const char *caller,
                                                                  const status &given = {});

}  // namespace mpix::halo

#endif  // MPIX_HOST_HALO_KERNELS_KERNEL_EXCHANGE_STATE_H
