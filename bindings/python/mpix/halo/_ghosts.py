# SPDX-License-Identifier: BSD-3-Clause
"""Ghost cells that stay in the messages: where they are, and reading them."""
import ctypes
from ctypes import byref, c_int
from dataclasses import dataclass

import numpy

from . import _c
from ._box import Box, direction_of


@dataclass(frozen=True)
class GhostPiece:
    """Ghost cells that lie together in a message, or in another box of this rank. As mpix::halo::ghost_piece."""

    box: Box  # by global indices, beside the box of this rank; beyond a periodic end outside of the domain
    direction: tuple  # where they lie, seen from that box: three numbers -1, 0 or 1
    array: numpy.ndarray  # their values, with axes in the field's order; not a copy, and read-only


def pieces_of(exchange, number, field, i):
    """What MPIX_Halo_ghost_pieces says."""
    count = c_int()
    _c.ghost_pieces(number, i, exchange.handle, 0, None, byref(count))
    made = (_c.GhostPiece * max(count.value, 1))()
    _c.ghost_pieces(number, i, exchange.handle, count.value, made, byref(count))
    return [GhostPiece(Box.of(p.cells), direction_of(p.direction), _view(p, field)) for p in made[: count.value]]


def _view(piece, field):
    size = Box.of(piece.cells).size
    cells = [(size[a], piece.stride[a]) for a in range(field.grid.dimensions)]
    axes = field.in_order(cells, (field.values_of_a_cell, piece.component_stride))
    shape, strides = zip(*axes)
    length = sum((n - 1) * stride for n, stride in axes) + field.dtype.itemsize
    memory = (ctypes.c_byte * length).from_address(piece.first)
    made = numpy.ndarray(shape, field.dtype, memory, 0, strides)
    made.flags.writeable = False
    return made


class GhostReader:
    """Reads a field whose ghost cells stay in the messages. Exchange.reader() makes it.

    reader[box] are the cells of a box in global indices, as field[box] would be if the ghost cells were in the array;
    read-only, and a copy if not all of them are in the box of this rank. Cells that are neither there nor ghost cells
    come from the field's array, if it has room for them; otherwise IndexError.
    """

    def __init__(self, exchange, field, i, pieces):
        self._exchange, self._field, self._i, self._pieces = exchange, field, i, pieces
        self._own = field.grid.points(field.grid.local(i), field.staggered)

    def __getitem__(self, box):
        if not isinstance(box, Box):
            raise TypeError(f"{box!r} is not a Box")
        if not self._exchange.handle:
            raise ValueError("the exchange has been freed, and its messages with it")
        if _common(box, self._own) == box:
            made = self._field[box, self._i].view()
            made.flags.writeable = False
            return made
        ghosts = [(p, part) for p in self._pieces if (part := _common(box, p.box)).cells > 0]
        own = _common(box, self._own)
        if own.cells + sum(part.cells for _, part in ghosts) == box.cells:
            made = numpy.empty(self._field.shape_of(box), self._field.dtype)
            if own.cells > 0:
                made[self._field.part(own, box.lo)] = self._field[own, self._i]
        else:  # outside of a domain that is not periodic, or further away
            made = self._field[box, self._i].copy()
        for piece, part in ghosts:
            made[self._field.part(part, box.lo)] = piece.array[self._field.part(part, piece.box.lo)]
        made.flags.writeable = False
        return made


def _common(one, other):
    return Box(tuple(map(max, one.lo, other.lo)), tuple(map(min, one.hi, other.hi)))
