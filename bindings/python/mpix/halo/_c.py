# SPDX-License-Identifier: BSD-3-Clause
"""The structures and functions of <mpix/halo.h> and <mpix/halo_gpu.h>, which say what they mean."""
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int64, c_void_p

from .._library import Handle, function, library

DIRECTIONS = 27
IN_MESSAGES, NODE_MESSAGES_AUTOMATIC, NODE_MESSAGES_ALWAYS = 16, 32, 64


class Box(Structure):
    _fields_ = [("lo", c_int64 * 3), ("hi", c_int64 * 3)]


class Links(Structure):
    _fields_ = [("within_node", POINTER(c_double)), ("entries", c_int), ("network", c_double)]


class GridOptions(Structure):
    _fields_ = [("periodic", c_int * 3), ("boxes", POINTER(Box)), ("box_count", c_int), ("owners", POINTER(c_int)),
                ("boxes_per_rank", c_int), ("shortest", c_int64 * 3), ("links", Links),
                ("typical_radius", POINTER(c_int)), ("typical_bytes_per_cell", c_double)]


class Layout(Structure):
    _fields_ = [("components", c_int), ("interleaved", c_int), ("below", c_int64 * 3), ("above", c_int64 * 3),
                ("row_bytes", c_int64), ("plane_bytes", c_int64), ("component_bytes", c_int64),
                ("staggered", c_int * 3)]


class Allocation(Structure):
    _fields_ = [("data", c_void_p), ("other", c_void_p), ("allocated", c_int64)]


class Field(Structure):
    _fields_ = [("data", c_void_p), ("type", Handle), ("radius", c_int * DIRECTIONS), ("layout", Layout),
                ("other", c_void_p), ("allocated", c_int64), ("allocations", POINTER(Allocation)),
                ("allocation_count", c_int)]


class NamedField(Structure):
    _fields_ = [("name", c_char_p), ("field", Field)]


class VtiOptions(Structure):
    _fields_ = [("origin", c_double * 3), ("spacing", c_double * 3)]


class Slice(Structure):
    _fields_ = [("axis", c_int), ("at", c_int64), ("component", c_int), ("low", c_double), ("high", c_double),
                ("colors", c_int)]


class GhostPiece(Structure):
    _fields_ = [("cells", Box), ("direction", c_int), ("first", c_void_p), ("stride", c_int64 * 3),
                ("component_stride", c_int64)]


class StreamOptions(Structure):
    _fields_ = [("tile", c_int64 * 3), ("direct", c_int)]


class KernelOptions(Structure):
    _fields_ = [("tile", c_int64 * 3), ("sets", c_int), ("box_waits", c_int)]


