# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of numba-cuda, or of numba-cuda-mlir, that call the device functions: one that calls all declares what
<mpix/device_c.cuh> defines; one like that of gpu_kernel.py is linked with them. Nothing is run.

Usage: numba_link.py numba | numba_mlir CUDA, the folder of a CUDA toolkit
"""
import ctypes
import glob
import os
import re
import sys
import types

import needed

if len(sys.argv) != 3 or sys.argv[1] not in ("numba", "numba_mlir"):
    sys.exit(__doc__)
package, cuda_folder = sys.argv[1:]
mpix, MPI = needed.load(partitioned=False)
cuda, functions = needed.numba(package)
pready_block, wait_arrived_block = functions.pready_block, functions.wait_arrived_block

CAPABILITY, LTOIR = (9, 0), 3
SIGNATURE, OPTIONS = "void(uint64, uint64, int32[::1])", {"device": False, "abi": "numba", "cc": CAPABILITY}


def stand_in_for_driver():
    """numba-cuda-mlir asks the driver for the GPU, also if it is told for which one to compile; and so do we."""
    if package == "numba_mlir":
        from numba_cuda_mlir import tools
        tools._cached_cc = CAPABILITY  # pylint: disable=protected-access
        cuda.get_current_device = lambda: types.SimpleNamespace(compute_capability=CAPABILITY)


def kernel_of_all():
    """def kernel(send, receive, codes): codes[0] = pready(1, send); and so on."""
    arguments = {"pready": "1, send", "pready_typed": "2, send", "pready_range": "3, 4, send", "parrived": "receive, 5",
                 "wait_arrived": "receive, 6", "wait": "send", "start": "send", "next_epoch": "receive"}
    names = [name for name in functions.__all__ if name != "compile_functions"]
    lines = [f"    codes[{i}] = {name}({arguments[name.replace('_warp', '').replace('_block', '')]})"
             for i, name in enumerate(names)]
    defined = {}
    exec("def kernel(send, receive, codes):\n" + "\n".join(lines), vars(functions), defined)
    return defined["kernel"]


def kernel_like_that_of_the_page(send, receive, codes):
    pready_block(cuda.blockIdx.x, send)
    codes[0] = wait_arrived_block(receive, cuda.blockIdx.x)


def declared_by_kernel():
    """The bits of the result and of the arguments, by the functions' names: as PTX or MLIR has them."""
    if package == "numba":
        ptx, _ = cuda.compile(kernel_of_all(), SIGNATURE, output="ptx", **OPTIONS)
        declaration = r"\.extern\s+\.func\s*\(\s*\.param \.b(\d+) \w+\s*\)\s*(mpix_\w+)\s*\((.*?)\)"
        found = re.findall(declaration, ptx, re.DOTALL)
        return {name: (result, *re.findall(r"\.param \.b(\d+)", arguments)) for result, name, arguments in found}
    mlir = cuda.compile_mlir(kernel_of_all(), SIGNATURE)
    found = re.findall(r"func\.func private @(mpix_\w+)\((.*?)\) -> i(\d+)", mlir)
    return {name: (result, *re.findall(r"i(\d+)", arguments)) for name, arguments, result in found}


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
    stand_in_for_driver()
    declared, wanted = declared_by_kernel(), defined_in_header()
    assert len(wanted) == 24 and declared == wanted, f"{declared}, not {wanted}"

    linkers = glob.glob(os.path.join(cuda_folder, "lib*", "libnvJitLink.so*"))
    if not linkers:
        needed.skip(f"no libnvJitLink.so in {cuda_folder}")
    linker = ctypes.CDLL(linkers[0])
    kernel, _ = cuda.compile(kernel_like_that_of_the_page, SIGNATURE, output="ltoir", **OPTIONS)
    status, log, size = link(linker, kernel, functions.compile_functions(CAPABILITY))
    assert status == 0 and size > 0, log
    status, log, _ = link(linker, kernel)
    assert status != 0 and "Unresolved extern function 'mpix_pready_block'" in log, log  # it calls them
    print("linked:", size, "bytes")


needed.run(main, MPI)
