# SPDX-License-Identifier: BSD-3-Clause
"""The device functions for kernels of numba-cuda, 0.30 or later.

    from mpix.numba import pready_block

    @cuda.jit
    def step(out, n, send):
        ...
        pready_block(cuda.blockIdx.x, send)

They are those of <mpix/device.cuh>, which describes them: pready(partition, request), pready_typed(partition, request),
pready_range(low, high, request), parrived(request, partition), wait_arrived(request, partition), wait(request),
start(request) and next_epoch(request), for one thread; and each with _warp and _block for a group whose threads all
call. `request` is the handle of a DeviceRequest, as an unsigned number of 64 bits. They return an error class of MPI.
"""
from numba import cuda

from ._numba import NAMES, compile_functions, declare

globals().update(declare(cuda))
__all__ = ["compile_functions"] + NAMES
