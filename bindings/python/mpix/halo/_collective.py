# SPDX-License-Identifier: BSD-3-Clause
"""Collective calls of which all ranks learn that one has failed, also if Python refuses an argument."""
import contextlib
import functools

from .._library import Error
from . import _c


def collective(find, fail):
    """Decorates a collective function: a generator, which makes its arguments before its `yield`, and calls the
    library's collective function behind it. If this rank raises before the `yield`, or gives arguments that the
    function does not have, it calls `fail`, which calls the library so that it fails on all ranks: none waits for this
    one. What the others raise names this rank, and says what Python has refused.

    find(arguments) returns what `fail` needs, the handle of a grid or communicator, or None. Then the others wait.
    """
    def decorate(function):
        @functools.wraps(function)
        def call(*given, **named):
            try:
                steps = function(*given, **named)
                next(steps)
            except Exception as refused:
                known = find((*given, *named.values()))
                if known is not None:
                    _c.refuse(f"{type(refused).__name__} in Python: {refused}".encode(errors="replace"))
                    with contextlib.suppress(Error):
                        fail(known)
                    _c.refuse(None)
                raise
            try:
                next(steps)
            except StopIteration as end:
                return end.value

        return call

    return decorate
