# SPDX-License-Identifier: BSD-3-Clause
"""The device functions for kernels of numba-cuda, 0.30 or later.

    import mpix.numba

    @cuda.jit
    def step(out, n, send):
        ...
        mpix.numba.pready_block(cuda.blockIdx.x, send)

They are those of <mpix/device.cuh>, which describes them: pready(partition, request), pready_typed(partition, request),
pready_range(low, high, request), parrived(request, partition), wait_arrived(request, partition), wait(request),
start(request) and next_epoch(request), for one thread; and each with _warp and _block for a group whose threads all
call. `request` is the handle of a DeviceRequest, as an unsigned number of 64 bits. They return an error class of MPI.
"""
import functools

from numba import cuda

from ._kernels import nvrtc_options

_REQUEST = "uint64"
_SIGNATURES = {
    "pready": ("int32", _REQUEST),
    "pready_typed": ("int32", _REQUEST),
    "pready_range": ("int32", "int32", _REQUEST),
    "parrived": (_REQUEST, "int32"),
    "wait_arrived": (_REQUEST, "int32"),
    "wait": (_REQUEST,),
    "start": (_REQUEST,),
    "next_epoch": (_REQUEST,),
}
_SCOPES = ("", "_warp", "_block")


@functools.lru_cache(maxsize=None)
def compile_functions(compute_capability):
    """The functions as LTO-IR for a GPU of that capability, such as (9, 0), compiled by NVRTC. Raises RuntimeError."""
    from cuda.bindings import nvrtc  # pylint: disable=import-outside-toplevel  # numba-cuda's own

    options = [option.encode() for option in nvrtc_options() + ("-dlto", "--relocatable-device-code=true",
               "--gpu-architecture=compute_{}{}".format(*compute_capability))]
    status, program = nvrtc.nvrtcCreateProgram(b"#include <mpix/device_c.cuh>\n", b"mpix_device.cu", 0, None, None)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {status}")
    if nvrtc.nvrtcCompileProgram(program, len(options), options)[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = bytearray(nvrtc.nvrtcGetProgramLogSize(program)[1])
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"NVRTC cannot compile the device functions:\n{log.decode(errors='replace')}")
    code = bytearray(nvrtc.nvrtcGetLTOIRSize(program)[1])
    nvrtc.nvrtcGetLTOIR(program, code)
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(code)


class _Functions(cuda.LTOIR):
    """Compiled when the first kernel is linked, for the GPU in use then."""

    def __init__(self):
        super().__init__(b"", name="mpix_device.ltoir")

    @property
    def data(self):
        return compile_functions(cuda.get_current_device().compute_capability)


_functions = _Functions()
for _name, _arguments in _SIGNATURES.items():
    for _scope in _SCOPES:
        globals()[_name + _scope] = cuda.declare_device(f"mpix_{_name}{_scope}", f"int32({', '.join(_arguments)})",
                                                        link=_functions, abi="c")
__all__ = ["compile_functions"] + [_name + _scope for _name in _SIGNATURES for _scope in _SCOPES]
