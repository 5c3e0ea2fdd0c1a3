#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks, on the include lines, who may include whom (docs/dev/architecture.md, "Layers").

1. include/mpix includes nothing of ours outside itself; device.cuh alone pulls in <mpix/device/...>.
2. device/ sees <mpix/...> only.
3. transport/ sees <mpix/detail/...> and the headers that lie in transport/ itself; transport/<backend>/ also
   its own folder, never select.h, never host/, never a sibling.
4. host/ sees <mpix/...>, itself, transport/transport.h, transport/select.h, transport/service_thread.h and
   transport/reserve.h, never a backend.
5. Examples see <mpix/...> and their own folder, as a program outside the project does.

Includes of anything that is not ours (system, MPI, CUDA) are nobody's business here.
"""

import argparse
import posixpath
import re
import sys
from pathlib import Path

SUFFIXES = {".h", ".hpp", ".cuh", ".cc", ".cpp", ".c", ".cu", ".def", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include(?:_next)?\s*([<"])([^>"]+)[>"]')
HOST_SEES = ("transport/transport.h", "transport/select.h", "transport/service_thread.h", "transport/reserve.h")
OURS = ("mpix/", "host/", "transport/", "device/", "include/", "tests/", "examples/")


def top_level(path):
    """The second folder of a path: the backend of transport/shm/heap.h; '' for transport/select.h."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else ""


def is_public(target):
    return target.startswith("mpix/")


def breach(path, quote, target):
    """Why the file at `path` must not include `target`, or None. Paths are relative to the repository root."""
    layer = path.split("/", 1)[0]
    ours = quote == '"' or target.startswith(OURS)
    if not ours:
        return None
    if ".." in target.split("/"):
        return "includes of ours are written from the repository root"
    if quote == '"' and is_public(target):
        return "public headers are included with <>"
    if quote == "<" and not is_public(target):
        return "internal headers are included with quotes"

    if layer == "include":
        if not is_public(target):
            return "public headers include public headers only"
        if target.startswith("mpix/device/") and path != "include/mpix/device.cuh":
            return "only device.cuh pulls in the device functions' bodies"
        return None

    if layer == "device":
        return None if is_public(target) else "device code sees <mpix/...> only"

    if layer == "transport":
        backend = top_level(path)
        if is_public(target):
            return None if target.startswith("mpix/detail/") else "transports see <mpix/detail/...> only"
        if target.startswith("host/"):
            return "a transport never sees host/"
        if backend and target == "transport/select.h":
            return "a transport does not know who chooses it"
        if target.startswith("transport/") and not top_level(target):
            return None
        if backend and target.startswith("transport/%s/" % backend):
            return None
        return "a backend's headers are its own; select reaches it by transport/backends.h"

    if layer == "host":
        if is_public(target):
            return None
        if target.startswith("host/") or target in HOST_SEES:
            return None
        return "host/ sees %s, never a backend" % ", ".join(HOST_SEES)

    if layer == "examples":
        if is_public(target):
            if target.startswith(("mpix/detail/", "mpix/device/")):
                return "examples use the public headers only"
            return None
        # By quotes from their own folder; a file beside the example is all that a quote can reach.
        if target.startswith(("host/", "transport/", "device/", "tests/", "include/")):
            return "examples use the installed package only"
        return None

    return None


