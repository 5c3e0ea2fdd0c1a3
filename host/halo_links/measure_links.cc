// SPDX-License-Identifier: BSD-3-Clause
//
// Measures bandwidths between ranks, by partitioned requests as in exchanges.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include <mpix/halo.hpp>

#include "host/field/layout.h"
#include "host/format.h"
#include "host/halo/collective.h"
#include "host/halo/grid_state.h"
#include "host/halo/node_map.h"
#include "host/request/user_memory.h"
#include "transport/select.h"

namespace mpix::halo {
namespace {

constexpr const char *measuring_call = "mpix::halo::measure_links";
constexpr int data_tag = 0, reply_tag = 1;

// A duplicate of a communicator, whose calls return errors.
class duplicate_comm {
public:
    explicit duplicate_comm(MPI_Comm comm) {
        demand(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
        demand(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }
    ~duplicate_comm() { MPI_Comm_free(&comm_); }
    duplicate_comm(const duplicate_comm &) = delete;
    duplicate_comm &operator=(const duplicate_comm &) = delete;
    MPI_Comm get() const { return comm_; }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

class request {
public:
    ~request() {
        if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
    }
    MPI_Request *operator&() { return &request_; }
    void start() { demand(MPI_Start(&request_), "MPI_Start"); }
    void ready() { demand(MPI_Pready(0, request_), "MPI_Pready"); }
    void wait() { demand(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait"); }

private:
    MPI_Request request_ = MPI_REQUEST_NULL;
};

struct message_buffers {
    std::byte *sent, *received;
    MPI_Count bytes;
};

// Seconds of the fastest of `rounds` messages from one rank to another, or to itself; on all ranks but the sender, 0.
// An empty message answers each of them. Its time, half of an empty round trip, is subtracted.
double message_seconds(MPI_Comm comm, int rank, int from, int to, const message_buffers &m, int rounds) {
    if (rank != from && rank != to) return 0;
    request send, receive;
    if (rank == to)
        demand(MPI_Precv_init(m.received, 1, m.bytes, MPI_BYTE, from, data_tag, comm, MPI_INFO_NULL, &receive),
               "MPI_Precv_init");
    if (rank == from)
        demand(MPI_Psend_init(m.sent, 1, m.bytes, MPI_BYTE, to, data_tag, comm, MPI_INFO_NULL, &send),
               "MPI_Psend_init");
    const auto reply = [&] {  // returns on both ranks
        if (from == to) return;
        if (rank == to)
            demand(MPI_Send(nullptr, 0, MPI_BYTE, from, reply_tag, comm), "MPI_Send");
        else
            demand(MPI_Recv(nullptr, 0, MPI_BYTE, to, reply_tag, comm, MPI_STATUS_IGNORE), "MPI_Recv");
    };
    double fastest = std::numeric_limits<double>::infinity(), empty = fastest;
    for (int round = 0; from != to && round < rounds; ++round) {
        const double before = MPI_Wtime();
        if (rank == from) {
            demand(MPI_Send(nullptr, 0, MPI_BYTE, to, reply_tag, comm), "MPI_Send");
            reply();
        } else {
            demand(MPI_Recv(nullptr, 0, MPI_BYTE, from, reply_tag, comm, MPI_STATUS_IGNORE), "MPI_Recv");
            reply();
        }
        empty = std::min(empty, MPI_Wtime() - before);
    }
    // The first one also sets up the connection.
    for (int round = 0; round <= rounds; ++round) {
        if (rank == to) receive.start();
        reply();  // the receive has begun
        const double before = MPI_Wtime();
        if (rank == from) {
            send.start();
            send.ready();
        }
        if (rank == to) receive.wait();
        reply();
        if (rank == from && round > 0) {
            const double all = MPI_Wtime() - before;
            fastest = std::min(fastest, from == to ? all : std::max(all - empty / 2, all / 2));
        }
        if (rank == from) send.wait();
    }
    return rank == from ? fastest : 0;
}

// The time of a run of 8 bytes, since copying so few bytes takes next to no time. The runs lie as far apart as rows.
double run_seconds(int rounds) {
    constexpr std::int64_t rows = 4096, distance = 1032;
    std::vector<std::byte> field(rows * distance), packed(rows * 8);
    const runs each{.first = field.data(), .bytes = 8, .count = {rows, 1, 1}, .stride = {distance, 0, 0}};
    double fastest = std::numeric_limits<double>::infinity();
    for (int round = 0; round <= rounds; ++round) {
        const double before = MPI_Wtime();
        pack(each, packed.data());
        fastest = std::min(fastest, MPI_Wtime() - before);
    }
    return fastest / rows;
}

status check(const links_measurement &how) {
    if (how.bytes < 1) return failure(MPI_ERR_ARG, format("how.bytes is {}; it is at least 1", how.bytes));
    if (how.rounds < 1) return failure(MPI_ERR_ARG, format("how.rounds is {}; it is at least 1", how.rounds));
    return {};
}

}  // namespace

measured_links measure_links(MPI_Comm comm, const links_measurement &how) {
    check_communicator(comm, measuring_call);
    const duplicate_comm own(comm);
    check_collectively(own.get(), measuring_call, check(how),
                       {{"how.bytes", {how.bytes}}, {"how.rounds", {how.rounds}}});
    const node_map nodes(own.get());
    const auto bytes = static_cast<std::size_t>(how.bytes);
    std::unique_ptr<std::byte[]> allocated;
    message_buffers m{static_cast<std::byte *>(how.memory), nullptr, how.bytes};
    measured_links links;
    check_collectively(own.get(), measuring_call, outcome_of([&] {
                           if (m.sent == nullptr) {
                               allocated = std::make_unique<std::byte[]>(2 * bytes);
                               m.sent = allocated.get();
                           }
                           m.received = m.sent + bytes;
                           if (transport::locate(m.sent).owner != nullptr) return;
                           if (!can_write(m.sent) || !can_write(m.received + bytes - 1))
                               throw error(MPI_ERR_BUFFER, "how.memory: the CPU cannot write 2 * how.bytes there");
                           links.run_seconds = run_seconds(how.rounds);
                       }));

    // Each pair of the first node by itself, since pairs may share a link.
    const std::vector<int> &first = nodes.ranks_of(0);
    const auto bandwidth = [&](double seconds) { return static_cast<double>(how.bytes) / std::max(seconds, 1e-9); };
    links.within_node.assign(first.size() * first.size(), 0);
    for (std::size_t i = 0; i < first.size(); ++i)
        for (std::size_t j = 0; j < first.size(); ++j) {
            demand(MPI_Barrier(own.get()), "MPI_Barrier");
            const double seconds = message_seconds(own.get(), nodes.rank(), first[i], first[j], m, how.rounds);
            if (nodes.rank() == first[i]) links.within_node[i * first.size() + j] = bandwidth(seconds);
        }
    demand(MPI_Allreduce(MPI_IN_PLACE, &links.run_seconds, 1, MPI_DOUBLE, MPI_MAX, own.get()), "MPI_Allreduce");
    demand(MPI_Allreduce(MPI_IN_PLACE, links.within_node.data(), static_cast<int>(links.within_node.size()), MPI_DOUBLE,
                         MPI_MAX, own.get()),
           "MPI_Allreduce");
    if (nodes.nodes().size() < 2) return links;
    // All ranks of the first node send at the same time, each to one of the second: they share its network.
    const std::vector<int> &second = nodes.ranks_of(1);
    const std::size_t pairs = std::min(first.size(), second.size());
    double longest = 0;
    for (std::size_t i = 0; i < pairs; ++i)
        longest = std::max(longest, message_seconds(own.get(), nodes.rank(), first[i], second[i], m, how.rounds));
    demand(MPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_DOUBLE, MPI_MAX, own.get()), "MPI_Allreduce");
    links.network = static_cast<double>(pairs) * bandwidth(longest);
    return links;
}

}  // namespace mpix::halo
