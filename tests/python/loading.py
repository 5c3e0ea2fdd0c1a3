# SPDX-License-Identifier: BSD-3-Clause
"""`import mpix` in programs that load it, MPI and mpi4py in different orders; and its commands.

Usage: loading.py LIBMPIX, with the variable MPIX_LIBRARY set to the same. Each program is a process of its own.
"""
import os
import subprocess
import sys

import needed

library = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
needed.load()

# A send that the process receives itself, and mpix's own word for its path.
REACHES = """
data = bytearray(b"sent"), bytearray(4)
both = [MPI.COMM_SELF.Psend_init([data[0], 4, MPI.BYTE], 1, 0, 5),
        MPI.COMM_SELF.Precv_init([data[1], 4, MPI.BYTE], 1, 0, 5)]
MPI.Prequest.Startall(both)
both[0].Pready(0)
MPI.Prequest.Waitall(both)
print("received", data[1].decode(), "by", mpix.path(both[0]))
for request in both: request.Free()
"""
# The MPI library by itself, before mpix and for all to see, as programs did for former versions of Open MPI.
GLOBAL_MPI = """
import ctypes, sys
sys.path.insert(0, {folder!r})
import _find
name = next(name for name in _find.needed({library!r}) if name in _find.KINDS)
ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
"""


def other_kind():
    from mpix import _find

    return "mpich" if _find.kind_of(library) == "openmpi" else "openmpi"


def run(program, *arguments, **variables):
    command = [sys.executable, "-c", program] if program is not None else [sys.executable, *arguments]
    done = subprocess.run(command, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def check(what, result, status, *sentences):
    code, output = result
    wrong = [s for s in sentences if s not in output]
    if code != status or wrong or "WARNING" in output:
        sys.exit(f"{what}: exit status {code}, not {status}; missing: {wrong}\n{output}")
    print("right:", what)


mpi4py, mpix, folder = "from mpi4py import MPI\n", "import mpix\n", os.path.dirname(needed.load()[0].__file__)
RECEIVED = "received sent by"
check("mpix first", run(mpix + mpi4py + REACHES), 0, RECEIVED)
check("preloaded, mpi4py first", run(mpi4py + mpix + REACHES, LD_PRELOAD=library), 0, RECEIVED)
check("python -m mpi4py", run(None, "-m", "mpi4py", "-c", mpix + mpi4py + REACHES), 0, RECEIVED)
check("mpi4py first", run(mpi4py + mpix), 1,
      "ImportError: mpi4py.MPI was imported before mpix, so its calls do not reach libmpix: import mpix first", library)
check("an MPI library first", run(GLOBAL_MPI.format(folder=folder, library=library) + mpix), 1,
      "ImportError: ", "was loaded for all to see before mpix")
check("no such library", run(mpix, MPIX_LIBRARY="/nowhere/libmpix.so.0"), 1,
      "ImportError: MPIX_LIBRARY is /nowhere/libmpix.so.0, which is not a file")
check("no library at all", run(mpix, MPIX_LIBRARY=__file__), 1, "ImportError: libmpix cannot be loaded")
check("another MPI library's", run(mpix, MPI4PY_MPIABI=other_kind()), 1,
      f"ImportError: mpi4py is built for {other_kind()}, and ")
check("another MPI library's, preloaded", run(mpix, MPI4PY_MPIABI=other_kind(), LD_PRELOAD=library), 1,
      f"but mpi4py is built for {other_kind()}")
check("info", run(None, "-m", "mpix", "info"), 0, "MPIX_PROGRESS=", "built for")
check("library", run(None, "-m", "mpix", "library"), 0, library)
folder, name = os.path.split(library)
if os.path.exists(os.path.join(folder, "libmpix.so.0")):
    paths = os.pathsep.join([folder] + [p for p in [os.environ.get("LD_LIBRARY_PATH")] if p])
    check("where the loader looks", run(None, "-m", "mpix", "library", MPIX_LIBRARY="", LD_LIBRARY_PATH=paths), 0,
          os.path.join(folder, "libmpix.so.0"))
check("no such command", run(None, "-m", "mpix", "infos"), 2, "python -m mpix info")
