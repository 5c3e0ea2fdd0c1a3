// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges by the program's kernels, in C.
#include <mpi.h>

#include <bit>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpix/halo_gpu.h>
#include <mpix/halo.hpp>

#include "host/halo_c/exchange.h"
#include "host/halo_c/handles.h"
#include "host/halo_kernels/kernel_exchange_internals.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"

using namespace mpix;
using namespace mpix::halo;

// A program in C passes the one where a kernel takes the other.
static_assert(sizeof(MPIX_Halo_device_exchange) == sizeof(device_exchange));
static_assert(alignof(MPIX_Halo_device_exchange) == alignof(device_exchange));
static_assert(std::is_trivially_copyable_v<device_exchange> && std::is_standard_layout_v<device_exchange>);

struct mpix_halo_kernel_exchange {
    kernel_exchange exchange;
    std::shared_ptr<const error_comm> errors;
};

namespace {

kernel_exchange &of(MPIX_Halo_kernel_exchange handle) { return demand_handle(handle, "exchange").exchange; }

// Zeros are the defaults.
kernel_exchange_options options_from_c(const MPIX_Halo_kernel_options &o) {
    kernel_exchange_options made;
    made.tile = from_c(o.tile);
    if (o.sets != 0) made.sets = o.sets;
    made.box_waits = o.box_waits != 0;
    return made;
}

}  // namespace

MPIX_SYMBOL int MPIX_Halo_kernel_create(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[],
                                        const MPIX_Halo_kernel_options *options,
                                        MPIX_Halo_kernel_exchange *exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_kernel_create", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_kernel_create", errors_of(grid), [&] {
        if (exchange != nullptr) *exchange = MPIX_HALO_KERNEL_EXCHANGE_NULL;
        const mpix_halo_grid &g = demand_handle(grid, "grid");
        std::vector<field> converted;
        status bad = exchange == nullptr ? failure(MPI_ERR_ARG, "exchange is null") : status{};
        if (bad.ok()) bad = halo::convert(count, fields, converted);
        const kernel_exchange_options given = options == nullptr ? kernel_exchange_options{} : options_from_c(*options);
        *exchange =
            new mpix_halo_kernel_exchange{kernel_exchange_internals::make(g.grid, converted, given, bad), g.errors};
    });
}
MPIX_BOUNDARY("MPIX_Halo_kernel_create", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_kernel_free(MPIX_Halo_kernel_exchange *exchange) try {
    const MPI_Comm errors = exchange == nullptr ? MPI_COMM_NULL : errors_of(*exchange);
    MPIX_CHECK_THREAD("MPIX_Halo_kernel_free", of_comm(errors));
    return answer("MPIX_Halo_kernel_free", errors, [&] {
        demand_argument(exchange, "exchange");
        if (*exchange != nullptr && (*exchange)->exchange.active())
            throw error(MPI_ERR_REQUEST, "the exchange is active; finish it first");
        delete std::exchange(*exchange, MPIX_HALO_KERNEL_EXCHANGE_NULL);
    });
}
MPIX_BOUNDARY("MPIX_Halo_kernel_free", of_world())

MPIX_SYMBOL int MPIX_Halo_kernel_start(int64_t steps, MPIX_Halo_kernel_exchange exchange,
                                       MPIX_Halo_device_exchange *device) try {
    MPIX_CHECK_THREAD("MPIX_Halo_kernel_start", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_kernel_start", errors_of(exchange), [&] {
        kernel_exchange &x = of(exchange);
        demand_argument(device, "device");
        *device = std::bit_cast<MPIX_Halo_device_exchange>(x.start(steps));
    });
}
MPIX_BOUNDARY("MPIX_Halo_kernel_start", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_kernel_finish(MPIX_Halo_kernel_exchange exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_kernel_finish", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_kernel_finish", errors_of(exchange), [&] { of(exchange).finish(); });
}
MPIX_BOUNDARY("MPIX_Halo_kernel_finish", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_kernel_active(MPIX_Halo_kernel_exchange exchange, int *flag) try {
    return answer("MPIX_Halo_kernel_active", errors_of(exchange), [&] {
        const bool active = of(exchange).active();
        demand_argument(flag, "flag");
        *flag = active;
    });
}
MPIX_BOUNDARY("MPIX_Halo_kernel_active", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_kernel_data(int field, int i, MPIX_Halo_kernel_exchange exchange, void **data) try {
    return answer("MPIX_Halo_kernel_data", errors_of(exchange), [&] {
        const kernel_exchange &x = of(exchange);
        demand_argument(data, "data");
        *data = x.data(field, i);
    });
}
MPIX_BOUNDARY("MPIX_Halo_kernel_data", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_kernel_sent(MPIX_Halo_kernel_exchange exchange, int *messages, int64_t *bytes) try {
    return answer("MPIX_Halo_kernel_sent", errors_of(exchange), [&] {
        const kernel_exchange &x = of(exchange);
        if (messages != nullptr) *messages = x.messages_sent();
        if (bytes != nullptr) *bytes = x.bytes_sent();
    });
}
MPIX_BOUNDARY("MPIX_Halo_kernel_sent", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_kernel_measure(int flag, MPIX_Halo_kernel_exchange exchange) try {
    return answer("MPIX_Halo_kernel_measure", errors_of(exchange), [&] { of(exchange).measure(flag != 0); });
}
MPIX_BOUNDARY("MPIX_Halo_kernel_measure", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_kernel_report(MPIX_Halo_kernel_exchange exchange, char *text, int size) try {
    return answer("MPIX_Halo_kernel_report", errors_of(exchange),
                  [&] { give_text(of(exchange).report().text(), text, size); });
}
MPIX_BOUNDARY("MPIX_Halo_kernel_report", of_comm(errors_of(exchange)))
