#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_links.py <source directory> | --self-test: what the Markdown pages name is there, and pages that sources name.

Links within the repository lead to a file or folder, and their anchors to a heading. Paths in backticks that begin with a
folder of the repository exist; those with <, *, { or ... in them are patterns. Where a page says "`name` in `file`", or
"`one`, `two` and `three` in `file`", the file has these names; of a file without its folder, one file of that name has.
The pages and tables of docs/ that comments and scripts name exist. The README has at most 150 lines.
"""
import re
import sys
import tempfile
from pathlib import Path

FOLDERS = ("include", "host", "device", "transport", "tests", "examples", "docs", "cmake", "scripts", ".ci")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMES_IN_FILE = re.compile(r"((?:`[^`\n]+`(?:,\s+and\s+|,\s+|\s+and\s+|\s+or\s+))*`[^`\n]+`)\s+in\s+`([\w./-]+\.[a-zA-Z]+)`")
NAME = re.compile(r"(?:[\w~]+::)*(~?[A-Za-z_]\w*)(?:\(\))?")
MOST_README_LINES = 150
PAGE = re.compile(r"\bdocs/[\w./-]+\.(?:md|csv)\b")


def pages(source):
    yield from sorted(source.glob("*.md"))
    for folder in ("docs", "examples", "tests"):
        yield from sorted((source / folder).rglob("*.md"))


def without_blocks(text):
    """Code blocks blanked, so that line numbers stay."""
    return re.sub(r"^( *)```.*?^ *```", lambda m: re.sub(r"[^\n]", "", m[0]), text, flags=re.MULTILINE | re.DOTALL)


def anchors(path, known={}):
    """GitHub's: letters, digits, - and _ of the heading in lower case, - for a space."""
    if path not in known:
        text = without_blocks(path.read_text(encoding="utf-8"))
        known[path] = set()
        for heading in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
            heading = LINK.sub(lambda m: m[0][m[0].index("[") + 1:m[0].index("]")], heading)
            known[path].add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return known[path]


def wrong_in(source, page):
    text = without_blocks(page.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            if not path.exists():
                yield number, f"{target} is not there"
            elif anchor and (path.suffix != ".md" or anchor not in anchors(path)):
                yield number, f"{target}: there is no such heading"
        for name in re.findall(r"`([^`\s]+)`", line):
            name = name.rstrip("/")
            if name.split("/")[0] not in FOLDERS or "/" not in name or re.search(r"[<>*{}$|]|\.\.\.", name):
                continue
            if not (source / re.sub(r":\d+$", "", name)).exists():
                yield number, f"{name} is not in the repository"


def source_files(source, known={}):
    """Name without folder -> its files, of all folders but the pages'."""
    if source not in known:
        known[source] = {}
        for folder in FOLDERS:
            if folder != "docs":
                for path in (source / folder).rglob("*.*"):
                    known[source].setdefault(path.name, []).append(path)
    return known[source]


def missing_names(source, page):
    text = without_blocks(page.read_text(encoding="utf-8"))
    for match in NAMES_IN_FILE.finditer(text):
        names, file = match.groups()
        # A file that is not there is reported by wrong_in, if the page gives its folder.
        files = [source / file] if "/" in file else source_files(source).get(file, [])
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file()]
        for name in re.findall(r"`([^`]+)`", names):
            word = NAME.fullmatch(name)
            if word and texts and not any(re.search(r"(?<![\w~])%s\b" % re.escape(word[1]), one) for one in texts):
                yield text.count("\n", 0, match.start()) + 1, f"{file} has no {name}"


def missing_pages(source):
    for folder in (*FOLDERS, "bindings", "packaging"):
        for path in sorted((source / folder).rglob("*")):
            if path.suffix in (".md", ".pyc") or not path.is_file() or path.name == Path(__file__).name:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                for page in PAGE.findall(line):
                    if "..." not in page and not (source / page).exists():
                        yield f"{path.relative_to(source)}:{number}: {page} is not there"


def check(source):
    wrong = [f"{page.relative_to(source)}:{number}: {why}" for page in pages(source)
             for number, why in sorted([*wrong_in(source, page), *missing_names(source, page)])]
    wrong += missing_pages(source)
    lines = len((source / "README.md").read_text(encoding="utf-8").splitlines())
    if lines > MOST_README_LINES:
        wrong.append(f"README.md has {lines} lines, of at most {MOST_README_LINES}")
    return wrong


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        (source / "docs").mkdir()
        (source / "host").mkdir()
        (source / "host/there.cc").write_text("int one, two_and_more; three::four(); ~five();  // docs/a.md, docs/gone.md\n")
        (source / "README.md").write_text(
            "# A, `b` and c\n[good](docs/a.md#two-words) [good](#a-b-and-c) [out](https://example.org/x) `host` `host/`\n"
            "[gone](docs/b.md)\n[no heading](docs/a.md#three)\n`host/gone.cc`\n```\n[in a block](x.md) `host/x`\n```\n"
            "`host/<name>.cc` `host/*.cc`\n`one`, `x::four` and\n`~five` in `host/there.cc`; `two` in `there.cc`, and `five` or `--csv FILE` "
            "in `host/there.cc`\n" + "\n" * MOST_README_LINES)
        (source / "docs/a.md").write_text("## Two words\n[up](../README.md)\n```\n# three\n```\n")
        found = check(source)
    expected = ["README.md:3:", "README.md:4:", "README.md:5:", "README.md:11:", "README.md:11:", "host/there.cc:1:", "README.md has"]
    good = len(found) == len(expected) and all(line.startswith(start) for line, start in zip(found, expected))
    print("\n".join(found) if not good else f"{len(expected)} of {len(found)} faults found")
    return [] if good else ["self-test failed"]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong = self_test() if sys.argv[1] == "--self-test" else check(Path(sys.argv[1]).resolve())
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
