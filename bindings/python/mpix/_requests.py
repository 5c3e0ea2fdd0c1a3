# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's partitioned requests: exported to kernels, prepared, and in the order of a CUDA stream."""
import contextlib
import ctypes

from . import _handles, _library
from ._library import Handle
from ._streams import address_of

_Address = ctypes.c_void_p
_create = _library.function("MPIX_Prequest_create", Handle, Handle, _Address)
_free = _library.function("MPIX_Prequest_free", _Address)
_prepare_all = _library.function("MPIX_Pbuf_prepare_all", ctypes.c_int, _Address)
_path = _library.function("MPIX_Request_path", Handle, ctypes.c_char_p, ctypes.c_int)
_startall = _library.function("MPIX_Startall_enqueue", ctypes.c_int, _Address, _Address)
_pready_range = _library.function("MPIX_Pready_range_enqueue", ctypes.c_int, ctypes.c_int, Handle, _Address)
_waitall = _library.function("MPIX_Pwaitall_enqueue", ctypes.c_int, _Address, _Address)
_library.library.MPIX_Progress.argtypes = []


def _value(request, name="request"):
    return _handles.value_of(request, "Request", name)


def _values(requests):
    """One request or a list of them, as an array in C."""
    if isinstance(requests, _handles.mpi().Request):
        requests = [requests]
    values = [_value(request, f"requests[{i}]") for i, request in enumerate(requests)]
    return len(values), (Handle * len(values))(*values)


class DeviceRequest:
    """A partitioned request as kernels know it: an MPIX_Prequest, made by export().

    `handle` is its address, a number, which kernels take by value; None when it has been freed. It is freed by free(),
    or at the end of a `with` block, when no kernel uses it any more, and before the request is.
    """

    def __init__(self, request, handle):
        self.request, self.handle = request, handle

    def free(self):
        """Raises Error also for what a kernel has left behind; the handle is freed all the same. Does nothing twice."""
        if self.handle is None:
            return
        handle = ctypes.c_void_p(self.handle)
        try:
            _free(ctypes.byref(handle))
        finally:
            self.handle = handle.value

    def __enter__(self):
        return self

    def __exit__(self, exception, *_):
        with contextlib.suppress(*([] if exception is None else [_library.Error])):
            self.free()


def export(request, *, device=None, contributors=None, waiters=None):
    """Export a partitioned request that is not started, for use inside kernels (MPIX_Prequest_create).

    Parameters
    ----------
    request : mpi4py.MPI.Prequest
        Inactive, and not exported yet. The result keeps it alive.
    device : int or "host", optional
        A CUDA ordinal; by default the one that owns the buffer.
    contributors : int, optional
        How many calls of mpix::pready_contribute make one partition ready; 1 by default.
    waiters : 1 or "any", optional
        1 is a promise that one group alone asks for each partition; see mpix.h.

    Returns
    -------
    DeviceRequest

    Raises
    ------
    TypeError, Error
    """
    value, info, handle = _value(request), None, ctypes.c_void_p()
    keys = {"mpix_device": device, "mpix_contributors": contributors, "mpix_waiters": waiters}
    keys = {key: str(given) for key, given in keys.items() if given is not None}
    if keys:
        info = _handles.mpi().Info.Create()
        for key, given in keys.items():
            info.Set(key, given)
    try:
        chosen = _handles.null_info() if info is None else _handles.value_of(info, "Info", "info")
        _create(value, chosen, ctypes.byref(handle))
    finally:
        if info is not None:
            info.Free()
    return DeviceRequest(request, handle.value)


def prepare(requests):
    """Return when every Pready of the epoch is a one-sided write (MPIX_Pbuf_prepare_all).

    `requests`: one started partitioned request, or a list of them. May wait for the peers.
    """
    _prepare_all(*_values(requests))


def path(request):
    """The path that a matched request's bytes take: "shm", "cuda_ipc", "ucx", "verbs", "null" or "unmatched"."""
    text = ctypes.create_string_buffer(64)
    _path(_value(request), text, len(text))
    return text.value.decode()


def progress():
    """Make progress, if only calls of MPI do (MPIX_PROGRESS=never); returns whether that is so."""
    return _library.library.MPIX_Progress() != 0


def start_enqueue(requests, stream):
    """MPI_Start in the order of a CUDA stream, of one request or of a list; they are exported to one GPU.

    `stream`: of that GPU; 0 is the legacy default stream. mpix.h says more ("Epochs in the order of a CUDA stream").
    """
    _startall(*_values(requests), address_of(stream))


def pready_enqueue(partition, request, stream):
    """MPI_Pready in the order of a CUDA stream: the partition is ready when the work before has ended."""
    _pready_range(partition, partition, _value(request), address_of(stream))


def pready_range_enqueue(partition_low, partition_high, request, stream):
    """The same for several partitions; both numbers are included."""
    _pready_range(partition_low, partition_high, _value(request), address_of(stream))


def wait_enqueue(requests, stream):
    """MPI_Wait in the order of a CUDA stream, for one request or a list: later work begins when the epoch is over."""
    _waitall(*_values(requests), address_of(stream))
