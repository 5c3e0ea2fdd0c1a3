#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the include lines, and the folders, against the architecture page ("Layers" and "Folders").

1. include/mpix includes nothing of ours outside itself; <mpix/impl/...>, the inline bodies, is for device.cuh, for
   halo.cuh, and for itself.
2. device/ sees <mpix/...> and itself.
3. transport/ sees <mpix/detail/...>, the headers that lie in transport/ itself and in transport/wqe/; transport/<backend>/
   also its own folder, never select.h, never host/, never a sibling.
4. host/ sees <mpix/...>, device/, itself, transport/transport.h, transport/select.h, transport/service_thread.h,
   transport/reserve.h and transport/status.h, never a backend.
5. Examples see <mpix/...> and their own folder, as a program outside the project does.
6. No two headers, each with its sources, include each other, by whatever detour; nor do two folders of host/,
   transport/, device/, or include/mpix/impl/.
7. The table of folders has each folder of include/mpix, host, device, transport and bindings, with one sentence, and
   nothing that is not there. No folder has more than MOST_FILES files. A folder of host/ includes only folders of earlier rows.

Includes of anything that is not ours (system, MPI, CUDA) are nobody's business here.
"""

import argparse
import posixpath
import re
import sys
from pathlib import Path

SUFFIXES = {".h", ".hpp", ".cuh", ".cc", ".cpp", ".c", ".cu", ".def", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include(?:_next)?\s*([<"])([^>"]+)[>"]')
HOST_SEES = ("transport/transport.h", "transport/select.h", "transport/service_thread.h", "transport/reserve.h",
             "transport/status.h")
SHARED_BY_BACKENDS = ("wqe",)
DEVICE_HEADERS = ("include/mpix/device.cuh", "include/mpix/halo.cuh")
OURS = ("mpix/", "host/", "transport/", "device/", "include/", "tests/", "examples/")
IN_TABLE = ("include/mpix", "host", "device", "transport", "bindings")
MOST_FILES = 17
ROW = re.compile(r"^\| `([\w/]+)` \| (.*?) \|$")


def backend_of(path):
    """The second folder of a path: the backend of transport/ib/mlx5/memory.h; '' for transport/select.h."""
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
        if target.startswith("mpix/impl/") and path not in DEVICE_HEADERS and not path.startswith("include/mpix/impl/"):
            return "only device.cuh and halo.cuh pull in the device functions' bodies"
        return None

    if layer == "device":
        return None if is_public(target) or target.startswith("device/") else "device code sees <mpix/...> and device/ only"

    if layer == "transport":
        backend = backend_of(path)
        if is_public(target):
            return None if target.startswith("mpix/detail/") else "transports see <mpix/detail/...> only"
        if target.startswith("host/"):
            return "a transport never sees host/"
        if backend and target == "transport/select.h":
            return "a transport does not know who chooses it"
        if target.startswith("transport/") and backend_of(target) in ("",) + SHARED_BY_BACKENDS:
            return None
        if backend and target.startswith("transport/%s/" % backend):
            return None
        return "a backend's headers are its own; select reaches it by transport/backends.h"

    if layer == "host":
        if is_public(target):
            return None
        if target.startswith(("host/", "device/")) or target in HOST_SEES:
            return None
        return "host/ sees %s, never a backend" % ", ".join(HOST_SEES)

    if layer == "examples":
        if is_public(target):
            if target.startswith(("mpix/detail/", "mpix/impl/")):
                return "examples use the public headers only"
            return None
        # By quotes from their own folder; a file beside the example is all that a quote can reach.
        if target.startswith(("host/", "transport/", "device/", "tests/", "include/")):
            return "examples use the installed package only"
        return None

    return None


def includes_of(text):
    """(line number, line, quote, target) of each include line."""
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            target = match.group(2)
            yield number, line, match.group(1), posixpath.normpath(target) if ".." not in target else target


def check_text(path, text):
    for number, line, quote, target in includes_of(text):
        why = breach(path, quote, target)
        if why:
            yield "%s:%d: %s\n    %s" % (path, number, why, line.strip())


def file_of(target):
    return "include/" + target if is_public(target) else target


def folder_of(path):
    return path.rsplit("/", 1)[0]


def module_of(path, text):
    """A header and its sources: by the name, or by what a source includes first, as send_match.cc does send.h."""
    stem = path.rsplit(".", 1)[0]
    if path.endswith((".cc", ".cu")):
        first = next((t for _, _, q, t in includes_of(text) if q == '"'), None)
        if first and folder_of(first) == folder_of(path):
            name = first.rsplit(".", 1)[0]
            if stem == name or stem.startswith(name + "_"):
                return name
    return stem


def cycles(edges):
    """Tarjan's strongly connected components of more than one node, each sorted."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def check_cycles(files):
    """`files`: path -> text."""
    module = {path: module_of(path, text) for path, text in files.items()}
    for what, name_of, of_interest in (
            ("headers and sources", lambda p: module.get(p, p.rsplit(".", 1)[0]), lambda p: True),
            ("folders", folder_of, lambda p: p.startswith(("host/", "transport/", "device/", "include/mpix/impl/")))):
        edges, lines = {}, {}
        for path, text in files.items():
            for number, _, _, target in includes_of(text):
                other = file_of(target)
                if other not in files or not of_interest(path) or not of_interest(other):
                    continue
                a, b = name_of(path), name_of(other)
                if a != b:
                    edges.setdefault(a, set()).add(b)
                    lines.setdefault((a, b), []).append("%s:%d includes %s" % (path, number, target))
        for cycle in cycles(edges):
            told = [lines[a, b][0] for a in cycle for b in cycle if (a, b) in lines]
            yield "a cycle of %s: %s\n    %s" % (what, ", ".join(cycle), "\n    ".join(told))


