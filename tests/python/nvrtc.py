# SPDX-License-Identifier: BSD-3-Clause
"""The device functions, and those of halo exchanges, compile by NVRTC, as CuPy compiles kernels, with the options that
the package gives. Nothing is run.

Usage: nvrtc.py CUDA, the folder of a CUDA toolkit
"""
import ctypes
import glob
import os
import re
import sys

import needed

cuda = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
mpix, MPI = needed.load(partitioned=False)
from mpix import halo

# Each of the functions that kernels call, by a block and by a thread; and what a program checks their results with.
SOURCE = """
#include <mpix/device.cuh>
#include <cooperative_groups.h>

static_assert(MPI_ERR_ARG == %(ERR_ARG)d && MPI_ERR_PENDING == %(ERR_PENDING)d, "those of the MPI library");

extern "C" __global__ void step(double *out, const double *in, int n, MPIX_Prequest send, MPIX_Prequest receive,
                                int *errors) {
    const auto block = cooperative_groups::this_thread_block();
    const int p = blockIdx.x;
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[p * n + i] = p + i;
    mpix::pready(block, p, send);
    if (mpix::wait_arrived(block, receive, p) != MPI_SUCCESS) atomicAdd(errors, in[p * n] != 0);
}

extern "C" __global__ void others(MPIX_Prequest send, MPIX_Prequest receive, int *flags) {
    const auto thread = mpix::this_thread();
    const auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    flags[0] = mpix::start(thread, send);
    flags[1] = mpix::pready_range(warp, 0, 3, send);
    flags[2] = mpix::parrived(thread, receive, 1);
    flags[3] = mpix::pready_typed(warp, 4, send);
    flags[4] = mpix::wait(thread, send);
    flags[5] = mpix::next_epoch(thread, receive);
    flags[6] = MPI_Pready(5, send);
}
"""

# Those of exchanges inside kernels.
HALO_SOURCE = """
#include <cooperative_groups.h>
#include <mpix/halo.cuh>

template <class Group>
__device__ void call(const Group &group, const mpix::halo::device_exchange &x, mpix::halo::prepared_tile *tile,
                     int *errors) {
    mpix::halo::prepare(group, x, 0, *tile);
    errors[0] = mpix::halo::send(group, x, 0, 0);
    errors[1] = mpix::halo::send(group, x, *tile, 0);
    mpix::halo::sync_blocks(group, x, 2);
    errors[2] = mpix::halo::sync_blocks(group, x, 2, tile, 1, 0);
    errors[3] = mpix::halo::wait(group, x, 0, 0);
    errors[4] = mpix::halo::wait(group, x, mpix::halo::box{{0, 0, 0}, {1, 1, 1}}, 0);
    errors[5] = mpix::halo::next(group, x, 0);
    errors[6] = mpix::halo::run_next(group, x, 2, 0, 1);
    errors[7] = x.tile(0) == tile->cells() && x.data<float>(0, 1) != nullptr &&
                x.tile_boundary_first(0) < x.boundary_tiles();
}

extern "C" __global__ void by_blocks(mpix::halo::device_exchange x, int *errors) {
    __shared__ mpix::halo::prepared_tile tile;
    call(cooperative_groups::this_thread_block(), x, &tile, errors);
}
extern "C" __global__ void by_threads(mpix::halo::device_exchange x, mpix::halo::prepared_tile *tile, int *errors) {
    call(mpix::this_thread(), x, tile, errors);
}
"""


def load():
    """NVRTC of the toolkit."""
    for path in glob.glob(os.path.join(cuda, "lib*", "libnvrtc.so*")):
        return ctypes.CDLL(path)
    needed.skip(f"no libnvrtc.so in {cuda}")
    return None


def compile_source(nvrtc, source, options):
    """The status, what the compiler says, and the PTX."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None) == 0
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status = nvrtc.nvrtcCompileProgram(program, len(options), given)
    texts = []
    for what in ("ProgramLog", "PTX"):
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value + 1)
        getattr(nvrtc, f"nvrtcGet{what}")(program, text)
        texts.append(text.value.decode())
    return status, *texts


def compile_halo(nvrtc, options):
    """The functions, and the kernel that halo_kernel.py runs, as CuPy compiles one that is launched cooperatively."""
    status, log, ptx = compile_source(nvrtc, HALO_SOURCE, options)
    assert status == 0, log
    assert ".entry by_blocks(" in ptx and ".entry by_threads(" in ptx
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "heat_kernel.cuh"), encoding="utf-8") as file:
        status, log, ptx = compile_source(nvrtc, file.read(), options + ("--device-c", "--fmad=false"))
    assert status == 0, log
    # What KernelExchange.start() returns has as many bytes as the kernel's argument.
    with halo.Grid(MPI.COMM_SELF, (4, 4)) as grid:
        with halo.KernelExchange(grid, [halo.Field.zeros(grid, halo.Radius.faces(1))]) as exchange:
            device = exchange.start(0)
            exchange.finish()
    argument = re.search(r"[.]param [.]align 8 [.]b8 heat_steps_param_0\[(\d+)\]", ptx)
    assert argument and int(argument[1]) == device.nbytes, (argument and argument[0], device.nbytes)


def main():
    nvrtc = load()
    source = SOURCE % {name: getattr(MPI, name) for name in ("ERR_ARG", "ERR_PENDING")}
    options = mpix.nvrtc_options(cuda)
    status, log, ptx = compile_source(nvrtc, source, options + ("--gpu-architecture=compute_90",))
    assert status == 0, log
    assert ".entry step(" in ptx and ".entry others(" in ptx
    # The fence of a partition that is not inline, and the look at a flag, for all threads of the system.
    assert "fence.acq_rel.sys" in ptx or "st.release.sys" in ptx, "no release in the PTX"
    assert "ld.relaxed.sys" in ptx or "ld.acquire.sys" in ptx, "no look at memory of the peer in the PTX"
    status, log, _ = compile_source(nvrtc, source, [o for o in options if "MPI_ERR_ARG" not in o])
    assert status != 0 and "mpix: define MPI_ERR_ARG" in log, log
    compile_halo(nvrtc, options + ("--gpu-architecture=compute_90",))
    needed.fails(FileNotFoundError, "cuda is the folder of a CUDA toolkit", mpix.nvrtc_options, "/nowhere")
    print("compiled:", len(ptx), "bytes of PTX")


needed.run(main, MPI)
