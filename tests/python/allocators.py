# SPDX-License-Identifier: BSD-3-Clause
"""Partitioned requests on memory of Python's GPU allocators, on two ranks.

Usage: allocators.py numpy | cupy | cupy-async | cupy-managed | torch | torch-expandable

Buffers of random sizes begin anywhere in their allocations, are freed, and so come to lie at addresses of earlier ones.
Fresh random data in each epoch, and every byte of the receiver's allocation is checked. Every second pair of requests
is exported to the GPU. Exit status 77: what it needs is not installed.
"""
import gc
import os
import sys

import needed

allocator = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
if allocator == "torch-expandable":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
mpix, MPI = needed.load()
import numpy

try:
    if allocator.startswith("cupy"):
        import cupy
    elif allocator.startswith("torch"):
        import torch
except ImportError as missing:
    needed.skip(missing)

world = MPI.COMM_WORLD
rank, peer = world.rank, 1 - world.rank
poison = 0x5A


class Numpy:
    """Host memory."""

    exports = False

    def allocate(self, size):
        return numpy.empty(size, dtype=numpy.uint8)

    def write(self, to, data):
        to[:] = data

    def read(self, array):
        return array.copy()


class Cupy:
    exports = True

    def __init__(self, device):
        cupy.cuda.Device(device).use()
        if allocator == "cupy-async":
            cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
        elif allocator == "cupy-managed":
            cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)

    def allocate(self, size):
        return cupy.empty(size, dtype=cupy.uint8)

    def write(self, to, data):
        to.set(data)
        cupy.cuda.get_current_stream().synchronize()

    def read(self, array):
        return array.get()


class Torch:
    exports = True

    def __init__(self, device):
        torch.cuda.set_device(device)

    def allocate(self, size):
        return torch.empty(size, dtype=torch.uint8, device="cuda")

    def write(self, to, data):
        to.copy_(torch.from_numpy(data))
        torch.cuda.synchronize()

    def read(self, array):
        return array.cpu().numpy()


def make_memory():
    if allocator == "numpy":
        return Numpy()
    count = cupy.cuda.runtime.getDeviceCount() if allocator.startswith("cupy") else torch.cuda.device_count()
    if count == 0:
        needed.skip("no GPU")
    return Cupy(rank % count) if allocator.startswith("cupy") else Torch(rank % count)


def run(memory, draw, tag):
    """One pair of requests, each way; `draw` gives both ranks the same numbers."""
    counts = draw.integers(1, 9, 2)  # partitions of the two ranks' sends
    unit = int(draw.choice([1, 8, 24, 1000, 4096, 100000]))
    size = int(numpy.lcm(*counts)) * unit
    begin, end = (int(n) for n in draw.integers(0, 300, 2))
    sends, receives = int(counts[rank]), int(counts[peer] if draw.integers(2) else counts[rank])
    own = numpy.random.default_rng()

    send_from = memory.allocate(begin + size + end)
    receive_to = memory.allocate(end + size + begin)
    send = world.Psend_init(send_from[begin : begin + size], sends, peer, tag)
    receive = world.Precv_init(receive_to[end : end + size], receives, peer, tag)
    handles = [mpix.export(request) for request in (send, receive)] if memory.exports and tag % 2 else []
    for _ in range(3):
        data = own.integers(0, 256, begin + size + end, dtype=numpy.uint8)
        expected = world.sendrecv(data[begin : begin + size], peer, tag, None, peer, tag)
        memory.write(send_from, data)
        memory.write(receive_to, numpy.full(end + size + begin, poison, dtype=numpy.uint8))
        MPI.Prequest.Startall([receive, send])
        for partition in own.permutation(sends):
            send.Pready(int(partition))
        pending = set(range(receives))
        while pending:
            pending = {partition for partition in pending if not receive.Parrived(partition)}
        MPI.Prequest.Waitall([receive, send])
        here = memory.read(receive_to)
        wrong = numpy.count_nonzero(here[end : end + size] != expected)
        outside = numpy.count_nonzero(here[:end] != poison) + numpy.count_nonzero(here[end + size :] != poison)
        assert wrong == 0 and outside == 0, f"tag {tag}, {size} bytes: {wrong} wrong, {outside} outside"
    for handle in handles:
        handle.free()
    send.Free()
    receive.Free()
    return (send_from.data_ptr() if allocator.startswith("torch") else
            send_from.data.ptr if allocator.startswith("cupy") else send_from.ctypes.data)


def main():
    assert world.size == 2, "run it on two ranks"
    memory = make_memory()
    seed = world.bcast(int(numpy.random.SeedSequence().entropy % 2**32))
    print(f"rank {rank}: {allocator}, seed {seed}", flush=True)
    draw = numpy.random.default_rng(seed)
    addresses, again = set(), 0
    for tag in range(40):
        address = run(memory, draw, tag)
        again += address in addresses
        addresses.add(address)
        gc.collect()
    print(f"rank {rank}: 40 pairs of requests, 120 epochs, {again} send buffers at the address of an earlier one")


needed.run(main, MPI)