def rows_of(page):
    section = re.search(r"^#+ Folders\n(.*?)(?=^#+ |\Z)", page, re.M | re.S)
    return section and [match.groups() for match in map(ROW.match, section.group(1).splitlines()) if match]


def check_order(page, files):
    """`files`: path -> text. Of host/: folders include folders above them in the table."""
    order = [folder for folder, _ in rows_of(page) or [] if folder.split("/")[0] == "host"]
    for path, text in files.items():
        for number, line, _, target in includes_of(text):
            if folder_of(path) in order and folder_of(target) in order and order.index(folder_of(target)) > order.index(folder_of(path)):
                yield "%s:%d: %s comes before %s in the table of folders\n    %s" % (path, number, folder_of(target), folder_of(path), line.strip())


def check_folders(page, paths):
    """`page`: the architecture page's text; `paths`: all files in IN_TABLE."""
    rows = rows_of(page)
    if rows is None:
        yield "the architecture page has no section \"Folders\""
        return
    listed = [folder for folder, _ in rows]
    files = {}
    for path in paths:
        files.setdefault(folder_of(path), []).append(path)
    for folder in sorted(set(files) - set(listed)):
        yield "%s is not in the table of folders" % folder
    for folder in sorted(set(listed) - set(files)):
        yield "the table of folders has %s, where no file lies" % folder
    for folder in sorted(folder for folder in set(listed) if listed.count(folder) > 1):
        yield "the table of folders has %s twice" % folder
    for folder, subject in rows:
        if not re.fullmatch(r"[A-Z`].*[^.]\.", subject) or ". " in re.sub(r"`[^`]*`", "", subject):
            yield "%s: its subject is to be one sentence, not \"%s\"" % (folder, subject)
    for folder, inside in sorted(files.items()):
        if len(inside) > MOST_FILES:
            yield "%s has %d files, more than %d: it is more than one subject" % (folder, len(inside), MOST_FILES)


def read_tree(root, folders):
    files = {}
    for folder in folders:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES and file.is_file():
                files[file.relative_to(root).as_posix()] = file.read_text(encoding="utf-8")
    return files


def check_tree(root):
    files = read_tree(root, ("include", "device", "transport", "host", "bindings", "examples"))
    breaches = []
    for path, text in files.items():
        breaches += check_text(path, text)
    of_ours = {path: text for path, text in files.items() if path.startswith(tuple(f + "/" for f in IN_TABLE))}
    breaches += check_cycles(of_ours)
    pages = sorted((root / "docs").rglob("architecture.md"))
    if len(pages) == 1:
        page = pages[0].read_text(encoding="utf-8")
        breaches += check_folders(page, of_ours)
        breaches += check_order(page, of_ours)
    else:
        breaches.append("there is to be one docs/.../architecture.md, not %d" % len(pages))
    return len(files), breaches


