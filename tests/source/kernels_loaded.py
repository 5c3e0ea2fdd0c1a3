#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each kernel of the library is loaded before a request is exported, by a function whose name begins with load.

Otherwise its first launch, with lazy loading, may wait for a kernel of the user that waits for what it does. A template
counts as loaded if one of its instances is.
"""

import argparse
import re
import sys
from pathlib import Path

KERNEL = re.compile(r"\b__global__\b[^;{]*?\b(?!__launch_bounds__\b)(?!void\b)(\w+)\((?=[^;{]*\{)")
BOUNDS = re.compile(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)")
LOADED = re.compile(r"\b(?:cudaFuncGetAttributes\(&\w+|load\(\w+),\s*(\w+)")
COMMENT = re.compile(r"//[^\n]*")


def kernels_not_loaded(texts):
    """(file, kernel) of each kernel in {file: text} that none of the files loads."""
    texts = {name: BOUNDS.sub("", COMMENT.sub("", text)) for name, text in texts.items()}
    loaded = {match.group(1) for text in texts.values() for match in LOADED.finditer(text)}
    kernels = [(name, match.group(1)) for name, text in sorted(texts.items()) for match in KERNEL.finditer(text)]
    return kernels, [kernel for kernel in kernels if kernel[1] not in loaded]


def self_test():
    text = """
        // __global__ void in_a_comment(int) {}
        template <int N>
        __global__ void __launch_bounds__(threads<N>, 1536 / threads<N>) wide(const box b) { f(b); }
        __global__ void __launch_bounds__(at<W, g()>)
            broken(int n, int *m) {}
        __global__ void narrow() {}
        int load_all() { load(error, wide<4>); return cudaFuncGetAttributes(&a, broken); }
    """
    kernels, missing = kernels_not_loaded({"a.cu": text})
    assert [k for _, k in kernels] == ["wide", "broken", "narrow"], kernels
    assert missing == [("a.cu", "narrow")], missing
    assert kernels_not_loaded({"a.cu": text, "b.cu": "load(error, narrow);"})[1] == []
    print("self-test: passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    files = sorted((arguments.root / "device").rglob("*.cu"))
    kernels, missing = kernels_not_loaded({str(f.relative_to(arguments.root)): f.read_text() for f in files})
    for name, kernel in missing:
        print("%s: %s is not loaded before the first export; add it to a load function" % (name, kernel))
    print("%d kernels, %d not loaded" % (len(kernels), len(missing)))
    return 1 if missing or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
