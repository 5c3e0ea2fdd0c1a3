# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests of a module, on mpix, on all ranks: mpi4py_tests.py MODULE, in mpi4py's folder of tests.

None may fail or be skipped, on any rank."""
import os
import sys
import unittest

import needed

name = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
_, MPI = needed.load()
sys.path.insert(0, os.getcwd())


def main():
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromName(name))
    assert result.wasSuccessful() and result.testsRun > 0, result
    assert not result.skipped, result.skipped[0][1]
    if MPI.COMM_WORLD.reduce(result.testsRun):
        print(f"{result.testsRun} tests of {name} passed on {MPI.COMM_WORLD.size} ranks")


needed.run(main, MPI)
