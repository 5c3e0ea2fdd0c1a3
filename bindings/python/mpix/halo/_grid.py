# SPDX-License-Identifier: BSD-3-Clause
"""The grid: a domain of cells, cut into boxes that ranks own."""
import ctypes
from ctypes import byref, c_int, c_int64, c_void_p

import numpy

from .._handles import mpi, value_of
from . import _c
from ._box import Box, axes, direction, numbers_of_axes, radius_in_c, real_number, sequence, three, whole_number
from ._collective import collective


class Handle:
    """What is freed by free(), or at the end of a `with` block, but for one that an exception leaves: other ranks may
    not come to free it. Freeing may be collective: in the same order on all ranks, and before MPI_Finalize. What is
    never freed is kept until the program ends.

    Members of `kept` are not collected before: the library uses their memory.
    """

    _kept = {}

    def __init__(self, handle, free, kept=()):
        self._handle, self._free = handle, free
        Handle._kept[id(self)] = (self, kept)

    @property
    def handle(self):
        """The C handle, for ctypes; of one that was freed it is null, which the functions of mpix refuse."""
        return self._handle

    def free(self):
        """Does nothing twice."""
        self._free(byref(self._handle))
        Handle._kept.pop(id(self), None)

    def __enter__(self):
        return self

    def __exit__(self, exception, *_):
        if exception is None:
            self.free()


def _communicator_in(arguments):
    return next((value_of(a, "Comm", "comm") for a in arguments if isinstance(a, mpi().Comm)), None)


