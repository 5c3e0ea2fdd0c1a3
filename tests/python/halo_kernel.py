# SPDX-License-Identifier: BSD-3-Clause
"""A stencil of which one kernel makes all steps and exchanges, against the same in serial, bit by bit.

Usage: halo_kernel.py cupy | LIBRARY

By a kernel of CuPy; or in host memory, by the host threads of that library, made of heat_host.cpp. Skipped without CuPy
or a GPU.
"""
import ctypes
import pathlib
import sys

import needed

played_by = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
mpix, MPI = needed.load(partitioned=False)
import numpy
from mpix import halo

world = MPI.COMM_WORLD
nx, ny, k, shape = 96, 70, 0.2, (32, 16)


class Cupy:
    def __init__(self):
        cupy = needed.cupy_on_own_gpu(world.rank)
        self.xp, self.on_host, self.stream = cupy, cupy.asnumpy, cupy.cuda.Stream(non_blocking=True)
        source = pathlib.Path(__file__).with_name("heat_kernel.cuh").read_text(encoding="utf-8")
        options = *mpix.nvrtc_options(), "--fmad=false"  # NumPy does not fuse a product and a sum
        self.kernel = cupy.RawKernel(source, "heat_steps", options=options, enable_cooperative_groups=True)

    def run(self, device, x0, y0, row, by_boxes, blocks):
        arguments = device, numpy.int64(x0), numpy.int64(y0), numpy.int64(row), numpy.float64(k), numpy.int32(by_boxes)
        self.kernel((blocks,), (256,), arguments, stream=self.stream)
        self.stream.synchronize()

    def synchronize(self):
        """What was computed by CuPy itself, in another stream."""
        self.xp.cuda.Device().synchronize()


class HostThreads:
    xp, on_host = numpy, staticmethod(numpy.asarray)

    def __init__(self):
        class Device(ctypes.Structure):
            _fields_ = [("opaque", ctypes.c_uint64 * 24)]

        self.kernel, self.device = ctypes.CDLL(played_by).heat_on_host, Device
        self.kernel.argtypes = [Device, *[ctypes.c_longlong] * 3, ctypes.c_double, ctypes.c_int, ctypes.c_int]
        self.kernel.restype = None

    def run(self, device, x0, y0, row, by_boxes, blocks):
        self.kernel(self.device.from_buffer_copy(device), x0, y0, row, k, by_boxes, blocks)

    def synchronize(self):
        pass


def in_serial(u, steps):
    for _ in range(steps):
        u = u + k * (numpy.roll(u, 1, 1) + numpy.roll(u, -1, 1) + numpy.roll(u, 1, 0) + numpy.roll(u, -1, 0) - 4 * u)
    return u


def run_stencil(gpu, grid, by_boxes):
    box, start = grid.local(), world.bcast(numpy.random.default_rng().random((ny, nx)))
    here = slice(box.lo[1], box.hi[1]), slice(box.lo[0], box.hi[0])
    u, v = (halo.Field.zeros(grid, halo.Radius.faces(1), xp=gpu.xp) for _ in range(2))
    for field in (u, v):
        field.array[...] = numpy.nan  # a ghost cell that is not filled is seen
    u[box][...] = gpu.xp.asarray(start[here])
    gpu.synchronize()
    x0, y0, row = *box.lo[:2], u.array.shape[1]
    blocks = -(-box.size[0] // shape[0]) * -(-box.size[1] // shape[1])  # one for each tile

    with halo.KernelExchange(grid, [(u, v)], tile=shape, box_waits=by_boxes) as exchange:
        exchange.measure()
        for steps in (21, 0, 1, 40):
            device = exchange.start(steps)
            gpu.run(device, x0, y0, row, by_boxes, blocks)
            exchange.finish()  # raises what a call in the kernel has returned
            start = in_serial(start, steps)
            result = gpu.on_host(exchange.current()[box])
            assert numpy.array_equal(result, start[here]), f"{steps} steps"
        report = exchange.report()
    assert report.startswith(f"mpix::halo::kernel_exchange, rank {world.rank}: 62 finished, "), report


def main():
    gpu = Cupy() if played_by == "cupy" else HostThreads()
    with halo.Grid(world, (nx, ny), periodic=(True, True)) as grid:
        for by_boxes in (False, True):
            run_stencil(gpu, grid, by_boxes)
    if world.rank == 0:
        print("right")


needed.run(main, MPI)
