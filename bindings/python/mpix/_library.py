# SPDX-License-Identifier: BSD-3-Clause
"""libmpix in this process: loaded so that mpi4py's calls reach it, and called."""
import ctypes
import os
import sys

from . import _find


class Error(RuntimeError):
    """A call of mpix has failed.

    Attributes
    ----------
    error_class : int
        That of MPI, such as mpi4py.MPI.ERR_ARG.
    """

    __module__ = "mpix"

    def __init__(self, sentence, error_class):
        super().__init__(sentence)
        self.error_class = error_class


def _address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


class _Object(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


def _file_of(address):
    found = _Object()
    process = ctypes.CDLL(None)
    process.dladdr.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    return os.fsdecode(found.path) if process.dladdr(address, ctypes.byref(found)) else _find.LIBRARY


def _load():
    process = ctypes.CDLL(None)
    if hasattr(process, "MPIX_Request_path"):  # preloaded, or the program is linked with it
        path = _file_of(_address(process.MPIX_Request_path))
        built_for, wanted = _find.kind_of(path), _find.kind_of_mpi4py()
        if wanted is not None and built_for != wanted:
            raise ImportError(f"{path} is loaded, which is built for {built_for}, but mpi4py is built for {wanted}")
    else:
        path = _find.find()
        if "mpi4py.MPI" in sys.modules:
            raise ImportError("mpi4py.MPI was imported before mpix, so its calls do not reach libmpix: import mpix "
                              f"first, or preload libmpix (mpirun -n 2 env LD_PRELOAD={path} python ...)")
    try:
        # mpi4py's module, loaded later, finds MPI's functions here, and those that libmpix lacks in its MPI library.
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(f"libmpix cannot be loaded: {error}; set {_find.VARIABLE} to its path, or install mpix for "
                          "the MPI library that mpi4py uses") from None
    if _address(process.MPI_Init) != _address(library.MPI_Init):
        loaded = _file_of(_address(process.MPI_Init))
        raise ImportError(f"{loaded} was loaded for all to see before mpix, so calls of MPI do not reach libmpix: "
                          f"import mpix before it, or preload libmpix (env LD_PRELOAD={path})")
    return library


library = _load()
path = os.path.abspath(_file_of(_address(library.MPIX_Request_path)))
IS_OPENMPI = hasattr(library, "ompi_mpi_comm_world")
# An MPI_Comm, MPI_Request and so on: an address with Open MPI, a number with MPICH.
Handle = ctypes.c_void_p if IS_OPENMPI else ctypes.c_int


def raise_error(code):
    """Raise what MPI says of an error code. mpix keeps the sentence for the thread of the call."""
    text, length, of = ctypes.create_string_buffer(8192), ctypes.c_int(), ctypes.c_int()
    library.MPI_Error_string(code, text, ctypes.byref(length))
    library.MPI_Error_class(code, ctypes.byref(of))
    raise Error(text.value.decode(errors="replace"), of.value)


def function(name, *arguments):
    """A function of libmpix, which returns an error code, as one that raises Error."""
    made = getattr(library, name)
    made.argtypes, made.restype = arguments, ctypes.c_int

    def call(*values):
        code = made(*values)
        if code != 0:
            raise_error(code)

    return call


def near(*names):
    """A file of the prefix that libmpix is in: that of a wheel, an installed one, or a build's. Or of the source tree
    that this package is in. Or None."""
    for folder in (os.path.dirname(os.path.realpath(path)), os.path.dirname(os.path.realpath(__file__))):
        for _ in range(4):
            found = os.path.join(folder, *names)
            if os.path.exists(found):
                return found
            folder = os.path.dirname(folder)
    return None
