#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of ordered accesses: every one in the code carries a tag, and docs/dev/memory-order.md is made from the tags.

An ordered access is a call of a function of include/mpix/detail/order.h that orders, or a std::memory_order other than
relaxed. It is tagged in a comment, `// pairs: A1`, or `// pairs: A1, B2`, at the end of its line, of a line that its statement
goes on in, or on a comment line right above. pairs.def says what each tag hands over. Without an option: fails on an access
without a tag, on a tag without both sides or without an entry, on an entry that no access has, and if the page is stale.
With --write the page is written. With --list all accesses are printed.
"""

import argparse
import bisect
import re
import sys
from pathlib import Path

FOLDERS = ("include", "device", "host", "transport")
SUFFIXES = {".h", ".hpp", ".cuh", ".cc", ".cu", ".c"}
ORDER_H = "include/mpix/detail/order.h"  # defines them
PAGE = "docs/dev/memory-order.md"

RELEASE = {"store_release", "store_release_gpu", "increment_release_gpu", "store_release_after_fence", "store_release_record", "store_release_mmio"}
ACQUIRE = {"exchange_acquire", "load_acquire", "load_acquire_gpu", "load_acquire_pair", "load_acquire_record", "fence_acquire", "reached_acquire"}
BOTH = {"fence_acq_rel", "fetch_add_acq_rel_gpu", "cas_acq_rel_gpu", "compare_exchange_acq_rel_gpu", "set_flag_seq_cst",
        "test_flag_seq_cst"}
NAMED = re.compile(r"(?<![\w.>])(%s)\(" % "|".join(sorted(RELEASE | ACQUIRE | BOTH, key=len, reverse=True)))
RAW = re.compile(r"\b(?:std::)?memory_order_(acquire|release|acq_rel|seq_cst|consume)\b|\b(atomic_thread_fence|__threadfence\w*)\(")
# An atomic whose order is not stated, by the names of all atomics.
ATOMIC = re.compile(r"\batomic(?:_ref)?<[^;(){}]*>\s*[*&]?\s*(\w+)")
UNSTATED = r"\b(?:%s)(?:\.|->)(?:load\(\)|store\([^(),]*\)|fetch_\w+\([^(),]*\)|exchange\([^(),]*\))|(?:\+\+|--)(?:%s)\b|\b(?:%s)(?:\+\+|--)"
TAG = re.compile(r"\bpairs: ([A-Z]\d+(?:, [A-Z]\d+)*)")
SIDES = {"release": "gives", "acquire": "takes", "both": "both"}


class Access:
    def __init__(self, path, line, function, name, text, side, tags):
        self.path, self.line, self.function, self.name, self.text = path, line, function, name, text
        self.side, self.tags = side, tags

    def where(self):
        return "%s:%d" % (self.path, self.line)

    def shown(self):
        return "`%s` in `%s`" % (self.text, self.function)


def without_comments(text):
    """The text with comments and strings blanked, line ends kept."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group())
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', blank, text, flags=re.S)


NOT_FUNCTIONS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "defined", "alignas", "decltype", "requires",
                 "__launch_bounds__", "__attribute__", "constexpr", "noexcept"}
SIGNATURE = re.compile(r"(~?\b[A-Za-z_]\w*(?:::~?\w+)*|operator\S+)\s*\(")


def functions(code):
    """Where another function begins to be around: offsets, and names, by braces; a class's name goes before it."""
    offsets, around, stack, names, start = [0], [""], [], [], 0
    for at, char in enumerate(code):
        if char in ";}":
            if char == "}" and stack:
                if stack.pop():
                    names.pop()
            start = at + 1
        elif char == "{":
            head = re.sub(r"#[^\n]*|\btemplate\s*<[^{;]*?>\s*(?=\w)", " ", code[start:at]).strip()
            name = ""
            record = re.match(r"(?:.*\b)?(?:struct|class|union)\s+(?:alignas\([^)]*\)\s*)?(\w+)", head, re.S)
            if record and "(" not in head.split(record.group(1))[0] and ")" not in head and "=" not in head:
                name = record.group(1) + "::"
            elif not record or "(" in head:
                for m in SIGNATURE.finditer(head):
                    first = re.split(r"\W", m.group(1))[0]
                    if first not in NOT_FUNCTIONS and not head.startswith(("if", "for", "while", "switch", "else", "do ", "catch")):
                        if not names or names[-1].endswith("::"):
                            name = m.group(1)
                        break
            if name:
                outer = names[-1] if names and names[-1].endswith("::") else ""
                names.append(name if name.endswith("::") else outer + name)
            stack.append(bool(name))
            start = at + 1
        if char in "{}":
            offsets.append(at)
            around.append(names[-1] if names else "")
    return offsets, around


def argument(code, at):
    """What stands between the bracket at `at` and its partner, on one line."""
    depth = 0
    for end in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        if depth == 0:
            return re.sub(r"\s+", " ", code[at + 1:end])
    return ""


