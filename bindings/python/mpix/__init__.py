# SPDX-License-Identifier: BSD-3-Clause
"""mpix from Python: MPI-4 partitioned communication, triggered from inside GPU kernels.

    import mpix               # before mpi4py.MPI, whose partitioned calls then are those of mpix
    from mpi4py import MPI

docs/python.md has a tutorial. `mpix.halo` is a halo exchange.
"""
from ._kernels import get_include, nvrtc_options
from ._library import Error, path as library_path
from ._requests import (DeviceRequest, export, path, prepare, pready_enqueue, pready_range_enqueue, progress,
                        start_enqueue, wait_enqueue)

__all__ = ["DeviceRequest", "Error", "export", "get_include", "library_path", "nvrtc_options", "path", "prepare",
           "pready_enqueue", "pready_range_enqueue", "progress", "start_enqueue", "wait_enqueue"]
