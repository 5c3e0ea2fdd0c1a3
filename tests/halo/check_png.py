# SPDX-License-Identifier: BSD-3-Clause
"""What write_png() has written, decoded by Python's own zlib, and each pixel compared.

Usage: check_png.py LAUNCHER PROGRAM      (the launcher's words are joined by |)
"""
import math
import os
import struct
import subprocess
import sys
import tempfile
import zlib

PROGRAMS = 40


def decode(path):
    """(columns, rows, bytes of red, green and blue, row by row from the top)"""
    with open(path, "rb") as f:
        content = f.read()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, last = 8, b"", b""
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at:at + 8])
        data, (check,) = content[at + 8:at + 8 + length], struct.unpack(">I", content[at + 8 + length:at + 12 + length])
        assert zlib.crc32(kind + data) == check, kind
        at, last = at + 12 + length, kind
        if kind == b"IHDR":
            columns, rows, *how = struct.unpack(">IIBBBBB", data)
            assert how == [8, 2, 0, 0, 0], how
        if kind == b"IDAT":
            packed += data
    assert last == b"IEND"
    lines, stride, above, pixels = zlib.decompress(packed), 3 * columns, bytes(3 * columns), b""
    assert len(lines) == rows * (stride + 1)
    for row in range(rows):
        line = bytearray(lines[row * (stride + 1):(row + 1) * (stride + 1)])
        how, line = line[0], line[1:]
        for i in range(stride):
            left, up, corner = line[i - 3] if i >= 3 else 0, above[i], above[i - 3] if i >= 3 else 0
            nearest = min((left, up, corner), key=lambda n: abs(left + up - corner - n))
            line[i] = (line[i] + (0, left, up, (left + up) // 2, nearest)[how]) % 256
        above, pixels = bytes(line), pixels + line
    return columns, rows, pixels


def color(value, low, high, colors):
    if math.isnan(value):
        return 255, 0, 255
    part = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
    part = min(max(part, 0.0), 1.0)
    byte = [math.floor(255 * p + 0.5) for p in (part, 2 * part, 2 - 2 * part)]
    if colors == 0:
        return byte[0], byte[0], byte[0]
    return (byte[1], byte[1], 255) if part < 0.5 else (255, byte[2], byte[2])


def main():
    launcher, program = sys.argv[1].split("|"), sys.argv[2]
    seen = set()
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        done = subprocess.run([*launcher, program, folder, str(PROGRAMS)]).returncode
        if done != 0:
            sys.exit(done)
        for seed in range(1, PROGRAMS + 1):
            path = os.path.join(folder, f"{seed}.png")
            with open(path + ".expected", encoding="ascii") as f:
                head, data = f.read().split("\n")
            kind, columns, rows, colors, low, high = head.split()
            columns, rows, low, high = int(columns), int(rows), float(low), float(high)
            values = [float(v) for v in struct.unpack(f"{columns * rows}{kind}", bytes.fromhex(data))]
            if low == high == 0:
                finite = [v for v in values if math.isfinite(v)]
                low, high = min(finite), max(finite)
            expected = b"".join(bytes(color(v, low, high, int(colors))) for row in reversed(range(rows))
                                for v in values[row * columns:(row + 1) * columns])
            assert decode(path) == (columns, rows, expected), seed
            seen |= {expected[i:i + 3] for i in range(0, len(expected), 3)}
    assert len(seen) > 100 and b"\xff\0\xff" in seen, len(seen)


main()
