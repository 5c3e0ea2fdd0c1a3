#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks one Spin model: as it stands it has no error, and with any one step left out it has one.

The plain variants are searched completely. Each -DWITHOUT_x must make an assertion fail or leave somebody waiting for
ever; a mutation that nobody notices is an error of the model, or says that the step is not needed.
docs/protocol-proofs.md says what is proven. Exits 77 where there is no spin or no C compiler.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# model: (variants, mutations). A variant: flags, and whether it is small enough to be searched for cycles too.
# A mutation: the variant that it changes.
MODELS = {
    "deferral": (
        {
            "kernel": ("GPU DIRECT LOADS_APART WATCH E=3", False),
            "mixed": ("GPU DIRECT MIXED ASYNC WATCH TEST E=2", False),
            "shared": ("GPU DIRECT SHARED MIXED ASYNC E=2", True),
            "shared_by_three": ("GPU DIRECT SHARED N=3 E=2", False),
            "no_route": ("GPU NO_ROUTE ASYNC SLOTS=2 E=3", True),
            "host_one_slot": ("SLOTS=1 WATCH E=2", False),
            "host_two_slots": ("SLOTS=2 WATCH E=3", False),
            "first_epoch": ("SLOTS=2 E=1", True),
            "once_too_often": ("DOUBLE LOADS_APART E=2", True),
        },
        {
            "RELEASE_OF_BYTES": "kernel",
            "RELEASE_OF_DEFERRED": "mixed",
            "RELEASE_FOR_ALL": "mixed",
            "RELEASE_OF_COMPLETE": "kernel",
            "RELEASE_OF_ROOM": "kernel",
            "RELEASE_OF_TAKEN": "host_one_slot",
            "ACQUIRE_OF_ARRIVAL": "kernel",
            "ACQUIRE_OF_DEFERRED": "host_one_slot",
            "CHAIN": "mixed",
            "WORDS_IN_ORDER": "mixed",
            "ROOM_CHECK": "kernel",
            "LAST_EPOCH": "host_two_slots",
            "FIRST_EPOCH": "first_epoch",
            "COUNT_CHECK": "kernel",
            "CLAIM": "once_too_often",
            "TAKEN_CLAIM": "host_one_slot",
            "DEFER_CHECK": "mixed",
            "DEFER_LOOK": "host_one_slot",
            "ENTRY_EPOCH": "no_route",
            "RING_LIMIT": "no_route",
            "LAST_LOOK": "mixed",
            "ALL_CHECK": "mixed",
            "RING_RECHECK": "mixed",
            "TRANSFER_WAIT": "mixed",
            "ORDER_OF_MOVE": "host_one_slot",
            "WHOLE_FLAG": "host_one_slot",
            "WHOLE_CHECK": "kernel",
            "PAIR": "shared",
            "DEFERRED_CHECK": "shared",
            "COUNT_UPDATE": "shared",
        },
    ),
    "epoch_handle": (
        {
            "pair": ("INLINE", True),
            "pair_words": ("", True),
            "single": ("INLINE BY_SINGLE", True),
            "single_words": ("BY_SINGLE", True),
            "turns": ("TURNS", True),
            "old_handle": ("INLINE OLD", True),
            "twice": ("INLINE TWICE", True),
        },
        {
            "CLAIM": "twice",
            "CLAIM_CHECK": "old_handle",
            "UNDO": "pair",
            "UNDO_CHECK": "old_handle",
            "BARRIER_OF_UNDO": "single",
            "READY_CHECK": "old_handle",
            "EPOCH_OF_CLEAR_TO_SEND": "single_words",
            "ACQUIRE_OF_CLEAR_TO_SEND": "single_words",
            "VOTE_OF_CLEAR_TO_SEND": "single",
            "LOOK_AFTER_FOLLOW": "single",
            "BARRIER_OF_BYTES": "pair",
            "BARRIER_BEFORE_COUNT": "single",
            "BARRIER_BEFORE_FLAG": "single_words",
            "ENGINE_CHECK": "single",
            "VOTE_OF_ENDS": "pair",
            "BOTH": "pair_words",
            "NUMBER_OF_SEND": "turns",
            "NUMBER_OF_RECEIVE": "turns",
            "BARRIER_FIRST": "turns",
            "BARRIER_OF_BEGIN": "pair",
            "RELEASE_OF_READS": "pair_words",
            "ACQUIRE_OF_TOLD": "single",
        },
    ),
    "kernel_epochs": (
        {
            "both": ("KERNEL_WORD", False),
            "taking_turns": ("KERNEL_WORD TURNS", False),
            "uneven": ("KERNEL_WORD TURNS UNEVEN E=4", False),
            "host_waits": ("KERNEL_WORD HOST_WAITS", False),
            "host_word": ("", False),
            "engine_tells": ("ENGINE_TELLS", False),
            "receiver_by_host": ("KERNEL_WORD BY_HOST", False),
            "two_epochs": ("KERNEL_WORD E=2", True),
        },
        {
            "RELEASE_TO_KERNEL": "both",
            "RELEASE_TO_HOST": "host_word",
            "RELEASE_TO_ENGINE": "engine_tells",
            "RELEASE_OF_TOLD": "taking_turns",
            "EPOCH_OF_CLEAR_TO_SEND": "both",
            "CLEAR_OF_KERNEL": "both",
            "TOLD_CHECK": "both",
            "DEFER_CHECK": "both",
            "CONCLUDED_LAST": "both",
            "BOTH_CHECK": "receiver_by_host",
            "QUIET_DEFER_CHECK": "both",
            "LOOK_OF_SEND": "both",
            "LOOK_OF_RECEIVE": "both",
            "FOLLOW_IN_ENGINE": "both",
            "FOLLOW_OF_SEND": "host_waits",
            "FOLLOW_OF_RECEIVE": "host_waits",
            "NEW_RING": "both",
            "NEW_MOVES": "both",
            "TAKING_BACK_OF_SEND": "taking_turns",
            "TAKING_BACK_OF_RECEIVE": "both",
        },
    ),
    "posting": (
        {
            "mixed": ("MIXED", True),
            "three_partitions": ("MIXED N=3 E=1", False),
            "fails": ("ALONE MIXED FAILS", True),
            "fails_for_two": ("FAILS E=1", False),
            "shared": ("SHARED MIXED", False),
            "both": ("ALONE BOTH", False),
            "range": ("RANGE MIXED Q=1", True),
            "range_fails": ("ALONE RANGE FAILS", True),
        },
        {
            "CLEAR_CHECK": "mixed",
            "ROOM_CHECK": "mixed",
            "COUNT_LAST": "mixed",
            "RANGE_COUNT_LAST": "range",
            "RANGE_ROOM_CHECK": "range_fails",
            "HIGHEST": "mixed",
            "DEFER_CHECK": "mixed",
            "END_ROOM": "mixed",
            "RELEASE_OF_WORDS": "mixed",
            "FAILURE_FIRST": "fails",
            "ACQUIRE_OF_COMPLETED": "fails",
            "FAILURE_CHECK": "fails",
            "OWN_ENTRIES_ONLY": "fails",
            "POSTED_WAIT": "mixed",
            "TOLD_CHECK": "mixed",
            "EPOCH_OF_END": "mixed",
            "RING_RECHECK": "mixed",
            "WAIT_FOR_QUEUE": "mixed",
            "ONE_PIECE": "shared",
            "POSTED_OF_SHARES": "shared",
            "LOOK_FOR_BOTH": "both",
        },
    ),
    "rget_inline": (
        {
            "two_groups": ("TEST", True),
            "three_groups": ("G=3", False),
            "three_epochs": ("TEST E=3", False),
            "host": ("HOST TEST", False),
            "patient": ("PATIENT TEST", True),
            "patient_host": ("HOST PATIENT", False),
        },
        {
            "FIRST_CLAIM": "two_groups",
            "CLAIM": "two_groups",
            "ANSWER_TO_FLAG": "host",
            "READING": "patient",
            "REFUSAL": "two_groups",
            "FLAG_BEFORE_ANSWER": "two_groups",
        },
    ),
    "rget": (
        {
            "two_groups": ("TEST", True),
            "three_groups": ("G=3", False),
            "three_epochs": ("TEST E=3", False),
            "two_partitions": ("N=2 G=1 TEST", False),
            "twice": ("TWICE TEST", False),
            "patient": ("PATIENT TEST", True),
            "patient_of_two": ("PATIENT TWICE", False),
        },
        {
            "ASKING": "two_groups",
            "READING": "patient",
            "RELEASE_OF_BYTES": "two_groups",
            "EPOCH_OF_OFFER": "two_groups",
            "TAKEN_CLAIM": "two_groups",
            "RELEASE_OF_LANDING": "two_groups",
            "FLAG_BEFORE_ANSWER": "two_groups",
            "READ_BEFORE_ANSWER": "two_groups",
            "REFUSAL": "two_groups",
            "REFUSAL_CLAIM": "two_groups",
            "ANSWER": "two_groups",
            "LATER_ANSWER": "two_groups",
            "FLAG_BY_CLAIM": "patient_of_two",
        },
    ),
    "taking": (
        {
            "two_epochs": ("", False),
            "three_partitions": ("N=3 E=1", False),
        },
        {
            "ORDER_OF_ALL": "two_epochs",
            "ORDER_OF_ASKED": "two_epochs",
            "LOOK_AT_ASKED": "two_epochs",
            "LOOK_AT_ALL": "two_epochs",
            "TAKEN_CLAIM": "two_epochs",
        },
    ),
    "single_copy": (
        {
            "two_epochs": ("", False),
            "three_partitions": ("N=3 E=1", False),
        },
        {
            "MARK": "two_epochs",
            "WAIT": "two_epochs",
            "SENDERS_COPY": "two_epochs",
            "SENDERS_CLAIM": "two_epochs",
            "RECEIVERS_CLAIM": "two_epochs",
            "GIVING_BACK": "two_epochs",
            "LOOK": "two_epochs",
        },
    ),
    "work_queue": (
        {
            "each_rings": ("EACH_RINGS", True),
            "last_rings": ("", True),
            "three_laps": ("EACH_RINGS EACH=3", False),
            "three_posters": ("POSTERS=3 EACH=1", False),
            "nic_stops": ("EACH_RINGS NIC_STOPS", False),
        },
        {
            "RELEASE_OF_WQE": "each_rings",
            "RELEASE_OF_RECORD": "each_rings",
            "TURN": "each_rings",
            "RECORD_IN_TURN": "each_rings",
            "FULL_CHECK": "each_rings",
            "OWNER": "three_laps",
            "GIVING_UP": "nic_stops",
            "LASTING_RESERVATION": "last_rings",
            "SECOND_LOOK": "each_rings",
            "ACQUIRE_OF_RECORD": "each_rings",
            "COMPLETION_LAST": "each_rings",
        },
    ),
}

