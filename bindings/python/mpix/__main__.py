# SPDX-License-Identifier: BSD-3-Clause
"""python -m mpix info: what this machine can do, by mpix_info.
python -m mpix library: the path of libmpix, for LD_PRELOAD.
"""
import os
import sys

from . import library_path
from ._library import near


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "library" and len(sys.argv) == 2:
        print(library_path)
        return 0
    if command != "info":
        print(__doc__.strip(), file=sys.stderr)
        return 2
    program = near("bin", "mpix_info")
    if program is None:
        print(f"no bin/mpix_info near {library_path}", file=sys.stderr)
        return 1
    sys.stdout.flush()
    os.execv(program, [program] + sys.argv[2:])
    return 1


if __name__ == "__main__":
    sys.exit(main())
