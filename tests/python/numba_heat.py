# SPDX-License-Identifier: BSD-3-Clause
"""Heat on a periodic plane by a kernel of Numba's that sends its rows, against the same in serial, bit by bit.

Usage: numba_heat.py numba | numba_mlir

Each rank has some rows of the plane. Skipped without the package or a GPU.
"""
import sys

import needed

if len(sys.argv) != 2 or sys.argv[1] not in ("numba", "numba_mlir"):
    sys.exit(__doc__)
mpix, MPI = needed.load()
import numpy

world = MPI.COMM_WORLD
cuda, functions = needed.numba_on_own_gpu(sys.argv[1], world.rank)
pready_block, wait_arrived_block = functions.pready_block, functions.wait_arrived_block
blocks, threads, steps = 3, 32, 50
nx, ny = blocks * threads, 20           # of each rank
k = 0.125                               # exact, so it is the same if a product and a sum are fused


@cuda.jit(device=True)
def relaxed(u, x, y, below, above):
    left, right = u[y, (x + nx - 1) % nx], u[y, (x + 1) % nx]
    return u[y, x] + k * (left + right + below + above - 4 * u[y, x])


@cuda.jit
def step(u, later, out, into, to_below, to_above, from_below, from_above):
    p = cuda.blockIdx.x                 # one partition of each row per block
    x = p * cuda.blockDim.x + cuda.threadIdx.x
    out[0, x] = u[0, x]
    out[1, x] = u[ny - 1, x]
    pready_block(p, to_below)           # they move while the rows between are computed
    pready_block(p, to_above)
    for y in range(1, ny - 1):
        later[y, x] = relaxed(u, x, y, u[y - 1, x], u[y + 1, x])
    if wait_arrived_block(from_below, p) != 0 or wait_arrived_block(from_above, p) != 0:
        return                          # the host's wait says why
    later[0, x] = relaxed(u, x, 0, into[0, x], u[1, x])
    later[ny - 1, x] = relaxed(u, x, ny - 1, u[ny - 2, x], into[1, x])


def in_serial(u):
    for _ in range(steps):
        u = u + k * (numpy.roll(u, 1, 1) + numpy.roll(u, -1, 1) + numpy.roll(u, 1, 0) + numpy.roll(u, -1, 0) - 4 * u)
    return u


def main():
    start = world.bcast(numpy.random.default_rng().random((ny * world.size, nx)))
    here = slice(ny * world.rank, ny * (world.rank + 1))
    below, above = (world.rank - 1) % world.size, (world.rank + 1) % world.size
    u, later = cuda.to_device(start[here]), cuda.to_device(numpy.full((ny, nx), numpy.nan))
    out, into = (cuda.to_device(numpy.full((2, nx), numpy.nan)) for _ in range(2))  # a row that has not come is seen
    stream = cuda.stream()

    requests = [world.Psend_init(out[0], blocks, below, tag=0), world.Psend_init(out[1], blocks, above, tag=1),
                world.Precv_init(into[0], blocks, below, tag=1), world.Precv_init(into[1], blocks, above, tag=0)]
    exported = [mpix.export(request) for request in requests]
    handles = [numpy.uint64(request.handle) for request in exported]
    MPI.Prequest.Startall(requests)
    for _ in range(steps):
        mpix.start_enqueue(requests, stream)
        step[blocks, threads, stream](u, later, out, into, *handles)
        mpix.wait_enqueue(requests, stream)
        u, later = later, u
    stream.synchronize()
    MPI.Prequest.Waitall(requests)
    assert numpy.array_equal(u.copy_to_host(), in_serial(start)[here])
    for handle, request in zip(exported, requests):
        handle.free()
        request.Free()
    if world.rank == 0:
        print("right")


needed.run(main, MPI)
