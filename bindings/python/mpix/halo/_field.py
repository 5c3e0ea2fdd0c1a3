# SPDX-License-Identifier: BSD-3-Clause
"""Fields: arrays of the program, with room for ghost cells."""
from ctypes import c_int64

import numpy

from .._arrays import Memory
from .._handles import mpi, value_of
from . import _c
from ._box import Box, axes, numbers_of_axes, one_of, radius_in_c

_MPI_NAMES = {"int8": "INT8_T", "int16": "INT16_T", "int32": "INT32_T", "int64": "INT64_T", "uint8": "UINT8_T",
              "uint16": "UINT16_T", "uint32": "UINT32_T", "uint64": "UINT64_T", "float32": "FLOAT", "float64": "DOUBLE",
              "longdouble": "LONG_DOUBLE"}
STORAGES = ("in_fields", "in_messages")  # where ghost cells are after an exchange
_types = {}


def datatype(dtype):
    """The MPI datatype of values: arithmetic, or bytes."""
    for name, of_mpi in _MPI_NAMES.items():
        if dtype == numpy.dtype(name):
            return getattr(mpi(), of_mpi)
    if dtype.itemsize not in _types:  # never freed: there are few sizes
        _types[dtype.itemsize] = mpi().BYTE.Create_contiguous(dtype.itemsize).Commit()
    return _types[dtype.itemsize]