# (file, include line, allowed)
SELF_TEST = [
    ("include/mpix/mpix.h", "#include <mpi.h>", True),
    ("include/mpix/device.cuh", "#include <mpix/impl/send/pready.cuh>", True),
    ("include/mpix/mpix.h", "#include <mpix/impl/send/pready.cuh>", False),
    ("include/mpix/mpix.h", '#include "host/config.h"', False),
    ("include/mpix/detail/abi.h", '  #  include "transport/transport.h"', False),
    ("include/mpix/detail/abi.h", "#include <transport/transport.h>", False),
    ("include/mpix/detail/abi.h", "#include <mpix/impl/send/pready.cuh>", False),
    ("include/mpix/impl/send/pready.cuh", "#include <mpix/detail/abi.h>", True),
    ("include/mpix/impl/send/pready.cuh", "#include <mpix/impl/group/copy.cuh>", True),
    ("include/mpix/impl/send/pready.cuh", "#include <cooperative_groups.h>", True),
    ("include/mpix/impl/send/pready.cuh", '#include "host/request/request.h"', False),
    ("include/mpix/impl/send/pready.cuh", '#include "device/pack/gpu_pack.h"', False),
    ("device/pack/gpu_pack.cc", '#include "device/pack/gpu_pack.h"', True),
    ("device/pack/gpu_pack.cc", "#include <mpix/impl/pack/tiles.cuh>", True),
    ("device/pack/gpu_pack.cc", '#include "transport/transport.h"', False),
    ("transport/select.cc", '#include "transport/transport.h"', True),
    ("transport/select.cc", '#include "transport/backends.h"', True),
    ("transport/shm/shm.cc", '#include "transport/backends.h"', True),
    ("transport/shm/shm.cc", '#include "transport/free_ranges.h"', True),
    ("transport/shm/shm.cc", '#include "transport/select.h"', False),
    ("transport/workqueue/network_queue.cc", '#include "transport/wqe/wqe.h"', True),
    ("transport/ib/mlx5/queues.cc", '#include "transport/wqe/wqe.h"', True),
    ("transport/ib/mlx5/queues.h", '#include "transport/ib/hardware_queues.h"', True),
    ("transport/wqe/wqe.cc", '#include "transport/ib/rc.h"', False),
    ("transport/ucx/ucx.cc", '#include "transport/ib/rc.h"', False),
    ("host/request/request.cc", '#include "transport/backends.h"', False),
    ("host/progress/engine.cc", '#include "transport/service_thread.h"', True),
    ("transport/select.cc", '#include "transport/shm/heap.h"', False),
    ("transport/route.cc", '#include "transport/shm/shm.h"', False),
    ("transport/shm/shm.cc", '#include "transport/shm/heap.h"', True),
    ("transport/shm/shm.cc", '#include "transport/transport.h"', True),
    ("transport/shm/shm.cc", "#include <mpix/detail/order.h>", True),
    ("transport/shm/shm.cc", "#include <mpix/mpix.h>", False),
    ("transport/shm/shm.cc", '#include "transport/cuda_ipc/cuda_ipc.h"', False),
    ("transport/shm/shm.cc", '#include "host/report.h"', False),
    ("transport/shm/shm.cc", '#include "device/cuda/allocation.h"', False),
    ("transport/shm/shm.cc", '#include "../cuda_ipc/cuda_ipc.h"', False),
    ("transport/shm/shm.cc", '#include "heap.h"', False),
    ("host/request/request.cc", '#include "host/config.h"', True),
    ("host/request/request.cc", '#include "device/pack/gpu_pack.h"', True),
    ("host/request/request.cc", '#include "transport/select.h"', True),
    ("host/request/request.cc", "#include <mpix/device.cuh>", True),
    ("host/request/request.cc", '#include "transport/shm/heap.h"', False),
    ("host/request/request.cc", '#include "transport/wqe/wqe.h"', False),
    ("host/request/request.cc", '#include "mpix/mpix.h"', False),
    ("examples/jacobi3d/main.cpp", "#include <mpix/mpix.h>", True),
    ("examples/jacobi3d/main.cpp", '#include "grid.hpp"', True),
    ("examples/jacobi3d/main.cpp", '#include "host/config.h"', False),
    ("examples/jacobi3d/main.cpp", '#include "../other/grid.hpp"', False),
    ("examples/jacobi3d/main.cpp", "#include <mpix/detail/abi.h>", False),
    ("host/request/request.cc", '// #include "transport/shm/heap.h"', True),
]

