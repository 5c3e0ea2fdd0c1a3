# SPDX-License-Identifier: BSD-3-Clause
"""mpix from Python: MPI-4 partitioned communication, triggered from inside GPU kernels.

    import mpix               # before mpi4py.MPI, whose partitioned calls then are those of mpix
    from mpi4py import MPI

docs/python.md has a tutorial. `mpix.halo` is a halo exchange.
"""
from ._library import Error, near as _near, path as library_path
from ._requests import (DeviceRequest, export, path, prepare, pready_enqueue, pready_range_enqueue, progress,
                        start_enqueue, wait_enqueue)

__all__ = ["DeviceRequest", "Error", "export", "get_include", "library_path", "path", "prepare", "pready_enqueue",
           "pready_range_enqueue", "progress", "start_enqueue", "wait_enqueue"]


def get_include():
    """The folder of <mpix/device.cuh>, for kernels that are compiled when the program runs. Raises FileNotFoundError."""
    header = _near("include", "mpix", "device.cuh")
    if header is None:
        raise FileNotFoundError(f"no include/mpix/device.cuh near {library_path}")
    return header[: -len("/mpix/device.cuh")]
