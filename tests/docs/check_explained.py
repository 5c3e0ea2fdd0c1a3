#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_explained.py <page> <launcher, its words joined by "|"> <program>: runs the program, and looks for each table
that the page shows, line by line, in what it prints."""
import re
import subprocess
import sys
from pathlib import Path


def blocks(lines):
    """The tables: those of one rank do not mix with each other, and a header line has no indentation."""
    found = {}
    rank_now = {}
    for line in lines:
        match = re.match(r"mpix explain: rank (\d+): (.*)", line)
        if not match:
            continue
        rank, text = match.groups()
        if not text.startswith(" "):
            rank_now[rank] = found.setdefault((rank, text), [])
        elif "  cuda_ipc " not in text:  # whose reason depends on the machine
            rank_now[rank].append(text)
    return found


page, launcher, program = sys.argv[1:]
shown = re.search(r"^```text\n(mpix explain.*?)^```", Path(page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
if shown is None:
    sys.exit("the page shows no table")
run = subprocess.run([*launcher.split("|"), program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                     errors="replace", check=False)
print(run.stdout)
expected, printed = blocks(shown[1].splitlines()), blocks(run.stdout.splitlines())
wrong = [key for key, table in expected.items() if printed.get(key) != table]
for key in wrong:
    print(f"rank {key[0]}: {key[1]}\n  on the page: {expected[key]}\n  printed: {printed.get(key)}")
sys.exit(1 if wrong or not expected or run.returncode != 0 else 0)
