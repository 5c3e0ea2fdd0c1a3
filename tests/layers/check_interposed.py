#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that host/mpi/interposed.def lists the MPI functions that host/ defines, and no others."""

import re
import sys
from pathlib import Path

host = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "host"
defined = set()
for source in sorted(host.rglob("*.cc")):
    defined |= set(re.findall(r"^MPIX_SYMBOL int MPI_(\w+)", source.read_text(), re.MULTILINE))
listed = re.findall(r"^MPIX_(?:PASSED_ON|OWN)\((\w+)\)", (host / "mpi/interposed.def").read_text(), re.MULTILINE)
for name in sorted(defined - set(listed)):
    print("MPI_%s is defined, but not in interposed.def" % name)
for name in sorted(name for name in set(listed) if name not in defined or listed.count(name) > 1):
    print("MPI_%s is in interposed.def, but not defined, or twice" % name)
if not defined or sorted(defined) != sorted(listed):
    sys.exit(1)
print("%d functions" % len(defined))
