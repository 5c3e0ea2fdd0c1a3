# SPDX-License-Identifier: BSD-3-Clause
"""Halo exchange for stencil codes on arrays of NumPy and others, over <mpix/halo.h> and <mpix/halo_gpu.h>.

docs/python.md has a program, docs/halo.md says at length what domains, boxes, ghost cells and radii are. Numbers along
axes are in the order x, y, z; an array of NumPy is a[z, y, x], unless a Field is told otherwise.
"""
from ._box import Box, Radius
from ._exchange import Exchange, StepReport, compare_transfers
from ._field import Field
from ._files import gather, read_checkpoint, write_checkpoint, write_png, write_vti
from ._ghosts import GhostPiece, GhostReader
from ._grid import Grid
from ._kernel_exchange import KernelExchange
from ._stream_exchange import StreamExchange

__all__ = ["Box", "Exchange", "Field", "GhostPiece", "GhostReader", "Grid", "KernelExchange", "Radius", "StepReport",
           "StreamExchange", "compare_transfers", "gather", "read_checkpoint", "write_checkpoint", "write_png",
           "write_vti"]
