// SPDX-License-Identifier: BSD-3-Clause
//
// Of <mpix/halo.hpp>: computing while an exchange runs.
#ifndef MPIX_HALO_OVERLAP_HPP
#define MPIX_HALO_OVERLAP_HPP

#include <type_traits>

#include <mpix/halo/box.hpp>
#include <mpix/halo/exchange.hpp>
#include <mpix/halo/stream_exchange.hpp>

namespace mpix::halo {

namespace detail {

// `compute` of the interiors between start() and finish(), and then of the boundaries.
template <class Exchange, class Start, class Finish, class Compute>
void overlap(Exchange &x, const Start &start, const Finish &finish, const Compute &compute) {
    const auto call = [&](const box &cells, int i) {
        if (cells.empty()) return;
        if constexpr (std::is_invocable_v<const Compute &, const box &, int>)
            compute(cells, i);
        else
            compute(cells);
    };
    start();
    for (int i = 0; i < x.boxes(); ++i) call(x.interior(i), i);
    finish();
    for (int i = 0; i < x.boxes(); ++i)
        for (const box &cells : x.boundary(i)) call(cells, i);
}

}  // namespace detail

/**
 * One exchange, and meanwhile what needs none of its ghost cells: start(), `compute` of the interior of each of this
 * rank's boxes, finish(), and `compute` of each box of their boundaries. An empty interior is left out.
 *
 * compute  called as compute(const box &cells), or as compute(const box &cells, int i) with the position of the rank's
 *          box that the cells are of. It does not write the allocations in use; see exchange::start()
 *
 * Errors: as start() and finish(). If `compute` throws, the exchange is still active; finish() it.
 */
template <class Compute>
void overlap(exchange &x, const Compute &compute) {
    detail::overlap(
        x, [&] { x.start(); }, [&] { x.finish(); }, compute);
}

/** The same in the order of a stream, as of stream_exchange::start(): `compute` enqueues there what computes the
    cells. */
template <class Compute>
void overlap(stream_exchange &x, CUstream_st *stream, const Compute &compute) {
    detail::overlap(
        x, [&] { x.start(stream); }, [&] { x.finish(stream); }, compute);
}

}  // namespace mpix::halo

#endif  // MPIX_HALO_OVERLAP_HPP
