# SPDX-License-Identifier: BSD-3-Clause
"""Whole fields: on one rank, in checkpoints, for ParaView, and as pictures. All calls are collective."""
import os
from ctypes import byref, c_double, c_int64

import numpy

from . import _c
from ._box import Box, one_of, real_number, sequence, three, whole_number
from ._exchange import collective_over_grid, grid_in_c
from ._field import field_in_c, fields_in_c

COLORS = ("grey", "blue_red")


def path_in_c(path):
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path is {type(path).__name__}; it is a str, bytes or os.PathLike")
    return os.fsencode(path)


@collective_over_grid(lambda grid: _c.gather(grid, None, None, 0))
def gather(grid, field, root=0):
    """The cells of all boxes as one array on rank `root`, with the field's order of axes; None on the others."""
    communicates, whole = grid_in_c(grid), None
    made, root = field_in_c(grid, field, "field"), whole_number(root, "root", 32)
    if grid.rank == root:
        extent = three(grid.extent, "extent", 1)
        size = grid.points(Box((0, 0, 0), extent), field.staggered).size[: grid.dimensions]
        # As the library stores it: x is the last axis, components of arrays of their own come first.
        shape = list(size[::-1])
        count = made.layout.components
        if field.components is not None:
            shape.insert(0 if field.components == "first" else len(shape), count)
        whole = numpy.empty(shape, field.dtype)
    yield
    _c.gather(communicates, byref(made), whole.ctypes.data if whole is not None else None, root)
    if whole is None or field.order == "C":
        return whole
    axes = list(range(whole.ndim))
    cells = axes[1:] if field.components == "first" else axes[:-1] if field.components == "last" else axes
    if field.components == "first":
        return whole.transpose([0] + cells[::-1])
    return whole.transpose(cells[::-1] + ([axes[-1]] if field.components == "last" else []))


def _named(grid, fields):
    """A dictionary of fields by their names, as an array in C."""
    if not isinstance(fields, dict):
        raise TypeError(f"fields is {type(fields).__name__}; it is a dictionary of fields by their names")
    made = fields_in_c(grid, list(fields.values()))
    return (_c.NamedField * max(len(fields), 1))(*(_c.NamedField(str(name).encode(), made[i]) for i, name in
                                                   enumerate(fields))), made


@collective_over_grid(lambda grid: _c.write_checkpoint(grid, b"", 1, None, 0))
def write_checkpoint(grid, path, fields, step=0):
    """Write fields, a dictionary by their names, to one file, from which any number of ranks can go on. `step`: any
    number of the program's. The file takes the place of one that is there, or of a symbolic link."""
    communicates = grid_in_c(grid)
    file, (named, _kept), step = path_in_c(path), _named(grid, fields), whole_number(step, "step")
    yield
    _c.write_checkpoint(communicates, file, len(fields), named, step)


@collective_over_grid(lambda grid: _c.read_checkpoint(grid, b"", 1, None, None))
def read_checkpoint(grid, path, fields):
    """Read fields by their names from such a file. Returns its step. Ghost cells are left to the next exchange."""
    communicates, step = grid_in_c(grid), c_int64()
    file, (named, _kept) = path_in_c(path), _named(grid, fields)
    yield
    _c.read_checkpoint(communicates, file, len(fields), named, byref(step))
    return step.value


@collective_over_grid(lambda grid: _c.write_vti(grid, b"", 1, None, None))
def write_vti(grid, path, fields, *, origin=(), spacing=()):
    """Write fields, a dictionary by their names, for ParaView; `path` ends in ".pvti". `origin`: where the lower corner
    of cell (0, 0, 0) lies; `spacing`: how long a cell is along each axis, 1 by default."""
    communicates = grid_in_c(grid)
    file, (named, _kept) = path_in_c(path), _named(grid, fields)
    options = _c.VtiOptions(_lengths(origin, "origin"), _lengths(spacing, "spacing"))
    yield
    _c.write_vti(communicates, file, len(fields), named, byref(options))


def _lengths(given, name):
    some = [real_number(n, f"{name}[{i}]") for i, n in enumerate(sequence(given, name, "up to three numbers"))]
    if len(some) > 3:
        raise ValueError(f"{name} has {len(some)} numbers; it has at most three")
    return (c_double * 3)(*some)


@collective_over_grid(lambda grid: _c.write_png(grid, b"", None, None))
def write_png(grid, path, field, *, axis=2, at=0, component=0, low=0.0, high=0.0, colors="grey"):
    """Write a plane of a field as a picture: across `axis` (0, 1 or 2 for x, y, z), at that cell. `low`, `high`: the
    values of the first and the last colour; both 0: the least and the greatest. `colors`: "grey" or "blue_red"."""
    communicates = grid_in_c(grid)
    one_of(colors, "colors", COLORS)
    file, made = path_in_c(path), field_in_c(grid, field, "field")
    numbers = (whole_number(axis, "axis", 32), whole_number(at, "at"), whole_number(component, "component", 32))
    shown = _c.Slice(*numbers, real_number(low, "low"), real_number(high, "high"), COLORS.index(colors))
    yield
    _c.write_png(communicates, file, byref(made), byref(shown))
