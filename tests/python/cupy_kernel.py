# SPDX-License-Identifier: BSD-3-Clause
"""A kernel of CuPy's that sends and receives, on two ranks with a GPU each. Skipped without CuPy or a GPU."""
import needed

mpix, MPI = needed.load()
import numpy

try:
    import cupy
except ImportError as missing:
    needed.skip(missing)

SOURCE = r"""
#include <mpix/device.cuh>
#include <cooperative_groups.h>

extern "C" __global__ void step(double *out, double *into, int n, double first, MPIX_Prequest send, MPIX_Prequest receive) {
    const auto block = cooperative_groups::this_thread_block();
    const int p = blockIdx.x;                       // one partition per block
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[p * n + i] = first + p * n + i;
    mpix::pready(block, p, send);                   // the partition moves now
    if (mpix::wait_arrived(block, receive, p) != MPI_SUCCESS) return;  // the host's wait says why
    for (int i = threadIdx.x; i < n; i += blockDim.x) into[p * n + i] += 0.5;
}
"""

world = MPI.COMM_WORLD
peer, partitions, n, epochs = 1 - world.rank, 16, 1000, 20


def main():
    assert world.size == 2, "run it on two ranks"
    count = cupy.cuda.runtime.getDeviceCount()
    if count == 0:
        needed.skip("no GPU")
    cupy.cuda.Device(world.rank % count).use()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        kernel = cupy.RawKernel(SOURCE, "step", options=mpix.nvrtc_options())
        out, into = (cupy.zeros(partitions * n) for _ in range(2))
    stream.synchronize()
    send, receive = world.Psend_init(out, partitions, peer, tag=0), world.Precv_init(into, partitions, peer, tag=0)
    with mpix.export(send) as sending, mpix.export(receive) as receiving:
        for epoch in range(epochs):
            MPI.Prequest.Startall([receive, send])
            first = 1000000.0 * epoch + 50000 * world.rank
            kernel((partitions,), (256,), (out, into, numpy.int32(n), numpy.float64(first), numpy.uint64(sending.handle),
                                           numpy.uint64(receiving.handle)), stream=stream)
            MPI.Prequest.Waitall([receive, send])
            stream.synchronize()  # the kernel has read what has come; the peer may send again
            expected = 1000000.0 * epoch + 50000 * peer + numpy.arange(partitions * n) + 0.5
            with stream:
                assert numpy.array_equal(cupy.asnumpy(into), expected), f"epoch {epoch}"
    send.Free()
    receive.Free()
    print(f"rank {world.rank}: {epochs} epochs, right")


needed.run(main, MPI)
