# SPDX-License-Identifier: BSD-3-Clause
"""Options of the exchanges of mpix.halo: ghost cells that stay in the messages, node messages, direct stores."""
import itertools

import needed

mpix, MPI = needed.load(partitioned=False)
import numpy
from mpix import halo

world = MPI.COMM_WORLD
draw = numpy.random.default_rng(world.bcast(int(numpy.random.SeedSequence().entropy % 2**32)))  # the same on all ranks
RADIUS = 2


def around(grid, box, periodic):
    """A box of cells and the ghost cells beside it that somebody owns."""
    lo, hi = list(box.lo), list(box.hi)
    for a in range(grid.dimensions):
        lo[a] -= RADIUS if periodic[a] or box.lo[a] > 0 else 0
        hi[a] += RADIUS if periodic[a] or box.hi[a] < grid.extent[a] else 0
    return halo.Box(tuple(lo), tuple(hi))


def check_pieces(pieces, own, expected, i):
    """They lie beside the box, in the order of their directions, and have the same values as fields with ghost cells.
    Returns how many cells they have."""
    numbers, cells = [], 0
    for piece in pieces:
        for a, step in enumerate(piece.direction):
            lo, hi = piece.box.lo[a], piece.box.hi[a]
            assert hi <= own.lo[a] if step < 0 else lo >= own.hi[a] if step > 0 else own.lo[a] <= lo <= hi <= own.hi[a]
        assert not piece.array.flags.writeable and piece.array.dtype == expected.dtype
        assert numpy.array_equal(piece.array, expected[piece.box, i]), piece
        numbers.append(sum((step + 1) * 3**a for a, step in enumerate(piece.direction)))
        cells += piece.box.cells
    assert numbers == sorted(numbers)
    return cells


def in_messages(dimensions, order, components, dtype, boxes_per_rank, transfer):
    """Each ghost cell has the value that an exchange into fields gives."""
    count = 1 if components is None else 3
    periodic = [a != 1 for a in range(dimensions)]
    with halo.Grid(world, (12, 9, 8)[:dimensions], periodic=periodic, boxes_per_rank=boxes_per_rank) as grid:
        named = {"dtype": dtype, "order": order, "components": components, "count": count}
        radius = halo.Radius.all(RADIUS)
        expected, other = (halo.Field.zeros(grid, radius, **named) for _ in range(2))
        u, v, w = (halo.Field.zeros(grid, radius, **named, ghosts="in_messages") for _ in range(3))
        for array, i in zip(u.arrays, range(len(grid.boxes))):
            assert array.size == count * grid.local(i).cells
        with halo.Exchange(grid, [expected, other]) as into_fields, \
                halo.Exchange(grid, [w, (u, v)], ghosts="in_messages", transfer=transfer) as exchange:
            for epoch in range(3):
                now = (u, v)[epoch % 2]
                assert exchange.current(1) is now
                for i in range(len(grid.boxes)):
                    for field, of in ((expected, now), (other, w)):
                        values = (draw if world.size == 1 else numpy.random.default_rng()).integers(
                            0, 100, of.arrays[i].shape).astype(dtype)
                        field[grid.local(i), i][...] = values
                        of.arrays[i][...] = values
                into_fields.start()
                into_fields.finish()
                if epoch == 1:
                    exchange.begin()
                    exchange.ready(1)
                    exchange.ready(0)
                else:
                    exchange.start()
                exchange.finish()
                for swapped, i in itertools.product((False, True), range(len(grid.boxes))):
                    if swapped and i == 0:  # changes nothing
                        exchange.swap(1)
                    own = grid.local(i)
                    for number, field in enumerate((other, expected)):
                        whole = around(grid, own, periodic)
                        cells = check_pieces(exchange.ghost_pieces(number, i), own, field, i)
                        assert cells == whole.cells - own.cells
                        reader = exchange.reader(number, i)
                        for box in (whole, own, halo.Box(own.hi, own.hi), own.shift(x=-1), own.shift(x=RADIUS)):
                            read = reader[box]
                            assert numpy.array_equal(read, field[box, i]) and read.dtype == dtype, (box, number, epoch)
                            assert not read.flags.writeable


def outside_of_the_domain():
    """What no exchange fills is read from the array, if that has room for it."""
    with halo.Grid(world, (3 * world.size + 4,)) as grid:
        radius, own = halo.Radius.all(1), grid.local()
        last = own.hi[0] == grid.extent[0]
        u = halo.Field.zeros(grid, radius)
        u.array[...] = -7.0
        u[own][...] = numpy.arange(own.lo[0], own.hi[0])
        without = halo.Field.zeros(grid, radius, ghosts="in_messages")
        with halo.Exchange(grid, [u, without], ghosts="in_messages") as exchange:
            exchange.start()
            exchange.finish()
            whole = halo.Box((own.lo[0] - 1, 0, 0), (own.hi[0] + 1, 1, 1))
            read = exchange.reader(0)[whole]
            expected = numpy.arange(own.lo[0] - 1.0, own.hi[0] + 1)
            expected[0] = -7.0 if own.lo[0] == 0 else expected[0]
            expected[-1] = -7.0 if last else expected[-1]
            assert numpy.array_equal(read, expected), read
            reader = exchange.reader(1)
            if own.lo[0] == 0 or last:
                needed.fails(IndexError, "is not within the array along x", reader.__getitem__, whole)
            far = halo.Box((own.lo[0] - 2, 0, 0), own.hi)
            needed.fails(IndexError, "is not within the array along x", reader.__getitem__, far)
            needed.fails(TypeError, "is not a Box", reader.__getitem__, 3)
        needed.fails(ValueError, "the exchange has been freed", reader.__getitem__, own)


