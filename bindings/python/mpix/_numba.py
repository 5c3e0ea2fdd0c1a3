# SPDX-License-Identifier: BSD-3-Clause
"""The device functions, declared to a compiler with the interface of numba-cuda."""
import functools

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
NAMES = [name + scope for name in _SIGNATURES for scope in _SCOPES]


@functools.lru_cache(maxsize=None)
def compile_functions(compute_capability):
    """The functions as LTO-IR for a GPU of that capability, such as (9, 0), compiled by NVRTC. Raises RuntimeError."""
    from cuda.bindings import nvrtc  # pylint: disable=import-outside-toplevel  # the compilers' own

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


def declare(cuda):
    """The functions by name, for kernels of that module."""

    class LTOIR(cuda.LTOIR):  # numba-cuda-mlir 0.6 looks for this name, and then compiles the kernel to LTO-IR, too
        """Compiled when the first kernel is linked, for the GPU in use then."""

        def __init__(self):
            super().__init__(b"", name="mpix_device.ltoir")

        @property
        def data(self):
            return compile_functions(cuda.get_current_device().compute_capability)

    link = LTOIR()
    signatures = {name + scope: f"int32({', '.join(_SIGNATURES[name])})" for name in _SIGNATURES for scope in _SCOPES}
    return {name: cuda.declare_device(f"mpix_{name}", signature, link=link, abi="c")
            for name, signature in signatures.items()}
