// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_EXPLAIN: a table on stderr for each request, once its pair is decided: what could carry it, what does, and who
// moves the bytes. It says what was decided elsewhere (select.h, protocol/select.h), and decides nothing.
#ifndef MPIX_HOST_REQUEST_EXPLAIN_H
#define MPIX_HOST_REQUEST_EXPLAIN_H

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "host/protocol/select.h"
#include "host/request/request.h"
#include "transport/select.h"

namespace mpix {

// What the user calls the arguments of an init call: read there, since both may be freed before the pair is decided.
struct argument_names {
    std::string communicator, datatype;
};
// Null unless MPIX_EXPLAIN is set; then nothing below prints either.
std::shared_ptr<const argument_names> names_of(MPI_Comm comm, MPI_Datatype datatype);

// One table each, by one write. setup_mutex is held, except for a null peer. `refusal`: why there is no path after all.
void explain_send(const request &r, const transport::choice &choice, const movement &how, std::uint64_t slots,
                  const std::string &refusal);
// Of an exported send: who executes the queue that it is posted to.
void explain_queue(const request &r, const std::string &executed_by);
void explain_receive(const request &r, const transport::choice *choice, const landing_kind &landing,
                     const char *refusal);
// A send that its receiver has refused.
void explain_refusal(const request &r, const char *reason);
void explain_null(const request &r);
// Of a buffer in GPU memory: how long a part of its setup, begun at `since`, has taken. The clock is read only where
// that is printed.
std::chrono::steady_clock::time_point explain_clock(const operation &op);
void explain_time(const request &r, const char *part, std::chrono::steady_clock::time_point since);

}  // namespace mpix

#endif  // MPIX_HOST_REQUEST_EXPLAIN_H