def stencil():
    """The function that computes with fields computes with readers; both give the same bits."""
    def relax(now, later, box):
        later[box][...] = 0.5 * now[box] + 0.125 * (now[box.shift(-1)] + now[box.shift(1)] + now[box.shift(0, -1)]
                                                    + now[box.shift(0, 1)])

    with halo.Grid(world, (16, 12), periodic=(True, True)) as grid:
        results = []
        start = numpy.random.default_rng(world.rank).random(grid.local().size[1::-1])
        for ghosts in ("in_fields", "in_messages"):
            u, v = (halo.Field.zeros(grid, halo.Radius.faces(1), ghosts=ghosts) for _ in range(2))
            u[grid.local()][...] = start
            with halo.Exchange(grid, [(u, v)], ghosts=ghosts) as exchange:
                for step in range(6):
                    now, later = (u, v) if step % 2 == 0 else (v, u)
                    exchange.start()
                    relax(now, later, exchange.interior())
                    exchange.finish()
                    read = exchange.reader() if ghosts == "in_messages" else now
                    for box in exchange.boundary():
                        relax(read, later, box)
                    exchange.swap()
                results.append(exchange.current()[grid.local()].copy())
        assert numpy.array_equal(*results)


def options():
    """Wrong ones, and ranks that disagree: so each of them has reached the library. On one node nothing else shows
    it."""
    fails, last = needed.fails, world.rank == world.size - 1
    with halo.Grid(world, (24, 19), periodic=(True, True)) as grid:
        u = halo.Field.zeros(grid, halo.Radius.faces(1))
        without = halo.Field.zeros(grid, halo.Radius.faces(1), ghosts="in_messages")

        def refused(error, sentence, kind=halo.Exchange, **named):
            fails(error, sentence, kind, grid, [u], **named)

        refused(ValueError, "ghosts is 'somewhere'; it is one of 'in_fields', 'in_messages'", ghosts="somewhere")
        refused(ValueError, "ghosts is None", ghosts=None)
        refused(ValueError, "node_messages is 'often'; it is one of 'never', 'auto", node_messages="often")
        refused(ValueError, "node_messages is True", node_messages=True)
        refused(ValueError, "ghosts is 'in_messages', and transfer is 'datatype'", ghosts="in_messages",
                transfer="datatype")
        refused(ValueError, "ghosts is 'in_messages', and reduce is 'sum'", ghosts="in_messages", reduce="sum")
        for other, named in (("transfer is 'plain'", {"transfer": "plain"}), ("reduce is 'max'", {"reduce": "max"}),
                             ("transfer is 'datatype'", {"transfer": "datatype"}),
                             ("ghosts is 'in_messages'", {"ghosts": "in_messages"})):
            refused(ValueError, f"node_messages is 'always', and {other}", node_messages="always", **named)
            halo.Exchange(grid, [u], node_messages="automatic", **named).free()
        fails(ValueError, "ghosts is 'nowhere'", halo.Field.zeros, grid, u.radius, ghosts="nowhere")
        fails(mpix.Error, "fields[0].layout.below[0] is 0; the radius needs 1", halo.Exchange, grid, [without])
        refused(TypeError, "direct is 1; it is True or False", halo.StreamExchange, direct=1)
        refused(TypeError, "direct is 'yes'; it is True or False", halo.StreamExchange, direct="yes")
        refused(TypeError, "box_waits is 0; it is True or False", halo.KernelExchange, box_waits=0)
        if world.size > 1:
            for here, there in (("always", "never"), ("never", "automatic"), ("automatic", "always")):
                refused(mpix.Error, f"is {here} here, and {there} on rank 0; all ranks give the same",
                        transfer="packed", node_messages=here if last else there)
            refused(mpix.Error, "is in_messages here, and in_fields on rank 0",
                    ghosts="in_messages" if last else "in_fields")
            # On one rank: no other waits.
            for kind, wrong in ((halo.Exchange, {"ghosts": 3}), (halo.Exchange, {"node_messages": []}),
                                (halo.StreamExchange, {"direct": None})):
                refused((TypeError, ValueError) if last else mpix.Error, "", kind, **(wrong if last else {}))
        for node_messages in ("never", "automatic", "always"):
            u[grid.local()][...] = world.rank + 1
            with halo.Exchange(grid, [u], node_messages=node_messages) as exchange:
                exchange.start()
                exchange.finish()
                assert u[grid.local().shift(x=1)].min() > 0
                fails(mpix.Error, "the ghost cells are in the fields", exchange.ghost_pieces)
                fails(mpix.Error, "the ghost cells are in the fields", exchange.reader)
        with halo.StreamExchange(grid, [u], direct=world.rank > 0) as exchange:  # may differ
            exchange.run(0)
            assert "directly" not in exchange.report()
        with halo.Exchange(grid, [without], ghosts="in_messages") as exchange:
            fails(ValueError, "field is 1; there are 1", exchange.ghost_pieces, 1)
            fails(ValueError, "i is 1; this rank has 1 boxes", exchange.reader, 0, 1)
        fails(mpix.Error, "exchange is null", exchange.ghost_pieces)


def main():
    for dimensions, order, components in itertools.product((1, 2, 3), "CF", (None, "first", "last")):
        dtype = numpy.dtype(("f8", "i2", "f4")[draw.integers(3)])
        in_messages(dimensions, order, components, dtype, 1 + int(draw.integers(2)),
                    ("automatic", "packed", "plain")[draw.integers(3)])
    outside_of_the_domain()
    stencil()
    options()
    if world.rank == 0:
        print("right")


needed.run(main, MPI)
