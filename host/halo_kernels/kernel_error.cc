// SPDX-License-Identifier: BSD-3-Clause
#include "host/halo_kernels/kernel_error.h"

#include <cstddef>
#include <cstdint>
#include <map>

#include "host/format.h"
#include "host/halo/collective.h"
#include "host/report.h"
#include "host/request/request.h"

namespace mpix::halo {
namespace {

// "exchange 7: tile 3, [0, 0, 0] to [8, 8, 1], waits for the ghost cells [8, 0, 0] to [9, 8, 1] of fields[0], from rank 1"
std::string describe(const kernel_exchange_state &x, std::uint64_t which, std::uint64_t step) {
    if (which == device_exchange::next_failed) return format("next of exchange {}", step);
    if (which == device_exchange::next_missing)
        return format("exchange {} has not begun: next of exchange {} was not called, or has not returned", step,
                      static_cast<std::int64_t>(step) - x.device.sets_);
    if (which == device_exchange::barrier_failed) return "not all groups have come to sync_blocks";
    if (which == device_exchange::no_box_waits)
        return format("exchange {}: a kernel waits for a box; set options.box_waits", step);
    const parcel_origin &known = x.parcels.at(which - device_exchange::first_parcel);
    const std::map<int, parcels> all =
        (known.is_sent ? parcels_sent : parcels_received)(x.grid->domain, x.grid->mine, x.tile, x.fields);
    const part &first = all.at(known.peer)
                            .all.at(static_cast<std::size_t>(known.parcel))
                            .parts.at(static_cast<std::size_t>(known.part));
    const std::string who =
        known.tile >= 0 ? format("tile {}, {},", known.tile, text_of(x.tiles.at(static_cast<std::size_t>(known.tile))))
        : x.device.box_waits_ != 0 ? std::string("a box")
                                   : std::string("finish()");
    return format("exchange {}: {} {} {} of fields[{}], {} rank {}", step, who,
                  known.is_sent ? "sends the cells" : "waits for the ghost cells",
                  text_of(known.is_sent ? first.source : first.ghosts), first.field, known.is_sent ? "to" : "from",
                  known.peer);
}

}  // namespace

void demand_no_kernel_error(kernel_exchange_state &x, const std::string &caller) {
    std::uint64_t words[device_exchange::begun_at] = {};
    if (const status s = x.tables.read(0, words, sizeof words); !s.ok())
        throw error(class_of(s), format("{}: {}", caller, s.message()));
    const std::uint64_t which = words[device_exchange::failed_at];
    if (which == 0) return;
    const std::uint64_t step = words[device_exchange::failed_step_at];
    // Those of the set that the call has used.
    const int set = static_cast<int>(step % static_cast<std::uint64_t>(x.device.sets_)) * x.messages();
    int begin = set, end = set;
    if (which == device_exchange::next_failed) end += x.messages();
    if (which >= device_exchange::first_parcel) {
        const parcel_origin &known = x.parcels.at(which - device_exchange::first_parcel);
        begin += known.message + (known.is_sent ? x.device.receives_ : 0);
        end = begin + 1;
        if (known.message < 0) begin = end = set;
    }
    std::string why;
    int error_class = which == device_exchange::no_box_waits ? MPI_ERR_ARG : MPI_ERR_PENDING;
    for (int i = begin; i < end && why.empty(); ++i) {
        MPI_Request &handle = x.requests[static_cast<std::size_t>(i)];
        // MPI_Test would say so once the request is complete, which it may never be.
        request *const r = find_request(handle);
        if (const status kept = r == nullptr ? status{} : r->device_error(); !kept.ok()) {
            why = ": " + kept.message();
            error_class = class_of(kept);
            continue;
        }
        int flag = 0;
        const int code = MPI_Test(&handle, &flag, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS) continue;
        why = ": " + text_of(code, "MPI_Test");
        MPI_Error_class(code, &error_class);
    }
    throw error(error_class, format("{}: rank {}: {}{}", caller, x.grid->rank, describe(x, which, step), why));
}

void demand_no_lost_message(const kernel_exchange_state &x, const std::string &caller) {
    for (const MPI_Request handle : x.requests) {
        request *const r = find_request(handle);
        if (r == nullptr) continue;
        if (const status bad = r->failed_so_far(); !bad.ok())
            throw error(class_of(bad), format("{}: rank {}: {}", caller, x.grid->rank, bad.message()));
    }
}

}  // namespace mpix::halo
