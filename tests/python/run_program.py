# SPDX-License-Identifier: BSD-3-Clause
"""Run a program of a page, on all ranks: run_program.py PROGRAM. The last line that a rank prints says that nothing is
wrong."""
import contextlib
import io
import runpy
import sys

import needed

program = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
with open(program, encoding="utf-8") as source:
    mpix, MPI = needed.load(partitioned="Psend_init" in source.read())


def main():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(program, run_name="__main__")
    text = printed.getvalue()
    print(text, end="", flush=True)
    assert (not text and MPI.COMM_WORLD.rank > 0) or text.endswith((": right\n", " 0 numbers wrong\n")), text


needed.run(main, MPI)