refuse = library.mpix_halo_refuse_  # says what the next collective call fails with on all ranks; None: nothing
refuse.argtypes, refuse.restype = [c_char_p], None
_any = c_void_p  # a pointer that the caller makes with byref, or an array
radius_all = function("MPIX_Halo_radius_all", c_int, _any)
radius_faces = function("MPIX_Halo_radius_faces", c_int, _any)
radius_of = function("MPIX_Halo_radius_of", c_int, _any, _any)
grid_create = function("MPIX_Halo_grid_create", Handle, c_int, _any, _any, _any)
grid_free = function("MPIX_Halo_grid_free", _any)
grid_get = function("MPIX_Halo_grid_get", _any, _any, _any, _any, _any, _any, _any)
grid_boxes = function("MPIX_Halo_grid_boxes", _any, c_int, _any, _any)
grid_box = function("MPIX_Halo_grid_box", _any, c_int, _any, _any)
grid_owner = function("MPIX_Halo_grid_owner", _any, _any, _any)
points = function("MPIX_Halo_points", _any, _any, _any, _any)
global_index = function("MPIX_Halo_global_index", _any, c_int, _any, _any)
grid_neighbours = function("MPIX_Halo_grid_neighbours", _any, c_int, c_int, c_int, _any, _any)
deep_radius = function("MPIX_Halo_deep_radius", _any, _any, c_int, _any)
deep_valid = function("MPIX_Halo_deep_valid", _any, c_int, _any, c_int, c_int, _any, _any)
difference = function("MPIX_Halo_difference", _any, _any, _any, _any)
gather = function("MPIX_Halo_gather", _any, _any, _any, c_int)
write_checkpoint = function("MPIX_Halo_write_checkpoint", _any, c_char_p, c_int, _any, c_int64)
read_checkpoint = function("MPIX_Halo_read_checkpoint", _any, c_char_p, c_int, _any, _any)
write_vti = function("MPIX_Halo_write_vti", _any, c_char_p, c_int, _any, _any)
write_png = function("MPIX_Halo_write_png", _any, c_char_p, _any, _any)
exchange_create = function("MPIX_Halo_exchange_create", _any, c_int, _any, c_int, _any)
reverse_create = function("MPIX_Halo_reverse_create", _any, c_int, _any, Handle, _any)
exchange_free = function("MPIX_Halo_exchange_free", _any)
start = function("MPIX_Halo_start", _any)
finish = function("MPIX_Halo_finish", _any)
begin = function("MPIX_Halo_begin", _any)
ready = function("MPIX_Halo_ready", c_int, _any)
active = function("MPIX_Halo_active", _any, _any)
swap = function("MPIX_Halo_swap", c_int, _any)
data = function("MPIX_Halo_data", c_int, c_int, _any, _any)
interior = function("MPIX_Halo_interior", c_int, _any, _any)
boundary = function("MPIX_Halo_boundary", c_int, _any, _any, _any)
ghost_pieces = function("MPIX_Halo_ghost_pieces", c_int, c_int, _any, c_int, _any, _any)
sent = function("MPIX_Halo_sent", _any, _any, _any)
measure = function("MPIX_Halo_measure", c_int, _any)
report = function("MPIX_Halo_report", _any, c_char_p, c_int)
compare_transfers = function("MPIX_Halo_compare_transfers", _any, c_int, _any, c_int, _any, _any)
stream_create = function("MPIX_Halo_stream_create", _any, c_int, _any, _any, _any)
stream_free = function("MPIX_Halo_stream_free", _any)
stream_start = function("MPIX_Halo_stream_start", _any, _any)
stream_finish = function("MPIX_Halo_stream_finish", _any, _any)
stream_run = function("MPIX_Halo_stream_run", _any, _any)
stream_check = function("MPIX_Halo_stream_check", _any)
stream_swap = function("MPIX_Halo_stream_swap", _any)
stream_data = function("MPIX_Halo_stream_data", c_int, c_int, _any, _any)
stream_interior = function("MPIX_Halo_stream_interior", c_int, _any, _any)
stream_boundary = function("MPIX_Halo_stream_boundary", c_int, _any, _any, _any)
stream_sent = function("MPIX_Halo_stream_sent", _any, _any, _any)
stream_measure = function("MPIX_Halo_stream_measure", c_int, _any)
stream_report = function("MPIX_Halo_stream_report", _any, c_char_p, c_int)
kernel_create = function("MPIX_Halo_kernel_create", _any, c_int, _any, _any, _any)
kernel_free = function("MPIX_Halo_kernel_free", _any)
kernel_start = function("MPIX_Halo_kernel_start", c_int64, _any, _any)
kernel_finish = function("MPIX_Halo_kernel_finish", _any)
kernel_active = function("MPIX_Halo_kernel_active", _any, _any)
kernel_data = function("MPIX_Halo_kernel_data", c_int, c_int, _any, _any)
kernel_sent = function("MPIX_Halo_kernel_sent", _any, _any, _any)
kernel_measure = function("MPIX_Halo_kernel_measure", c_int, _any)
kernel_report = function("MPIX_Halo_kernel_report", _any, c_char_p, c_int)
step_report_create = function("MPIX_Halo_step_report_create", _any, c_int64, c_int64, _any)
step_report_done = function("MPIX_Halo_step_report_done", c_int64, _any)
step_report_free = function("MPIX_Halo_step_report_free", _any)
