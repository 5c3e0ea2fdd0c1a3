# SPDX-License-Identifier: BSD-3-Clause
"""A kernel in Python that sends and receives, on two ranks with a GPU each. Skipped without the package or a GPU.

Usage: gpu_kernel.py cupy | numba | numba_mlir [enqueued]      enqueued: all epochs in the order of a stream
"""
import sys

import needed

if sys.argv[1:2] not in (["cupy"], ["numba"], ["numba_mlir"]) or sys.argv[2:] not in ([], ["enqueued"]):
    sys.exit(__doc__)
package, enqueued = sys.argv[1], "enqueued" in sys.argv[2:]
mpix, MPI = needed.load()
import numpy

world = MPI.COMM_WORLD
peer, partitions, n, epochs = 1 - world.rank, 16, 1000, 20
if package == "cupy":
    cupy = needed.cupy_on_own_gpu(world.rank)
else:
    cuda, functions = needed.numba_on_own_gpu(package, world.rank)
    pready_block, wait_arrived_block = functions.pready_block, functions.wait_arrived_block

SOURCE = r"""
#include <mpix/device.cuh>
#include <cooperative_groups.h>

extern "C" __global__ void step(double *out, double *into, int n, double first, MPIX_Prequest send,
                                MPIX_Prequest receive) {
    const auto block = cooperative_groups::this_thread_block();
    const int p = blockIdx.x;                       // one partition per block
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[p * n + i] = first + p * n + i;
    mpix::pready(block, p, send);                   // the partition moves now
    if (mpix::wait_arrived(block, receive, p) != MPI_SUCCESS) return;  // the host's wait says why
    for (int i = threadIdx.x; i < n; i += blockDim.x) into[p * n + i] += 0.5;
}
"""


class Cupy:
    def __init__(self):
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.kernel = cupy.RawKernel(SOURCE, "step", options=mpix.nvrtc_options())

    def zeros(self):
        return cupy.zeros(partitions * n)

    def launch(self, out, into, first, send, receive):
        requests = numpy.uint64(send.handle), numpy.uint64(receive.handle)
        arguments = out, into, numpy.int32(n), numpy.float64(first), *requests
        self.kernel((partitions,), (256,), arguments, stream=self.stream)

    def synchronize(self):
        self.stream.synchronize()

    def copy(self, array):  # in the order of the stream
        with self.stream:
            return array.copy()

    def on_host(self, array):
        return cupy.asnumpy(array)


class Numba:
    def __init__(self):
        self.stream = cuda.stream()

        @cuda.jit
        def step(out, into, n, first, send, receive):
            p = cuda.blockIdx.x                     # one partition per block
            for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                out[p * n + i] = first + p * n + i
            pready_block(p, send)                   # the partition moves now
            if wait_arrived_block(receive, p) != 0:
                return                              # the host's wait says why
            for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                into[p * n + i] += 0.5

        self.kernel = step

    def zeros(self):
        return cuda.to_device(numpy.zeros(partitions * n))

    def launch(self, out, into, first, send, receive):
        requests = numpy.uint64(send.handle), numpy.uint64(receive.handle)
        arguments = out, into, numpy.int32(n), numpy.float64(first), *requests
        self.kernel[partitions, 256, self.stream](*arguments)

    def synchronize(self):
        self.stream.synchronize()

    def copy(self, array):  # in the order of the stream
        to = cuda.device_array_like(array)
        to.copy_to_device(array, stream=self.stream)
        return to

    def on_host(self, array):
        return array.copy_to_host()


def first_value(epoch, rank):  # of those that a rank sends; the others count up from it
    return 1000000.0 * epoch + 50000 * rank


def check(gpu, epoch, into):
    expected = first_value(epoch, peer) + numpy.arange(partitions * n) + 0.5
    assert numpy.array_equal(gpu.on_host(into), expected), f"epoch {epoch}"


def run_epochs_from_host(gpu, out, into, send, receive, sending, receiving):
    for epoch in range(epochs):
        MPI.Prequest.Startall([receive, send])
        gpu.launch(out, into, first_value(epoch, world.rank), sending, receiving)
        MPI.Prequest.Waitall([receive, send])
        gpu.synchronize()  # the kernel has read what has come; the peer may send again
        check(gpu, epoch, into)


def run_epochs_in_stream(gpu, out, into, send, receive, sending, receiving):
    received = []
    MPI.Prequest.Startall([receive, send])  # all that follows is one activation
    for epoch in range(epochs):
        mpix.start_enqueue([receive, send], gpu.stream)
        gpu.launch(out, into, first_value(epoch, world.rank), sending, receiving)
        mpix.wait_enqueue([receive, send], gpu.stream)
        received.append(gpu.copy(into))     # enqueued, too: the next epoch overwrites it
    gpu.synchronize()
    MPI.Prequest.Waitall([receive, send])
    for epoch in range(epochs):
        check(gpu, epoch, received[epoch])


def main():
    assert world.size == 2, "run it on two ranks"
    gpu = Cupy() if package == "cupy" else Numba()
    out, into = gpu.zeros(), gpu.zeros()
    send, receive = world.Psend_init(out, partitions, peer, tag=0), world.Precv_init(into, partitions, peer, tag=0)
    with mpix.export(send) as sending, mpix.export(receive) as receiving:
        run = run_epochs_in_stream if enqueued else run_epochs_from_host
        run(gpu, out, into, send, receive, sending, receiving)
    send.Free()
    receive.Free()
    print(f"rank {world.rank}: {epochs} epochs, right")


needed.run(main, MPI)
