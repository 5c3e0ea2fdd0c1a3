#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One word for one thing (docs/dev/glossary.md): fails where a retired word is used, in code, comments or pages.

Names of files do not count, nor do the glossary, committed results, and this list.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

# What is no longer said, and what is said instead.
RETIRED = {
    # Memory order (include/mpix/detail/order.h).
    r"(?<![\w.])(?:peek|poke)(?:_pair|_pointer)?\(": "load_relaxed, store_relaxed, load_pointer, store_pointer",
    r"\bglance(?:_pointer)?\((?!group)": "load_weak, load_pointer_weak",
    r"(?<![\w.>])(?:observe|publish)(?:_gpu|_pair)?\(": "load_acquire, store_release",
    r"\b(?:observe_gpu|observe_pair|publish_gpu|publish_after_fence|acquire_peeked)\b": "load_acquire_*, store_release_*, fence_acquire",
    r"\brelease_to_(?:system|device)\b": "fence_acq_rel",
    r"\braise_(?:gpu|alone)\b": "fetch_max_*",
    r"\b(?:count_up|add)_(?:relaxed_)?gpu\b(?!\(\*?gpu|\(const gpu)|\bcount_up_alone\b": "fetch_add_*",
    r"\b(?:claim_or_see|claim|take)_gpu\b": "compare_exchange_*, cas_*",
    r"\blook_across\b": "test_flag_seq_cst",
    r"\b(?:hand_to_nic|fetch_record|ring_nic)\b": "store_release_record, load_acquire_record, store_release_mmio",
    # Groups.
    r"\bagree(?:_all|_code|_number)?\(": "broadcast_bool, vote_all, broadcast_code, broadcast_number",
    r"\bcome_together\b": "reconverge",
    # Flag-in-data.
    r"[Mm]ailbox": "inline buffer",
    r"mailed|mailable|mailing": "inline",
    r"\b(?:mail|take_mail|offer_mail|measure_mail|mail_limit|mail_costs|mail_times|mail_delivery|mail_meter)\b": "inline",
    r"(?:take|store|mail)s?_at_once\b": "wait_inline_fast, store_direct, store_small",
    r"\b(?:store|load|take|gather)_lines?\b": "packets",
    r"\btake_letter\b": "take_inline",
    # Rget.
    r"\b(?:(?:why_)?not_pulled|why_no_pull|least_pulled|pull_(?:end|terms))\b": "why_no_rget, rget_*",
    r"\b(?:find_offered|read_offered|refuse_offers|reads_offers|await_offers|offers_of|MPIX_RING_OFFERED)\b": "*_rts",
    r"\b(?:words_before|bytes_with)_offers\b": "words_before_rts, bytes_with_rts",
    r"\bMPIX_PULL_BYTES\b|\bpull_(?:bytes|port)\b|\bpulling\b|\badmission::offered\b|\bfound::offered\b": "rget, RTS",
    # Errors, clear-to-send, the end of a request.
    r"\btransport::outcome\b|\bproblem\{\}": "status",
    r"\b(?:give|gives|tell)_gate\b|\bgate_(?:open|discard)\b": "tell_clear_to_send, clear_to_send",
    r"\bbur(?:y|ied)\b": "invalidate, forget_request",
    r"\bwords_?(?:\.|->)gate\b|\b(?:seen|host)_gate\b|\bgate_needed\b|\bMPIX_GATE_NEVER\b": "clear_to_send, matched, MPIX_NEVER",
    # Who moves a partition.
    r"copied_on\b|\bcopied on into\b": "forwarded",
    r"\bhear_clear_to_send\b|\bheard_(?:word|gate)\b|\bbool (?:Hears|Heard)\b": "await_clear_to_send, host_*, Retries, Waited",
    r"\bteller\b": "the last member",
    r"\bleft_bytes\b": "offload_bytes, should_offload",
    # Others.
    r"(?<!copy_)\bengine_(?:bytes|share|costs)\b|\bchoose_engine_share\b": "copy_engine_*",
    r"\bspread_(?:of|message|buffer)\b|\bplaces_in\b|\bplace_bits\b|\bmost_places\b": "packed_view, offset_table, offsets",
    r"\b(?:begin|end)_asking\b|\bask_host\b": "begin_host_read, end_host_read, read_host",
    r"(?<![^\W_])wish_?\b": "device_spec, ucx_options, pack_mode; knob",
    r"\bcalling[_ ]card\b": "queue pair's address",
    r"[Rr]inger": "doorbell proxy",
    r"(?<!tests: )\b(?:un)?settle\(": "count_ready, update_waiting, flush_words, progress_peer, follow_up",
    r"\b[Rr]eckon\w*\b": "estimate",
    r"\bMPIX_PLAY_GPU\b|\bplayed_(?:gpus?|pair|kernels)\b": "MPIX_FAKE_GPU, fake_*",
}
SUFFIXES = {".h", ".hpp", ".cuh", ".c", ".cc", ".cpp", ".cu", ".def", ".py", ".md", ".pml", ".cmake", ".txt"}
EXEMPT = ("docs/dev/glossary.md", "docs/results/", "tests/source/check_words.py", "tests/fuzz/corpus/")
# Other things of the same name: file, and what may be said there.
OTHERS = {
    "tests/device/litmus.cpp": {"glance"},
    "transport/ib/mlx5/memory.cc": {"add_gpu"},
    "transport/ib/mlx5/memory.h": {"add_gpu"},
    "transport/ib/memory.cc": {"add_gpu"},
    "transport/ib/memory.h": {"add_gpu"},
}
FILE_NAME = re.compile(r"[\w./-]+\.(?:h|hpp|cuh|cc|cu|cpp|c|pml|py)\b|\b\w+_test\b|\bunit\.\w+")
PATTERNS = [(re.compile(word), instead) for word, instead in RETIRED.items()]


def uses(path, text):
    said = FILE_NAME.sub(" ", text)
    if path.startswith("tests/"):
        said = said.replace("settle(", "tests: settle(")  # tests have helpers of that name
    for pattern, instead in PATTERNS:
        for m in pattern.finditer(said):
            if m.group().rstrip("(") not in OTHERS.get(path, ()):
                yield "%s:%d: %s: now %s" % (path, said.count("\n", 0, m.start()) + 1, m.group().rstrip("("), instead)


def tracked(root):
    if shutil.which("git"):
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if listed.returncode == 0:
            return [root / name for name in listed.stdout.decode().split("\0") if name]
    folders = ("include", "device", "host", "transport", "tests", "examples", "docs", "scripts", "cmake")
    return [p for folder in folders for p in sorted((root / folder).rglob("*"))] + sorted(root.glob("*.*"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parents[2], help="repository root")
    arguments = parser.parse_args()
    seen, found = 0, []
    for file in tracked(arguments.root):
        path = file.relative_to(arguments.root).as_posix()
        if file.suffix in SUFFIXES and file.is_file() and not path.startswith(EXEMPT) and path != "CMakeLists.txt":
            seen += 1
            found += uses(path, file.read_text(encoding="utf-8"))
    for line in found:
        print(line)
    print("%d files, %d retired words" % (seen, len(found)))
    return 1 if found or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
