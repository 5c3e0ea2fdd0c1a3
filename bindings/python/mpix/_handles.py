# SPDX-License-Identifier: BSD-3-Clause
"""What mpi4py's objects stand for in C."""
from ._library import Handle


def mpi():
    """mpi4py.MPI, which must not be imported before libmpix has been loaded."""
    from mpi4py import MPI  # pylint: disable=import-outside-toplevel

    return MPI


def value_of(given, kind, name):
    """The handle of an object of mpi4py: `kind` is the name of its class, `name` the argument's."""
    of = getattr(mpi(), kind)
    if not isinstance(given, of):
        raise TypeError(f"{name} is {given!r}; it is an mpi4py.MPI.{kind}")
    # pylint: disable-next=protected-access
    return Handle.from_address(mpi()._addressof(given)).value


def null_info():
    return value_of(mpi().INFO_NULL, "Info", "info")
