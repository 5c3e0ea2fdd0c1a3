# SPDX-License-Identifier: BSD-3-Clause
"""A program that is killed while it writes a checkpoint: the one before is still whole, on another number of ranks too,
and the next run writes again.

Usage: killed.py LAUNCHER OTHER_LAUNCHER PROGRAM      (a launcher's words are joined by |)
"""
import os
import subprocess
import sys
import tempfile

launcher, other, program = sys.argv[1].split("|"), sys.argv[2].split("|"), sys.argv[3]


def run(by, what, path, step):
    done = subprocess.run([*by, program, what, path, str(step)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    sys.stdout.buffer.write(done.stdout)
    return done.returncode


def content(path):
    with open(path, "rb") as f:
        return f.read()


with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
    path = os.path.join(folder, "run.checkpoint")
    partial = path + ".partial"
    assert run(launcher, "write", path, 1) == 0
    before = content(path)
    assert os.listdir(folder) == [os.path.basename(path)], os.listdir(folder)
    assert run(launcher, "end", path, 2) != 0, "nobody has killed it"
    assert content(path) == before, "the file has changed"
    assert 0 < os.path.getsize(partial) < len(before), "it was not killed in the middle"
    assert run(other, "read", path, 1) == 0
    assert run(launcher, "write", path, 3) == 0
    after = content(path)
    assert after[:24] == before[:24] and after[24:32] == (3).to_bytes(8, sys.byteorder), after[:32]
    assert not os.path.exists(partial)
