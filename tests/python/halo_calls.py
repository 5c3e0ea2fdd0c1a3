# SPDX-License-Identifier: BSD-3-Clause
"""mpix.halo on any number of ranks: stencils against the same in serial, sums into owners, files, reports and
errors."""
import os
import re
import struct
import tempfile
import zlib

import needed

mpix, MPI = needed.load(partitioned=False)
import numpy
from mpix import halo

world = MPI.COMM_WORLD
draw = numpy.random.default_rng(world.bcast(int(numpy.random.SeedSequence().entropy % 2**32)))  # the same on all ranks


def part(whole, box):
    """Of an array of the whole domain: the cells of a box."""
    return whole[tuple(slice(box.lo[a], box.hi[a]) for a in reversed(range(whole.ndim)))]


def relax(now, later, box):
    later[box][...] = 0.5 * now[box] + 0.125 * (now[box.shift(-1)] + now[box.shift(1)] + now[box.shift(0, -1)]
                                                + now[box.shift(0, 1)])


class Interface:
    """An array that claims to be in GPU memory."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = array.__array_interface__


def in_serial(values, steps):
    for _ in range(steps):
        left, right = numpy.roll(values, 1, 1), numpy.roll(values, -1, 1)
        values = 0.5 * values + 0.125 * (left + right + numpy.roll(values, 1, 0) + numpy.roll(values, -1, 0))
    return values


def stencil():
    """Each step by two arrays in turn; bit by bit as in serial."""
    ny, nx, steps = 19, 24, 8
    start = draw.random((ny, nx))
    expected = in_serial(start, steps)
    with halo.Grid(world, (nx, ny), periodic=(True, True)) as grid:
        u, v = (halo.Field.zeros(grid, halo.Radius.faces(1)) for _ in range(2))
        for field in (u, v):
            field.array[...] = numpy.nan
        u[grid.local()][...] = part(start, grid.local())
        with halo.Exchange(grid, [(u, v)]) as exchange, halo.StepReport(grid, steps) as report:
            for step in range(steps):
                now, later = (u, v) if step % 2 == 0 else (v, u)
                assert exchange.current() is now
                exchange.overlap(lambda box: relax(now, later, box))
                exchange.swap()
                report.done()
        assert numpy.array_equal(u[grid.local()], part(expected, grid.local()))
        result = halo.gather(grid, u)
        assert (result is None) == (world.rank != 0)
        assert result is None or numpy.array_equal(result, expected)

        # Two steps for each exchange, by deeper ghost cells.
        deep = grid.deep_radius(u.radius, 2)
        u, v = (halo.Field.zeros(grid, deep) for _ in range(2))
        u[grid.local()][...] = part(start, grid.local())
        with halo.Exchange(grid, [u]) as exchange:
            for _ in range(steps // 2):
                exchange.start()
                exchange.finish()
                relax(u, v, grid.deep_valid(halo.Radius.faces(1), 2, 1))
                relax(v, u, grid.deep_valid(halo.Radius.faces(1), 2, 2))
        assert numpy.array_equal(u[grid.local()], part(expected, grid.local()))


def stream_exchanges():
    """Arguments of exchanges in the order of a stream; halo_stream.py computes with one. An array claims to be a
    GPU's."""
    with halo.Grid(world, (24, 19), periodic=(True, True)) as grid:
        u, v = (halo.Field.zeros(grid, halo.Radius.faces(1)) for _ in range(2))
        claimed = halo.Field(grid, Interface(numpy.full(u.array.shape, 3.0)), u.radius)
        assert claimed.on_gpu
        with halo.StreamExchange(grid, [(u, v), claimed], tile=(5, 4)) as exchange:
            assert exchange.current(0) is u and exchange.current(1) is claimed
            exchange.start(0)
            needed.fails(mpix.Error, "MPIX_Halo_stream_swap: the exchange is started", exchange.swap)
            exchange.finish(0)
            exchange.swap()
            assert exchange.current(0) is v
            assert (exchange.bytes_sent > 0) == (exchange.messages_sent > 0) == (world.size > 1)
            needed.fails(mpix.Error, "MPIX_Halo_stream_finish: the exchange is not started", exchange.finish, 0)
            needed.fails(mpix.Error, "stream is not null, and the fields are in host memory", exchange.start, 8)
            needed.fails(TypeError, "stream is None", exchange.start, None)
            needed.fails(TypeError, "stream", exchange.start)
        needed.fails(TypeError, "fields[0] is int", halo.StreamExchange, grid, [5])
        needed.fails(mpix.Error, "rank 0: options.tile[0] is -1", halo.StreamExchange, grid, [u], tile=(-1,))


