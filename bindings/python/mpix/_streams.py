# SPDX-License-Identifier: BSD-3-Clause
"""CUDA streams, as different packages have them."""
import ctypes


def address_of(stream):
    """The cudaStream_t of a stream: a number, or an object of CuPy, PyTorch, Numba, cuda.core, or with __cuda_stream__.

    Raises TypeError. None is refused, since packages take it for different streams.
    """
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("ptr", "cuda_stream", "handle"):  # CuPy, PyTorch, Numba
        stream = getattr(stream, name, stream)
    if isinstance(stream, ctypes.c_void_p):
        stream = stream.value or 0
    if isinstance(stream, bool) or not isinstance(stream, int) or stream < 0:
        raise TypeError(f"stream is {stream!r}; it is a stream of CuPy, PyTorch, Numba or cuda.core, or the number of "
                        "a cudaStream_t, of which 0 is the legacy default stream")
    return stream
