// SPDX-License-Identifier: BSD-3-Clause
/**
 * mpix::halo: halo exchange for stencil codes, on MPI-4 partitioned communication.
 *
 *     mpix::halo::grid g(MPI_COMM_WORLD, {nx, ny});             // cuts the domain into a box for each rank
 *     mpix::halo::exchange h(g, {{u, mpix::halo::radius::faces(1)}});
 *     h.start();                                                // send what the neighbours need of u
 *     ... compute h.interior() ...
 *     h.finish();                                               // the ghost cells are there
 *     ... compute h.boundary() ...
 *
 * Words. The *domain* is a regular grid of cells in one to three dimensions. Each rank owns a *box* of it, or several.
 * *Ghost cells* lie beyond a box, in one of 26 *directions*, and hold copies of cells of other boxes, or of the same
 * one through a periodic boundary. A *field* is the user's memory for the boxes of a rank and their ghost cells. Cells
 * are counted, and boxes given, in global indices. Sizes in memory are in bytes.
 *
 * Errors. Functions throw mpix::halo::error, which has an MPI error class and a sentence that names the argument.
 * Collective functions throw on all ranks of the communicator if they throw on one, so that none waits for another one;
 * except for a communicator that cannot be used, a grid that has been moved from, an MPI call that fails on some ranks
 * only, and lack of memory (std::bad_alloc).
 *
 * Thread safety. With MPI_THREAD_MULTIPLE, any number of threads may use distinct exchanges at once, and several may
 * call ready() of one exchange for distinct fields; everything else of an exchange by one thread at a time. With
 * MPI_THREAD_SERIALIZED, any thread, but one at a time, ready() included. Collective functions as MPI says: in one
 * order on each communicator.
 *
 * The host makes an exchange. It is for fields in host memory; fields in GPU memory go through host memory.
 * stream_exchange (in the order of a CUDA stream) and kernel_exchange (inside kernels) are for fields in GPU memory,
 * and take fields in host memory, too.
 *
 * The interface is C++ within libmpix: the program needs the same C++ standard library.
 */
#ifndef MPIX_HALO_HPP
#define MPIX_HALO_HPP

#include <mpix/halo/box.hpp>
#include <mpix/halo/checkpoint.hpp>
#include <mpix/halo/deep.hpp>
#include <mpix/halo/exchange.hpp>
#include <mpix/halo/field.hpp>
#include <mpix/halo/gather.hpp>
#include <mpix/halo/ghost_reader.hpp>
#include <mpix/halo/grid.hpp>
#include <mpix/halo/kernel_exchange.hpp>
#include <mpix/halo/named_field.hpp>
#include <mpix/halo/overlap.hpp>
#include <mpix/halo/report.hpp>
#include <mpix/halo/slice.hpp>
#include <mpix/halo/step_report.hpp>
#include <mpix/halo/stream_exchange.hpp>
#include <mpix/halo/vti.hpp>

#endif  // MPIX_HALO_HPP
