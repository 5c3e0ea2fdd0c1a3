// SPDX-License-Identifier: BSD-3-Clause
//
// A message in a work queue to the peer: executors, kernels of a GPU or (on_host) host threads, post its partitions
// themselves.
#ifndef MPIX_HOST_ROUTE_SEND_POSTING_H
#define MPIX_HOST_ROUTE_SEND_POSTING_H

#include <memory>
#include <string>

#include "host/route/send_route.h"

namespace mpix {

// Room for one message in page-locked memory, where executors put what the network cannot read. That is enough: an
// epoch's bytes have left before those of the next come.
class send_staging {
public:
    send_staging() = default;
    ~send_staging();
    send_staging(const send_staging &) = delete;
    send_staging &operator=(const send_staging &) = delete;

    status reach(const request &send, int executor, transport::queue_message &m);

private:
    transport::region memory_;
    char *view_ = nullptr;
};

// Never changed. Held as long as an executor may remember its entries.
struct send_posting {
    std::shared_ptr<const send_route> route;  // the entries name its regions
    transport::send_queue *queue = nullptr;
    std::string executed_by;
    std::unique_ptr<transport::queued_message> message;
};
// A null pointer and success if nothing is to be posted.
status make_posting(const request &send, const std::shared_ptr<const send_route> &route, int executor,
                    send_staging &staging, std::shared_ptr<const send_posting> &out);

}  // namespace mpix

#endif  // MPIX_HOST_ROUTE_SEND_POSTING_H
