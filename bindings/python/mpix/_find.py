# SPDX-License-Identifier: BSD-3-Clause
"""Which libmpix is the one for the MPI library that mpi4py calls.

A libmpix works with the MPI library that it was built on. mpi4py is built for one, too (Debian, conda, from source), or
has an extension module for each kind and takes the library that is in the process (PyPI).
"""
import importlib.machinery
import importlib.util
import os
import struct
from pathlib import Path

LIBRARY = "libmpix.so.0"
VARIABLE = "MPIX_LIBRARY"
# Kinds of MPI libraries, by the names that their programs link with. Those of a kind have the same handles.
KINDS = {"libmpi.so.40": "openmpi", "libmpi.so.12": "mpich", "libmpich.so.12": "mpich"}


def needed(path):
    """The libraries that an ELF file asks for (DT_NEEDED); none, if it is no such file of 64 bits."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]

    def at(address):  # where an address of the loaded file lies in it
        for kind, _, begin, first, _, length in segments:
            if kind == 1 and first <= address < first + length:
                return begin + address - first
        raise ValueError(f"{path} is damaged")

    entries = []
    for kind, _, begin, _, _, length in segments:
        if kind == 2:
            entries = list(struct.iter_unpack("<qQ", data[begin : begin + length - length % 16]))
    strings = [at(value) for tag, value in entries if tag == 5]
    names = []
    for tag, value in entries:
        if tag == 1 and strings:
            first = strings[0] + value
            names.append(data[first : data.index(b"\0", first)].decode())
    return names


def kind_of(path):
    """The kind of MPI library that a file is linked with: "openmpi", "mpich", or None."""
    return next((KINDS[name] for name in needed(path) if name in KINDS), None)


def kind_of_mpi4py():
    """The kind that mpi4py is bound to: None if it is not installed, or takes any."""
    chosen = os.environ.get("MPI4PY_MPIABI")
    if chosen:
        chosen = chosen.replace(" ", "").replace("-", "").replace("_", "").lower()
        return "mpich" if chosen == "impi" else chosen
    spec = importlib.util.find_spec("mpi4py")
    for folder in spec.submodule_search_locations if spec is not None and spec.submodule_search_locations else ():
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            if os.path.isfile(os.path.join(folder, "MPI" + suffix)):
                return kind_of(os.path.join(folder, "MPI" + suffix))
    return None


def candidates():
    """Where a libmpix may lie: in a wheel, and in the prefix in which CMake installed this package beside it."""
    here = Path(__file__).resolve().parent
    places = [here / "lib", here.parents[2]]  # LIBDIR/mpix/python/mpix
    return [str(place / LIBRARY) for place in places if (place / LIBRARY).is_file()]


def find():
    """The path of libmpix, or its plain name, for the loader to look for. Raises ImportError."""
    given = os.environ.get(VARIABLE)
    if given and not os.path.isfile(given):
        raise ImportError(f"{VARIABLE} is {given}, which is not a file; it is the path of {LIBRARY}")
    paths, kind = [given] if given else candidates(), kind_of_mpi4py()
    for path in paths:
        if kind is None or kind_of(path) in (kind, None):  # None: the loader says what is wrong with it
            return path
    if paths:
        raise ImportError(f"mpi4py is built for {kind}, and {paths[0]} for {kind_of(paths[0])}; set {VARIABLE} to the "
                          f"path of a {LIBRARY} that was built on the MPI library of mpi4py")
    return LIBRARY
