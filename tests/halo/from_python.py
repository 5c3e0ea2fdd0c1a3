# SPDX-License-Identifier: BSD-3-Clause
"""<mpix/halo.h> from Python by ctypes, without any other package: an exchange on a ring, and an error's sentence.

Usage: from_python.py LIBMPIX openmpi|mpich
"""
import ctypes
import sys

mpix = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
if sys.argv[2] == "openmpi":  # handles are addresses

    def handle(name):
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_byte.in_dll(mpix, name)))

    Handle, world, double = ctypes.c_void_p, handle("ompi_mpi_comm_world"), handle("ompi_mpi_double")
    errors_return = handle("ompi_mpi_errors_return")
else:  # numbers
    Handle, world, double, errors_return = ctypes.c_int, 0x44000000, 0x4C00080B, 0x54000001


class Layout(ctypes.Structure):
    _fields_ = [("components", ctypes.c_int), ("interleaved", ctypes.c_int), ("below", ctypes.c_int64 * 3),
                ("above", ctypes.c_int64 * 3), ("row_bytes", ctypes.c_int64), ("plane_bytes", ctypes.c_int64),
                ("component_bytes", ctypes.c_int64), ("staggered", ctypes.c_int * 3)]


class Links(ctypes.Structure):
    _fields_ = [("within_node", ctypes.c_void_p), ("entries", ctypes.c_int), ("network", ctypes.c_double)]


class Options(ctypes.Structure):
    _fields_ = [("periodic", ctypes.c_int * 3), ("boxes", ctypes.c_void_p), ("box_count", ctypes.c_int),
                ("owners", ctypes.c_void_p), ("boxes_per_rank", ctypes.c_int), ("shortest", ctypes.c_int64 * 3),
                ("links", Links), ("typical_radius", ctypes.c_void_p), ("typical_bytes_per_cell", ctypes.c_double)]


class Field(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("type", Handle), ("radius", ctypes.c_int * 27), ("layout", Layout),
                ("other", ctypes.c_void_p), ("allocated", ctypes.c_int64), ("allocations", ctypes.c_void_p),
                ("allocation_count", ctypes.c_int)]


def call(name, *arguments):
    code = getattr(mpix, name)(*arguments)
    assert code == 0, f"{name} gives {code}"


mpix.MPIX_Halo_field_init.argtypes = [ctypes.c_void_p, Handle, ctypes.c_void_p, ctypes.c_void_p]
call("MPI_Init", None, None)
rank, ranks, cells = ctypes.c_int(), ctypes.c_int(), 4
call("MPI_Comm_rank", world, ctypes.byref(rank))
call("MPI_Comm_size", world, ctypes.byref(ranks))
call("MPI_Comm_set_errhandler", world, errors_return)
rank, ranks = rank.value, ranks.value

grid, exchange, field = ctypes.c_void_p(), ctypes.c_void_p(), Field()
extent, radius = (ctypes.c_int64 * 1)(cells * ranks), (ctypes.c_int * 27)()
options = Options(periodic=(1, 0, 0))
call("MPIX_Halo_grid_create", world, 1, extent, ctypes.byref(options), ctypes.byref(grid))
call("MPIX_Halo_radius_all", 1, radius)
u = (ctypes.c_double * (cells + 2))(*[-1] * (cells + 2))
call("MPIX_Halo_field_init", u, double, radius, ctypes.byref(field))
call("MPIX_Halo_exchange_create", grid, 1, ctypes.byref(field), 0, ctypes.byref(exchange))
for epoch in range(3):
    u[1:cells + 1] = [100 * epoch + cells * rank + i for i in range(cells)]
    call("MPIX_Halo_start", exchange)
    call("MPIX_Halo_finish", exchange)
    expected = [100 * epoch + (cells * rank + i - 1) % (cells * ranks) for i in range(cells + 2)]
    assert list(u) == expected, f"rank {rank}: {list(u)}, not {expected}"

text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
call("MPI_Error_string", mpix.MPIX_Halo_finish(exchange), text, ctypes.byref(length))
assert text.value == b"MPIX_Halo_finish: the exchange is not active; start it first", text.value
call("MPIX_Halo_exchange_free", ctypes.byref(exchange))
call("MPIX_Halo_grid_free", ctypes.byref(grid))
call("MPI_Finalize")
