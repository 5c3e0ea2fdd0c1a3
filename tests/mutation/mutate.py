#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows that every ordered access around the work queue is needed.

Replaces one call at a time by the same access without order (relaxed.h), one memory order by the relaxed one, or leaves
one lock out, in a copy; compiles the program for that file with ThreadSanitizer, and expects a race; of the unchanged
code none. x86 hides most missing orders from a run, but not from ThreadSanitizer, which goes by the memory model.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = {  # and what each is to show races in
    "queue": ["include/mpix/impl/work_queue/queue.cuh", "transport/workqueue/software_hca.cc",
              "transport/workqueue/software_hca.h"],
    "posting": ["include/mpix/impl/work_queue/post.cuh", "transport/workqueue/network_queue.cc"],
}
FILES = [file for files in PROGRAMS.values() for file in files]
ORDERED = ["load_acquire", "load_acquire_pair", "load_acquire_gpu", "store_release", "store_release_gpu",
           "store_release_after_fence", "fetch_add_acq_rel_gpu", "cas_acq_rel_gpu", "set_flag_seq_cst",
           "test_flag_seq_cst", "compare_exchange_acq_rel_gpu", "store_release_record", "load_acquire_record",
           "fence_acquire", "store_release_mmio", "fence_acq_rel", "load_pointer"]
# Not tried, and why. What is not needed at all belongs in the code as load_relaxed or store_relaxed, not here.
EXEMPT = {
    "store_release_mmio": "orders for a hardware NIC, which looks at the record when it is rung; the software one takes the record "
                          "alone for true",
    "set_flag_seq_cst": "is about which of two parties comes first: without it both may poll at once, but only if the processor "
                        "lets the load pass the store, within nanoseconds; its counterpart test_flag_seq_cst is tried",
    "load_pointer": "the request's postings are read behind the gate, which is an acquire already",
    "fence_acq_rel": "a fence on GPUs only; on the host store_release_after_fence is a release by itself, and is tried",
}
# Pattern, whose group is the name of the site and is replaced, and by what.
WEAKER = [
    (re.compile(r"(?<![\w.>])(?:detail::)?(%s)\(" % "|".join(ORDERED)), r"relaxed_\g<0>"),
    (re.compile(r"std::(memory_order_(?:acquire|release|acq_rel|seq_cst))\b"), "memory_order_relaxed"),
    (re.compile(r"const (std::(?:lock_guard|unique_lock) \w+\([^;]*\));"), "bool lock = true"),
]
SEEDS = 6


def sites(root):
    """(program, file, offset, line, name, replacement) of each ordered access; comments do not count."""
    for program, files in PROGRAMS.items():
        for file in files:
            text = (root / file).read_text(encoding="utf-8")
            code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment.group()), text)
            for pattern, weaker in WEAKER:
                for match in pattern.finditer(code):
                    name = match.group(1)
                    yield (program, file, match.start(1), text.count("\n", 0, match.start()) + 1, name,
                           weaker.replace(r"\g<0>", name))


def build(compiler, root, overlay, program, folder):
    """None, or what the compiler says. Files of `overlay` come before the repository's own."""
    command = [compiler, "-std=c++20", "-O1", "-g", "-fsanitize=thread", "-pthread"]
    for base in (overlay, root):
        if base:
            command += ["-I%s" % base, "-I%s" % (base / "include")]
    command += ["-include", str(root / "tests/mutation/relaxed.h"), str(root / "tests/mutation" / (program + ".cc")),
                "-o", str(folder / program)]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return made.stdout if made.returncode else None


def run(program, seed, epochs):
    """'race', 'clean', or how it went wrong."""
    environment = dict(os.environ, TSAN_OPTIONS="halt_on_error=1:exitcode=66")
    try:
        ran = subprocess.run([str(program), str(seed), str(epochs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, errors="replace", env=environment, timeout=100)
    except subprocess.TimeoutExpired:
        return "no end"
    if "ThreadSanitizer: data race" in ran.stderr:
        return "race"
    return "clean" if ran.returncode == 0 else "exit %d: %s" % (ran.returncode, ran.stderr.strip()[:200])


def try_site(arguments, site, folder):
    program, file, offset, _, name, weaker = site
    text = (arguments.root / file).read_text(encoding="utf-8")
    overlay = folder / ("%s.%d" % (Path(file).name, offset))
    # All of them, so that the quoted includes among them find each other.
    for other in FILES:
        target = overlay / other
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(arguments.root / other, target)
    (overlay / file).write_text(text[:offset] + weaker + text[offset + len(name):], encoding="utf-8")
    problem = build(arguments.compiler, arguments.root, overlay, program, overlay)
    if problem:
        return "does not compile:\n" + problem
    said = "clean"
    for seed in range(1, SEEDS + 1):
        said = run(overlay / program, seed, arguments.epochs)
        if said == "race":
            return "race with seed %d" % seed
    return said


def sanitizer_works(compiler, folder):
    """Not every machine's address space suits ThreadSanitizer."""
    source = folder / "empty.cc"
    source.write_text("int main() { return 0; }\n", encoding="utf-8")
    made = subprocess.run([compiler, "-fsanitize=thread", str(source), "-o", str(folder / "empty")],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return made.returncode == 0 and run(folder / "empty", 0, 0) == "clean"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2], help="repository root")
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="sites whose file, line or name contains this")
    arguments = parser.parse_args()
    arguments.root = arguments.root.resolve()
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if not sanitizer_works(arguments.compiler, folder):
            print("skipped: ThreadSanitizer does not work here")
            return 77
        for program in PROGRAMS:
            problem = build(arguments.compiler, arguments.root, None, program, folder)
            if problem:
                print(problem)
                return 1
            for seed in range(1, 3):
                said = run(folder / program, seed, arguments.epochs)
                if said != "clean":
                    failures += 1
                print("%s unchanged, seed %d: %s" % (program, seed, said), flush=True)
        every = [s for s in sites(arguments.root) if arguments.only in "%s:%d %s" % (s[1], s[3], s[4])]
        for name in EXEMPT:
            if not arguments.only and name not in [s[4] for s in every]:
                failures += 1
                print("%s is exempt, but is not there" % name)
        tried = [s for s in every if s[4] not in EXEMPT]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for site, said in zip(tried, pool.map(lambda s: try_site(arguments, s, folder), tried)):
                good = said.startswith("race")
                failures += not good
                print("%s:%d %s weaker: %s%s" % (site[1], site[3], site[4], said, "" if good else "  <-- NOT SEEN"),
                      flush=True)
    print("%d sites tried, %d exempt, %d failures" % (len(tried), len(every) - len(tried), failures))
    return 1 if failures or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
