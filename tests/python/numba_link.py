# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of Numba's that call the device functions: one that calls all declares what <mpix/device_c.cuh> defines; one
like that of gpu_kernel.py is linked with them. Nothing is run.

Usage: numba_link.py CUDA, the folder of a CUDA toolkit
"""
import ctypes
import glob
import os
import re
import sys

import needed

cuda_folder = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
mpix, MPI = needed.load(partitioned=False)
try:
    from cuda.bindings import nvrtc  # pylint: disable=unused-import
    from numba import cuda

    import mpix.numba as functions
except (ImportError, TypeError) as missing:  # declare_device without `abi`, before 0.30
    needed.skip(f"no numba-cuda 0.30: {missing}")

CAPABILITY, LTOIR = (9, 0), 3


def kernel_of_all():
    """def kernel(send, receive, codes): codes[0] = functions.pready(1, send); and so on."""
    arguments = {"pready": "1, send", "pready_typed": "2, send", "pready_range": "3, 4, send", "parrived": "receive, 5",
                 "wait_arrived": "receive, 6", "wait": "send", "start": "send", "next_epoch": "receive"}
    names = [name for name in functions.__all__ if name != "compile_functions"]
    lines = [f"    codes[{i}] = functions.{name}({arguments[name.replace('_warp', '').replace('_block', '')]})"
             for i, name in enumerate(names)]
    defined = {}
    exec("def kernel(send, receive, codes):\n" + "\n".join(lines), {"functions": functions}, defined)
    return defined["kernel"]


def kernel_like_that_of_the_page(send, receive, codes):
    functions.pready_block(cuda.blockIdx.x, send)
    codes[0] = functions.wait_arrived_block(receive, cuda.blockIdx.x)


def declared(ptx):
    """The bits of the result and of the arguments, by the functions' names."""
    found = re.findall(r"\.extern\s+\.func\s*\(\s*\.param \.b(\d+) \w+\s*\)\s*(mpix_\w+)\s*\((.*?)\)", ptx, re.DOTALL)
    return {name: (result, *re.findall(r"\.param \.b(\d+)", arguments)) for result, name, arguments in found}


def defined_in_header():
    with open(os.path.join(mpix.get_include(), "mpix", "device_c.cuh"), encoding="utf-8") as file:
        found = re.findall(r"MPIX_DEVICE_NAME int (mpix_\w+)##scope\((.*?)\)", file.read())
    bits = {"int": "32", "MPIX_Prequest": "64"}
    return {name + scope: ("32", *(bits[a.split()[0]] for a in arguments.split(", ")))
            for name, arguments in found for scope in ("", "_warp", "_block")}


def link(linker, *codes):
    """The status, what the linker says, and the size of the cubin."""
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 2)(b"-arch=sm_%d%d" % CAPABILITY, b"-lto")
    assert linker.nvJitLinkCreate(ctypes.byref(handle), len(options), options) == 0
    for number, code in enumerate(codes):
        assert linker.nvJitLinkAddData(handle, LTOIR, code, ctypes.c_size_t(len(code)), b"%d" % number) == 0
    status = linker.nvJitLinkComplete(handle)
    linker.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    linker.nvJitLinkGetErrorLog(handle, log)
    size.value = 0
    if status == 0:
        linker.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size))
    return status, log.value.decode(), size.value


def main():
    types, options = "void(uint64, uint64, int32[::1])", {"device": False, "abi": "numba", "cc": CAPABILITY}
    ptx, _ = cuda.compile(kernel_of_all(), types, output="ptx", **options)
    wanted = defined_in_header()
    assert len(wanted) == 24 and declared(ptx) == wanted, f"{declared(ptx)}, not {wanted}"

    linkers = glob.glob(os.path.join(cuda_folder, "lib*", "libnvJitLink.so*"))
    if not linkers:
        needed.skip(f"no libnvJitLink.so in {cuda_folder}")
    linker = ctypes.CDLL(linkers[0])
    kernel, _ = cuda.compile(kernel_like_that_of_the_page, types, output="ltoir", **options)
    status, log, size = link(linker, kernel, functions.compile_functions(CAPABILITY))
    assert status == 0 and size > 0, log
    status, log, _ = link(linker, kernel)
    assert status != 0 and "Unresolved extern function 'mpix_pready_block'" in log, log  # it calls them
    print("linked:", size, "bytes")


needed.run(main, MPI)
