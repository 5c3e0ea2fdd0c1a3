# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the Python package need: without it they are skipped, by exit status 77."""
import importlib.util
import os
import sys
import traceback


def skip(sentence):
    print("skipped:", sentence, flush=True)
    sys.stdout.flush()
    os._exit(77)  # not by MPI_Finalize, in which a rank would wait for others


def check_packages():
    for package in ("numpy", "mpi4py"):
        if importlib.util.find_spec(package) is None:
            skip(f"{sys.executable} has no {package}")


def load(partitioned=True):
    """mpix and mpi4py.MPI. `partitioned`: with partitioned requests, which are in mpi4py since version 4."""
    check_packages()
    try:
        import mpix
    except ImportError as error:
        if "mpi4py is built for" in str(error):  # such as Debian's, for Open MPI; libmpix may be preloaded
            skip(error)
        raise
    from mpi4py import MPI

    if partitioned and not hasattr(MPI.Comm, "Psend_init"):
        import mpi4py
        skip(f"mpi4py {mpi4py.__version__} has no partitioned requests, which are in it since version 4")
    return mpix, MPI


def cupy_on_own_gpu(rank):
    """CuPy, with the GPU of this rank."""
    try:
        import cupy
    except ImportError as missing:
        skip(missing)
    count = cupy.cuda.runtime.getDeviceCount()
    if count == 0:
        skip("no GPU")
    cupy.cuda.Device(rank % count).use()
    return cupy


def numba(package):
    """`cuda` of numba-cuda, or for "numba_mlir" of numba-cuda-mlir; and the device functions for its kernels."""
    import importlib
    import inspect

    import numpy
    if package == "numba" and not hasattr(numpy, "row_stack"):  # NumPy 2.5 has dropped it, numba-cuda 0.30.4 asks for it
        numpy.row_stack = numpy.vstack
    try:
        from cuda.bindings import nvrtc  # pylint: disable=unused-import
        cuda = importlib.import_module("numba.cuda" if package == "numba" else "numba_cuda_mlir.cuda")
    except ImportError as missing:
        skip(missing)
    if "abi" not in inspect.signature(cuda.declare_device).parameters:  # before numba-cuda 0.30
        skip("declare_device has no abi")
    return cuda, importlib.import_module(f"mpix.{package}")


def numba_on_own_gpu(package, rank):
    """The same, with the GPU of this rank."""
    cuda, functions = numba(package)
    if not cuda.is_available():
        skip("no GPU")
    cuda.select_device(rank % len(cuda.gpus))
    return cuda, functions


def run(main, MPI):
    """Run a test on all ranks. One that fails ends the others."""
    try:
        main()
    except BaseException:  # pylint: disable=broad-except
        print(f"rank {MPI.COMM_WORLD.rank}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)


def fails(error, sentence, call, *arguments, **named):
    """The call raises such an error, which says so."""
    try:
        call(*arguments, **named)
    except error as raised:
        assert sentence in str(raised), f"{raised!s}, without {sentence!r}"
        return raised
    raise AssertionError(f"no {error.__name__}: {sentence}")