# Compiling these with optimisation takes longer than it saves.
FEW_STATES = {"epoch_handle", "single_copy", "taking"}


class Failed(Exception):
    pass


def search(model, flags, cycles, expected, limits):
    """One run of Spin: (states, seconds, what it found or '')."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mpix-model-") as folder:
        def step(*command):
            done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  universal_newlines=True, timeout=limits.seconds)
            return done.returncode, done.stdout

        shutil.copy(str(model), folder)
        code, said = step("spin", *("-D" + f for f in flags), "-a", model.name)
        if not (Path(folder) / "pan.c").exists():
            raise Failed("spin: " + said)
        kind = ["-DNP"] if cycles else ["-DSAFETY"]
        code, said = step(limits.compiler, "-O0" if expected or model.stem in FEW_STATES else "-O1", "-w", "-DNOFAIR",
                          "-DMEMLIM=%d" % limits.megabytes, *kind, "-o", "pan", "pan.c")
        if code != 0:
            raise Failed("compiler: " + said)
        code, said = step("./pan", "-m20000", *(["-l"] if cycles else []))
    errors = re.search(r"errors: (\d+)", said)
    states = re.search(r"(\d+) states, stored", said)
    found = re.search(r"pan:1: (.*?)(?: \(at depth|$)", said, re.M)
    for bad in ("out of memory", "max search depth too small", "Search not completed"):
        if bad in said and not found:
            raise Failed(bad)
    if code != 0 or not errors or not states:
        raise Failed(said)
    what = ""
    if int(errors.group(1)):
        what = found.group(1) if found else "an error"
        what = "somebody waits for ever" if "invalid end state" in what else what
        what = "an assertion fails" if "assertion violated" in what else what
    return int(states.group(1)), time.monotonic() - begun, what


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--only", metavar="NAME", help="one variant or one mutation")
    parser.add_argument("--quick", action="store_true", help="the variants as they stand, and one mutation of each")
    parser.add_argument("--jobs", type=int, default=2, help="searches side by side (2)")
    parser.add_argument("--seconds", type=float, default=900, help="limit of one step of one search (900)")
    parser.add_argument("--megabytes", type=int, default=2000, help="limit of one search (2000)")
    parser.add_argument("--compiler", default=shutil.which("gcc") or shutil.which("cc"), help="C compiler")
    arguments = parser.parse_args()
    if shutil.which("spin") is None or not arguments.compiler:
        print("skipped: %s is not installed" % ("a C compiler" if shutil.which("spin") else "spin"))
        return 77

    variants, mutations = MODELS[arguments.model]
    model = Path(__file__).resolve().parent / (arguments.model + ".pml")
    runs = []  # (name, flags, search for cycles, expected to fail)
    for name, (flags, small) in variants.items():
        runs.append((name, flags.split(), False, False))
        if small:
            runs.append((name + ", cycles", flags.split(), True, False))
    mutated = set()
    for name, variant in mutations.items():
        if arguments.quick and variant in mutated:
            continue
        mutated.add(variant)
        runs.append(("without " + name, variants[variant][0].split() + ["WITHOUT_" + name], False, True))
    known = set(re.findall(r"\bWITHOUT_(\w+)", model.read_text(encoding="utf-8"))) - {"x"}
    wrong = ["%s: in the model and not tried" % name for name in sorted(known - set(mutations))]
    wrong += ["%s: not in the model" % name for name in sorted(set(mutations) - known)]
    if arguments.only:
        runs = [r for r in runs if arguments.only in (r[0], r[0].replace("without ", ""))]

    def go(run):
        name, flags, cycles, expected = run
        try:
            return run, search(model, flags, cycles, expected, arguments), ""
        except (Failed, subprocess.TimeoutExpired) as error:
            return run, None, str(error)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for (name, flags, cycles, expected), result, problem in pool.map(go, runs):
            if result is None:
                print("%-28s FAILED: %s" % (name, problem))
                wrong.append(name)
                continue
            states, seconds, what = result
            ok = what in ("an assertion fails", "somebody waits for ever") if expected else not what
            print("%-28s %9d states %5.1f s  %s%s" % (name, states, seconds, what or "no error",
                                                      "" if ok else "  <-- not what was expected"), flush=True)
            if not ok:
                wrong.append(name)
    for name in wrong:
        print("wrong: " + name)
    print("%s: %d searches, %d wrong" % (arguments.model, len(runs), len(wrong)))
    return 1 if wrong or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
