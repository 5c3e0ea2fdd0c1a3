# SPDX-License-Identifier: BSD-3-Clause
"""Boxes of cells, and radii."""
import ctypes
import numbers
import operator
from dataclasses import dataclass

import numpy

from . import _c


def whole_number(given, name, bits=64):
    """One that C can take in so many bits: ctypes would cut it."""
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"{name} is {given!r}; it is a whole number") from None
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(f"{name} is {number}; it has at most {bits} bits")
    return number


def real_number(given, name):
    """An int or a float, also of NumPy."""
    if not isinstance(given, numbers.Real):
        raise TypeError(f"{name} is {given!r}; it is a number")
    return float(given)


def sequence(given, name, wanted):
    """What can be iterated over, as a tuple."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"{name} is {given!r}; it is {wanted}")
    return tuple(given)


def three(given, name, fill, bits=64):
    """One to three whole numbers, with `fill` for the others."""
    try:
        some = tuple(operator.index(n) for n in given)
    except TypeError:
        raise TypeError(f"{name} is {given!r}; it is one to three whole numbers") from None
    if not 1 <= len(some) <= 3:
        raise ValueError(f"{name} has {len(some)} numbers; it has one to three")
    return tuple(whole_number(n, f"{name}[{i}]", bits) for i, n in enumerate(some)) + (fill,) * (3 - len(some))


def flag(given, name):
    """True or False, also those of NumPy. All else has a truth value, too, but seldom the one that was meant."""
    if not isinstance(given, (bool, numpy.bool_)):
        raise TypeError(f"{name} is {given!r}; it is True or False")
    return bool(given)


def one_of(given, name, values):
    """One of these, which are strings, or None."""
    if not (given is None or isinstance(given, str)) or given not in values:
        raise ValueError(f"{name} is {given!r}; it is one of {', '.join(map(repr, values))}")
    return given


def check_entries(given, name, dimensions):
    """One for each axis; or none at all, which stands for the default."""
    if len(given) not in (0, dimensions):
        raise ValueError(f"{name} has {len(given)} entries; it has {dimensions}, one for each axis")


def numbers_of_axes(given, name, fill, dimensions):
    """A whole number for each axis, with `fill` for missing axes; or () for `fill` along all."""
    some = sequence(given, name, "a whole number for each axis")
    check_entries(some, name, dimensions)
    return three(some, name, fill) if some else (fill,) * 3


def axes(given, name, dimensions):
    """A flag for each axis, or () for False along all."""
    flags = [flag(n, f"{name}[{i}]") for i, n in enumerate(sequence(given, name, "a bool for each axis"))]
    check_entries(flags, name, dimensions)
    return (ctypes.c_int * 3)(*flags)


@dataclass(frozen=True)
class Box:
    """The cells lo <= c < hi along x, y and z, in global indices: three numbers each, whatever the dimensions."""

    lo: tuple
    hi: tuple

    @property
    def size(self):
        return tuple(h - l for l, h in zip(self.lo, self.hi))

    @property
    def cells(self):
        x, y, z = (max(n, 0) for n in self.size)
        return x * y * z

    def shift(self, x=0, y=0, z=0):
        """The same box, so many cells further."""
        by = (x, y, z)
        return Box(tuple(c + d for c, d in zip(self.lo, by)), tuple(c + d for c, d in zip(self.hi, by)))

    def difference(self, inner):
        """The cells that are not in `inner`, as a list of boxes that do not overlap."""
        boxes, count = (_c.Box * 6)(), ctypes.c_int()
        _c.difference(ctypes.byref(self.c()), ctypes.byref(inner.c()), boxes, ctypes.byref(count))
        return [Box.of(boxes[i]) for i in range(count.value)]

    def c(self):
        return _c.Box(three(self.lo, "lo", 0), three(self.hi, "hi", 1))

    @classmethod
    def of(cls, box):
        return cls(tuple(box.lo), tuple(box.hi))


class Radius:
    """How many ghost cells a stencil reads in each of the 26 directions: as mpix::halo::radius."""

    def __init__(self):
        """None in any direction."""
        self.cells = (ctypes.c_int * _c.DIRECTIONS)()

    @classmethod
    def all(cls, cells):
        """The same in all directions, edges and corners included."""
        made = cls()
        _c.radius_all(whole_number(cells, "cells", 32), made.cells)
        return made

    @classmethod
    def faces(cls, cells):
        """The same across all faces, and nothing at edges and corners."""
        made = cls()
        _c.radius_faces(whole_number(cells, "cells", 32), made.cells)
        return made

    @classmethod
    def of(cls, offsets):
        """What a stencil needs that reads the cells at these offsets, of one to three numbers each."""
        some = [n for i, offset in enumerate(offsets) for n in three(offset, f"offsets[{i}]", 0, 32)]
        made = cls()
        _c.radius_of(len(some) // 3, (ctypes.c_int * len(some))(*some), made.cells)
        return made

    def set(self, x, y, z, cells):
        """In one direction, whose numbers are -1, 0 or 1. Returns the radius."""
        self.cells[direction((x, y, z))] = whole_number(cells, "cells", 32)
        return self

    def depth(self, dimensions):
        """The ghost cells below and above a box, along each axis."""
        below, above = [0] * 3, [0] * 3
        for number, cells in enumerate(self.cells):
            step = direction_of(number)
            if any(step[dimensions:]):
                continue
            for axis in range(3):
                if step[axis] < 0:
                    below[axis] = max(below[axis], cells)
                elif step[axis] > 0:
                    above[axis] = max(above[axis], cells)
        return tuple(below), tuple(above)


def radius_in_c(radius, name="radius"):
    if not isinstance(radius, Radius):
        raise TypeError(f"{name} is {radius!r}; it is a Radius, such as Radius.faces(1)")
    return radius.cells


def direction(given):
    """The number of a direction of one to three numbers."""
    step = three(given, "direction", 0)
    if any(n not in (-1, 0, 1) for n in step):
        raise ValueError(f"direction is {step}; each number is -1, 0 or 1")
    return step[0] + 1 + 3 * (step[1] + 1) + 9 * (step[2] + 1)


def direction_of(number):
    """The three numbers, -1, 0 or 1, of a direction."""
    return number % 3 - 1, number // 3 % 3 - 1, number // 9 - 1
