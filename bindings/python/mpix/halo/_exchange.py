# SPDX-License-Identifier: BSD-3-Clause
"""Exchanges that the host makes, and what they tell of themselves."""
import ctypes
from ctypes import byref, c_int, c_int64, c_void_p

from .._handles import mpi, value_of
from . import _c
from ._box import Box, one_of, whole_number
from ._collective import collective
from ._field import STORAGES, Field, fields_in_c, list_of, refuse_gpu
from ._ghosts import GhostReader, pieces_of
from ._grid import Grid, Handle

TRANSFERS = ("packed", "datatype", "plain", "automatic")
NODE_MESSAGES = {"never": 0, "automatic": _c.NODE_MESSAGES_AUTOMATIC, "always": _c.NODE_MESSAGES_ALWAYS}
REDUCTIONS = {"sum": "SUM", "min": "MIN", "max": "MAX"}


def grid_in_c(grid):
    if not isinstance(grid, Grid):
        raise TypeError(f"grid is {type(grid).__name__}; it is a Grid")
    return grid.handle


def _grid_in(arguments):
    """The handle of the first grid among the arguments of a call; otherwise of the grid of a field among them."""
    grids = [a for a in arguments if isinstance(a, Grid)] or [f.grid for f in _fields_in(arguments)]
    return next((g.handle for g in grids if isinstance(g, Grid) and g.handle), None)


def _fields_in(given):
    if isinstance(given, Field):
        yield given
    elif isinstance(given, (tuple, list, dict)):
        for one in given.values() if isinstance(given, dict) else given:
            yield from _fields_in(one)


def collective_over_grid(fail):
    """Decorates a collective function over a grid's ranks; as collective()."""
    return collective(_grid_in, fail)


class ExchangeBase(Handle):
    """What all kinds of exchange have: their fields, sizes and reports. Subclasses name the functions in C."""

    grid, fields = None, []

    def number(self, field):
        """A field's position in the list, checked."""
        if not 0 <= whole_number(field, "field") < len(self.fields):
            raise ValueError(f"field is {field}; there are {len(self.fields)}")
        return field

    def current(self, field=0):
        """The Field in use: of a pair, the one that the next exchange is of."""
        pair = self.fields[self.number(field)]
        if not isinstance(pair, tuple):
            return pair
        address = c_void_p()
        if not pair[0].memories:
            return pair[0]
        self._data(field, 0, self.handle, byref(address))
        return pair[0] if pair[0].memories[0].address == address.value else pair[1]

    @property
    def messages_sent(self):
        """Messages that this rank sends in each exchange."""
        return self._sent()[0]

    @property
    def bytes_sent(self):
        """Their bytes."""
        return self._sent()[1]

    def _sent(self):
        messages, size = c_int(), c_int64()
        self._sizes(self.handle, byref(messages), byref(size))
        return messages.value, size.value

    def measure(self, flag=True):
        """Time the exchanges from now on, or no longer."""
        self._measure(bool(flag), self.handle)

    def report(self):
        """What is sent and received, by what path, and how long it takes, with a line for each message."""
        size = 1 << 16
        while True:
            text = ctypes.create_string_buffer(size)
            self._report(self.handle, text, size)
            if len(text.value) < size - 1:
                return text.value.decode()
            size *= 4


class ExchangeWithInterior(ExchangeBase):
    """An exchange that knows which cells read its ghost cells."""

    def interior(self, i=None):
        """The cells of a box whose stencils read no ghost cell that the exchange fills."""
        box = _c.Box()
        self._interior(self.grid.position(i), self.handle, byref(box))
        return Box.of(box)

    def boundary(self, i=None):
        """The others, as a list of boxes."""
        boxes, count = (_c.Box * 6)(), c_int()
        self._boundary(self.grid.position(i), self.handle, boxes, byref(count))
        return [Box.of(boxes[n]) for n in range(count.value)]