# (files, how many cycles)
CYCLES = [
    ({"host/a/x.h": "", "host/b/y.h": '#include "host/a/x.h"'}, 0),
    # One of headers, and one of folders.
    ({"host/a/x.h": '#include "host/b/y.h"', "host/b/y.h": "", "host/b/y.cc": '#include "host/b/y.h"\n#include "host/a/x.h"'}, 2),
    ({"host/a/x.h": '#include "host/b/y.h"', "host/b/y.h": "", "host/b/z.h": '#include "host/a/x.h"'}, 1),
    ({"host/a/x.h": '#include "host/a/y.h"', "host/a/y.h": "",
      "host/a/y_more.cc": '#include "host/a/y.h"\n#include "host/a/x.h"'}, 1),
    ({"host/a/x.h": '#include "host/a/y.h"', "host/a/y.h": '#include "host/a/z.h"',
      "host/a/z.h": "", "host/a/z.cc": '#include "host/a/z.h"\n#include "host/a/x.h"'}, 1),
    ({"include/mpix/impl/a/x.cuh": "#include <mpix/impl/b/y.cuh>", "include/mpix/impl/b/y.cuh": "",
      "include/mpix/impl/b/z.cuh": "#include <mpix/impl/a/x.cuh>"}, 1),
]

# (page, files, how many breaches)
PAGE = "# Architecture\n\n## Folders\n\n| folder | subject |\n|---|---|\n| `host/a` | What a does. |\n\n## More\n\n| `host/c` | X. |\n"
FOLDERS = [
    (PAGE, ["host/a/x.h"], 0),
    (PAGE, ["host/a/x.h", "host/b/y.h"], 1),
    (PAGE, [], 1),
    (PAGE, ["host/a/%d.h" % n for n in range(MOST_FILES + 1)], 1),
    (PAGE.replace("does.", "does"), ["host/a/x.h"], 1),
    (PAGE.replace("What a does.", "One. Two."), ["host/a/x.h"], 1),
    (PAGE.replace("## Folders", "## Fodders"), ["host/a/x.h"], 1),
    (PAGE.replace("| `host/a`", "| `host/a` | It. |\n| `host/a`"), ["host/a/x.h"], 1),
]

# (files, how many breaches), by PAGE with two folders
ORDER = [
    ({"host/a/x.h": "", "host/b/y.h": '#include "host/a/x.h"'}, 0),
    ({"host/a/x.h": '#include "host/b/y.h"', "host/b/y.h": ""}, 1),
]


def self_test():
    failures = 0
    for path, line, allowed in SELF_TEST:
        found = list(check_text(path, "// first line\n" + line + "\n"))
        if bool(found) == allowed:
            failures += 1
            print("self-test: %s: %s: expected to be %s" % (path, line, "allowed" if allowed else "refused"))
    for files, expected in CYCLES:
        found = list(check_cycles(files))
        if len(found) != expected:
            failures += 1
            print("self-test: %s: %d cycles, not %d: %s" % (sorted(files), len(found), expected, found))
    for page, paths, expected in FOLDERS:
        found = list(check_folders(page, paths))
        if len(found) != expected:
            failures += 1
            print("self-test: folders: %d breaches, not %d: %s" % (len(found), expected, found))
    for files, expected in ORDER:
        found = list(check_order(PAGE.replace("does. |", "does. |\n| `host/b` | B. |"), files))
        if len(found) != expected:
            failures += 1
            print("self-test: order: %d breaches, not %d: %s" % (len(found), expected, found))
    print("%d cases tried, %d judged wrongly" % (len(SELF_TEST) + len(CYCLES) + len(FOLDERS) + len(ORDER), failures))
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2],
                        help="repository root")
    parser.add_argument("--self-test", action="store_true", help="try the rules on what breaks them")
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