def check_text(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        why = breach(path, match.group(1), posixpath.normpath(match.group(2))
                     if ".." not in match.group(2) else match.group(2))
        if why:
            yield "%s:%d: %s\n    %s" % (path, number, why, line.strip())


def check_tree(root):
    seen, breaches = 0, []
    for layer in ("include", "device", "transport", "host", "examples"):
        for file in sorted((root / layer).rglob("*")):
            if file.suffix not in SUFFIXES or not file.is_file():
                continue
            seen += 1
            path = file.relative_to(root).as_posix()
            breaches += check_text(path, file.read_text(encoding="utf-8"))
    return seen, breaches


# (file, include line, allowed)
SELF_TEST = [
    ("include/mpix/mpix.h", "#include <mpi.h>", True),
    ("include/mpix/device.cuh", "#include <mpix/device/ready.cuh>", True),
    ("include/mpix/mpix.h", "#include <mpix/device/ready.cuh>", False),
    ("include/mpix/mpix.h", '#include "host/config.h"', False),
    ("include/mpix/detail/abi.h", '  #  include "transport/transport.h"', False),
    ("include/mpix/detail/abi.h", "#include <transport/transport.h>", False),
    ("device/mpix/device/ready.cuh", "#include <mpix/detail/abi.h>", True),
    ("device/mpix/device/ready.cuh", "#include <cooperative_groups.h>", True),
    ("device/mpix/device/ready.cuh", '#include "host/request/request.h"', False),
    ("device/mpix/device/ready.cuh", '#include "transport/transport.h"', False),
    ("transport/select.cc", '#include "transport/transport.h"', True),
    ("transport/select.cc", '#include "transport/backends.h"', True),
    ("transport/shm/shm.cc", '#include "transport/backends.h"', True),
    ("transport/shm/shm.cc", '#include "transport/free_ranges.h"', True),
    ("transport/shm/shm.cc", '#include "transport/select.h"', False),
    ("host/request/request.cc", '#include "transport/backends.h"', False),
    ("host/progress.cc", '#include "transport/service_thread.h"', True),
    ("transport/select.cc", '#include "transport/shm/heap.h"', False),
    ("transport/route.cc", '#include "transport/shm/shm.h"', False),
    ("transport/shm/shm.cc", '#include "transport/shm/heap.h"', True),
    ("transport/shm/shm.cc", '#include "transport/transport.h"', True),
    ("transport/shm/shm.cc", "#include <mpix/detail/order.h>", True),
    ("transport/shm/shm.cc", "#include <mpix/mpix.h>", False),
    ("transport/shm/shm.cc", '#include "transport/cuda_ipc/cuda_ipc.h"', False),
    ("transport/shm/shm.cc", '#include "host/report.h"', False),
    ("transport/shm/shm.cc", '#include "../cuda_ipc/cuda_ipc.h"', False),
    ("transport/shm/shm.cc", '#include "heap.h"', False),
    ("host/request/request.cc", '#include "host/config.h"', True),
    ("host/request/request.cc", '#include "transport/select.h"', True),
    ("host/request/request.cc", "#include <mpix/device.cuh>", True),
    ("host/request/request.cc", '#include "transport/shm/heap.h"', False),
    ("host/request/request.cc", '#include "mpix/mpix.h"', False),
    ("examples/jacobi3d/main.cpp", "#include <mpix/mpix.h>", True),
    ("examples/jacobi3d/main.cpp", '#include "grid.hpp"', True),
    ("examples/jacobi3d/main.cpp", '#include "host/config.h"', False),
    ("examples/jacobi3d/main.cpp", '#include "../other/grid.hpp"', False),
    ("examples/jacobi3d/main.cpp", "#include <mpix/detail/abi.h>", False),
    ("host/request/request.cc", '// #include "transport/shm/heap.h"', True),
]


def self_test():
    failures = 0
    for path, line, allowed in SELF_TEST:
        found = list(check_text(path, "// first line\n" + line + "\n"))
        if bool(found) == allowed:
            failures += 1
            print("self-test: %s: %s: expected to be %s" % (path, line, "allowed" if allowed else "refused"))
    print("%d include lines tried, %d judged wrongly" % (len(SELF_TEST), failures))
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2],
                        help="repository root")
    parser.add_argument("--self-test", action="store_true", help="try the rules on lines that break them")
    arguments = parser.parse_args()
    if arguments.self_test:
        return 1 if self_test() else 0
    seen, breaches = check_tree(arguments.root)
    for text in breaches:
        print(text)
    print("%d files, %d breaches" % (seen, len(breaches)))
    return 1 if breaches or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