class Exchange(ExchangeWithInterior):
    """Fills the ghost cells of fields in host memory, by one message to and from each neighbour. As
    mpix::halo::exchange.

    Collective over the grid's ranks.

    Parameters
    ----------
    grid : Grid
    fields : list of Field, or of pairs of Field
        Each is a Field, or a pair of them, which is one field of two allocations, for swap(). They are kept until the
        exchange is freed.
    transfer : "automatic", "packed", "datatype" or "plain"
        How a message's bytes are gathered and scattered.
    reduce : None, "sum", "min" or "max"
        If given, the exchange goes the other way: ghost cells are combined with the cells that they are copies of.
    ghosts : "in_fields" or "in_messages"
        "in_messages": they stay where they were received, and reader() reads them there; arrays need no room for them.
        Not with "datatype", nor with `reduce`. All ranks give the same.
    node_messages : "never", "automatic" or "always"
        Whether messages of a rank to several ranks of one other node go there as one; docs/halo.md says which do, and
        what that asks of a program. "always" is not for "datatype", "plain", `reduce` and "in_messages"; with these
        "automatic" changes nothing. All ranks give the same.

    Raises TypeError, ValueError, or mpix.Error, on all ranks if on one.
    """

    _data, _interior, _boundary, _sizes = map(staticmethod, (_c.data, _c.interior, _c.boundary, _c.sent))
    _measure, _report = map(staticmethod, (_c.measure, _c.report))

    @collective_over_grid(lambda grid: _c.exchange_create(grid, 1, None, 0, byref(c_void_p())))
    def __init__(self, grid, fields, *, transfer="automatic", reduce=None, ghosts="in_fields", node_messages="never"):
        communicates, handle = grid_in_c(grid), c_void_p()
        self.grid, self.fields = grid, list_of(fields)
        one_of(transfer, "transfer", TRANSFERS)
        one_of(reduce, "reduce", (None, *REDUCTIONS))
        one_of(ghosts, "ghosts", STORAGES)
        one_of(node_messages, "node_messages", tuple(NODE_MESSAGES))
        if reduce is not None and transfer not in ("automatic", "packed"):
            raise ValueError(f"transfer is {transfer!r}; an exchange that reduces is packed")
        _check_options(transfer, reduce, ghosts, node_messages)
        refuse_gpu(self.fields, "an Exchange takes host memory, a StreamExchange that of GPUs")
        made = fields_in_c(grid, self.fields)
        yield
        if reduce is None:
            flags = _c.IN_MESSAGES * (ghosts == "in_messages") | NODE_MESSAGES[node_messages]
            _c.exchange_create(communicates, len(self.fields), made, TRANSFERS.index(transfer) | flags, byref(handle))
        else:
            op = value_of(getattr(mpi(), REDUCTIONS[reduce]), "Op", "reduce")
            _c.reverse_create(communicates, len(self.fields), made, op, byref(handle))
        super().__init__(handle, _c.exchange_free, (grid, self.fields, made))
        self._swapped = set()  # fields swapped an odd number of times since the last start() or begin()

    def start(self):
        """Begin an exchange of all fields, and send. Until finish(), do not write the arrays in use, nor read their
        ghost cells."""
        _c.start(self.handle)
        self._swapped.clear()

    def finish(self):
        """Wait until all ghost cells are there."""
        _c.finish(self.handle)

    def begin(self):
        """Begin an exchange whose fields are marked ready one by one, by ready(field)."""
        _c.begin(self.handle)
        self._swapped.clear()

    def ready(self, field):
        """Mark a field ready, by its position in the list. A packed message sends it at once, any other when all are
        ready."""
        _c.ready(whole_number(field, "field", 32), self.handle)

    def overlap(self, compute):
        """Exchange, and meanwhile compute(box) of the interior; then compute(box) of each box of the boundary. For each
        box of this rank."""
        self.start()
        for i in range(len(self.grid.boxes)):
            compute(self.interior(i))
        self.finish()
        for i in range(len(self.grid.boxes)):
            for box in self.boundary(i):
                compute(box)

    @property
    def active(self):
        """Whether it has begun, is not finished, and has not failed."""
        flag = c_int()
        _c.active(self.handle, byref(flag))
        return flag.value != 0

    def swap(self, field=0):
        """Go on with the other one of a pair of fields."""
        _c.swap(whole_number(field, "field", 32), self.handle)
        self._swapped ^= {field}

    def ghost_pieces(self, field=0, i=None):
        """Of an exchange with ghosts="in_messages": the ghost cells of a field beside a box of this rank, as a list of
        GhostPiece, in the order of their directions. As ghost_pieces() of mpix::halo::exchange: their values may be
        read from finish() until the next start() or begin(), and not after free(). The list remains right; only of a
        pair of fields, ask again after each finish()."""
        return pieces_of(self, self.number(field), self._exchanged(field), self.grid.position(i))

    def reader(self, field=0, i=None):
        """Of an exchange with ghosts="in_messages": a GhostReader, whose reader[box] are cells of a box of this rank,
        and ghost cells beside it. Make it after finish(), and use it until the next start() or begin(). Of a pair of
        fields it reads the one that was exchanged last."""
        position = self.grid.position(i)
        return GhostReader(self, self._exchanged(field), position, self.ghost_pieces(field, position))

    def _exchanged(self, field):
        """The Field of which the exchange is that was begun last."""
        now, pair = self.current(field), self.fields[field]
        if field in self._swapped:
            return pair[1] if now is pair[0] else pair[0]
        return now