def first_argument(text):
    depth = 0
    for at, char in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            return text[:at]
    return text


def statement_end(code, at):
    """The end of the line in which the statement of `at` ends, or its condition."""
    depth = 0
    for end in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        if code[end] in ";{}" and depth <= 0:
            break
    return code.find("\n", end)


CONDITION = re.compile(r"(?:\} else )?(?:if|for|while)\b.*\)$")  # on one line


def statement_start(code, at):
    """The begin of the line in which the statement of `at` begins."""
    line = code.rfind("\n", 0, at) + 1
    while line > 0:
        before = code.rfind("\n", 0, line - 1) + 1
        above = code[before:line].strip()
        if not above or above[-1] in ";{}:" or above.startswith("#") or above.endswith("else") or CONDITION.match(above):
            break
        line = before
    return line


def tags_of(text, code, at):
    line = statement_start(code, at)
    tags = []
    for m in TAG.finditer(text, line, statement_end(code, at)):
        tags += m.group(1).split(", ")
    while line > 0:  # the comment right above
        before = text.rfind("\n", 0, line - 1) + 1
        above = text[before:line].strip()
        if not above.startswith("//"):
            break
        for m in TAG.finditer(above):
            tags += m.group(1).split(", ")
        line = before
    return list(dict.fromkeys(tags))


def accesses_in(path, text):
    code = without_comments(text)
    offsets, around = functions(code)
    for m in list(NAMED.finditer(code)) + list(RAW.finditer(code)):
        line = code.count("\n", 0, m.start())
        name = m.group(1) or m.group(2)
        if m.re is NAMED:
            shown = "%s(%s)" % (name, first_argument(argument(code, m.end() - 1)))
            side = "release" if name in RELEASE else "acquire" if name in ACQUIRE else "both"
        else:
            begin = max(code.rfind(c, 0, m.start()) for c in ";{}(\n")
            word = re.findall(r"([\w.>\[\]-]+)(?:\.|->)(load|store|exchange|fetch_\w+|compare_exchange_\w+)\(", code[:m.start()][-160:])
            shown = "%s.%s(%s)" % (word[-1][0], word[-1][1], name) if word else code[begin + 1:m.end()].strip()
            side = {"acquire": "acquire", "release": "release", "consume": "acquire"}.get(name, "both")
        yield Access(path, line + 1, around[bisect.bisect_right(offsets, m.start()) - 1] or "file", name, shown, side, tags_of(text, code, m.start()))


def unstated_in(path, text, names):
    if not names:
        return
    code, either = without_comments(text), "|".join(sorted(names))
    for m in re.finditer(UNSTATED % (either, either, either), code):
        yield "%s:%d: an atomic without a stated order: %s" % (path, code.count("\n", 0, m.start()) + 1, m.group())


def files(root):
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix in SUFFIXES and file.is_file() and path != ORDER_H:
                yield path, file.read_text(encoding="utf-8")


def read_pairs(path):
    """{tag: {field: text}} of pairs.def: a line `[A1] what is handed over`, then `field: text` lines; # is a comment."""
    pairs, subjects, now, field = {}, {}, None, None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        subject = re.fullmatch(r"== ([A-Z]) (.+)", line)
        head = re.fullmatch(r"\[([A-Z]\d+)\] (.+)", line)
        entry = re.fullmatch(r"(gives|takes|note|unproven|litmus): (.+)", line)
        if subject:
            subjects[subject.group(1)] = subject.group(2)
        elif head:
            if head.group(1) in pairs:
                raise SystemExit("%s:%d: %s twice" % (path, number, head.group(1)))
            now, field = pairs.setdefault(head.group(1), {"what": head.group(2)}), "what"
        elif entry and now is not None:
            field = entry.group(1)
            now[field] = entry.group(2)
        elif now is not None and line.startswith("  "):
            now[field] += " " + line.strip()
        else:
            raise SystemExit("%s:%d: not understood: %s" % (path, number, line))
    return subjects, pairs


def order_of(tag):
    return tag[0], int(tag[1:])


def problems_of(accesses, pairs):
    for a in accesses:
        if not a.tags:
            yield "%s: %s without a tag (// pairs: ...)" % (a.where(), a.text)
        for tag in a.tags:
            if tag not in pairs:
                yield "%s: %s has the tag %s, which pairs.def has not" % (a.where(), a.text, tag)
    for tag in sorted(pairs, key=order_of):
        mine = [a for a in accesses if tag in a.tags]
        gives = [a for a in mine if a.side in ("release", "both")]
        takes = [a for a in mine if a.side in ("acquire", "both")]
        if not mine and not ("gives" in pairs[tag] and "takes" in pairs[tag]):
            yield "%s: no access has this tag" % tag
        elif not gives and "gives" not in pairs[tag]:
            yield "%s: nothing releases (%s)" % (tag, ", ".join(a.where() for a in mine))
        elif not takes and "takes" not in pairs[tag]:
            yield "%s: nothing acquires (%s)" % (tag, ", ".join(a.where() for a in mine))
        elif mine and all(a.side == "both" for a in mine) and len(mine) == 1 and "note" not in pairs[tag]:
            yield "%s: one access alone, and no note says why (%s)" % (tag, mine[0].where())
        if "unproven" in pairs[tag] and "litmus" not in pairs[tag]:
            yield "%s: is unproven, and names no litmus" % tag


