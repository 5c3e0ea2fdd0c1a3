# SPDX-License-Identifier: BSD-3-Clause
"""What mpix has for mpi4py's partitioned requests, on two ranks: export, preparation, paths, and errors.

Usage: prequests.py [PATH], the one that bytes take between the ranks; default: shm
"""
import sys

import needed

mpix, MPI = needed.load()
import numpy

world = MPI.COMM_WORLD
rank, peer = world.rank, 1 - world.rank
wanted = sys.argv[1] if len(sys.argv) > 1 else "shm"
draw = numpy.random.default_rng()


def pair(partitions=4, each=1000):
    """A send to the peer, a receive from it, and their arrays."""
    out, into = (numpy.empty(partitions * each, dtype=numpy.uint8) for _ in range(2))
    return world.Psend_init(out, partitions, peer, 0), world.Precv_init(into, partitions, peer, 0), out, into


def epoch(send, receive, out, into, mark):
    """One epoch, in which mark(send) makes all partitions ready; every byte is compared."""
    out[:] = draw.integers(0, 256, out.size, dtype=numpy.uint8)
    expected = world.sendrecv(out, peer, 1, None, peer, 1)
    into[:] = ~expected
    MPI.Prequest.Startall([receive, send])
    mark(send)
    MPI.Prequest.Waitall([receive, send])
    assert numpy.array_equal(into, expected), f"{numpy.count_nonzero(into != expected)} bytes wrong"


def transfers():
    send, receive, out, into = pair()
    assert mpix.path(send) in ("unmatched", wanted)
    order = [int(p) for p in draw.permutation(4)]
    epoch(send, receive, out, into, lambda s: [s.Pready(p) for p in order])
    epoch(send, receive, out, into, lambda s: s.Pready_list(order))
    epoch(send, receive, out, into, lambda s: s.Pready_range(0, 3))
    assert mpix.path(send) == mpix.path(receive) == wanted, f"{mpix.path(send)}, {mpix.path(receive)}"

    def prepared(s):
        mpix.prepare([s, receive])
        s.Pready_range(0, 2)
        while not receive.Parrived(0):
            pass
        s.Pready(3)

    epoch(send, receive, out, into, prepared)
    assert mpix.progress() in (False, True)
    for request in (send, receive):
        request.Free()


def exports():
    send, receive, out, into = pair()
    with mpix.export(send, device="host") as device:
        assert device.request is send and device.handle > 0
        needed.fails(mpix.Error, "MPIX_Prequest_create: ", mpix.export, send)
        needed.fails(MPI.Exception, "MPI_Request_free: ", send.Free)  # still exported
        again = mpix.export(receive, contributors=2, waiters=1)
        epoch(send, receive, out, into, lambda s: s.Pready_range(0, 3))
        handle = again.handle
        again.free()
        again.free()
        assert handle and again.handle is None
    assert device.handle is None
    try:
        with mpix.export(send) as device:
            MPI.Prequest.Startall([receive, send])
            raise KeyError("of the program")
    except KeyError:  # and not that an active request cannot be freed
        send.Pready_range(0, 3)
        MPI.Prequest.Waitall([receive, send])
        device.free()
    error = needed.fails(mpix.Error, "mpix_contributors", mpix.export, send, contributors=-3)
    assert error.error_class == MPI.ERR_INFO_VALUE
    needed.fails(mpix.Error, "mpix_device", mpix.export, send, device="elsewhere")
    MPI.Prequest.Startall([receive, send])
    error = needed.fails(mpix.Error, "MPIX_Prequest_create: ", mpix.export, send)
    assert error.error_class == MPI.ERR_REQUEST
    send.Pready_range(0, 3)
    MPI.Prequest.Waitall([receive, send])
    for request in (send, receive):
        request.Free()


class Stream:
    """As packages have streams: the number of one is a member."""

    def __init__(self, **members):
        self.__dict__.update(members)


def refusals():
    send, receive, _, _ = pair()
    needed.fails(TypeError, "request is 5", mpix.export, 5)
    needed.fails(TypeError, "request is None", mpix.path, None)
    needed.fails(TypeError, "requests[1] is 'x'", mpix.prepare, [send, "x"])
    needed.fails(mpix.Error, "has not been started", mpix.prepare, send)
    needed.fails(mpix.Error, "MPIX_Request_path: ", mpix.path, MPI.REQUEST_NULL)
    needed.fails(TypeError, "stream", mpix.start_enqueue, [send])  # there is no default
    for wrong in (None, True, -1, 1.5, "0", Stream(pointer=3)):
        needed.fails(TypeError, "stream is ", mpix.start_enqueue, [send], wrong)
    with mpix.export(send, device="host"):  # not to a GPU
        MPI.Prequest.Startall([receive, send])
        for stream in (0, Stream(ptr=0), Stream(cuda_stream=0), Stream(handle=0),
                       Stream(__cuda_stream__=lambda: (0, 0))):
            for call in (lambda: mpix.start_enqueue([send], stream), lambda: mpix.pready_enqueue(0, send, stream),
                         lambda: mpix.pready_range_enqueue(0, 1, send, stream),
                         lambda: mpix.wait_enqueue(send, stream)):
                assert needed.fails(mpix.Error, "_enqueue: ", call).error_class == MPI.ERR_REQUEST
        send.Pready_range(0, 3)
        MPI.Prequest.Waitall([receive, send])
    error = needed.fails(MPI.Exception, "MPI_Psend_init: partitions is -2", world.Psend_init, bytearray(8), -2, peer)
    assert error.Get_error_class() == MPI.ERR_ARG
    for request in (send, receive):
        request.Free()


def main():
    assert world.size == 2, "run it on two ranks"
    transfers()
    exports()
    refusals()
    print(f"rank {rank}: right")


needed.run(main, MPI)
