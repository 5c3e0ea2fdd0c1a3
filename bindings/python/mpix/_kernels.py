# SPDX-License-Identifier: BSD-3-Clause
"""What compilers of kernels need to see <mpix/device.cuh> and <mpix/halo.cuh>."""
import os

from ._library import near, path as library_path
from ._handles import mpi

# Those that the device functions return or compare with. They differ between MPI libraries.
_CONSTANTS = ("ERR_ARG", "ERR_OTHER", "ERR_PENDING", "ERR_REQUEST", "ERR_TYPE", "PROC_NULL")


def get_include():
    """The folder of <mpix/device.cuh>. Raises FileNotFoundError."""
    header = near("include", "mpix", "device.cuh")
    if header is None:
        raise FileNotFoundError(f"no include/mpix/device.cuh near {library_path}")
    return os.path.dirname(os.path.dirname(header))


def nvrtc_options(cuda=None):
    """Options of NVRTC, with which a kernel's source may include <mpix/device.cuh> and <mpix/halo.cuh>, for
    cupy.RawKernel and RawModule.

    `cuda`: the folder of a CUDA toolkit, 12 or later; by default that of CUDA_PATH or CUDA_HOME, or /usr/local/cuda.
    Raises FileNotFoundError, if it has no headers.
    """
    cuda = cuda or os.environ.get("CUDA_PATH") or os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    headers = [os.path.join(cuda, "include", "cccl"), os.path.join(cuda, "include")]
    headers = [folder for folder in headers if os.path.isdir(os.path.join(folder, "cuda", "std"))] + headers[1:]
    if not os.path.isfile(os.path.join(headers[-1], "cooperative_groups.h")):
        raise FileNotFoundError(f"no include/cooperative_groups.h in {cuda}; cuda is the folder of a CUDA toolkit")
    include = get_include()
    folders = [os.path.join(include, "mpix", "compat", "nvrtc"), include, *headers]
    return ("--std=c++20", "--device-as-default-execution-space", *(f"-I{folder}" for folder in folders),
            *(f"-DMPI_{name}={int(getattr(mpi(), name))}" for name in _CONSTANTS))