class Field:
    """An array that an exchange fills the ghost cells of. It is not copied, and must not be resized.

    Parameters
    ----------
    grid : Grid
    array : array, or list of arrays
        Of NumPy, CuPy, Numba or PyTorch, or one with DLPack: the cells of this rank's box and, around them, ghost
        cells. Cells that lie next to each other along x are next to each other in memory; rows and planes may have any
        distances. On a rank that has several boxes, or none: a list with one for each, in the order of `grid.boxes`,
        without gaps.
    radius : Radius
        The ghost cells that an exchange fills.
    order : "C" or "F"
        Whether array[z, y, x] or array[x, y, z] is the cell (x, y, z).
    components : None, "first" or "last"
        Which axis of the array, besides those of the cells, has the values of a cell.
    below : ints, one for each axis, optional
        Cells in the array below the box, along x, y, z; by default as many as the radius needs. The others are above.
    staggered : bools, one for each axis, optional
        The axes along which the values are at points between the cells.
    dtype, count : optional
        On a rank without boxes, whose list of arrays is empty: the type of the values, and how many a cell has.

    field[box] is the array's part for a box of cells in global indices, as an array of the same package; box.shift() is
    that of its neighbours. field[box, i]: of the box at position i of several.

    Raises TypeError or ValueError, which name the argument. Local.
    """

    def __init__(self, grid, array, radius, *, order="C", components=None, below=None, staggered=(), dtype=float,
                 count=1):
        one_of(order, "order", ("C", "F"))
        one_of(components, "components", (None, "first", "last"))
        radius_in_c(radius)
        self.grid, self.radius, self.order, self.components = grid, radius, order, components
        self.staggered = tuple(bool(s) for s in axes(staggered, "staggered", grid.dimensions))[: grid.dimensions]
        self._below = (radius.depth(grid.dimensions)[0] if below is None else
                       numbers_of_axes(below, "below", 0, grid.dimensions))
        self._without = numpy.dtype(dtype), count
        several = isinstance(array, (list, tuple))
        self.arrays = list(array) if several else [array]
        if len(self.arrays) != len(grid.boxes):
            raise ValueError(f"array: this rank has {len(grid.boxes)} boxes, and {len(self.arrays)} arrays are given")
        self.memories = [Memory(a, f"array[{i}]" if several else "array") for i, a in enumerate(self.arrays)]
        self._lo = [self._box(i).lo for i in range(len(self.arrays))]
        self._layouts = [self._layout(i, f"array[{i}]" if several else "array") for i in range(len(self.arrays))]
        for i, memory in enumerate(self.memories[1:], 1):
            if memory.dtype != self.dtype or memory.on_gpu != self.on_gpu:
                raise ValueError(f"array[{i}] has values of {memory.dtype}, or lies elsewhere than array[0]")

    @classmethod
    def zeros(cls, grid, radius, dtype=float, *, xp=numpy, order="C", components=None, count=1, staggered=(),
              ghosts="in_fields"):
        """A field in new arrays, made by `xp.zeros`: of NumPy, or of CuPy (`xp=cupy`).

        `count`: values of a cell, if `components` is "first" or "last". `ghosts`: as of the Exchange; without room for
        ghost cells, if they are "in_messages". Otherwise as Field.
        """
        radius_in_c(radius)
        one_of(ghosts, "ghosts", STORAGES)
        below, above = radius.depth(grid.dimensions) if ghosts == "in_fields" else [(0, 0, 0)] * 2
        arrays = []
        for i in range(len(grid.boxes)):
            size = grid.points(grid.local(i), staggered).size
            shape = [size[a] + below[a] + above[a] for a in reversed(range(grid.dimensions))]
            cells = slice(0, grid.dimensions)  # which of its axes are those of the cells
            if components == "first":
                shape, cells = [count, *shape], slice(1, None)
            elif components == "last":
                shape.append(count)
            made, axes_of = xp.zeros(shape, dtype=dtype), list(range(len(shape)))
            if order == "F":
                axes_of[cells] = axes_of[cells][::-1]
                made = made.transpose(axes_of)
            arrays.append(made)
        return cls(grid, arrays if len(arrays) != 1 else arrays[0], radius, order=order, components=components,
                   below=below[: grid.dimensions], staggered=staggered, dtype=dtype, count=count)

    @property
    def array(self):
        """The only array. Raises ValueError, if there are several."""
        return self.arrays[self.grid.position(None)]

    @property
    def dtype(self):
        return self.memories[0].dtype if self.memories else self._without[0]

    @property
    def on_gpu(self):
        return bool(self.memories) and self.memories[0].on_gpu

    def __getitem__(self, key):
        box, i = key if isinstance(key, tuple) else (key, None)
        if not isinstance(box, Box):
            raise TypeError(f"{box!r} is not a Box; field.array has the whole array")
        i = self.grid.position(i)
        shape = self._cells_shape(i)
        first = [lo - below for lo, below in zip(self._lo[i], self._below)]
        for axis in range(self.grid.dimensions):
            if box.lo[axis] < first[axis] or box.hi[axis] > first[axis] + shape[axis]:
                raise IndexError(f"{box} is not within the array along {'xyz'[axis]}")
        return self.arrays[i][self.part(box, first)]

    def part(self, box, first):
        """The indices of a box of cells in an array with axes as this one's, whose lowest cell is `first`."""
        places = [slice(box.lo[a] - first[a], max(box.hi[a], box.lo[a]) - first[a])
                  for a in range(self.grid.dimensions)]
        return tuple(self.in_order(places, slice(None)))

    def shape_of(self, box):
        """Of an array of the cells of a box, with axes as this one's."""
        return tuple(self.in_order([max(n, 0) for n in box.size[: self.grid.dimensions]], self.values_of_a_cell))

    def in_order(self, of_axes, of_components):
        """Something for each axis of the cells, x first, and for that of the components."""
        made = of_axes[::-1] if self.order == "C" else of_axes
        if self.components is not None:
            made.insert(0 if self.components == "first" else len(made), of_components)
        return made

    @property
    def values_of_a_cell(self):
        if self.components is None or not self.memories:
            return self._without[1]
        return self.memories[0].shape[0 if self.components == "first" else -1]

    def _box(self, i):
        return self.grid.points(self.grid.local(i), self.staggered)

    def _along(self, i):
        """(length, stride) of an array along x, y, z, and of its components."""
        pairs = list(zip(self.memories[i].shape, self.memories[i].strides))
        components = None
        if self.components is not None:
            components = pairs.pop(0 if self.components == "first" else -1)
        return pairs[::-1] if self.order == "C" else pairs, components

    def _cells_shape(self, i):
        return [n for n, _ in self._along(i)[0]]

    def _layout(self, i, name):
        memory, dimensions, box = self.memories[i], self.grid.dimensions, self._box(i)
        wanted = dimensions + (self.components is not None)
        if len(memory.shape) != wanted:
            raise ValueError(f"{name} has {len(memory.shape)} axes; a grid of {dimensions} dimensions needs {wanted}"
                             + ("" if self.components else ", or components"))
        cells, components = self._along(i)
        made = _c.Layout(components=1, staggered=axes(self.staggered, "staggered", dimensions))
        step = memory.dtype.itemsize
        if self.components is not None:
            made.components, made.interleaved = components[0], self.components == "last"
            if self.components == "last":
                self._check_stride(name, "from a component to the next", components, step)
                step *= components[0]
            elif components[0] > 1:
                made.component_bytes = self._distance(name, "from a component to the next", components)
        self._check_stride(name, "along x", cells[0], step)
        for axis in range(dimensions):
            have, below = cells[axis][0], self._below[axis]
            above = have - box.size[axis] - below
            if above < 0 and box.cells > 0:
                raise ValueError(f"{name} has {have} cells along {'xyz'[axis]}; the box has {box.size[axis]}, "
                                 f"and {below} lie below it")
            made.below[axis], made.above[axis] = below, max(above, 0)
        if dimensions > 1 and cells[1][0] > 1:
            made.row_bytes = self._distance(name, "along y", cells[1])
        if dimensions > 2 and cells[2][0] > 1:
            made.plane_bytes = self._distance(name, "along z", cells[2])
        return made

    @staticmethod
    def _check_stride(name, where, pair, wanted):
        if pair[0] > 1 and pair[1] != wanted:
            raise ValueError(f"{name} has {pair[1]} bytes {where}; mpix needs {wanted}, without a gap (is order "
                             "right?)")

    @staticmethod
    def _distance(name, where, pair):
        if pair[1] <= 0:
            raise ValueError(f"{name} has {pair[1]} bytes {where}; it must not run backwards")
        return pair[1]