def header(name, pattern):
    """The number that a header of mpix has there."""
    with open(os.path.join(mpix.get_include(), "mpix", name), encoding="utf-8") as file:
        return int(re.search(pattern, file.read())[1])


def kernel_exchanges():
    """Calls of exchanges that kernels make, and their arguments; halo_kernel.py has a kernel."""
    fails = needed.fails
    with halo.Grid(world, (24, 19), periodic=(True, True)) as grid:
        u, v = (halo.Field.zeros(grid, halo.Radius.faces(1)) for _ in range(2))
        claimed = halo.Field(grid, Interface(numpy.full(u.array.shape, 3.0)), u.radius)
        with halo.KernelExchange(grid, [(u, v), claimed], tile=(5, 4), sets=2, box_waits=world.rank == 0) as exchange:
            assert exchange.current() is u and exchange.current(1) is claimed and not exchange.active
            assert (exchange.bytes_sent > 0) == (exchange.messages_sent > 0) == (world.size > 1)
            fails(mpix.Error, "MPIX_Halo_kernel_finish: the exchange is not active; start it first", exchange.finish)
            fails(mpix.Error, "MPIX_Halo_kernel_start: steps is -1; it is at least 0", exchange.start, -1)
            fails(TypeError, "steps is 1.5; it is a whole number", exchange.start, 1.5)
            fails(AttributeError, "interior", getattr, exchange, "interior")
            exchange.measure()
            device = exchange.start(0)
            assert exchange.active
            # A kernel's argument by value: all bytes of the structure in C, of which the first eight are the version.
            assert isinstance(device, numpy.ndarray) and device.shape == () and device.flags.c_contiguous
            assert device.nbytes == 8 * header("halo_gpu.h", r"opaque\[(\d+)\]")
            assert device["opaque"][0] == header("detail/abi.h", r"define MPIX_ABI_VERSION (\d+)u")
            fails(mpix.Error, "MPIX_Halo_kernel_start: the exchange is active", exchange.start, 0)
            fails(mpix.Error, "MPIX_Halo_kernel_report: the exchange is active", exchange.report)
            fails(mpix.Error, "MPIX_Halo_kernel_measure: the exchange is active", exchange.measure)
            assert fails(mpix.Error, "MPIX_Halo_kernel_free: ", exchange.free).error_class == MPI.ERR_REQUEST
            exchange.finish()
            assert not exchange.active and exchange.current() is u
            report = exchange.report()
            assert report.startswith(f"mpix::halo::kernel_exchange, rank {world.rank}: 0 finished"), report
        fails(mpix.Error, "MPIX_Halo_kernel_start: exchange is null", exchange.start, 0)
        for tile in (None, (0,), (7, 0)):
            halo.KernelExchange(grid, [u], tile=tile).free()
        fails(TypeError, "fields[0] is int", halo.KernelExchange, grid, [5])
        fails(TypeError, "grid is int", halo.KernelExchange, 5, [u])
        fails(mpix.Error, "fields is empty", halo.KernelExchange, grid, [])
        fails(TypeError, "tile is 5; it is one to three whole numbers", halo.KernelExchange, grid, [u], tile=5)
        fails(mpix.Error, "options.tile[1] is -1; it is at least 0", halo.KernelExchange, grid, [u], tile=(0, -1))
        fails(mpix.Error, "options.tile[2] is 2; the domain has 2 axes", halo.KernelExchange, grid, [u], tile=(0, 0, 2))
        fails(TypeError, "sets is 'many'; it is a whole number", halo.KernelExchange, grid, [u], sets="many")
        fails(ValueError, "sets is 0; it is 2 to 64", halo.KernelExchange, grid, [u], sets=0)
        for sets in (-1, 1, 65, 1000000):
            fails(mpix.Error, f"options.sets is {sets}; it is 2 to 64", halo.KernelExchange, grid, [u], sets=sets)
        if world.size > 1:
            fails(mpix.Error, "rank 1: options.sets is 5 here, and 4 on rank 0", halo.KernelExchange, grid, [u],
                  sets=4 + (world.rank == 1))
            fails(mpix.Error, "rank 1: options.tile is 3, 0, 0 here", halo.KernelExchange, grid, [u],
                  tile=(3 * (world.rank == 1),))
            for wrong in ({"sets": 0}, {"sets": "x"}, {"tile": 1}):  # on one rank: none waits for it
                if world.rank == 1:
                    fails((TypeError, ValueError), "", halo.KernelExchange, grid, [u], **wrong)
                else:
                    fails(mpix.Error, "rank 1", halo.KernelExchange, grid, [u])


