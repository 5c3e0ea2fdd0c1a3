#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_excerpts.py <source directory> <page> | --self-test: what a page shows of a program is in the program.

A code block after a line <!-- path --> consists of lines that follow each other in that file, indented as there less the
same for all.
"""
import re
import sys
from pathlib import Path

EXCERPT = re.compile(r"^<!-- (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def without_indent(lines):
    least = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[least:].rstrip() for line in lines]


def is_in(excerpt, text):
    lines, wanted = text.splitlines(), without_indent(excerpt.splitlines())
    return any(without_indent(lines[i:i + len(wanted)]) == wanted for i in range(len(lines) - len(wanted) + 1))


def self_test():
    text = "{\n    a;\n        b;\n\n    c;\n}\n"
    right = is_in("a;\n    b;\n", text) and is_in("    b;\n\nc;\n", text)
    wrong = is_in("a;\nb;\n", text) or is_in("a;\n    c;\n", text)
    page = "<!-- x.cu -->\n```cuda\na;\n```\n```sh\nb\n```\n"
    return 0 if right and not wrong and EXCERPT.findall(page) == [("x.cu", "a;\n")] else 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    source, page = map(Path, sys.argv[1:])
    excerpts = EXCERPT.findall(page.read_text(encoding="utf-8"))
    missing = [(path, text) for path, text in excerpts if not is_in(text, (source / path).read_text(encoding="utf-8"))]
    for path, text in missing:
        print(f"{page}: not in {path}:\n{text}")
    print(f"{len(excerpts)} excerpts, {len(missing)} missing")
    return 1 if missing or not excerpts else 0


if __name__ == "__main__":
    sys.exit(main())
