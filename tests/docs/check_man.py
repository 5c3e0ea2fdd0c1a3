#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that each public call has a man page, with its prototype, a description, and nothing that groff warns of.

check_man.py <folder of man3 and man7> <libmpix.so> <nm> <header>...
The calls are those that the headers declare, and the names in mixed case that the library exports."""

import re
import shutil
import subprocess
import sys
from pathlib import Path


def exported(nm, library):
    text = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = (line.split()[-1] for line in text.splitlines() if line.strip())
    # Fortran's names are in one case.
    return {name for name in names if re.fullmatch(r"MPIX_\w*[a-z]\w*|MPI_(?:P(?:send|recv)_init|Pready\w*|Parrived)", name)}


def declared(headers):
    return {name for header in headers
            for name in re.findall(r"^(?:static inline )?\w+ \*?(MPIX?_\w*[a-z]\w*)\(", Path(header).read_text(), re.M)}


def other_names(headers):
    return {name for header in headers
            for name in re.findall(r"^#define (MPIX_\w*[a-z]\w*) MPIX_\w*[a-z]\w*$", Path(header).read_text(), re.M)}


def problems_of(folder, call):
    path = folder / "man3" / (call + ".3mpix")
    if not path.is_file():
        return ["no page"]
    text = path.read_text()
    if alias := re.fullmatch(r"\.so (man3/\w+\.3mpix)\n", text):
        text = (folder / alias.group(1)).read_text()
    name = re.search(r"^\.SH NAME\n(.*?) \\- (.*)$", text, re.M)
    synopsis = re.search(r"^\.SH SYNOPSIS\n(.*?)^\.SH ", text, re.M | re.S)
    description = re.search(r"^\.SH DESCRIPTION\n(.*?)^\.SH ", text, re.M | re.S)
    out = []
    if not name or call not in name.group(1).split(", ") or len(name.group(2)) < 10:
        out.append("no NAME")
    if not synopsis or "%s(" % call not in synopsis.group(1) or "#include <mpix/" not in synopsis.group(1):
        out.append("no SYNOPSIS")
    if not description or len(description.group(1)) < 20:
        out.append("no DESCRIPTION")
    if re.search(r"`|/\*|\*/|^ \*", text, re.M):
        out.append("marks of the comment are left in it")
    return out


def warnings_of(folder, page):
    groff = shutil.which("groff")
    if groff is None:
        return []
    told = subprocess.run([groff, "-man", "-ww", "-z", "-Tutf8", str(page.relative_to(folder))], cwd=folder, check=False,
                          capture_output=True, text=True)
    return told.stderr.splitlines()


def main():
    folder, library, nm, headers = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
    calls = exported(nm, library) | declared(headers)
    pages = sorted(folder.glob("man[137]/*"))
    found = ["%s: %s" % (call, what) for call in sorted(calls) for what in problems_of(folder, call)]
    found += ["mpix_info: no page"] if not (folder / "man1/mpix_info.1").is_file() else []
    found += [line for page in pages for line in warnings_of(folder, page)]
    others, named = other_names(headers), {page.name.split(".")[0] for page in pages if page.parent.name == "man3"}
    found += ["%s: no page" % name for name in sorted(others - named)]
    surplus = named - calls - others
    found += ["%s has a page, and is no call" % name for name in sorted(surplus)]
    for line in found:
        print(line)
    print("%d calls, %d pages, %d problems" % (len(calls), len(pages), len(found)))
    return 1 if found or not calls else 0


if __name__ == "__main__":
    sys.exit(main())
