# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests of a module, on mpix, on all ranks: mpi4py_tests.py MODULE, in mpi4py's folder of tests.

None may fail or be skipped, on any rank."""
import importlib
import os
import sys
import unittest

import needed

name = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
_, MPI = needed.load()
sys.path.insert(0, os.getcwd())


def hide_packages_without_a_gpu():
    """mpi4py's tests use CuPy and Numba wherever they can be imported, also without a GPU."""
    for package in ("cupy", "numba"):
        try:
            available = importlib.import_module(f"{package}.cuda").is_available()
        except Exception:  # pylint: disable=broad-except  # not there, or not made for this NumPy
            available = False
        if not available:
            sys.modules[package] = None


def main():
    hide_packages_without_a_gpu()
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromName(name))
    assert result.wasSuccessful() and result.testsRun > 0, result
    assert not result.skipped, result.skipped[0][1]
    if MPI.COMM_WORLD.reduce(result.testsRun):
        print(f"{result.testsRun} tests of {name} passed on {MPI.COMM_WORLD.size} ranks")


needed.run(main, MPI)
