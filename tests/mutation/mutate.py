#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows that every ordered access around the work queue, and of epochs that kernels start, is needed.

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
    "kernel_epochs": ["include/mpix/impl/kernel_epoch/start.cuh", "include/mpix/impl/kernel_epoch/wait.cuh",
                      "include/mpix/impl/handle/epoch_handle.cuh", "include/mpix/impl/epoch/host_epoch.cuh",
                      "include/mpix/impl/epoch/errors.cuh", "include/mpix/impl/send/admit.cuh",
                      "include/mpix/impl/send/count.cuh", "include/mpix/impl/send/store.cuh"],
}
FILES = [file for files in PROGRAMS.values() for file in files]
# Of these only the accesses that belong to epochs of kernels: with such a tag (docs/dev/memory-order.md).
TAGGED = {"include/mpix/impl/send/" + file: re.compile(r"pairs:[^\n]*\bK\d") for file in
          ("admit.cuh", "count.cuh", "store.cuh")}
ORDERED = ["load_acquire", "load_acquire_pair", "load_acquire_gpu", "store_release", "store_release_gpu",
           "store_release_after_fence", "fetch_add_acq_rel_gpu", "cas_acq_rel_gpu", "set_flag_seq_cst",
           "test_flag_seq_cst", "compare_exchange_acq_rel_gpu", "store_release_record", "load_acquire_record",
           "fence_acquire", "reached_acquire", "store_release_mmio", "fence_acq_rel", "load_pointer"]
# Not tried, and why. What is not needed at all belongs in the code as load_relaxed or store_relaxed, not here.
EXEMPT = {
    "store_release_mmio": "orders for a hardware NIC, which looks at the record when it is rung; the software one takes the record "
                          "alone for true",
    "set_flag_seq_cst": "is about which of two parties comes first: without it both may poll at once, but only if the processor "
                        "lets the load pass the store, within nanoseconds; its counterpart test_flag_seq_cst is tried",
    "load_pointer": "orders on the host only, and what it points to is behind an acquire already: the request's postings "
                    "behind clear-to-send, the route behind the epoch",
    "fence_acq_rel": "a fence on GPUs only; on the host store_release_after_fence is a release by itself, and is tried. Models "
                     "leave it out (docs/protocol-proofs.md), and tests/ptx looks for it",
}
# Where threads play a GPU's.
FLAGS = {"kernel_epochs": ["-DMPIX_FAKE_GPU", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]}
HOLDS = {"#ifdef __CUDA_ARCH__": False, "#ifdef __CUDACC__": False, "#if defined(MPIX_CHECK)": False,
         "#if MPIX_ON_GPU": True, "#if MPIX_ON_GPU && !defined(MPIX_CHECK)": True, "#if !MPIX_ON_GPU": False}
# The same for one access: by its file, and what its line contains.
EXEMPT_HERE = {
    ("start.cuh", "load_acquire(&r->words->epoch)"): "the number alone counts: who has waited for this epoch has acquired it",
    ("host_epoch.cuh", "*turn = load_acquire_gpu"): "the loop behind it looks again, and its end acquires",
    ("host_epoch.cuh", "cas_acq_rel_gpu"): "who reads the host's words acquires them; others acquire the end of that read",
    ("errors.cuh", "load_acquire(&r->words->epoch)"): "the number alone counts",
    ("errors.cuh", "store_release(&r->words->error"): "the word is complete in itself; the host reads nothing by it",
}
# Pattern, whose group is the name of the site and is replaced, and by what.
WEAKER = [
    (re.compile(r"(?<![\w.>])(?:detail::)?(%s)\(" % "|".join(ORDERED)), r"relaxed_\g<0>"),
    (re.compile(r"std::(memory_order_(?:acquire|release|acq_rel|seq_cst))\b"), "memory_order_relaxed"),
    (re.compile(r"const (std::(?:lock_guard|unique_lock) \w+\([^;]*\));"), "bool lock = true"),
]
SEEDS = 6


