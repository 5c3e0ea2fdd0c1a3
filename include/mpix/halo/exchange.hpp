// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: an exchange that the host makes.
#ifndef MPIX_HALO_EXCHANGE_HPP
#define MPIX_HALO_EXCHANGE_HPP

#include <cstdint>
#include <memory>
#include <vector>

#include <mpix/halo/box.hpp>
#include <mpix/halo/field.hpp>
#include <mpix/halo/grid.hpp>

namespace mpix::halo {

/** How a message's bytes are gathered and scattered. The ghost cells get the same bytes. */
enum class transfer {
    packed,    ///< the library packs each field into partitions of its own, so each may leave by itself
    datatype,  ///< one partition with a derived datatype, which leaves when all fields are ready
    plain,  ///< packed, and sent by MPI_Send_init, without partitions, when all fields are ready; to compare with. No
            ///< stall is noticed
    automatic,  ///< datatype, which copies less, for messages of 8 KiB to 2^31 - 1 bytes; packed for all others, for
                ///< reverse exchanges, and if a field has two allocations
};

/** What a reverse exchange does with a cell's value and those of its ghost cells. */
enum class reduction {
    none,  ///< no reverse exchange: ghost cells are filled
    sum,   ///< of integers modulo 2^bits
    min,
    max,
};

/** Whether the messages of a rank to several ranks of one other node go there as one, a node message. */
enum class node_messages {
    never,
    automatic,  ///< those of up to 8 KiB that are packed, where a rank has at least two of them to a node
    always,     ///< all messages to other nodes, however many and long; for tests, and to compare with
};

struct exchange_options {
    /** The environment variable MPIX_HALO_TRANSFER takes its place, where the fields can be exchanged so. */
    halo::transfer transfer = halo::transfer::automatic;
    /**
     * Other than none: the exchange is a reverse one. Ghost cells go to the ranks that own these cells, which combine
     * them with their own values, as particle codes and adjoints need it. Needs fields of arithmetic types, and
     * transfer::packed or automatic. Ghost cells are not changed.
     */
    halo::reduction reduce = halo::reduction::none;
    /**
     * in_messages: received messages are not unpacked, and cells that this rank owns itself are not copied. The program
     * reads ghost cells by a ghost_reader, or by exchange::ghost_pieces(), and fields need no room for them. The
     * program still provides cells outside of a domain that is not periodic. Needs transfer::packed, plain or
     * automatic, which packs then. All ranks give the same.
     */
    ghost_storage ghosts = ghost_storage::in_fields;
    /**
     * Other than never: one rank of the other node, the carrier, receives a node message into memory that its node
     * shares, and each rank there takes out what it is to have. It leaves when all fields are ready. Then all ranks of
     * the grid start and finish each exchange, also those that have no cells; and finish() waits for finish() of the
     * carriers of this node. So ranks that have several exchanges finish them in the same order, and no rank waits,
     * between start() and finish(), for what another one does after its finish().
     *
     * always needs transfer::packed or automatic, which it makes packed (MPIX_HALO_TRANSFER does not count), no
     * reduction, and ghost cells in the fields.
     * Where a node's ranks cannot share memory, automatic sends all messages by themselves, and always is an error.
     */
    halo::node_messages node_messages = halo::node_messages::never;
};

/** Ghost cells that lie together in a message, or in another box of this rank; see exchange::ghost_pieces(). */
struct ghost_piece {
    box cells;                     ///< by global indices, beside the box; beyond a periodic end outside of the domain
    int direction = no_direction;  ///< its number: where they lie, seen from the box
    const void *first = nullptr;   ///< the first value of the cell cells.lo
    index3 stride{};               ///< bytes from a cell to the next one along x, y, z
    std::int64_t component_stride = 0;  ///< bytes from a value of a cell to the next one
};

struct exchange_state;
struct exchange_report;
struct exchange_internals;  // of the library

/**
 * The exchange of some fields of a grid: one message to, and one from, each neighbour, whatever the number of fields,
 * of boxes, and of directions in which the neighbour lies. What a rank has to give to itself it copies. To exchange a
 * subset of the fields at times, make a second exchange of these; they may run at the same time if their fields differ.
 *
 * Fields are in host memory, or in GPU memory. Those in GPU memory are packed into host memory, and unpacked from it.
 * Kernels that write them must have ended before start(). transfer::datatype and ghost_storage::in_messages are refused
 * for them (MPI_ERR_ARG), unless the CPU can write the memory (managed memory).
 *
 * A reverse exchange (exchange_options::reduce) goes the other way: start() sends the ghost cells, and finish()
 * combines those of all ranks with the cells of this rank's boxes. Each cell's own value comes first, then the ghost
 * cells by the number of the box beside which they lie, so that all runs on one decomposition give the same bits.
 */
class MPIX_HALO_API exchange {
public:
    /**
     * Collective over the grid's ranks. All give as many fields, in the same order, with the same value sizes,
     * components, interleaving, staggering and radii; addresses, padding and gaps may differ.
     *
     * Errors: MPI_ERR_ARG (a radius, layout or option, or ranks that disagree), MPI_ERR_NO_MEM (node_messages::always,
     * and no memory that a node's ranks share), MPI_ERR_BUFFER (a null address, or one of no memory), MPI_ERR_COUNT
     * (too many bytes), MPI_ERR_TYPE (a reverse exchange of a field that is of no arithmetic type); and what the MPI
     * calls give.
     */
    exchange(const grid &g, const std::vector<field> &fields, const exchange_options &options = {});
    /** Not active, and before MPI_Finalize. An active exchange is reported on stderr, and its memory kept. The last of
        a grid and its exchanges to be freed frees a communicator, which is collective. Free them in the same order on
        all ranks. */
    ~exchange();
    /** An exchange that has been moved from is not active, and may be destroyed or assigned to. All else throws
        MPI_ERR_REQUEST. */
    exchange(exchange &&) noexcept;
    exchange &operator=(exchange &&) noexcept;