def _check_options(transfer, reduce, ghosts, node_messages):
    """Those that exclude each other."""
    if ghosts == "in_messages" and (transfer == "datatype" or reduce is not None):
        other = "transfer is 'datatype'" if transfer == "datatype" else f"reduce is {reduce!r}"
        raise ValueError(f"ghosts is 'in_messages', and {other}; these have their ghost cells in the fields")
    if node_messages == "always":
        for wrong, other in ((transfer in ("datatype", "plain"), f"transfer is {transfer!r}"),
                             (reduce is not None, f"reduce is {reduce!r}"),
                             (ghosts == "in_messages", "ghosts is 'in_messages'")):
            if wrong:
                raise ValueError(f"node_messages is 'always', and {other}; there are no node messages then")


@collective_over_grid(lambda grid: _c.compare_transfers(grid, 1, None, 1, (ctypes.c_double * 3)(), byref(c_int())))
def compare_transfers(grid, fields, exchanges=10):
    """Exchange the fields by each of packed, datatype and plain. Returns a dictionary of the seconds that one exchange
    takes by each one that is possible, and the name of the fastest. Collective; fills ghost cells."""
    communicates, fields = grid_in_c(grid), list_of(fields)
    seconds, fastest = (ctypes.c_double * 3)(), c_int()
    refuse_gpu(fields, "only host memory is compared")
    made, exchanges = fields_in_c(grid, fields), whole_number(exchanges, "exchanges", 32)
    yield
    _c.compare_transfers(communicates, len(fields), made, exchanges, seconds, byref(fastest))
    times = {name: seconds[i] for i, name in enumerate(TRANSFERS[:len(seconds)]) if seconds[i] > 0}
    return times, TRANSFERS[fastest.value]


class StepReport(Handle):
    """Tells on rank 0 how far a long run is, by at most one line in a second on standard error. Collective over the
    grid's ranks. `steps`: of the run, or 0; `bytes_sent`: by this rank in a step, or 0. free() prints the last line."""

    @collective_over_grid(lambda grid: _c.step_report_create(grid, -1, 0, byref(c_void_p())))
    def __init__(self, grid, steps=0, bytes_sent=0):
        communicates, handle = grid_in_c(grid), c_void_p()
        steps, bytes_sent = whole_number(steps, "steps"), whole_number(bytes_sent, "bytes_sent")
        yield
        _c.step_report_create(communicates, steps, bytes_sent, byref(handle))
        super().__init__(handle, _c.step_report_free)

    def done(self, steps=1):
        """So many steps more are done. Local."""
        _c.step_report_done(whole_number(steps, "steps"), self.handle)
