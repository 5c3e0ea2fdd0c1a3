// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: an exchange that kernels run, as the host makes it.
#ifndef MPIX_HALO_KERNEL_EXCHANGE_HPP
#define MPIX_HALO_KERNEL_EXCHANGE_HPP

#include <cstdint>
#include <memory>
#include <vector>

#include <mpix/halo/box.hpp>
#include <mpix/halo/device_exchange.hpp>
#include <mpix/halo/field.hpp>
#include <mpix/halo/grid.hpp>

namespace mpix::halo {

struct kernel_exchange_options {
    /**
     * The shape of a tile in cells, along the grid's axes; 0: as long as the box. A box is cut from its lowest cell on,
     * so tiles at its upper sides may be smaller. Each tile that has cells on a side of the box sends partitions of its
     * own to the neighbour there.
     */
    index3 tile{};
    /**
     * Exchanges that may be under way at the same time, 2 to most_sets: exchange `step` needs memory and requests of
     * its own until next(step - sets) of <mpix/halo.cuh> has returned. No tile is more than an exchange ahead of those
     * whose cells it reads, so many sets only take memory, and time to make.
     */
    int sets = 4;
    static constexpr int most_sets = 64;
    /**
     * Whether kernels wait for boxes of cells: wait(group, x, box, step) of <mpix/halo.cuh>. Ghost cells that one tile
     * reads may then be read by several boxes, so each wait has to ask whether another group has put them there. May
     * differ between ranks.
     */
    bool box_waits = false;
};

struct exchange_report;
struct kernel_exchange_state;

/**
 * The exchange of some fields of a grid by kernels (<mpix/halo.cuh>), on GPUs or on host threads: one message to, and
 * one from, each neighbour in each exchange, with partitions for each tile. start() gives the kernels what they need,
 * for any number of exchanges; finish() ends them. In between the host takes no part.
 *
 * Fields are in memory of one GPU, of any kind, for kernels there; or in host memory, for host threads only. Messages
 * have memory of their own. A field of two allocations (double_buffered) uses them in turn: exchange 0 data(), exchange
 * 1 the other one, and so on.
 */
class MPIX_HALO_API kernel_exchange {
public:
    /**
     * Collective over the grid's ranks. All give as many fields, in the same order, with the same value sizes,
     * components, interleaving, staggering and radii, and the same `tile` and `sets`; `box_waits` may differ.
     *
     * Errors: as of exchange; MPI_ERR_ARG for options; MPI_ERR_BUFFER for fields of which some are not where the first
     * one is; MPI_ERR_NO_MEM; and what MPIX_Prequest_create gives.
     */
    kernel_exchange(const grid &g, const std::vector<field> &fields, const kernel_exchange_options &options = {});
    /** As of exchange; and no kernel may still use it. */
    ~kernel_exchange();
    /** As of exchange. */
    kernel_exchange(kernel_exchange &&) noexcept;
    kernel_exchange &operator=(kernel_exchange &&) noexcept;

    /**
     * Begin an activation of `steps` exchanges, which may be 0. Returns what kernels take, when all neighbours have
     * called start(), too: as for a collective call, all ranks start kernel exchanges, and finish other exchanges, in
     * one order. All ranks give the same `steps`, which is not checked. Kernels must make all sends and waits of all of
     * them, and next() of all but the last `sets`. A rank without cells has no tiles; it launches no kernel on a GPU.
     *
     * Errors: MPI_ERR_ARG (steps < 0), MPI_ERR_REQUEST (it is active), MPI_ERR_PENDING (after MPIX_STALL_SECONDS; call
     * it again with the same `steps`, to go on waiting), and what MPI_Start gives. After any other it has failed, and
     * can only be destroyed.
     */
    device_exchange start(std::int64_t steps);
    /**
     * End the activation. All kernels that use it have ended before. Fields of two allocations go on with the one that
     * exchange `steps` would have used.
     *
     * Errors: MPI_ERR_REQUEST (not active), MPI_ERR_PENDING (after MPIX_STALL_SECONDS), and what a kernel's call has
     * returned. After any but MPI_ERR_REQUEST it has failed, and can only be destroyed.
     */
    void finish();
    /** Whether it has begun, is not finished, and has not failed. */
    bool active() const;

    /** The allocation of a field (its position in the constructor's list, from 0) that the next exchange, or exchange 0
        of this activation, uses: for this rank's box at position i in grid::boxes(), or for the only one. Errors:
        MPI_ERR_ARG (no such field, no such box, or there is not just one). */
    void *data(int field) const;
    void *data(int field, int i) const;

    /** Messages that this rank sends in each exchange, and their bytes, padding included. */
    int messages_sent() const;
    std::int64_t bytes_sent() const;

    /** Time the activations from now on, for report(), or no longer. Forgets the times before. Errors: MPI_ERR_REQUEST
        (it is active). */
    void measure(bool on);
    /** What is sent and received, by what path, what the host knows of the time it takes, and which kind of exchange is
        advised (<mpix/halo/report.hpp>). Errors: MPI_ERR_REQUEST (it is active). */
    exchange_report report() const;

private:
    friend struct kernel_exchange_internals;
    explicit kernel_exchange(std::unique_ptr<kernel_exchange_state> made);

    std::unique_ptr<kernel_exchange_state> state_;
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_KERNEL_EXCHANGE_HPP