    /**
     * Begin an exchange of all fields, and send. Does not wait for other ranks.
     *
     * From start() to finish() do not write the allocations in use, nor read their ghost cells. Compute interior() into
     * another array: the field's second allocation, or memory outside the exchange. Of a reverse exchange: do not write
     * the ghost cells; the box may be read and written until finish() is called.
     *
     * The program fills ghost cells outside of the domain before start(), if its stencil reads them: interior() reaches
     * up to the edge of the domain there.
     *
     * Errors: MPI_ERR_REQUEST (it is active), MPI_ERR_BUFFER (the halo::array of a field has been destroyed; with
     * MPIX_CHECK=1 also: the memory of a field has been unmapped), and what MPI_Start and MPI_Pready give.
     */
    void start();
    /**
     * The same in steps, for fields that are computed one after the other: begin an exchange, then say of each field
     * that it is ready. A packed message sends the field at once; one that goes by a datatype, or plain, leaves when
     * all fields are ready. `field` is its position in the constructor's list, from 0. Errors of ready(): MPI_ERR_ARG
     * (no such field), MPI_ERR_REQUEST (not active, or the field is ready).
     */
    void begin();
    void ready(int field);
    /**
     * Wait until the ghost cells of all fields are there, and until what was sent may be written again. Of a reverse
     * exchange: until the box has what the ghost cells of all ranks give to it.
     *
     * Errors: MPI_ERR_REQUEST (not active, or a field is not ready), MPI_ERR_PENDING (after MPIX_STALL_SECONDS), and
     * what MPI_Wait gives. After MPI_ERR_PENDING the exchange is still active; finish() may be called again.
     *
     * MPI_ERR_BUFFER: the halo::array of a field has been destroyed since start(). Its memory is never freed, so
     * messages overwrite nothing else. The exchange is finished, and can only be destroyed. With MPIX_CHECK=1 also: the
     * memory of a field has been unmapped since start(). Then the exchange has failed.
     *
     * After any other error that MPI gives to start(), begin(), ready() or finish(), the exchange has failed: these and
     * swap() throw MPI_ERR_REQUEST ("an earlier call has failed"), active() is false, and it can only be destroyed.
     * Messages that are still active keep their memory; of those that go by a datatype (transfer::datatype, and
     * automatic from 8 KiB on) that is the fields'.
     */
    void finish();
    /** Whether it has begun, is not finished, and has not failed. */
    bool active() const;

