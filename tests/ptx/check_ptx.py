#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Usage: check_ptx.py [--self-test] [--registers] [--csv FILE] -- NVCC ARGUMENT...

Compiles kernels.cu to PTX and looks, kernel by kernel, for the loads, stores, atomics, fences and barriers that mpix's memory
order rests on (docs/dev/memory-order.md): these, in this order, and others not. --registers prints what each call adds to a kernel
besides, and fails where that has become more: registers of the whole kernel, and instructions, in its own code and in the functions
that are called where something is rare, less those of a kernel that does nothing. --csv writes the same to a file.

--self-test takes one of them after the other away, or weakens it, and expects to see it.
"""
import argparse
import csv
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cubin import instructions_of

SOURCE = Path(__file__).with_name("kernels.cu")
ACCESS = re.compile(r"^\s*(?:@!?%p\d+\s+)?((?:ld|st|atom|red|fence|membar|bar|barrier|cp|mbarrier)\b[a-z0-9_.:]*)")

FENCE = "fence.acq_rel.sys"
ACQUIRE = "fence.acquire.sys"  # since PTX 8.6
LINE_OUT, LINE_IN = "st.relaxed.sys.global.v2.u64", "ld.relaxed.sys.global.v2.u64"
BLOCK_SYNC, ALL, ANY = "barrier.sync", "bar.red.and.pred", "bar.red.or.pred"
PEEK = "ld.relaxed.sys.global.u64"
CLAIM = "atom.relaxed.gpu.global.max.u64"
# Ordinary loads and stores of results and arguments are not looked at.
ORDERED = re.compile(r"relaxed|acquire|release|acq_rel|fence|membar|mmio|^bar|^atom|^red|^cp|^mbarrier")

# In each kernel, of the ordered accesses: exactly these.
EXACTLY = {
    "order_load_relaxed": ["ld.relaxed.sys.global.u64"],
    "order_store_relaxed": ["st.relaxed.sys.global.u64"],
    "order_load_acquire": ["ld.acquire.sys.global.u64"],
    "order_store_release": ["st.release.sys.global.u64"],
    "order_store_release_after_fence": [FENCE, "st.relaxed.sys.global.u64"],
    "order_reached_acquire": ["ld.relaxed.sys.global.u64", ACQUIRE],
    "order_load_acquire_pair": [LINE_IN, ACQUIRE],
    "order_load_relaxed_pair": [LINE_IN],
    "order_store_relaxed_pair": [LINE_OUT],
    "order_load_acquire_gpu": ["ld.acquire.gpu.global.u64"],
    "order_store_release_gpu": ["st.release.gpu.global.u64"],
    "order_fetch_max_relaxed_gpu": ["atom.relaxed.gpu.global.max.u64"],
    "order_fetch_add_one_acq_rel_gpu": ["atom.acq_rel.gpu.global.add.u64"],
    "order_fetch_add_acq_rel_gpu": ["atom.acq_rel.gpu.global.add.u64"],
    "order_fetch_add_one_relaxed_gpu": ["atom.relaxed.gpu.global.add.u64"],
    "order_fetch_add_relaxed_gpu": ["atom.relaxed.gpu.global.add.u64"],
    "order_increment_release_gpu": ["red.release.gpu.global.add.u64"],
    "order_increment_relaxed_gpu": ["red.relaxed.gpu.global.add.u64"],
    "order_cas_acq_rel_gpu": ["atom.acq_rel.gpu.global.cas.b64"],
    "order_store_release_record": [FENCE, "st.relaxed.sys.global.u32"],
    "order_store_release_mmio": [FENCE, "st.mmio.relaxed.sys.global.u64"],
    # The flags, one by one, then all members together.
    "way_flags": ["ld.relaxed.sys.global.u64", ACQUIRE, ALL],
    # What has been prepared: the flag, acquired, and all members.
    "way_prepared_flag": ["ld.relaxed.sys.global.u64", ACQUIRE, ALL],
    # A barrier, the epoch, all members agree; when all have stored, the leader's claim, its fence and the flag; the claim's
    # outcome, for all, and the count.
    "way_stored_at_once": [BLOCK_SYNC, LINE_IN, ALL, BLOCK_SYNC, CLAIM, FENCE, "st.relaxed.sys.global.u64", ANY,
                           "atom.acq_rel.gpu.global.add.u64"],
    # Whose turn it is, the claim, and of who does not get it the answer; the host's words; the answer, then the turn.
    "way_ask": ["ld.acquire.gpu.global.u64", "atom.acq_rel.gpu.global.cas.b64", "ld.relaxed.sys.global.u64",
                "ld.acquire.gpu.global.u64", *3 * ["ld.relaxed.sys.global.u64"], LINE_IN, ACQUIRE,
                *2 * ["st.relaxed.sys.global.u64"], "st.release.gpu.global.u64"],
    # A barrier, the epoch, all members agree on packets or on plain words, packets; no fence.
    "way_inline_send": [BLOCK_SYNC, LINE_IN, ALL, ALL, *4 * [LINE_OUT]],
    # Who has counted last speaks for all: in noinline code.
    "way_count": ["atom.acq_rel.gpu.global.add.u64"],
    "way_count_inline": ["atom.relaxed.gpu.global.add.u64"],
    # Whether it is ready, that it is late, where the count begins; the stores' fence, the count, and what was too much of it; the
    # last one's fence, whether any was late, the claim, the flag, and the partition's count.
    "way_share_counted": ["ld.relaxed.sys.global.u64", "st.relaxed.sys.global.u64", CLAIM, FENCE,
                          *2 * ["atom.relaxed.gpu.global.add.u64"], FENCE, "ld.relaxed.sys.global.u64", CLAIM,
                          "st.relaxed.sys.global.u64", "atom.acq_rel.gpu.global.add.u64"],
    # The partition's fence; that there is one, its place in the ring, the entry.
    "defer": [FENCE, "st.relaxed.sys.global.u64", "atom.relaxed.gpu.global.add.u64", "st.relaxed.sys.global.u64"],
    # The epoch, and whether somebody has asked; the claim, the partition's fence; the offer, that there was one, for the receiver and for
    # the engine; its place in the ring, the entry; the count.
    # Or further looks, and that there would have been one.
    "offer": [LINE_IN, PEEK, CLAIM, FENCE, *3 * ["st.relaxed.sys.global.u64"], "atom.relaxed.gpu.global.add.u64",
              *3 * [PEEK], *2 * ["st.relaxed.sys.global.u64"], "atom.acq_rel.gpu.global.add.u64"],
    # Whether all was told, and the engine ends the epoch, acquired; then the engine's word, acquired.
    "way_sent": ["ld.acquire.gpu.global.u64", "ld.acquire.sys.global.u64"],
    # Eight flags, four at a time; one acquire.
    "way_flagged_all": [*4 * [PEEK], ACQUIRE],
    "way_end": [CLAIM, "st.relaxed.sys.global.u64"],
    # Where the kernel's clear-to-send is, and the route; that, acquired; that both sides' kernels run the epoch; the open word.
    "way_clear_to_send": [*3 * [PEEK], "ld.acquire.sys.global.u64", "st.relaxed.sys.global.u64", CLAIM],
    # Where to, that nobody waits, whether the partition is there, the claim, the answer.
    "refuse_rts": [PEEK, PEEK, "st.relaxed.sys.global.u64", PEEK, CLAIM, "st.release.sys.global.u64"],
}
# These next to each other among the ordered accesses.
CONTAINS = {
    # The claim, an acquire of what was offered, for all; all members' loads and stores, then the flag's release; whoever asks
    # finds it, then the answer's release; the flags, one by one, then for all.
    "read_next": [[CLAIM, ACQUIRE, ANY],
                 [BLOCK_SYNC, "st.release.gpu.global.u64", BLOCK_SYNC, "st.release.sys.global.u64"], [ACQUIRE, ANY]],
    # All members' payload, then the leader's claim, its fence and the flag.
    "way_direct": [[BLOCK_SYNC, CLAIM, FENCE, "st.relaxed.sys.global.u64"], ["ld.acquire.gpu.global.u64"]],
    # A barrier, the epoch; the barriers of the pieces, and what was written before, before the asynchronous loads; each store after
    # its loads; all of them done and visible, before the group's barrier, the claim, the fence and the flag.
    "way_bulk": [["fence.proxy.async", BLOCK_SYNC, LINE_IN, *4 * ["mbarrier.init.shared::cta.b64"], "fence.proxy.async"],
                 ["mbarrier.try_wait.parity.shared::cta.b64", "cp.async.bulk.global.shared::cta.bulk_group"],
                 ["cp.async.bulk.wait_group", "fence.proxy.async"],
                 [ANY, BLOCK_SYNC, CLAIM, FENCE, "st.relaxed.sys.global.u64"]],
    # A handle that knows the epoch: a barrier, the claim, looks at clear-to-send, acquired and agreed on; packets; that it was
    # given, for the last caller; or all members' payload, then the leader's claim, its fence and the flag.
    "way_prepared_send": [[BLOCK_SYNC, CLAIM, PEEK], [PEEK, ACQUIRE, ALL],
                          [ALL, *4 * [LINE_OUT], "st.relaxed.sys.global.u64", BLOCK_SYNC, "atom.relaxed.gpu.global.add.u64"],
                          [BLOCK_SYNC, CLAIM, FENCE, "st.relaxed.sys.global.u64"], [ANY, "atom.acq_rel.gpu.global.add.u64"]],
    # A barrier, and then what the leader looks at; the admission, for all; all members' share, then the leader's fence and count.
    "way_share": [[BLOCK_SYNC, *4 * ["ld.relaxed.sys.global.u64"], "ld.acquire.gpu.global.u64"],
                  [ANY, *2 * ["ld.relaxed.sys.global.u64"], BLOCK_SYNC, "ld.relaxed.sys.global.u64",
                   "st.relaxed.sys.global.u64", CLAIM, FENCE, "atom.relaxed.gpu.global.add.u64"]],
    # All have read the epoch; it again, the flags and the claim, under way together; of an epoch that is over, whether a kernel has
    # started it; an acquire, before all agree, and one for a claim that was given back.
    "way_together": [[ALL, ALL, *3 * ["ld.relaxed.sys.global.u64"], CLAIM, PEEK, ACQUIRE, ALL, ACQUIRE, ANY, ALL]],
    # The claim, an acquire for one that was given back, agreed on; lines; all members are done, then the flag's release.
    "way_inline_take": [[CLAIM, ACQUIRE, ANY], [LINE_IN, LINE_IN], [ALL, "st.release.gpu.global.u64"],
                        # Where it came with a flag.
                        [ACQUIRE, ALL]],
    # The same where nobody else waits: the flag and the host's word, and no release.
    "way_inline_take_sole": [[CLAIM, ACQUIRE, ANY], [LINE_IN, LINE_IN], [ALL, *2 * ["st.relaxed.sys.global.u64"]],
                             [ACQUIRE, ALL]],
}
# What is known of the epochs and of the flags, whether a send was told; the flags, with one acquire for all; how a receive's
# partitions come, or what the engine says of a send; then all members. The number that a kernel has waited for.
LOOKED = [*5 * [PEEK], "ld.acquire.gpu.global.u64", *4 * [PEEK], ACQUIRE, PEEK, PEEK, "ld.acquire.sys.global.u64", ALL]
ENDED = [CLAIM, "st.relaxed.sys.global.u64"]
# The start of a receive's next epoch: what was read, before clear-to-send at the sender's GPU and at its host, and before the word
# for this host. Of a send: clear-to-send, acquired, as in way_clear_to_send; the host's word.
GIVEN = [FENCE, *3 * ["st.relaxed.sys.global.u64"]]
GOT = ["ld.acquire.sys.global.u64", "st.relaxed.sys.global.u64", CLAIM]
CONTAINS.update({
    # Behind all partitions' bytes: that some may be inline, the whole message's flag, `complete`, `all_ready`; and after these, that
    # all was told, and whether the engine ends the epoch. Before it: whether kernels of both sides run the epoch, whether anything was left to the engine; then only that,
    # with the release of the counts unless these were not acquired.
    "say_all_ready": [[PEEK, PEEK, "st.relaxed.sys.global.u64", FENCE], [FENCE, *3 * [PEEK], *2 * ["st.relaxed.sys.global.u64"], "st.release.sys.global.u64",
                       "st.relaxed.sys.global.u64", PEEK, *2 * ["st.release.gpu.global.u64"]]],
    "start_one": [GOT, GIVEN],
    "way_start": [[BLOCK_SYNC, ALL]],
    "way_start_list": [[BLOCK_SYNC, ALL]],
    "way_wait": [[BLOCK_SYNC, PEEK], LOOKED, ENDED],
    "way_wait_list": [[BLOCK_SYNC, PEEK], LOOKED, ENDED],
    "way_next_list": [[BLOCK_SYNC, PEEK], LOOKED, ENDED, GOT, [*GIVEN, ALL]],
    # By what the handle knows: what was told of the send, agreed on; or the receive's flags, acquired and agreed on; the new
    # epoch, a barrier. Or as a list, and then the handle is of the new epoch, behind the barrier of start: open, and all members
    # have seen it; its number.
    "way_next_send": [[BLOCK_SYNC, PEEK, "ld.acquire.gpu.global.u64", ALL, "atom.relaxed.gpu.global.max.u64",
                       *4 * ["st.relaxed.sys.global.u64"], BLOCK_SYNC]],
    "next_longer_apart<1,0>": [[BLOCK_SYNC, PEEK], LOOKED, ENDED, GOT, [*GIVEN, ALL], [LINE_IN, PEEK, ALL]],
    "way_next_receive": [[PEEK, ACQUIRE, ALL, "atom.relaxed.gpu.global.max.u64", *3 * ["st.relaxed.sys.global.u64"],
                          BLOCK_SYNC, FENCE]],
    "next_longer_apart<0,1>": [[BLOCK_SYNC, PEEK], LOOKED, ENDED, GOT, [*GIVEN, ALL], [ALL, PEEK]],
})
# Halo exchanges. That next() has begun the exchange, acquired, at once or after some looks, between which comes whether a call has
# failed; for all. (Pready and wait_arrived are in functions of their own, and are checked above.)
BEGUN = [PEEK, ACQUIRE, PEEK, PEEK, ACQUIRE, ANY]
CONTAINS.update({
    "size_halo_send_block": [BEGUN],
    # The claim to ghost cells that others read, too, for all; all members' stores, then the release that they are there: by the
    # block, and by a warp. Those that other groups fill, acquired, at once or after some looks; for all.
    "size_halo_wait_block": [BEGUN, [CLAIM, ANY, BLOCK_SYNC, "st.release.gpu.global.u64"],
                             [CLAIM, *2 * ["bar.warp.sync"], "st.release.gpu.global.u64"], [PEEK, PEEK, ACQUIRE, ALL]],
    # Whether the exchange has begun, as above; whether all partitions are counted, and whether that was said; as way_next_list; all
    # members have started their requests, then the release of the next exchange.
    "size_halo_next_block": [BEGUN, [PEEK, PEEK, BLOCK_SYNC], LOOKED, ENDED, GOT, [BLOCK_SYNC, "st.release.gpu.global.u64"]],
})
# On prepared tiles. Send: a barrier, packets, and the count. The barrier of a step: the group's, then the count that hands on what was
# done; packets, once or after some looks, with the flag beside; all agree; taken, as below, for a sole waiter. Of one thread:
# clear-to-send, that the exchange has begun, that no call has failed; one acquire for these; the claim. Of another: whether a call has
# failed, and the count, acquired once it is reached.
CONTAINS["size_halo_send_prepared_block"] = [[BLOCK_SYNC, LINE_OUT, "st.relaxed.sys.global.u64", "red.relaxed.gpu.global.add.u64",
                                              "atom.relaxed.gpu.global.add.u64"]]
CONTAINS["size_halo_sync_prepared_block"] = [
    [BLOCK_SYNC, "red.release.gpu.global.add.u64", LINE_IN, PEEK, LINE_IN, ALL, *2 * ["st.relaxed.sys.global.u64"]]]
EXACTLY["halo::claim_next"] = [*3 * [PEEK], ACQUIRE, CLAIM]
CONTAINS["halo::await_groups"] = [[*4 * [PEEK], ACQUIRE]]
CONTAINS["size_halo_wait_box_block"] = CONTAINS["size_halo_wait_block"]
# The epoch, all members agree; it again, the whole message's flag, the claim; the flag and lines (four of a member, or one), an
# acquire for a claim that was given back, all agree; a barrier, then the flag, with a release if others may wait, and the host's
# word. Or what came with a flag is acquired before all agree, and who has asked answers; or the claim is given back.
for name, flag in ("way_inline_at_once", "st.release.gpu.global.u64"), ("way_inline_at_once_sole", "st.relaxed.sys.global.u64"):
    CONTAINS[name] = [[PEEK, ALL, *4 * [PEEK], CLAIM, "st.relaxed.sys.global.u64", PEEK, PEEK, *4 * [LINE_IN], PEEK, PEEK, LINE_IN,
                       ACQUIRE, ALL],
                      [BLOCK_SYNC, flag, "st.relaxed.sys.global.u64"],
                      [ACQUIRE, ALL, PEEK, "st.relaxed.sys.global.u64", ALL, "atom.acq_rel.gpu.global.cas.b64"]]
# On every way through a kernel the one comes before the other, wherever the compiler has put them.
PAYLOAD = r"st\.(global\.)?v[24]\."
FIRST = {"way_stored_at_once": [(ALL, PAYLOAD), (FENCE, r"st\.relaxed\.sys")],
         "way_inline_send": [(ALL, re.escape(LINE_OUT))],
         # The end of the epoch, for all, before the start of the next.
         "way_next_list": [(ALL, re.escape(FENCE))], "way_next_receive": [(ALL, re.escape(FENCE))],
         "next_longer_apart<0,1>": [(ALL, re.escape(FENCE))],
         "size_halo_send_prepared_block": [(BLOCK_SYNC, re.escape(LINE_OUT))],
         "halo::claim_next": [(ACQUIRE, re.escape(CLAIM))],
         "size_halo_next_block": [(ALL, re.escape(FENCE)), (ALL, r"st\.release\.gpu")]}
COUNTED = {name: (ACQUIRE, 2) for name in ("way_inline_take", "way_inline_take_sole", "way_inline_at_once", "way_inline_at_once_sole")}
NEVER = {"way_inline_send": "fence|release|acquire", "size_halo_send_prepared_block": "fence|release|acquire", "way_inline_take": "fence|acquire",
         "way_inline_take_sole": r"fence|acquire|\bst\.release", "way_inline_at_once": "fence|acquire",
         "way_inline_at_once_sole": r"fence|acquire|\bst\.release"}

# sm_90, nvcc 13.0; a newer compiler may need some more.
MOST_REGISTERS = {"size_pready_thread": 48, "size_pready_block": 48, "size_pready_warp": 48, "size_pready_typed_block": 104,
                  "size_pready_contribute_block": 48, "size_pready_share_thread": 56, "size_pready_bulk_thread": 56, "size_pready_bulk_block": 48,
                  "size_pready_share_warp": 56, "size_pready_share_block": 56, "size_pready_range_thread": 64,
                  "size_pready_range_block": 64, "size_parrived_thread": 64, "size_parrived_warp": 64,
                  "size_parrived_block": 64, "size_wait_arrived_thread": 64, "size_wait_arrived_warp": 64,
                  "size_wait_arrived_block": 64, "size_pready_prepared_thread": 54, "size_pready_prepared_warp": 54,
                  "size_pready_prepared_block": 52, "size_parrived_prepared_thread": 64,
                  "size_wait_block": 92, "size_start_block": 32, "size_next_epoch_thread": 80, "size_next_epoch_warp": 84,
                  "size_next_epoch_block": 96, "size_next_epoch_list_block": 104,
                  "size_parrived_prepared_block": 64, "size_wait_arrived_prepared_block": 64,
                  # Where nothing bounds a kernel, functions get registers beside the caller's; within bounds they share them.
                  "size_halo_send_warp": 102, "size_halo_send_block": 124, "size_halo_wait_warp": 104,
                  "size_halo_send_prepared_block": 126, "size_halo_sync_prepared_block": 118, "size_halo_wait_block": 112, "size_halo_wait_box_block": 126, "size_halo_next_block": 112}


def bodies_of(ptx):
    """The lines of each kernel; and of each function of mpix::detail and mpix::halo::detail that is not inlined, by its own name, with two truth values as
    template arguments if it has them: of those for groups, as blocks have it."""
    found = {}
    for entry in re.finditer(r"\.(?:entry|func)\s+(?:\([^()]*\)\s*)?(\w+)\s*\([^()]*\)\s*\n\{(.*?)\n\}", ptx, re.S):
        name = entry.group(1)
        if own := re.match(r"_ZN4mpix(4halo)?6detail(\d+)(\w+)", name):
            if "cooperative_groups" in name and "thread_blockE" not in name:
                continue
            length = int(own.group(2))
            values = re.match(r"ILb([01])ELb([01])E", own.group(3)[length:])
            name = ("halo::" if own.group(1) else "") + own.group(3)[:length] + (f"<{values.group(1)},{values.group(2)}>" if values else "")
        found[name] = entry.group(2).splitlines()
    return found


def kernels_of(bodies):
    """The ordered accesses of each, in the order of the text."""
    return {name: [m.group(1) for m in map(ACCESS.match, lines) if m and ORDERED.search(m.group(1))]
            for name, lines in bodies.items()}


def reached_without(lines, guard):
    """The accesses that some way from the beginning leads to without one that is `guard`, which is not so under a predicate."""
    labels = {line.strip()[:-1]: at for at, line in enumerate(lines) if line.startswith("$") and line.strip().endswith(":")}
    seen, next_ones, reached = set(), [0], []
    while next_ones:
        at = next_ones.pop()
        if at in seen or at == len(lines):
            continue
        seen.add(at)
        if access := ACCESS.match(lines[at]):
            if access.group(1) == guard and not lines[at].lstrip().startswith("@"):
                continue
            reached.append(access.group(1))
        if branch := re.match(r"\s*(@!?%p\d+\s+)?bra(?:\.uni)?\s+(\S+);", lines[at]):
            next_ones.append(labels[branch.group(2)])
            if branch.group(1) is None:
                continue
        if not re.match(r"\s*ret;", lines[at]):
            next_ones.append(at + 1)
    return reached


def order_problems_of(bodies):
    problems = []
    for name, pairs in FIRST.items():
        for first, then in pairs:
            if not any(re.match(then, m.group(1)) for m in map(ACCESS.match, bodies.get(name, [])) if m):
                problems.append(f"{name}: no {then}")
            elif any(re.match(then, access) for access in reached_without(bodies[name], first)):
                problems.append(f"{name}: a way to {then} without {first}")
    return problems


def older(parts):
    """The same as a compiler writes it that has no fence which only acquires."""
    return [older(part) if isinstance(part, list) else FENCE if part == ACQUIRE else part for part in parts]


def contains(sequence, part):
    return any(sequence[i:i + len(part)] == part for i in range(len(sequence) - len(part) + 1))


def problems_of(kernels):
    problems = []
    for name in set(EXACTLY) | set(CONTAINS) | set(NEVER):
        if name not in kernels:
            problems.append(f"{name}: no such kernel")
    for name, expected in EXACTLY.items():
        if kernels.get(name, expected) != expected:
            problems.append(f"{name}: {kernels[name]} and not {expected}")
    for name, parts in CONTAINS.items():
        problems += [f"{name}: no {part} in {kernels[name]}" for part in parts
                     if name in kernels and not contains(kernels[name], part)]
    for name, (access, times) in COUNTED.items():
        if name in kernels and kernels[name].count(access) != times:
            problems.append(f"{name}: {access} not {times} times in {kernels[name]}")
    for name, words in NEVER.items():
        allowed = [a for part in CONTAINS.get(name, []) for a in part]
        problems += [f"{name}: {access}" for access in kernels.get(name, [])
                     if re.search(words, access) and access not in allowed]
    return problems


def self_test(bodies):
    """Each of the expected accesses taken away, and made weak."""
    unseen, kernels = 0, kernels_of(bodies)
    for name, pairs in FIRST.items():
        for first, _ in pairs:
            for what, other in ("without", ""), ("with a predicate before", f"@%p1 {first}"):
                lines = [line.replace(first, other) for line in bodies[name]]
                if not order_problems_of({**bodies, name: lines}):
                    print(f"not seen: {name} {what} {first}")
                    unseen += 1
    for name in sorted(set(EXACTLY) | set(CONTAINS)):
        for i, access in enumerate(kernels[name]):
            wanted = name in EXACTLY or any(access in part for part in CONTAINS[name])
            alone = name in EXACTLY or kernels[name].count(access) == 1
            if not wanted or not alone:
                continue
            for changed in (kernels[name][:i] + kernels[name][i + 1:],
                            kernels[name][:i] + [access.split(".")[0] + ".weak"] + kernels[name][i + 1:]):
                if not problems_of({**kernels, name: changed}):
                    print(f"not seen: {name} without {access}")
                    unseen += 1
    for name in NEVER:
        if not problems_of({**kernels, name: kernels[name] + ["fence.sc.sys"]}):
            print(f"not seen: a fence in {name}")
            unseen += 1
    return unseen


def registers_of(log):
    return {name: int(count) for name, count in re.findall(
        r"Compiling entry function '(\w+)'.*?Used (\d+) registers", log, re.S)}


def sizes(registers, code, path):
    """Prints what each call adds; the problems."""
    rows, problems = [], []
    for name, most in MOST_REGISTERS.items():
        own, called = code[name]
        row = (*name.removeprefix("size_").rsplit("_", 1), registers[name], own - code["size_nothing_thread"][0], called)
        rows.append(row)
        print("{}, {}: {} registers, {} instructions, {} in functions".format(*row))
        if registers[name] > most:
            problems.append(f"{name}: {registers[name]} registers, more than {most}")
    if path is not None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("call", "scope", "registers", "instructions", "called_instructions", "target"))
            writer.writerows((*row, "sm_90") for row in rows)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--registers", action="store_true")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("nvcc", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "kernels.ptx")
        subprocess.run([*options.nvcc, "-ptx", "-o", str(out), str(SOURCE)], check=True)
        ptx = out.read_text()
        if tuple(map(int, re.search(r"^\.version (\d+)\.(\d+)", ptx, re.M).groups())) < (8, 6):
            COUNTED.update({name: (FENCE, times) for name, (_, times) in COUNTED.items()})
            for table in (EXACTLY, CONTAINS):
                table.update({name: older(parts) for name, parts in table.items()})
        bodies = bodies_of(ptx)
        kernels = kernels_of(bodies)
        log, code = "", {}
        if options.registers:
            binary = out.with_suffix(".cubin")
            log = subprocess.run([Path(options.nvcc[0]).with_name("ptxas"), "-v", "-arch=sm_90", "-o", str(binary), str(out)],
                                 capture_output=True, text=True, check=True).stderr
            code = instructions_of(binary)
    problems = problems_of(kernels) + order_problems_of(bodies)
    if options.registers:
        problems += sizes(registers_of(log), code, options.csv)
    for problem in problems:
        print(problem)
    if options.self_test and not problems:
        unseen = self_test(bodies)
        print(f"{unseen} changes not seen")
        return unseen != 0
    print(f"{len(kernels)} kernels, {len(problems)} problems")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