def sums():
    """Ghost cells are summed into the cells that they are copies of, on one axis."""
    extent, depth = 7 * world.size, 2
    with halo.Grid(world, (extent,), periodic=(True,)) as grid:
        u = halo.Field.zeros(grid, halo.Radius.all(depth), dtype=numpy.int64)
        local = grid.local()
        mine = numpy.random.default_rng().integers(-2**62, 2**62, u.array.size)
        u.array[...] = mine
        total = numpy.zeros(extent, dtype=numpy.int64)
        for lo, theirs in world.allgather((local.lo[0], mine)):
            numpy.add.at(total, (lo - depth + numpy.arange(theirs.size)) % extent, theirs)
        with halo.Exchange(grid, [u], reduce="sum") as exchange:
            exchange.start()
            exchange.finish()
        assert numpy.array_equal(u[local], part(total, local))


def pixels(data):
    """Of a grey picture in PNG, row by row from above."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    at, body = 8, b""
    while at < len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        body += data[at + 8 : at + 8 + length] if data[at + 4 : at + 8] == b"IDAT" else b""
        at += length + 12
    assert depth == 8
    lines = numpy.frombuffer(zlib.decompress(body), numpy.uint8)
    return (width, height), kind, lines


def files():
    folder = world.bcast(tempfile.mkdtemp() if world.rank == 0 else None)
    whole, vector = draw.random((6, 7, 9)), draw.integers(-100, 100, (6, 7, 9, 3)).astype(numpy.float32)
    checkpoint = os.path.join(folder, "run.checkpoint")
    with halo.Grid(world, (9, 7, 6)) as grid:
        local = grid.local()
        scalar = halo.Field.zeros(grid, halo.Radius.faces(1))
        velocity = halo.Field.zeros(grid, halo.Radius.all(1), numpy.float32, components="last", count=3)
        scalar[local][...] = part(whole, local)
        velocity[local][...] = numpy.moveaxis(numpy.array([part(vector[..., c], local) for c in range(3)]), 0, -1)
        result = halo.gather(grid, velocity)
        assert result is None or numpy.array_equal(result, vector)
        halo.write_checkpoint(grid, checkpoint, {"scalar": scalar, "velocity": velocity}, step=41)
        halo.write_vti(grid, os.path.join(folder, "now.pvti"), {"scalar": scalar}, spacing=(0.5, 0.25, 2))
        text = open(os.path.join(folder, f"now_{world.rank}.vti"), "rb").read()
        assert part(whole, local).tobytes() in text and b'Spacing="0.5 0.25 2"' in text
        try:
            halo.write_png(grid, os.path.join(folder, "plane.png"), scalar, at=3, colors="blue_red")
        except mpix.Error as error:  # built without libpng
            assert "libpng" in str(error), error
        else:
            assert pixels(open(os.path.join(folder, "plane.png"), "rb").read())[0] == (9, 7)
    # Other boxes, another order of axes.
    boxes = [halo.Box((0, 0, 3 * r), (9, 7, 3 * r + 3)) for r in range(2)]
    with halo.Grid(world, (9, 7, 6), boxes=boxes, owners=[world.size - 1] * 2) as grid:
        again = halo.Field.zeros(grid, halo.Radius.faces(2), order="F")
        assert halo.read_checkpoint(grid, checkpoint, {"scalar": again}) == 41
        for i in range(len(grid.boxes)):
            assert numpy.array_equal(again[grid.local(i), i], part(whole, grid.local(i)).T)
        result = halo.gather(grid, again, root=world.size - 1)
        assert result is None or numpy.array_equal(result, whole.T)
        needed.fails(mpix.Error, "pressure", halo.read_checkpoint, grid, checkpoint, {"pressure": again})
    world.barrier()
    if world.rank == 0:
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        os.rmdir(folder)


def reports():
    with halo.Grid(world, (8, 8, 8), periodic=(True, True, True)) as grid:
        u = halo.Field.zeros(grid, halo.Radius.all(1))
        with halo.Exchange(grid, [u]) as exchange:
            exchange.measure()
            for _ in range(3):
                exchange.start()
                exchange.finish()
            text = exchange.report()
            assert "3 finished" in text and "automatic" in text, text
            assert (exchange.messages_sent > 0) == (world.size > 1) and (exchange.bytes_sent > 0) == (world.size > 1)
            if world.size > 1:
                assert f"by {os.environ.get('MPIX_TRANSPORTS') or 'shm'}" in text, text
        seconds, fastest = halo.compare_transfers(grid, [u], 2)
        assert set(seconds) == {"packed", "datatype", "plain"} and fastest in seconds
        inner, box = exchange.grid.local(), grid.local()
        assert sum(b.cells for b in halo.Box((0, 0, 0), (4, 4, 4)).difference(halo.Box((1, 1, 1), (3, 3, 3)))) == 64 - 8
        assert grid.owner(inner.lo) == world.rank and grid.global_index((-1, 0, 0))[1:] == box.lo[1:]
        assert world.rank in grid.neighbours((1, 0, 0), 8 * world.size)


def errors():
    fails, faces, zeros = needed.fails, halo.Radius.faces(1), numpy.zeros
    fails(TypeError, "comm is 5", halo.Grid, 5, (4, 4))
    fails(TypeError, "extent is 4", halo.Grid, world, 4)
    fails(ValueError, "extent has 4 numbers", halo.Grid, world, (4, 4, 4, 4))
    fails(TypeError, "periodic is True; it is a bool for each axis", halo.Grid, world, (64, 4), periodic=True)
    for wrong, sentence in ((("a", "b"), "periodic[0] is 'a'; it is True or False"), ("xy", "periodic is 'xy'"),
                            ((True, 1), "periodic[1] is 1; it is True or False"), ([None], "periodic[0] is None"),
                            ((1.0,), "periodic[0] is 1.0"), (5, "periodic is 5")):
        fails(TypeError, sentence, halo.Grid, world, (64, 4), periodic=wrong)
    for entries in (1, 3, 4):
        fails(ValueError, f"periodic has {entries} entries; it has 2, one for each axis", halo.Grid, world, (64, 4),
              periodic=[False] * entries)
        fails(ValueError, f"shortest has {entries} entries; it has 2, one for each axis", halo.Grid, world, (64, 4),
              shortest=[1] * entries)
    with halo.Grid(world, (64, 4), periodic=(), shortest=()) as grid:
        assert grid.periodic == (False, False)
    for periodic in (numpy.array([True, False]), (numpy.True_, False)):
        with halo.Grid(world, (64, 4), periodic=periodic) as grid:
            assert grid.periodic == (True, False)
    with halo.Grid(world, (n for n in (64, 4)), periodic=(n > 4 for n in (64, 4))) as grid:
        assert grid.extent == (64, 4) and grid.periodic == (True, False)
    fails(TypeError, "network is 'fast'; it is a number", halo.Grid, world, (64, 4), network="fast")
    fails(TypeError, "typical_bytes_per_cell is None; it is a number", halo.Grid, world, (64, 4),
          typical_bytes_per_cell=None)
    fails(TypeError, "within_node is 'x'; it is an array of numbers", halo.Grid, world, (64, 4), within_node="x")
    fails(TypeError, "boxes is 5; it is a list of Box", halo.Grid, world, (64, 4), boxes=5)
    fails(TypeError, "owners is 0; it is a list of ranks", halo.Grid, world, (64, 4), boxes=[], owners=0)
    error = fails(mpix.Error, "extent[1] is 0", halo.Grid, world, (64, 0))
    assert error.error_class == MPI.ERR_DIMS
    fails(ValueError, "owners are as many", halo.Grid, world, (64, 4), owners=[0])
    # What ctypes would cut.
    fails(ValueError, f"extent[0] is {2**64 + 12}; it has at most 64 bits", halo.Grid, world, (2**64 + 12, 4))
    fails(ValueError, f"boxes_per_rank is {2**32 + 1}; it has at most 32 bits", halo.Grid, world, (64, 4),
          boxes_per_rank=2**32 + 1)
    fails(ValueError, "boxes_per_rank is 0; it is at least 1", halo.Grid, world, (64, 4), boxes_per_rank=0)
    fails(TypeError, "boxes[0] is 3; it is a Box", halo.Grid, world, (64, 4), boxes=[3])
    fails(ValueError, f"cells is {2**32 + 1}; it has at most 32 bits", halo.Radius.faces, 2**32 + 1)
    fails(TypeError, "cells is 1.5; it is a whole number", halo.Radius.all, 1.5)
    with halo.Grid(world, (64, 4)) as grid:
        field = halo.Field.zeros(grid, halo.Radius.faces(1))
        with halo.Exchange(grid, [field]) as exchange:
            fails(ValueError, f"field is {2**32}; it has at most 32 bits", exchange.swap, 2**32)
            fails(ValueError, "field is 4; there are 1", exchange.current, 4)
            fails(TypeError, "field is 'x'; it is a whole number", exchange.current, "x")
        fails(ValueError, f"sets is {2**32 + 3}; it has at most 32 bits", halo.KernelExchange, grid, [field],
              sets=2**32 + 3)
        # On one rank: no other waits.
        wrong = {"steps": 10.5} if world.rank == world.size - 1 else {"steps": 10}
        fails(TypeError if world.rank == world.size - 1 else mpix.Error, "steps is ", halo.StepReport, grid, **wrong)
    with halo.Grid(world, (64, 8)) as grid:
        nx, ny = (n + 2 for n in grid.local().size[:2])
        array = zeros((ny, nx))
        fails(TypeError, "radius is 1", halo.Field, grid, array, 1)
        fails(TypeError, "array[0] is list", halo.Field, grid, [[1.0]], faces)
        fails(ValueError, "array has 3 axes; a grid of 2 dimensions needs 2, or components", halo.Field, grid,
              zeros((ny, nx, 2)), faces)
        fails(ValueError, "cells along y; the box has 8, and 1 lie below it", halo.Field, grid, zeros((8, nx)), faces)
        fails(ValueError, "array has 16 bytes along x; mpix needs 8", halo.Field, grid, zeros((ny, 2 * nx))[:, ::2],
              faces)
        fails(ValueError, "is order right?", halo.Field, grid, zeros((nx, ny)), faces, order="F")
        fails(ValueError, "must not run backwards", halo.Field, grid, array[::-1], faces)
        read_only = array.copy()
        read_only.flags.writeable = False
        fails(ValueError, "array is read-only", halo.Field, grid, read_only, faces)
        fails(TypeError, "byte order", halo.Field, grid, array.astype(">f8"), faces)
        fails(ValueError, "order is 'A'", halo.Field, grid, array, faces, order="A")
        fails(ValueError, "this rank has 1 boxes, and 2 arrays", halo.Field, grid, [array, array], faces)
        u, other = halo.Field(grid, array, faces), halo.Field(grid, zeros((ny, nx + 1)), faces)
        fails(IndexError, "is not within the array along x", u.__getitem__, grid.local().shift(2))
        fails(TypeError, "is not a Box", u.__getitem__, 3)
        fails(ValueError, "fields[0]: its two fields differ in shape, strides, layout", halo.Exchange, grid,
              [(u, other)])
        pairs(grid)
        fails(ValueError, "staggered has 1 entries; it has 2, one for each axis", halo.Field, grid, array, faces,
              staggered=(True,))
        fails(ValueError, "staggered has 3 entries", grid.points, grid.local(), (True, False, False))
        fails(ValueError, "below has 1 entries; it has 2, one for each axis", halo.Field, grid, array, faces,
              below=(1,))
        fails(ValueError, "transfer is 'fast'", halo.Exchange, grid, [u], transfer="fast")
        fails(ValueError, "reduce is 'mean'", halo.Exchange, grid, [u], reduce="mean")
        fails(TypeError, "fields is Field; it is a list of fields", halo.Exchange, grid, u)
        fails(TypeError, "fields is Field; it is a list of fields", halo.StreamExchange, grid, u)
        fails(TypeError, "fields is Field; it is a list of fields", halo.compare_transfers, grid, u)
        fails(TypeError, "exchanges is 'many'; it is a whole number", halo.compare_transfers, grid, [u], "many")
        fails(TypeError, "radius is 1; it is a Radius", halo.Field.zeros, grid, 1)
        fails(TypeError, "root is 'a'; it is a whole number", halo.gather, grid, u, root="a")
        fails(TypeError, "step is 'x'; it is a whole number", halo.write_checkpoint, grid, "nowhere", {"u": u},
              step="x")
        fails(TypeError, "path is float", halo.write_checkpoint, grid, 5.5, {"u": u})
        fails(TypeError, "axis is 'z'; it is a whole number", halo.write_png, grid, "nowhere", u, axis="z")
        fails(TypeError, "fields[1] is ndarray", halo.Exchange, grid, [u, array])
        small = halo.Field(grid, zeros((10, nx)), faces)
        small.memories[0].shape = (9, nx)  # as if it were smaller: what C says of it
        fails(mpix.Error, "MPIX_Halo_exchange_create: ", halo.Exchange, grid, [small])
        on_gpu = halo.Field(grid, Interface(array), faces)
        fails(ValueError, "fields[0] is in GPU memory", halo.Exchange, grid, [on_gpu])
        fails(TypeError, "fields is list", halo.write_checkpoint, grid, "nowhere", [u])
        fails(ValueError, "colors is 'red'", halo.write_png, grid, "nowhere", u, colors="red")
        with halo.Exchange(grid, [u]) as exchange:
            fails(mpix.Error, "MPIX_Halo_finish: the exchange is not active; start it first", exchange.finish)
            fails(mpix.Error, "MPIX_Halo_swap: ", exchange.swap)
            exchange.start()
            assert fails(mpix.Error, "active", exchange.free).error_class == MPI.ERR_REQUEST
            exchange.finish()
        fails(mpix.Error, "MPIX_Halo_start: exchange is null", exchange.start)
        exchange.free()
        try:
            with halo.Exchange(grid, [u]) as exchange:
                exchange.start()
                raise KeyError("of the program")
        except KeyError:
            assert exchange.active  # freeing it would have raised an error
        exchange.finish()
        exchange.free()
        if world.size > 1:  # one rank's error is one on all: none waits for it
            named = {"u": u}
            for call, right, wrong in ((halo.Exchange, [[u]], [[array]]), (halo.Exchange, [[u]], [u]),
                                       (halo.StreamExchange, [[u]], [u]), (halo.KernelExchange, [[u]], [u]),
                                       (halo.compare_transfers, [[u]], [u]),
                                       (halo.gather, [u, 0], [u, "a"]),
                                       (halo.write_checkpoint, ["nowhere", named, 0], ["nowhere", named, "x"]),
                                       (halo.write_checkpoint, ["nowhere", named], [5.5, named])):
                if world.rank == 1:
                    fails(TypeError, "", call, grid, *wrong)
                else:
                    fails(mpix.Error, "rank 1", call, grid, *right)
            fields = {"u": u} if world.rank else [u]
            fails((mpix.Error, TypeError), "fields is list; it is a dictionary", halo.write_checkpoint, grid, "nowhere",
                  fields)
            fails((mpix.Error, TypeError), "field is ndarray; it is a Field", halo.gather, grid,
                  u if world.rank else array)
    if world.size > 1:
        fails((mpix.Error, TypeError), "", halo.Grid, world, (64, 4) if world.rank else 64)
        one_rank_alone()


def pairs(grid):
    """Each difference of two fields of a pair is one that C could not be told of."""
    faces = halo.Radius.faces(1)
    nx, ny = grid.local().size[:2]
    plain, values = numpy.zeros((ny + 4, nx + 4)), numpy.zeros((ny + 2, nx + 2, 1))

    def differ(what, one, other):
        for pair in ((one, other), (other, one)):
            for kind in (halo.Exchange, halo.StreamExchange, halo.KernelExchange):
                needed.fails(ValueError, f"fields[1]: its two fields differ in {what}", kind, grid,
                             [halo.Field.zeros(grid, faces), pair])

    zeros = halo.Field.zeros
    differ("radius", zeros(grid, faces), zeros(grid, halo.Radius.all(1)))
    no_upper_x = halo.Radius.faces(1).set(1, 0, 0, 0)
    differ("radius", zeros(grid, faces), halo.Field(grid, numpy.zeros((ny + 2, nx + 2)), no_upper_x))
    differ("type", zeros(grid, faces), zeros(grid, faces, numpy.int64))
    differ("below", halo.Field(grid, plain, faces, below=(1, 2)), halo.Field(grid, plain.copy(), faces, below=(2, 1)))
    differ("components", halo.Field(grid, values, faces, components="last"),
           halo.Field(grid, numpy.zeros((1, ny + 2, nx + 2)), faces, components="first"))
    differ("staggered", halo.Field(grid, plain, faces, staggered=(True, False)),
           halo.Field(grid, plain.copy(), faces, staggered=(False, True)))
    halo.Exchange(grid, [(zeros(grid, faces), zeros(grid, faces))]).free()


def one_rank_alone():
    """Wrong arguments of one rank, and those that a function does not have: no other rank waits for it."""
    fails, wrong_here = needed.fails, world.rank == 1

    def on_one(error, sentence, call, right, wrong, **named):
        raised = fails(error, sentence, call, *wrong, **named) if wrong_here else fails(mpix.Error, "", call, *right)
        told = world.bcast(str(raised), 1)
        if not wrong_here:  # the true reason, and no other
            assert f": rank 1: {error.__name__} in Python: {told}" in str(raised), f"{raised!s}, without {told!r}"

    for named in ({"periodic": ("a", "b")}, {"cyclic": (True, True)}, {"extent": (4,)}, {"boxes": 3},
                  {"network": "fast"}, {"typical_radius": 1}, {"shortest": "x"}, {"within_node": object()}):
        on_one(TypeError, next(iter(named)), halo.Grid, [world, (64, 4)], [world, (64, 4)], **named)
    on_one(TypeError, "extent", halo.Grid, [world, (64, 4)], [world])
    on_one(TypeError, "", halo.Grid, [world, (64, 4)], [world, (64, 4), (True,)])
    with halo.Grid(world, (64, 8)) as grid:
        u, v = (halo.Field.zeros(grid, halo.Radius.faces(1)) for _ in range(2))
        named = {"u": u}
        for call, right in ((halo.Exchange, [[u]]), (halo.StreamExchange, [[(u, v)]]), (halo.KernelExchange, [[u]]),
                            (halo.compare_transfers, [[u]]), (halo.gather, [u]),
                            (halo.write_checkpoint, ["nowhere", named]),
                            (halo.read_checkpoint, ["nowhere", named]), (halo.write_vti, ["nowhere.pvti", named]),
                            (halo.write_png, ["nowhere.png", u])):
            for other in (None, 5, world):  # the fields' grid is known
                on_one(TypeError, f"grid is {type(other).__name__}; it is", call, [grid, *right], [other, *right])
            on_one(TypeError, "speed", call, [grid, *right], [grid, *right], speed="high")
        on_one(TypeError, "speed", halo.StepReport, [grid], [grid], speed="high")
        on_one(TypeError, "missing 1 required positional argument", halo.Exchange, [grid, [u]], [grid])
        on_one(ValueError, "reduce is 'mean'", halo.Exchange, [grid, [u]], [grid, [u]], reduce="mean")
        on_one(TypeError, "path is NoneType", halo.read_checkpoint, [grid, "nowhere", named], [grid, None, named])
        on_one(ValueError, "fields[0]: its two fields differ in radius", halo.Exchange, [grid, [(u, v)]],
               [grid, [(u, halo.Field.zeros(grid, halo.Radius.all(1)))]])
        # What was refused is told once.
        fails(mpix.Error, "fields is empty", halo.KernelExchange, grid, [])
        with halo.Exchange(grid, [u]) as exchange:  # all is well afterwards
            exchange.start()
            exchange.finish()


def main():
    stencil()
    stream_exchanges()
    kernel_exchanges()
    sums()
    files()
    reports()
    errors()
    if world.rank == 0:
        print("right")


needed.run(main, MPI)
