#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The HTML reference describes what the public headers declare.

Usage: check_reference.py <repository> <folder>

Runs scripts/reference, which fails if doxygen warns of a comment, and looks in its pages for a description of each call, each
device function and each class of the headers that users include.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

root, folder = (Path(argument) for argument in sys.argv[1:])
shutil.rmtree(folder, ignore_errors=True)
result = subprocess.run([root / "scripts/reference", folder]).returncode
if result != 0:
    sys.exit(result)

# A comment, and the name that is declared after it.
FUNCTION = re.compile(r"\*/\s*(?:template ?<[^;{}]*?>\s*)?(?:MPIX_FN |static inline )?\w[\w :]*[ *]+(\w+)\([^;{}]*\)\s*[;{]")
CLASS = re.compile(r"\*/\s*(?:template ?<[^;{}]*?>\s*)?(?:class|struct|enum class) (?:MPIX_HALO_API )?(\w+) \{")
include = root / "include/mpix"
wanted = set()
for header in [*include.glob("*.h"), include / "device.cuh"]:
    wanted.update(FUNCTION.findall(header.read_text()))
for header in include.glob("halo/*.hpp"):
    wanted.update(CLASS.findall(header.read_text()))
if len(wanted) < 100:
    sys.exit(f"only {len(wanted)} names were found in the headers")

described = set()
for page in folder.glob("*.html"):
    text = page.read_text()
    for member in text.split('<h2 class="memtitle">')[1:]:
        name = re.match(r"<span.*?</span>(\w+)", member)
        if name and "<p>" in member.partition('<div class="memdoc">')[2]:
            described.add(name[1])
    if 'name="details"' in text:
        described.update(re.findall(r'class="title">[^<]*?(\w+)(?:&lt;[^<]*)? (?:Class|Struct|Enum)', text))
missing = sorted(wanted - described)
print(f"{len(wanted)} names, {len(missing)} without a description: {' '.join(missing)}")
sys.exit(1 if missing else 0)
