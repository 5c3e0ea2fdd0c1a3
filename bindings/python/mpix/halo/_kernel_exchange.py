# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges that the program's kernels run."""
from ctypes import byref, c_int, c_void_p

import numpy

from . import _c
from ._box import flag, three, whole_number
from ._exchange import ExchangeBase, collective_over_grid, grid_in_c
from ._field import fields_in_c, list_of

# As MPIX_Halo_device_exchange.
DEVICE_EXCHANGE = numpy.dtype([("opaque", numpy.uint64, 24)])


class KernelExchange(ExchangeBase):
    """Fills the ghost cells of fields by the program's kernels, tile by tile. As mpix::halo::kernel_exchange.

    Collective over the grid's ranks; all give the same options, but for `box_waits`. Kernels are CUDA C++ and include
    <mpix/halo.cuh>, as those of CuPy with mpix.nvrtc_options(); they take the object that start() returns, by value, as
    an mpix::halo::device_exchange. Kernels whose blocks wait for each other are launched cooperatively.

    Parameters
    ----------
    grid : Grid
    fields : list of Field, or of pairs of Field
        As of Exchange, at least one; all in the memory of one GPU, or in host memory. A pair is used in turn: exchange
        0 of an activation is of current(), exchange 1 of the other one, and so on.
    tile : one to three ints, optional
        The shape of a tile in cells; by default, and along an axis where it is 0, as long as the box.
    sets : int
        Exchanges that may be under way at the same time, 2 to 64.
    box_waits : bool
        Whether kernels wait for boxes of cells; may differ between ranks.

    Raises TypeError, ValueError, or mpix.Error, on all ranks if on one.
    """

    _data, _sizes, _measure, _report = map(staticmethod, (_c.kernel_data, _c.kernel_sent, _c.kernel_measure,
                                                          _c.kernel_report))

    @collective_over_grid(lambda grid: _c.kernel_create(grid, 1, None, None, byref(c_void_p())))
    def __init__(self, grid, fields, *, tile=None, sets=4, box_waits=False):
        communicates, handle = grid_in_c(grid), c_void_p()
        self.grid, self.fields = grid, list_of(fields)
        if whole_number(sets, "sets", 32) == 0:  # C's default
            raise ValueError("sets is 0; it is 2 to 64")
        made, shape = fields_in_c(grid, self.fields), three((0,) if tile is None else tile, "tile", 0)
        options = _c.KernelOptions(shape, sets, flag(box_waits, "box_waits"))
        yield
        _c.kernel_create(communicates, len(self.fields), made, byref(options), byref(handle))
        super().__init__(handle, _c.kernel_free, (grid, self.fields, made))

    def start(self, steps):
        """Begin an activation of so many exchanges, which kernels run; all ranks give the same number. Waits until the
        neighbours have begun it, too. Returns what kernels take, a zero-dimensional NumPy array: CuPy passes its bytes
        by value. It is valid until finish(). Raises ValueError (steps), or mpix.Error: it is active already, or
        MPI.ERR_PENDING after MPIX_STALL_SECONDS; then call it again with the same number."""
        device = numpy.zeros((), DEVICE_EXCHANGE)
        _c.kernel_start(whole_number(steps, "steps"), self.handle, device.ctypes.data)
        return device

    def finish(self):
        """End the activation. Its kernels have ended before: synchronise their stream. Raises what a call in a kernel
        has returned."""
        _c.kernel_finish(self.handle)

    @property
    def active(self):
        """Whether it has begun, is not finished, and has not failed."""
        flag = c_int()
        _c.kernel_active(self.handle, byref(flag))
        return flag.value != 0