def _alike_in_a_pair(field):
    """What both fields of a pair have, by its name: C has it only once. As mpix::halo::double_buffered compares it."""
    memories = field.memories
    return {"radius": bytes(field.radius.cells), "type": field.dtype, "where they lie": field.on_gpu,
            "components": (field.components, field.values_of_a_cell), "staggered": field.staggered,
            "below": tuple(field._below[: field.grid.dimensions]), "shape": [m.shape for m in memories],
            "strides": [m.strides for m in memories], "layout": [bytes(one) for one in field._layouts]}


def field_in_c(grid, field, name, other=None):
    """A field, and what must live as long as the structure is used."""
    for one, what in ((field, name), (other, f"{name}[1]")):
        if one is not None and not isinstance(one, Field):
            raise TypeError(f"{what} is {type(one).__name__}; it is a Field")
        if one is not None and one.grid is not grid:
            raise ValueError(f"{what} is of another grid")
    made = _c.Field(type=value_of(datatype(field.dtype), "Datatype", name), radius=field.radius.cells)
    if other is not None:
        theirs = _alike_in_a_pair(other)
        differ = [what for what, ours in _alike_in_a_pair(field).items() if ours != theirs[what]]
        if differ:
            raise ValueError(f"{name}: its two fields differ in {', '.join(differ)}")
    others = other.memories if other is not None else [None] * len(field.memories)
    allocations = (_c.Allocation * max(len(others), 1))(
        *(_c.Allocation(m.address, o and o.address, m.bytes()) for m, o in zip(field.memories, others)))
    if len(others) == 1:
        made.layout, made.data, made.other = field._layouts[0], allocations[0].data, allocations[0].other
        made.allocated = allocations[0].allocated
    else:  # all have one layout, so without gaps
        made.layout = field._layouts[0] if others else _c.Layout(
            components=field._without[1], interleaved=field.components == "last",
            staggered=axes(field.staggered, name, grid.dimensions))
        for i, (memory, layout) in enumerate(zip(field.memories, field._layouts)):
            if memory.bytes() != memory.dtype.itemsize * int(numpy.prod(memory.shape)):
                raise ValueError(f"{name}: array[{i}] has gaps; those of a rank with several boxes have none")
            if tuple(layout.above) != tuple(made.layout.above):
                raise ValueError(f"{name}: array[{i}] has other cells above its box than array[0]")
        made.layout.row_bytes = made.layout.plane_bytes = made.layout.component_bytes = 0
        if not others:
            made.layout.below = made.layout.above = (c_int64 * 3)(-1, -1, -1)
        made.allocations, made.allocation_count = allocations, len(others)
    return made


def fields_in_c(grid, fields):
    """A list of fields, of which a pair is one of two allocations, as an array in C."""
    made = []
    for i, one in enumerate(fields):
        name = f"fields[{i}]"
        if isinstance(one, tuple):
            if len(one) != 2:
                raise ValueError(f"{name} has {len(one)} fields; it is one field or two")
            made.append(field_in_c(grid, one[0], name, one[1]))
        else:
            made.append(field_in_c(grid, one, name))
    return (_c.Field * max(len(made), 1))(*made)


def list_of(fields):
    """The argument `fields` as a list."""
    if isinstance(fields, Field) or not hasattr(fields, "__iter__"):
        raise TypeError(f"fields is {type(fields).__name__}; it is a list of fields")
    return list(fields)


def refuse_gpu(fields, instead):
    for i, one in enumerate(fields):
        if any(f.on_gpu for f in (one if isinstance(one, tuple) else (one,)) if isinstance(f, Field)):
            raise ValueError(f"fields[{i}] is in GPU memory; {instead}")