    /**
     * Go on with the field's other allocation, and with the present one after the next swap; for programs that write
     * two arrays in turn. `field` is its position in the constructor's list, from 0. Local, and makes no new requests.
     * Needs transfer::packed, automatic or plain.
     *
     * Errors: MPI_ERR_ARG (no such field, or one without a second allocation), MPI_ERR_REQUEST (the exchange is
     * active).
     */
    void swap(int field);  // NOLINT(bugprone-exception-escape): it does not swap two exchanges
    /** The allocation of a field (its position in the constructor's list, from 0) that is in use. Here and below, `i`
        is the position of a box of this rank in grid::boxes(), from 0; without it the only one is meant. Errors:
        MPI_ERR_ARG (no such field, no such box, or no box given and this rank has not exactly one). */
    void *data(int field) const;
    void *data(int field, int i) const;

    /**
     * The cells of a box of this rank whose stencils read none of the ghost cells that this exchange fills; and the
     * others, as up to six boxes that do not overlap. Of a reverse exchange: the cells to which no ghost cells go.
     *
     * The stencil of a cell x reads of each field, staggered or not, values at x + d, where d is along each axis from
     * minus the largest radius below to the largest above. For points x of a staggered field the same holds:
     * grid::points() of the interior are its points that may be computed before finish().
     */
    const box &interior() const;
    const box &interior(int i) const;
    const std::vector<box> &boundary() const;
    const std::vector<box> &boundary(int i) const;
    /** How many boxes this rank has. */
    int boxes() const;

    /**
     * Of an exchange with ghost_storage::in_messages: the ghost cells of a field beside a box of this rank, in the
     * order of their directions. Each ghost cell is in one piece; those that nobody owns, outside of a domain that is
     * not periodic, are in none. A ghost_reader finds cells in them. In messages, values are aligned as those of their
     * size need it, up to 64 bytes.
     *
     * Values may be read from finish() until the next begin() or start(): nothing is written into a message in between,
     * even if the neighbour has sent again. Pieces that lie in this rank's own memory are no copies: they follow what
     * the program writes there. So it writes the allocation that has been exchanged only when its ghost cells have been
     * read.
     *
     * The list lives as long as the exchange, and what it says remains the same. Only of a field with two allocations,
     * pieces in this rank's own memory lie in the one that the last exchange used; the first begin() or start() after a
     * swap() moves them, and swap() itself does not.
     *
     * Errors: MPI_ERR_ARG (as of data(); the exchange has its ghost cells in the fields).
     */
    const std::vector<ghost_piece> &ghost_pieces(int field) const;
    const std::vector<ghost_piece> &ghost_pieces(int field, int i) const;

    /** Messages that this rank sends in each exchange, a node message being one, and their bytes. */
    int messages_sent() const;
    std::int64_t bytes_sent() const;
    /** Time the exchanges from now on, for report(), or no longer; with each call and each received message a look at
        the clock. Forgets the times before. Errors: MPI_ERR_REQUEST (it is active). */
    void measure(bool on);
    /** What is sent and received, by what path, and how long it takes (<mpix/halo/report.hpp>). Errors: MPI_ERR_REQUEST
        (it is active). */
    exchange_report report() const;

private:
    friend struct exchange_internals;
    explicit exchange(std::unique_ptr<exchange_state> made);
    std::unique_ptr<exchange_state> state_;
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_EXCHANGE_HPP