def _numbers(given, name):
    try:
        return numpy.ascontiguousarray(given, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {given!r}; it is an array of numbers") from None


class Grid(Handle):
    """A regular grid of cells in one to three dimensions, cut into boxes. As mpix::halo::grid; docs/halo.md says more.

    Collective over `comm`; all ranks give the same arguments. Numbers are in the order x, y, z, of which x is the
    fastest in memory: an array a[z, y, x] of NumPy has the extent (nx, ny, nz).

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        An intracommunicator, which may be freed afterwards.
    extent : one to three ints
        Cells of the domain.
    periodic : bools, one for each axis, optional
    boxes : list of Box, optional
        By their numbers; by default they are computed.
    owners : list of int, optional
        The rank of each of `boxes`; by default box r is that of rank r.
    boxes_per_rank : int
        If they are computed.
    shortest : ints, one for each axis, optional
        Of a computed box, in cells.
    within_node, network : square array of float, float, optional
        Measured bandwidths: between two ranks of a node, and out of a node, in bytes per second.
    typical_radius, typical_bytes_per_cell : Radius, float, optional

    Raises
    ------
    TypeError, ValueError, mpix.Error
        On all ranks, if on one.
    """

    @collective(_communicator_in, lambda comm: _c.grid_create(comm, 0, None, None, byref(c_void_p())))
    def __init__(self, comm, extent, *, periodic=(), boxes=None, owners=None, boxes_per_rank=1, shortest=(),
                 within_node=None, network=0.0, typical_radius=None, typical_bytes_per_cell=0.0):
        communicator, handle, options = value_of(comm, "Comm", "comm"), c_void_p(), _c.GridOptions()
        extent = sequence(extent, "extent", "one to three whole numbers")
        cells = three(extent, "extent", 1)
        options.periodic = axes(periodic, "periodic", len(extent))
        if boxes is not None:
            boxes = sequence(boxes, "boxes", "a list of Box")
            for i, box in enumerate(boxes):
                if not isinstance(box, Box):
                    raise TypeError(f"boxes[{i}] is {box!r}; it is a Box")
            options.boxes, options.box_count = (_c.Box * len(boxes))(*(b.c() for b in boxes)), len(boxes)
        if owners is not None:
            owners = sequence(owners, "owners", "a list of ranks")
            if boxes is None or len(owners) != len(boxes):
                raise ValueError("owners are as many ranks as there are boxes, which are given with them")
            ranks = (whole_number(n, f"owners[{i}]", 32) for i, n in enumerate(owners))
            options.owners = (c_int * len(owners))(*ranks)
        options.boxes_per_rank = whole_number(boxes_per_rank, "boxes_per_rank", 32)
        if boxes_per_rank < 1:  # 0 is C's default
            raise ValueError(f"boxes_per_rank is {boxes_per_rank}; it is at least 1")
        options.shortest = numbers_of_axes(shortest, "shortest", 1, len(extent))
        if within_node is not None:
            links = _numbers(within_node, "within_node")
            options.links.within_node = (ctypes.c_double * links.size)(*links.flat)
            options.links.entries = links.size
        options.links.network = real_number(network, "network")
        if typical_radius is not None:
            options.typical_radius = radius_in_c(typical_radius, "typical_radius")
        options.typical_bytes_per_cell = real_number(typical_bytes_per_cell, "typical_bytes_per_cell")
        yield
        _c.grid_create(communicator, len(extent), (c_int64 * 3)(*cells), byref(options), byref(handle))
        super().__init__(handle, _c.grid_free)
        self._read()

    def _read(self):
        numbers = [c_int() for _ in range(4)]
        extent, periodic = (c_int64 * 3)(), (c_int * 3)()
        _c.grid_get(self.handle, byref(numbers[0]), extent, periodic, *(byref(n) for n in numbers[1:]))
        self.dimensions, self.rank, self.ranks, self.box_count = (n.value for n in numbers)
        self.extent = tuple(extent[: self.dimensions])
        self.periodic = tuple(bool(p) for p in periodic[: self.dimensions])
        own, count = (c_int * max(self.box_count, 1))(), c_int()
        _c.grid_boxes(self.handle, self.box_count, own, byref(count))
        self.boxes = list(own[: count.value])  # the numbers of this rank's own

    def box(self, number):
        """Any box, by its number, and the rank that owns it."""
        box, rank = _c.Box(), c_int()
        _c.grid_box(self.handle, whole_number(number, "number", 32), byref(box), byref(rank))
        return Box.of(box), rank.value

    def position(self, i):
        """Of a box of this rank in `boxes`: None stands for the only one."""
        if i is None:
            if len(self.boxes) != 1:
                raise ValueError(f"i is None, but this rank has {len(self.boxes)} boxes")
            return 0
        if not 0 <= i < len(self.boxes):
            raise ValueError(f"i is {i}; this rank has {len(self.boxes)} boxes")
        return i

    def local(self, i=None):
        """The box of this rank at position `i` of `boxes`, or the only one."""
        return self.box(self.boxes[self.position(i)])[0]

    def owner(self, cell):
        """The rank that owns a cell of the domain."""
        rank = c_int()
        _c.grid_owner(self.handle, (c_int64 * 3)(*three(cell, "cell", 0)), byref(rank))
        return rank.value

    def neighbours(self, towards, depth=1):
        """The ranks that own ghost cells of this rank's boxes in a direction, such as (1, 0, 0)."""
        ranks, count = (c_int * self.ranks)(), c_int()
        _c.grid_neighbours(self.handle, direction(towards), whole_number(depth, "depth", 32), self.ranks, ranks,
                           byref(count))
        return list(ranks[: count.value])

    def points(self, box, staggered):
        """The points of a field that is staggered along these axes, for a box of cells."""
        made = _c.Box()
        _c.points(self.handle, byref(box.c()), axes(staggered, "staggered", self.dimensions), byref(made))
        return Box.of(made)

    def global_index(self, local, i=None):
        """The cell of the domain that a cell is which is counted from the lowest one of a box of this rank."""
        made = (c_int64 * 3)()
        _c.global_index(self.handle, self.position(i), (c_int64 * 3)(*three(local, "local", 0)), made)
        return tuple(made[: self.dimensions])

    def deep_radius(self, stencil, every):
        """The radius of fields that are exchanged in every so many steps, of which each reads `stencil`."""
        made = type(stencil)()
        _c.deep_radius(self.handle, radius_in_c(stencil, "stencil"), whole_number(every, "every", 32), made.cells)
        return made

    def deep_valid(self, stencil, every, steps, i=None, staggered=()):
        """The cells that are right so many steps after such an exchange."""
        made = _c.Box()
        numbers = whole_number(every, "every", 32), whole_number(steps, "steps", 32)
        _c.deep_valid(self.handle, self.position(i), radius_in_c(stencil, "stencil"), *numbers,
                      axes(staggered, "staggered", self.dimensions), byref(made))
        return Box.of(made)
