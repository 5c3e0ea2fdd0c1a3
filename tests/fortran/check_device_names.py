#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that mpix_device.cu, as PTX, has every function that the module mpix_device declares, and no other:
check_device_names.py mpix_device.F90 PTX. Each parameter is compared by its size."""

import re
import sys


def declared(source):
    """name -> sizes of the parameters, in order."""
    functions = {}
    for name, parameters, body in re.findall(r'function (\w+)\(([^)]*)\) bind\(C, name="\1"\)\n(.*?)end function', source,
                                             re.S):
        integers = re.search(r"integer\(c_int\), value :: (.*)", body)
        integers = integers.group(1).split(", ") if integers else []
        functions[name] = [32 if p in integers else 64 for p in parameters.split(", ")]
    return functions


def defined(ptx):
    functions = {}
    for name, parameters in re.findall(r"\.visible \.func\s+\(\.param \.b32 \w+\)\s*(mpix_\w+)\s*\(([^)]*)\)", ptx):
        functions[name] = [int(size) for size in re.findall(r"\.param \.b(\d+)", parameters)]
    return functions


def main():
    texts = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    wanted, found = declared(texts[0]), defined(texts[1])
    wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    for name in wrong:
        print("%s: declared as %s, defined as %s" % (name, wanted.get(name), found.get(name)))
    print("%d functions, %d wrong" % (len(wanted), len(wrong)))
    return 1 if wrong or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
