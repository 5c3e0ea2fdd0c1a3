// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: an exchange in the order of a CUDA stream.
#ifndef MPIX_HALO_STREAM_EXCHANGE_HPP
#define MPIX_HALO_STREAM_EXCHANGE_HPP

#include <cstdint>
#include <memory>
#include <vector>

#include <mpix/halo/box.hpp>
#include <mpix/halo/field.hpp>
#include <mpix/halo/grid.hpp>

struct CUstream_st;  // what cudaStream_t and CUstream point to

namespace mpix::halo {

struct stream_exchange_options {
    /** One block packs or unpacks what a tile sends to one rank. 0: chosen; a quarter of the largest box along that
        axis, or less if a tile's side would get large, but at least 8 cells. */
    index3 tile{};
    /** Whether cells are stored directly into the ghost cells of neighbours on this node, where this GPU maps their
        memory. They are packed all the same if the neighbour has not come to its start(), or if they lie in short runs,
        go inline, or go by the copy engine. May differ between ranks: between two of which one says false, both
        pack. Measured between two H200 it is slower more often than faster. */
    bool direct = false;
};

struct exchange_report;
struct stream_exchange_state;

/**
 * The exchange of some fields of a grid in the order of a CUDA stream: start() and finish() enqueue a kernel each, and
 * return at once. The host takes no part in the exchange, and need not wait for the stream in between.
 *
 *     mpix::halo::stream_exchange h(g, {mpix::halo::double_buffered(u, v)});
 *     for (...) {
 *         h.start(stream);
 *         ... a kernel in `stream` that computes h.interior() ...
 *         h.finish(stream);
 *         ... a kernel in `stream` that computes h.boundary() ...
 *         h.swap();
 *     }
 *
 * start() and finish() can be captured in a CUDA graph; so can a sequence with swap(), if it holds an even number of
 * these. All ranks run as many exchanges, by the calls or by graphs.
 *
 * With MPIX_HALO_STREAM=packed or plain in the environment, the host makes the exchanges, through host memory, for
 * comparisons. Then start() and finish() wait for the stream, and cannot be captured.
 *
 * Fields are in memory of one GPU, of any kind. Or they are in host memory: then the stream is null, start() sends, and
 * finish() waits, before they return.
 *
 * Thread safety: one thread at a time uses an exchange.
 */
class MPIX_HALO_API stream_exchange {
public:
    /**
     * Collective over the grid's ranks, and waits for all neighbours. All give as many fields, in the same order, with
     * the same value sizes, components, interleaving, staggering and radii, and the same `tile`; `direct` may differ.
     *
     * Errors: as of kernel_exchange; MPI_ERR_OTHER if the fields are in GPU memory and libmpix was built without nvcc;
     * and MPI_ERR_PENDING if a neighbour does not come within MPIX_STALL_SECONDS.
     */
    stream_exchange(const grid &g, const std::vector<field> &fields, const stream_exchange_options &options = {});
    /**
     * Waits for the device. Collective: waits for the neighbours, and ends with them the exchanges that were begun
     * ahead. It neither reads nor writes the fields. Between start() and finish(), while an exception is thrown, after
     * MPI_Finalize, and after a failure if neighbours store into this rank's ghost cells
     * (stream_exchange_options::direct), it does not wait: the exchange is then reported on stderr, and its memory
     * kept. Then the fields stay allocated, too, while a neighbour may still be in an exchange with this rank.
     */
    ~stream_exchange();
    stream_exchange(stream_exchange &&) noexcept;
    stream_exchange &operator=(stream_exchange &&) noexcept;

