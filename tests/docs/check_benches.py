#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_benches.py <source directory>: the table of docs/performance/benches.md has the programs of tests/bench."""
import re
import sys
from pathlib import Path

source = Path(sys.argv[1])
built = re.findall(r"^ *(?:mpix_add_bench|add_executable)\((\S+)", (source / "tests/bench/CMakeLists.txt").read_text(encoding="utf-8"), re.M)
listed = re.findall(r"^\| `([\w.]+)` \|", (source / "docs/performance/benches.md").read_text(encoding="utf-8"), re.M)
wrong = [f"{name} is not in the table" for name in sorted(set(built) - set(listed))]
wrong += [f"the table has {name}, which is not built" for name in sorted(set(listed) - set(built))]
print("\n".join([*wrong, f"{len(listed)} benches, {len(built)} built"]))
sys.exit(1 if wrong or not built else 0)
