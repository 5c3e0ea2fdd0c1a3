# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints and whole fields of arrays of another package are those of NumPy's arrays with the same values.

Usage: halo_files.py numpy | cupy
"""
import os
import sys

import needed

package = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
mpix, MPI = needed.load(partitioned=False)
import numpy
from mpix import halo


def main():
    world = MPI.COMM_WORLD
    xp = needed.cupy_on_own_gpu(world.rank) if package == "cupy" else numpy
    on_host = xp.asnumpy if package == "cupy" else numpy.asarray
    synchronise = xp.cuda.Device().synchronize if package == "cupy" else lambda: None
    names = [f"halo_files_{package}_{world.size}.{which}" for which in ("host", "other")]
    with halo.Grid(world, (37, 23), periodic=(True, True)) as grid:
        radius, local = halo.Radius.all(2), grid.local()
        host = halo.Field.zeros(grid, radius)
        other, read = (halo.Field.zeros(grid, radius, xp=xp) for _ in range(2))
        x, y = (numpy.arange(local.lo[a], local.hi[a]) for a in range(2))
        host[local][...] = y[:, None] * 1000.0 + x[None, :]
        other[local][...] = xp.asarray(host[local])
        read.array[...] = -1.0
        synchronise()
        for name, field in zip(names, (host, other)):
            halo.write_checkpoint(grid, name, {"u": field}, 3)
        contents = [open(name, "rb").read() for name in names]
        assert contents[0] == contents[1], "two checkpoints are alike"
        assert halo.read_checkpoint(grid, names[0], {"u": read}) == 3
        assert (on_host(read[local]) == host[local]).all(), "what was read"
        ghosts = on_host(read.array).size - host[local].size
        assert (on_host(read.array) == -1.0).sum() == ghosts, "ghost cells are not changed"
        wholes = [halo.gather(grid, field) for field in (host, other)]
        assert wholes[0] is None or (wholes[0] == wholes[1]).all(), "two whole fields"
    world.Barrier()
    if world.rank == 0:
        for name in names:
            os.remove(name)
        print("right")


if __name__ == "__main__":
    main()
