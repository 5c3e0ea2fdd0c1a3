# SPDX-License-Identifier: BSD-3-Clause
"""Random halo exchanges by mpix.halo, of which every byte is compared with a serial reference in NumPy.

Usage: halo_random.py [--programs N] [--seed N]

Grids, boxes, radii, types, components, orders of axes, staggered axes, padding, and how the arrays tell where they lie.
"""
import argparse

import needed

mpix, MPI = needed.load(partitioned=False)
import numpy
from mpix import halo

world = MPI.COMM_WORLD
TYPES = [numpy.dtype(t) for t in ("f8", "f4", "i2", "u1", "i8", "c8", "f2", [("a", "i4"), ("b", "i2")])]


class WithDlpack:
    """An array that says where it lies by DLPack only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **named):
        return self.array.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def random_values(draw, shape, dtype):
    count = int(numpy.prod(shape))
    if dtype.kind in "iuV":
        return numpy.frombuffer(draw.bytes(count * dtype.itemsize), dtype).reshape(shape)
    values = draw.random(count) - 0.5
    return (values + 1j * draw.random(count) if dtype.kind == "c" else values).astype(dtype).reshape(shape)


class Allocation:
    """One field's memory for a box, in a buffer that has other bytes around it and in its gaps."""

    def __init__(self, own, box, dimensions, dtype, f):
        size = [box.size[a] + f["below"][a] + f["above"][a] for a in range(dimensions)]
        gap = (lambda: int(own.integers(0, 3))) if f["gaps"] else (lambda: 0)
        count, item = f["count"], dtype.itemsize
        strides = [item * (count if f["components"] == "last" else 1)]
        for n in size:
            strides.append((strides[-1] // item * n + gap()) * item)
        component = item if f["components"] == "last" else strides[dimensions]
        total = strides[dimensions] * (count if f["components"] != "last" else 1)
        before = int(own.integers(0, 4)) * 16
        self.buffer = numpy.frombuffer(bytearray(own.bytes(before + total + 64)), numpy.uint8)
        # The reference: in the order component, z, y, x.
        strides = [component] + strides[:dimensions][::-1]
        self.lying = self._view(self.buffer, before, dtype, [count] + size[::-1], strides)
        self.expected = self.buffer.copy()
        self.expecting = self._view(self.expected, before, dtype, self.lying.shape, self.lying.strides)
        self.box, self.below, self.size = box, f["below"], size
        axes = list(range(1, dimensions + 1)) if f["order"] == "C" else list(range(dimensions, 0, -1))
        given = (self.lying[0].transpose([a - 1 for a in axes]) if f["components"] is None else
                 self.lying.transpose([0] + axes if f["components"] == "first" else axes + [0]))
        self.given = WithDlpack(given) if f["dlpack"] else given

    @staticmethod
    def _view(buffer, before, dtype, shape, strides):
        return numpy.ndarray(shape, dtype, buffer, before, strides)

    def fill(self, whole, radius, periodic):
        """The box's cells come from the whole domain; those and the ghost cells that an exchange fills are expected."""
        dimensions, places = len(self.size), []
        for a in range(dimensions):
            c = self.box.lo[a] - self.below[a] + numpy.arange(self.size[a])
            step = (c >= self.box.hi[a]).astype(int) - (c < self.box.lo[a])
            away = numpy.where(step < 0, self.box.lo[a] - c, numpy.where(step > 0, c - self.box.hi[a] + 1, 0))
            extent = whole.shape[dimensions - a]
            there = numpy.full(c.shape, True) if periodic[a] else (c >= 0) & (c < extent)
            places.append((step, away, there, c % extent, dimensions - 1 - a))
        shape = self.size[::-1]
        number = numpy.full(shape, sum(3**a for a in range(3)))
        inside, index = numpy.full(shape, True), [None] * dimensions

        def along(values, axis):
            return values.reshape([-1 if i == axis else 1 for i in range(dimensions)])

        for a, (step, _, there, wrapped, axis) in enumerate(places):
            number = number + 3**a * along(step, axis)
            inside = inside & along(there, axis)
            index[axis] = numpy.broadcast_to(along(wrapped, axis), shape)
        depth = numpy.array(list(radius.cells))[number]
        covered = inside
        for step, away, _, _, axis in places:
            covered = covered & ((along(step, axis) == 0) | (along(away, axis) <= depth))
        own = numpy.full(shape, True)
        for step, _, _, _, axis in places:
            own = own & (along(step, axis) == 0)
        values = whole[(slice(None), *index)]
        self.expecting[:, covered] = values[:, covered]
        self.lying[:, own] = values[:, own]

    @staticmethod
    def check_gathered(gathered, whole, f, what):
        """An array of the whole domain, which has the axes of the field's array."""
        cells = list(range(1, whole.ndim)) if f["order"] == "C" else list(range(whole.ndim - 1, 0, -1))
        wanted = (whole[0].transpose([a - 1 for a in cells]) if f["components"] is None else
                  whole.transpose([0] + cells if f["components"] == "first" else cells + [0]))
        assert gathered.shape == wanted.shape and gathered.tobytes() == wanted.tobytes(), f"{what}: wrongly gathered"

    def check(self, what):
        wrong = numpy.count_nonzero(self.buffer != self.expected)
        assert wrong == 0, f"{what}, {self.box}: {wrong} of {self.buffer.size} bytes wrong"


def random_radius(draw, dimensions):
    kind = draw.integers(3)
    if kind == 0:
        return halo.Radius.faces(int(draw.integers(1, 3)))
    if kind == 1:
        return halo.Radius.all(int(draw.integers(1, 3)))
    return halo.Radius.of(draw.integers(-2, 3, (3, dimensions)).tolist())


def program(seed):
    draw = numpy.random.default_rng(seed)  # the same on all ranks
    own = numpy.random.default_rng()
    dimensions = int(draw.integers(1, 4))
    extent = [int(n) for n in draw.integers(8 if dimensions == 1 else 4, 12, dimensions)]
    periodic = [bool(p) for p in draw.integers(0, 2, dimensions)]
    with halo.Grid(world, extent, periodic=periodic, boxes_per_rank=int(draw.choice([1, 1, 2]))) as grid:
        fields, checked, wholes = [], [], []
        for _ in range(int(draw.integers(1, 4))):
            dtype = TYPES[draw.integers(len(TYPES))]
            radius = random_radius(draw, dimensions)
            staggered = [bool(s) for s in draw.integers(0, 2, dimensions) * draw.integers(0, 2)]
            components = [None, "first", "last"][draw.integers(3)]
            f = {"order": "CF"[draw.integers(2)], "components": components,
                 "count": 1 if components is None else int(draw.integers(1, 4)),
                 "gaps": len(grid.boxes) == 1 and own.integers(2),
                 "dlpack": dtype.kind != "V" and own.integers(2)}
            needed_below, needed_above = radius.depth(dimensions)
            f["below"] = [n + int(own.integers(0, 2)) for n in needed_below[:dimensions]]
            f["above"] = [n + int(own.integers(0, 2)) for n in needed_above[:dimensions]]
            boxes = [grid.points(grid.local(i), staggered) for i in range(len(grid.boxes))]
            some = [Allocation(own, box, dimensions, dtype, f) for box in boxes]
            points = [n + (s and not p) for n, s, p in zip(extent, staggered, periodic)]
            wholes.append((f["count"], points[::-1], dtype))
            given = [a.given for a in some]
            fields.append(halo.Field(grid, given if len(given) != 1 else given[0], radius, order=f["order"],
                                     components=components, below=f["below"], staggered=staggered))
            checked.append((some, radius, f))
        transfer = ("packed", "datatype", "plain")[draw.integers(3)]
        with halo.Exchange(grid, fields, transfer=transfer) as exchange:
            for epoch in range(2):
                domain = [random_values(draw, [count] + points, dtype) for count, points, dtype in wholes]
                for (some, radius, _), whole in zip(checked, domain):
                    for a in some:
                        a.fill(whole, radius, periodic)
                if epoch == 0:
                    exchange.start()
                else:
                    exchange.begin()
                    for number in own.permutation(len(fields)):
                        exchange.ready(int(number))
                assert exchange.active
                exchange.finish()
                for number, (some, _, f) in enumerate(checked):
                    what = f"seed {seed}, {transfer}, epoch {epoch}, field {number}"
                    for a in some:
                        a.check(what)
                    gathered = halo.gather(grid, fields[number], root=epoch % world.size)
                    if gathered is not None:
                        Allocation.check_gathered(gathered, domain[number], f, what)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    first = world.bcast(int(numpy.random.SeedSequence().entropy % 2**32) if arguments.seed is None else arguments.seed)
    if world.rank == 0:
        print(f"--seed {first}", flush=True)
    for number in range(arguments.programs):
        program(first + number)
    if world.rank == 0:
        print(f"{arguments.programs} programs right")


needed.run(main, MPI)
