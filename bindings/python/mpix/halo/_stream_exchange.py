# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges in the order of a CUDA stream."""
from ctypes import byref, c_void_p

from .._library import Error
from .._streams import address_of
from . import _c
from ._box import flag, three
from ._exchange import ExchangeWithInterior, collective_over_grid, grid_in_c
from ._field import fields_in_c, list_of


class StreamExchange(ExchangeWithInterior):
    """Fills the ghost cells of fields in GPU memory, in the order of a CUDA stream. As mpix::halo::stream_exchange.

    Collective over the grid's ranks; all run as many exchanges. start() and finish() enqueue a kernel each, and return
    at once. What computes the cells comes before start() in the stream, what reads the ghost cells behind finish().

    Parameters
    ----------
    grid : Grid
    fields : list of Field, or of pairs of Field
        As of Exchange; all in the memory of one GPU. Or in host memory, to try a program: then the stream is 0, and
        both calls do their part before they return.
    tile : one to three ints, optional
        The cells along each axis that one block packs or unpacks; all ranks give the same.
    direct : bool, optional
        Whether cells are stored directly into the ghost cells of neighbours on this node, where this GPU maps their
        memory; otherwise, and by default, they are packed. May differ between ranks.

    Raises TypeError, ValueError, or mpix.Error, on all ranks if on one.
    """

    _data, _interior, _boundary, _sizes = map(staticmethod, (_c.stream_data, _c.stream_interior, _c.stream_boundary,
                                                             _c.stream_sent))
    _measure, _report = map(staticmethod, (_c.stream_measure, _c.stream_report))

    @collective_over_grid(lambda grid: _c.stream_create(grid, 1, None, None, byref(c_void_p())))
    def __init__(self, grid, fields, *, tile=(0,), direct=False):
        communicates, handle = grid_in_c(grid), c_void_p()
        self.grid, self.fields = grid, list_of(fields)
        made = fields_in_c(grid, self.fields)
        options = _c.StreamOptions(three(tile, "tile", 0), flag(direct, "direct"))
        yield
        _c.stream_create(communicates, len(self.fields), made, byref(options), byref(handle))
        super().__init__(handle, _c.stream_free, (grid, self.fields, made))

    _after_failure = []  # their arrays stay: neighbours may still store into them

    def free(self):
        """Wait for the device and, collectively, for the neighbours. Does nothing twice."""
        if self.handle:
            try:
                self.check()
            except Error:
                StreamExchange._after_failure.append(self.fields)
        super().free()

    def start(self, stream):
        """Enqueue: send what the neighbours need, and copy own cells to own ghost cells. `stream`: of CuPy, PyTorch,
        Numba or cuda.core, or a number."""
        _c.stream_start(self.handle, address_of(stream))

    def finish(self, stream):
        """Enqueue: wait for the neighbours, and fill the other ghost cells."""
        _c.stream_finish(self.handle, address_of(stream))

    def run(self, stream):
        """start() and finish() in one call, for programs that have nothing to enqueue in between: often a single
        kernel."""
        _c.stream_run(self.handle, address_of(stream))

    def overlap(self, stream, compute):
        """Exchange, and meanwhile compute(box) of the interior; then compute(box) of each box of the boundary.
        `compute` enqueues a kernel in that stream. For each box of this rank."""
        self.start(stream)
        for i in range(len(self.grid.boxes)):
            compute(self.interior(i))
        self.finish(stream)
        for i in range(len(self.grid.boxes)):
            for box in self.boundary(i):
                compute(box)

    def check(self):
        """Raises what a kernel of the exchange has found. Call it when the stream has been synchronised."""
        _c.stream_check(self.handle)

    def swap(self):
        """Go on with the other one of all pairs of fields."""
        _c.stream_swap(self.handle)
