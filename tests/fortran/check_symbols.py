#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that no Fortran name of an interposed function leads past libmpix.

Takes the MPI library's Fortran libraries apart by nm. A library that does not import MPI_X calls X past mpix by all names
that it defines for X. One that does so, as MPICH's, calls it past mpix by its names of mpi_f08, except for those with a
buffer (mpi_x_f08ts_)."""

import argparse
import re
import subprocess
import sys


def symbols(nm, library, *options):
    # Nothing of a linker script, such as libm.so.
    text = subprocess.run([nm, "-D", *options, library], check=False, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines() if line.strip()}


def names_of(function):
    """The pattern of Fortran names of a function, and that of those of mpi_f08."""
    lower = function.lower()
    f08 = r"mpi_%s_f08(_large)?_" % lower
    return re.compile(r"mpi_%s_{0,2}|MPI_%s|%s" % (lower, lower.upper(), f08)), re.compile(f08)


def past_mpix(function, defined, imported):
    """Of the names in `defined`, those that call `function` past mpix."""
    every, f08 = names_of(function)
    names = {name for name in defined if every.fullmatch(name)}
    if "MPI_" + function in imported:
        names = {name for name in names if f08.fullmatch(name)}
    # MPICH's name of a large count, and that of the standard.
    return names | {name.replace("_f08_large_", "_c_f08_") for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--list", required=True, help="interposed.def")
    parser.add_argument("--mpix", required=True, help="libmpix.so")
    parser.add_argument("libraries", nargs="+", help="of the MPI library")
    arguments = parser.parse_args()

    with open(arguments.list, encoding="utf-8") as file:
        functions = re.findall(r"^MPIX_(?:PASSED_ON|OWN)\((\w+)\)", file.read(), re.M)
    ours = symbols(arguments.nm, arguments.mpix, "--defined-only")
    seen, missing = 0, []
    for library in arguments.libraries:
        defined = symbols(arguments.nm, library, "--defined-only")
        imported = symbols(arguments.nm, library, "--undefined-only")
        for function in functions:
            names = past_mpix(function, defined, imported)
            seen += len(names)
            missing += ["%s of %s" % (name, library) for name in sorted(names - ours)]
    for name in missing:
        print("libmpix does not define " + name)
    print("%d functions, %d Fortran names, %d not defined" % (len(functions), seen, len(missing)))
    return 1 if missing or not functions or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