    /**
     * Enqueue: send what the neighbours need, and copy this rank's own cells to its own ghost cells. From here on
     * neighbours may store into the ghost cells, too, so all work that reads them, in any stream, comes before start().
     * Until finish(), nothing writes the allocations in use, nor reads their ghost cells; see exchange::start().
     *
     * stream  of the fields' device; null: the legacy default stream. Of fields in host memory: null. It exists until the
     *         kernel has run
     *
     * Errors: MPI_ERR_REQUEST (it is started already, or has failed); MPI_ERR_ARG (stream), which changes nothing;
     * MPI_ERR_OTHER (CUDA), after which the exchange can only be destroyed. Of fields in host memory, what check()
     * throws.
     */
    void start(CUstream_st *stream = nullptr);
    /**
     * Enqueue: wait for the neighbours, and fill the other ghost cells. Later work in the stream may read them, and
     * write what was sent. The kernel stays on the GPU until all has come, with up to 265 blocks of 256 threads, beside
     * which other kernels may find no room. So several exchanges in different streams are started and finished in the
     * same order on all ranks. Ranks of the grid that share a GPU (MPS) have fewer blocks, with room for each other.
     *
     * stream  that of start(), or one that waits for it (cudaStreamWaitEvent); as there
     *
     * Errors: as of start(); MPI_ERR_REQUEST (not started).
     */
    void finish(CUstream_st *stream = nullptr);
    /**
     * start() and finish() in one call, for programs with nothing to enqueue in between. Usually one kernel, in which
     * some blocks receive while others send or copy, so it takes less time than the two. It is two kernels if the rank
     * copies many of its own cells, which is then faster.
     *
     * All blocks of the one kernel must be resident: at most two for each multiprocessor. At most half of them wait for
     * neighbours. So two exchanges of one kernel each may be enqueued in different orders on different ranks, in
     * different streams; all others in the same order on all ranks. Where other kernels fill the GPU and wait for this
     * one, call start() and finish().
     *
     * Ranks of the grid that share a GPU (MPS) divide its multiprocessors equally, and all blocks of a rank may wait.
     * If that leaves too few blocks for one parcel each, run() enqueues the two kernels.
     *
     * Errors: as of both.
     */
    void run(CUstream_st *stream = nullptr);
    /**
     * Throws the error of a kernel of this exchange, if one has failed: MPI_ERR_PENDING (no data within
     * MPIX_STALL_SECONDS), and what mpix::pready and mpix::wait_arrived return; or what MPI_Wait would report of a
     * neighbour whose process has ended, after which the ghost cells may be old. After an error the exchange can only
     * be destroyed. Waits for nothing: call it when the stream has been synchronised. Before, it may miss an error, or
     * name another step.
     */
    void check();

    /** Go on with the other allocation of each field that has two. Errors: MPI_ERR_REQUEST (started, not finished). */
    void swap();  // NOLINT(bugprone-exception-escape): it does not swap two exchanges
    /** As of exchange. */
    void *data(int field) const;
    void *data(int field, int i) const;
    const box &interior() const;
    const box &interior(int i) const;
    const std::vector<box> &boundary() const;
    const std::vector<box> &boundary(int i) const;
    int boxes() const;

    /** Messages that this rank sends in each exchange, and their bytes, padding included. */
    int messages_sent() const;
    std::int64_t bytes_sent() const;

    /** Time the exchanges from now on, for report(), or no longer, if the fields are in host memory. On a GPU the calls
        return before it exchanges, so there are no times. Forgets the times before. Errors: MPI_ERR_REQUEST
        (started). */
    void measure(bool on);
    /** What is sent and received, by what path, what the host knows of the time it takes, and which kind of exchange is
        advised (<mpix/halo/report.hpp>). Looks at no kernel: exchanges are counted by the calls of finish() and run(),
        and not those of a graph. Errors: MPI_ERR_REQUEST (started). */
    exchange_report report() const;

private:
    friend struct stream_exchange_internals;
    explicit stream_exchange(std::unique_ptr<stream_exchange_state> made);

    std::unique_ptr<stream_exchange_state> state_;
};

}  // namespace mpix::halo

#endif  // MPIX_HALO_STREAM_EXCHANGE_HPP
