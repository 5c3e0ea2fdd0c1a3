#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_conformance.py <source directory>: the tables of docs/conformance.md and the test cases name each other.

Every case or test that a table names exists; every case that is named after a rule or a peer is in a table, a rule's in
the row of its rule; no rule is without a case. The table of MPI libraries has what docs/results/mpi_libraries.csv says.
"""
import csv
import re
import sys
from pathlib import Path

source = Path(sys.argv[1])
rules = 14


def cases():
    found = set()
    for folder in ("conformance", "errors", "mpi41"):
        for path in sorted((source / "tests" / folder).glob("*.c")):
            names = re.findall(r'^ {8}\{"([^"]+)",', path.read_text(encoding="utf-8"), re.MULTILINE)
            found |= {f"{path.stem}: {name}" for name in names}
    return found


def is_a_test(name):
    """Whether some CMakeLists.txt adds it; the last parts of a name may be put together there."""
    folder, program, *run = name.split(".")
    text = (source / "tests" / folder / "CMakeLists.txt").read_text(encoding="utf-8")
    return all(re.search(rf"\b{re.escape(part)}\b", text) for part in (program, *run))


def library_rows():
    names = {"mpich": "MPICH", "mpich-abi": "MPICH, standard ABI,", "openmpi": "Open MPI", "impi": "Intel MPI"}
    with open(source / "docs/results/mpi_libraries.csv", encoding="utf-8", newline="") as f:
        for line in csv.DictReader(f):
            own = [line[column] for column in ("own_passed", "own_failed", "own_hung_or_crashed")]
            yield " | ".join([f"| {names[line['library']]} {line['version']}", line["passed"], line["failed"],
                              line["skipped"], line["demo"], *own]) + " |"


def main():
    wrong = []
    existing, named, by_rule, rule = cases(), set(), set(), None
    text = (source / "docs/conformance.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\|.*\|$", text, re.MULTILINE):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if cells[0]:
            rule = int(cells[0]) if cells[0].isdigit() else None
        if len(cells) != 3:
            continue  # not one of these tables
        for name in re.findall(r"`([^`]+)`", cells[2]):
            named.add(name)
            if ": " not in name:
                if not is_a_test(name):
                    wrong.append(f"no test {name}")
            elif name not in existing:
                wrong.append(f"no case {name}")
            by_rule.add((rule, name))
    for name in sorted(existing):
        own_rule = re.match(r"\w+: rule (\d+)\b", name)
        if own_rule and (int(own_rule[1]), name) not in by_rule:
            wrong.append(f"not in a row of its rule: {name}")
        elif re.match(r"\w+: (Open MPI|MPICH|MPIPCL|mpi-acx)\b", name) and name not in named:
            wrong.append(f"in no table: {name}")
    wrong += [f"not as in results/mpi_libraries.csv: no row {row}" for row in library_rows() if row not in text]
    with_cases = {number for number, _ in by_rule}
    wrong += [f"rule {number} has no case" for number in range(1, rules + 1) if number not in with_cases]
    for line in wrong:
        print(f"docs/conformance.md: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