def listed(accesses, tag, sides, more):
    shown = sorted({a.shown() for a in accesses if tag in a.tags and a.side in sides})
    return "; ".join(([more] if more else []) + shown) or "-"


def page_of(accesses, subjects, pairs):
    lines = ["# Memory order", "",
             "Generated by `tests/source/memory_order.py --write` from the tags in the code (`// pairs: A1`) and from",
             "`tests/source/pairs.def`; a test fails if it is stale, if an ordered access has no tag, or a tag no partner.", "",
             "The functions are those of `include/mpix/detail/order.h`: the memory order is in the name, `_gpu` means device scope and",
             "everything else system scope. On a GPU they are operations of the PTX memory model, on the host of C++20's.",
             "**UNPROVEN** marks what rests on hardware beyond the PTX model, with the test that looks for a counterexample.", ""]
    for letter in sorted(subjects):
        lines += ["## %s. %s" % (letter, subjects[letter]), "", "| tag | what is handed over | released by | acquired by |", "|---|---|---|---|"]
        for tag in sorted((t for t in pairs if t[0] == letter), key=order_of):
            p = pairs[tag]
            what = p["what"]
            if "note" in p:
                what += ". " + p["note"]
            if "unproven" in p:
                what += " **UNPROVEN**: %s Litmus: %s" % (p["unproven"], p.get("litmus", "none"))
            lines.append("| %s | %s | %s | %s |" % (tag, what, listed(accesses, tag, ("release", "both"), p.get("gives")),
                                                    listed(accesses, tag, ("acquire", "both"), p.get("takes"))))
        lines.append("")
    return "\n".join(lines)


SELF_TEST = [
    # (source, what the problems must contain; None: there is none)
    ("void f() { store_release(&a->flag, 1); }  // pairs: A1\nvoid g() { load_acquire(&a->flag); }  // pairs: A1\n", None),
    ("void f() { store_release(&a->flag, 1); }\nvoid g() { load_acquire(&a->flag); }  // pairs: A1\n", "without a tag"),
    ("void f() { store_release(&a->flag, 1); }  // pairs: A1\n", "nothing acquires"),
    ("void g() { load_acquire(&a->flag); }  // pairs: A1\n", "nothing releases"),
    ("void f() { store_release(&a->flag, 1); }  // pairs: A2\n", "which pairs.def has not"),
    ("void f() { store_release(\n    &a->flag,\n    1); }  // pairs: A1\n// Here, pairs: A1\nvoid g() { load_acquire(&a->flag); }\n", None),
    ("void f() { x.store(1, std::memory_order_release); }  // pairs: A1\nvoid g() { x.load(std::memory_order_acquire); }\n", "without a tag"),
    ("void f() { x.store(1, std::memory_order_relaxed); }\n", "no access has this tag"),
]


def self_test():
    failures = 0
    for source, expected in SELF_TEST:
        said = list(problems_of(list(accesses_in("a.cc", source)), {"A1": {"what": "a"}}))
        if (not said) != (expected is None) or (expected and not any(expected in s for s in said)):
            failures += 1
            print("self-test: expected %r, found %r, of:\n%s" % (expected, said, source))
    print("%d sources tried, %d judged wrongly" % (len(SELF_TEST), failures))
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2], help="repository root")
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--list", action="store_true", help="print all ordered accesses")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    accesses, problems = [], []
    for path, text in files(arguments.root):
        accesses += accesses_in(path, text)
        header = Path(arguments.root / path).with_suffix(".h")  # its own
        known = text + (header.read_text(encoding="utf-8") if header.exists() else "")
        problems += unstated_in(path, text, set(ATOMIC.findall(without_comments(known))))
    if arguments.list:
        for a in accesses:
            print("%s\t%s\t%s\t%s\t%s" % (a.where(), a.function, a.text, a.side, ",".join(a.tags)))
        return 0
    subjects, pairs = read_pairs(Path(__file__).resolve().parent / "pairs.def")
    problems += problems_of(accesses, pairs)
    page, file = page_of(accesses, subjects, pairs), arguments.root / PAGE
    if arguments.write:
        file.write_text(page, encoding="utf-8")
    elif not file.exists() or file.read_text(encoding="utf-8") != page:
        problems.append("%s is stale: tests/source/memory_order.py --write" % PAGE)
    for problem in problems:
        print(problem)
    print("%d ordered accesses, %d pairs, %d problems" % (len(accesses), len(pairs), len(problems)))
    return 1 if problems or not accesses else 0


if __name__ == "__main__":
    sys.exit(main())
