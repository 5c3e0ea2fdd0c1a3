// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges in the order of a CUDA stream, in C.
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <mpix/halo_gpu.h>
#include <mpix/halo.hpp>

#include "host/halo_c/exchange.h"
#include "host/halo_c/handles.h"
#include "host/halo_kernels/stream_exchange_internals.h"
#include "host/mpi/boundary.h"
#include "host/mpi/symbol.h"
#include "host/mpi/thread_check.h"

using namespace mpix;
using namespace mpix::halo;

struct mpix_halo_stream_exchange {
    stream_exchange exchange;
    std::shared_ptr<const error_comm> errors;
};

namespace {

stream_exchange &of(MPIX_Halo_stream_exchange handle) { return demand_handle(handle, "exchange").exchange; }

}  // namespace

MPIX_SYMBOL int MPIX_Halo_stream_create(MPIX_Halo_grid grid, int count, const MPIX_Halo_field fields[],
                                        const MPIX_Halo_stream_options *options,
                                        MPIX_Halo_stream_exchange *exchange) try {
    MPIX_CHECK_THREAD("MPIX_Halo_stream_create", of_comm(errors_of(grid)));
    return answer("MPIX_Halo_stream_create", errors_of(grid), [&] {
        if (exchange != nullptr) *exchange = MPIX_HALO_STREAM_EXCHANGE_NULL;
        const mpix_halo_grid &g = demand_handle(grid, "grid");
        std::vector<field> converted;
        status bad = exchange == nullptr ? failure(MPI_ERR_ARG, "exchange is null") : status{};
        if (bad.ok()) bad = halo::convert(count, fields, converted);
        stream_exchange_options chosen;
        if (options != nullptr) {
            chosen.tile = from_c(options->tile);
            chosen.direct = options->direct != 0;
        }
        *exchange =
            new mpix_halo_stream_exchange{stream_exchange_internals::make(g.grid, converted, chosen, bad), g.errors};
    });
}
MPIX_BOUNDARY("MPIX_Halo_stream_create", of_comm(errors_of(grid)))

MPIX_SYMBOL int MPIX_Halo_stream_free(MPIX_Halo_stream_exchange *exchange) try {
    const MPI_Comm errors = exchange == nullptr ? MPI_COMM_NULL : errors_of(*exchange);
    MPIX_CHECK_THREAD("MPIX_Halo_stream_free", of_comm(errors));
    return answer("MPIX_Halo_stream_free", errors, [&] {
        demand_argument(exchange, "exchange");
        if (*exchange != nullptr && stream_exchange_internals::is_started((*exchange)->exchange))
            throw error(MPI_ERR_REQUEST, "the exchange is started; finish it first");
        delete std::exchange(*exchange, MPIX_HALO_STREAM_EXCHANGE_NULL);
    });
}
MPIX_BOUNDARY("MPIX_Halo_stream_free", of_world())

MPIX_SYMBOL int MPIX_Halo_stream_start(MPIX_Halo_stream_exchange exchange, struct CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Halo_stream_start", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_stream_start", errors_of(exchange), [&] { of(exchange).start(stream); });
}
MPIX_BOUNDARY("MPIX_Halo_stream_start", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_finish(MPIX_Halo_stream_exchange exchange, struct CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Halo_stream_finish", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_stream_finish", errors_of(exchange), [&] { of(exchange).finish(stream); });
}
MPIX_BOUNDARY("MPIX_Halo_stream_finish", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_run(MPIX_Halo_stream_exchange exchange, struct CUstream_st *stream) try {
    MPIX_CHECK_THREAD("MPIX_Halo_stream_run", of_comm(errors_of(exchange)));
    return answer("MPIX_Halo_stream_run", errors_of(exchange), [&] { of(exchange).run(stream); });
}
MPIX_BOUNDARY("MPIX_Halo_stream_run", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_check(MPIX_Halo_stream_exchange exchange) try {
    return answer("MPIX_Halo_stream_check", errors_of(exchange), [&] { of(exchange).check(); });
}
MPIX_BOUNDARY("MPIX_Halo_stream_check", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_swap(MPIX_Halo_stream_exchange exchange) try {
    return answer("MPIX_Halo_stream_swap", errors_of(exchange), [&] { of(exchange).swap(); });
}
MPIX_BOUNDARY("MPIX_Halo_stream_swap", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_data(int field, int i, MPIX_Halo_stream_exchange exchange, void **data) try {
    return answer("MPIX_Halo_stream_data", errors_of(exchange), [&] {
        const stream_exchange &x = of(exchange);
        demand_argument(data, "data");
        *data = x.data(field, i);
    });
}
MPIX_BOUNDARY("MPIX_Halo_stream_data", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_interior(int i, MPIX_Halo_stream_exchange exchange, MPIX_Halo_box *box) try {
    return answer("MPIX_Halo_stream_interior", errors_of(exchange), [&] {
        const halo::box &inner = of(exchange).interior(i);
        demand_argument(box, "box");
        *box = to_c(inner);
    });
}
MPIX_BOUNDARY("MPIX_Halo_stream_interior", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_boundary(int i, MPIX_Halo_stream_exchange exchange, MPIX_Halo_box boxes[6],
                                          int *count) try {
    return answer("MPIX_Halo_stream_boundary", errors_of(exchange), [&] {
        const std::vector<box> &outer = of(exchange).boundary(i);
        demand_argument(boxes, "boxes");
        demand_argument(count, "count");
        std::transform(outer.begin(), outer.end(), boxes, to_c);
        *count = static_cast<int>(outer.size());
    });
}
MPIX_BOUNDARY("MPIX_Halo_stream_boundary", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_sent(MPIX_Halo_stream_exchange exchange, int *messages, int64_t *bytes) try {
    return answer("MPIX_Halo_stream_sent", errors_of(exchange), [&] {
        const stream_exchange &x = of(exchange);
        if (messages != nullptr) *messages = x.messages_sent();
        if (bytes != nullptr) *bytes = x.bytes_sent();
    });
}
MPIX_BOUNDARY("MPIX_Halo_stream_sent", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_measure(int flag, MPIX_Halo_stream_exchange exchange) try {
    return answer("MPIX_Halo_stream_measure", errors_of(exchange), [&] { of(exchange).measure(flag != 0); });
}
MPIX_BOUNDARY("MPIX_Halo_stream_measure", of_comm(errors_of(exchange)))

MPIX_SYMBOL int MPIX_Halo_stream_report(MPIX_Halo_stream_exchange exchange, char *text, int size) try {
    return answer("MPIX_Halo_stream_report", errors_of(exchange),
                  [&] { give_text(of(exchange).report().text(), text, size); });
}
MPIX_BOUNDARY("MPIX_Halo_stream_report", of_comm(errors_of(exchange)))
