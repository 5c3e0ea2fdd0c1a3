# SPDX-License-Identifier: BSD-3-Clause
"""A stencil in the order of a stream, against the same in serial, bit by bit.

Usage: halo_stream.py numpy | cupy

With NumPy the fields are in host memory, and the calls do their part before they return.
"""
import contextlib
import sys

import needed

package = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
mpix, MPI = needed.load(partitioned=False)
import numpy
from mpix import halo

world = MPI.COMM_WORLD
nx, ny, steps = 35, 48, 21  # cut along y, so that ghost cells lie in rows


class NoStream(contextlib.nullcontext):
    """What a stream is without a GPU."""

    ptr = 0

    def synchronize(self):
        pass


def choose():
    if package == "numpy":
        return numpy, NoStream(), numpy.asarray
    cupy = needed.cupy_on_own_gpu(world.rank)
    return cupy, cupy.cuda.Stream(non_blocking=True), cupy.asnumpy


def relax(now, later, box):
    later[box][...] = now[box] + 0.2 * (now[box.shift(-1)] + now[box.shift(1)] + now[box.shift(0, -1)]
                                        + now[box.shift(0, 1)] - 4 * now[box])


def in_serial(u):
    for _ in range(steps + 2):
        u = u + 0.2 * (numpy.roll(u, 1, 1) + numpy.roll(u, -1, 1) + numpy.roll(u, 1, 0) + numpy.roll(u, -1, 0) - 4 * u)
    return u


def main():
    xp, stream, on_host = choose()
    start = world.bcast(numpy.random.default_rng().random((ny, nx)))
    with halo.Grid(world, (nx, ny), periodic=(True, True)) as grid, stream:
        u, v = (halo.Field.zeros(grid, halo.Radius.faces(1), xp=xp) for _ in range(2))
        lo, hi = grid.local().lo, grid.local().hi
        u[grid.local()][...] = xp.asarray(start[lo[1] : hi[1], lo[0] : hi[0]])

        exchange = halo.StreamExchange(grid, [(u, v)])
        for step in range(steps):
            now, later = (u, v) if step % 2 == 0 else (v, u)
            exchange.overlap(stream, lambda box: relax(now, later, box))
            exchange.swap()
        stream.synchronize()
        exchange.check()  # raises what the exchange's kernels have found
        exchange.free()

        with halo.StreamExchange(grid, [later], direct=True) as again:
            again.start(stream)
            again.finish(stream)
            relax(later, now, grid.local())
            stream.synchronize()
            report = again.report()
        with halo.StreamExchange(grid, [now]) as at_once:
            at_once.run(stream)
            relax(now, later, grid.local())
            stream.synchronize()
            at_once.check()
            packed = at_once.report()
        assert report.startswith(f"mpix::halo::stream_exchange, rank {world.rank}: "), report
        assert " 1 finished" in report and ("directly" in report) == (package == "cupy"), report
        assert " 1 finished" in packed and "directly" not in packed, packed

        result, expected = on_host(later[grid.local()]), in_serial(start)[lo[1] : hi[1], lo[0] : hi[0]]
    if package == "numpy":
        assert numpy.array_equal(result, expected)
    else:  # a GPU may round differently, where it fuses a product and a sum
        assert numpy.allclose(result, expected, rtol=1e-12, atol=0)
    if world.rank == 0:
        print("right")


needed.run(main, MPI)