def on_host(code):
    """The same without what only a GPU's compiler sees, or where no threads play a GPU."""
    branches, out = [], []  # of each condition: whether it holds; None: not known
    for line in code.splitlines(keepends=True):
        words = " ".join(line.split())
        if words.startswith("#if"):
            branches.append(HOLDS.get(words))
        elif words == "#else":
            branches[-1] = None if branches[-1] is None else not branches[-1]
        elif words == "#endif":
            branches.pop()
        out.append(" " * (len(line) - 1) + "\n" if False in branches else line)
    return "".join(out)


def exemption(site):
    """Why it is not tried, or None."""
    for (file, part), why in EXEMPT_HERE.items():
        if Path(site[1]).name == file and part in site[6]:
            return why
    return EXEMPT.get(site[4])


def sites(root):
    """(program, file, offset, line number, name, replacement, line) of each ordered access; comments do not count."""
    for program, files in PROGRAMS.items():
        for file in files:
            text = (root / file).read_text(encoding="utf-8")
            code = re.sub(r"//[^\n]*", lambda comment: " " * len(comment.group()), text)
            code = on_host(code) if program in FLAGS else code
            lines = text.splitlines()
            for pattern, weaker in WEAKER:
                for match in pattern.finditer(code):
                    name = match.group(1)
                    at = text.count("\n", 0, match.start())
                    tag = TAGGED.get(file)
                    if tag and not any(tag.search(line) for line in lines[max(at - 1, 0):at + 1]):
                        continue
                    yield (program, file, match.start(1), at + 1, name, weaker.replace(r"\g<0>", name), lines[at])


def build(arguments, overlay, program, folder):
    """None, or what the compiler says. Files of `overlay` come before the repository's own."""
    root = arguments.root
    command = [arguments.compiler, "-std=c++20", "-O1", "-g", "-fsanitize=thread", "-pthread", *FLAGS.get(program, [])]
    command += ["-isystem%s" % where for where in arguments.mpi_include]
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
    program, file, offset, _, name, weaker, _ = site
    text = (arguments.root / file).read_text(encoding="utf-8")
    overlay = folder / ("%s.%d" % (Path(file).name, offset))
    # All of them, so that the quoted includes among them find each other.
    for other in FILES:
        target = overlay / other
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(arguments.root / other, target)
    (overlay / file).write_text(text[:offset] + weaker + text[offset + len(name):], encoding="utf-8")
    problem = build(arguments, overlay, program, overlay)
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
    parser.add_argument("--mpi-include", action="append", default=[], help="where mpi.h is")
    parser.add_argument("--program", action="append", choices=sorted(PROGRAMS), help="only what this one shows races in")
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="sites whose file, line or name contains this")
    arguments = parser.parse_args()
    arguments.root = arguments.root.resolve()
    programs = arguments.program or list(PROGRAMS)
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if not sanitizer_works(arguments.compiler, folder):
            print("skipped: ThreadSanitizer does not work here")
            return 77
        for program in programs:
            problem = build(arguments, None, program, folder)
            if problem:
                print(problem)
                return 1
            for seed in range(1, 3):
                said = run(folder / program, seed, arguments.epochs)
                if said != "clean":
                    failures += 1
                print("%s unchanged, seed %d: %s" % (program, seed, said), flush=True)
        all_sites = list(sites(arguments.root))
        for name in [n for n in EXEMPT if n not in [s[4] for s in all_sites]] + \
                [" ".join(here) for here in EXEMPT_HERE
                 if not any(Path(s[1]).name == here[0] and here[1] in s[6] for s in all_sites)]:
            failures += 1
            print("%s is exempt, but is not there" % name)
        every = [s for s in all_sites if arguments.only in "%s:%d %s" % (s[1], s[3], s[4])
                 and s[0] in programs]
        tried = [s for s in every if exemption(s) is None]
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
