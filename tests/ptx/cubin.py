# SPDX-License-Identifier: BSD-3-Clause
"""How many machine instructions a kernel has, by the sections of a cubin, which is an ELF file."""
import struct

WORD = 16  # bytes of an instruction, from sm_70 on
NOP = 0x918  # its lowest twelve bits


def _strings(data, section):
    def at(offset):
        begin = section["offset"] + offset
        return data[begin:data.index(b"\0", begin)].decode()
    return at


def instructions_of(path):
    """By kernel: those in its own code, and those of the functions that it calls. The padding at the end does not count."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:5] != b"\x7fELF\x02":
        raise ValueError(f"{path} is no 64-bit ELF file")
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3a)
    fields = ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "entry")
    sections = [dict(zip(fields, struct.unpack_from("<IIQQQQIIQQ", data, table + i * size))) for i in range(count)]
    name_at = _strings(data, sections[names])
    functions = {}  # by section: where functions begin
    for section in sections:
        if section["type"] != 2:  # symbols
            continue
        for at in range(section["offset"], section["offset"] + section["size"], section["entry"]):
            _, info, _, place, value, _ = struct.unpack_from("<IBBHQQ", data, at)
            if info & 15 == 2:
                functions.setdefault(place, set()).add(value)
    found = {}
    for place, section in enumerate(sections):
        name = name_at(section["name"])
        if not name.startswith(".text."):
            continue
        code = data[section["offset"]:section["offset"] + section["size"]]
        end = len(code) // WORD
        while end > 0 and struct.unpack_from("<H", code, (end - 1) * WORD)[0] & 0xfff == NOP:
            end -= 1
        own = min([begin // WORD for begin in functions.get(place, ()) if begin > 0] + [end])
        found[name.removeprefix(".text.")] = (own, end - own)
    return found
