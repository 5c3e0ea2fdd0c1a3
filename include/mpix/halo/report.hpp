// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: what an exchange sends, by what, and how long it takes; and which transfer is the fastest.
#ifndef MPIX_HALO_REPORT_HPP
#define MPIX_HALO_REPORT_HPP

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <mpix/halo/box.hpp>
#include <mpix/halo/exchange.hpp>
#include <mpix/halo/field.hpp>
#include <mpix/halo/grid.hpp>

namespace mpix::halo {

/** A message of an exchange. */
struct message_report {
    int rank = 0;  ///< the other rank
    /** Where the other rank's cells lie, seen from this rank's boxes, by number; ascending. */
    std::vector<int> directions;
    std::vector<std::int64_t> direction_bytes;  ///< of each of these, of all fields, without padding
    std::int64_t bytes = 0;                     ///< of all of them
    /** As MPIX_Request_path says, so "unmatched" at first; "MPI" with transfer::plain. */
    std::string path;
    /** Of a message of an exchange; never automatic. */
    halo::transfer transfer = halo::transfer::packed;
    /** Of a message that goes to its node together with others (exchange_options::node_messages): the rank that
        receives them all, its carrier; otherwise -1. Only the sender and the carrier know the path; to others it is
        "shared memory". */
    int carrier = -1;
    /** Of a message that a stream_exchange sends: whether its kernels may store parts of it directly into the
        receiver's ghost cells (stream_exchange_options::direct). The others, and all if the receiver comes late, are
        packed. */
    bool direct = false;
    /** By the bandwidths of grid_options::links, nothing else being under way; 0 without these. */
    double predicted_seconds = 0;
    /** Of a received message, if it is measured: the mean from begin() or start() until finish() found the
        message there, and so never less than what the program does in between; otherwise 0. */
    double mean_seconds = 0;
};

/** Who makes an exchange. */
enum class exchange_kind {
    host,    ///< the host: exchange
    stream,  ///< kernels of the library, in the order of a stream: stream_exchange
    kernel,  ///< kernels of the program: kernel_exchange
};

/** Which kind of exchange is expected to be the fastest. The program decides; kinds cannot be changed at run time. */
struct exchange_advice {
    exchange_kind kind = exchange_kind::host;
    /** What this rank sends in each exchange, by which the kind is chosen: in GPU memory, below crossover_bytes
        exchange_kind::kernel, and exchange_kind::stream from there on; 0 means always. The crossover depends on whether
        only ghost cells beyond faces are exchanged. In host memory it is 0, and the kind exchange_kind::host. */
    std::int64_t bytes = 0, crossover_bytes = 0;
    /** In GPU memory, what an exchange of so many bytes of one field took by either kind, with nothing to compute,
        between two H200 that NVLink joins, with copies of the rank's own cells along two axes
        (docs/results/halo_gpu_h200.csv; straight lines in between); in a stream by start() and finish(), and less by
        run(). 0 in host memory. On other machines measure. */
    double kernel_seconds = 0, stream_seconds = 0;
};

/** What report() of an exchange returns, of this rank. */
struct exchange_report {
    exchange_kind kind = exchange_kind::host;
    int rank = 0;
    halo::transfer transfer = halo::transfer::packed;  ///< of exchange
    ghost_storage ghosts = ghost_storage::in_fields;   ///< of exchange; in_messages: messages are not unpacked
    /** Some field of this rank is in GPU memory, and is packed into host memory. So in an exchange, and in a
        stream_exchange that the host makes (MPIX_HALO_STREAM). */
    bool through_host = false;
    std::vector<message_report> sent, received;
    /** Copied in each exchange from boxes of this rank to boxes of this rank; 0 if ghost cells stay in the messages. */
    std::int64_t own_bytes = 0;
    std::int64_t exchanges = 0;       ///< finished, since measure() if that was called
    double mean_sending_seconds = 0;  ///< in begin(), start() and ready() of one exchange; 0 if it is not measured
    double mean_waiting_seconds = 0;  ///< in finish(); 0 if it is not measured
    /** Of a kernel_exchange that is measured: the time between start() and finish() for each of its exchanges, and so
        with all that the program does there, and what its kernels compute; otherwise 0. */
    double mean_active_seconds = 0;
    std::string not_measured;  ///< which times the host cannot know, and why; empty if there are none
    exchange_advice advice;    ///< of a stream_exchange or kernel_exchange

    /** For people: a line for the exchange, and one for each message, without a line feed at the end. */
    MPIX_HALO_API std::string text() const;
};

/** What compare_transfers() has measured. */
struct transfer_times {
    /** Of one exchange, by the number of the transfer; 0: these fields cannot be exchanged so. The mean of the slowest
        rank. */
    std::array<double, 3> seconds{};
    halo::transfer fastest = halo::transfer::packed;

    MPIX_HALO_API std::string text() const;
};

/**
 * Exchange the fields `exchanges` times by each of packed, datatype and plain, with nothing to compute meanwhile, and
 * tell how long that takes. Collective over the grid's ranks; all get the same answer. Which transfer is the fastest
 * depends on the machine, the MPI library and the fields' shapes: a derived datatype copies less, and packing lets each
 * field leave by itself.
 *
 * All three are measured, whatever MPIX_HALO_TRANSFER says. Fills the fields' ghost cells. A field of two allocations
 * is exchanged in the first one, and not by transfer::datatype.
 *
 * Errors: as of exchange, of which lengths that only one transfer refuses are no error; MPI_ERR_ARG (exchanges < 1).
 */
MPIX_HALO_API transfer_times compare_transfers(const grid &g, const std::vector<field> &fields, int exchanges = 50);

}  // namespace mpix::halo

#endif  // MPIX_HALO_REPORT_HPP
