#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
make_elf.py FILE FUNCTIONS [NR_SYMBOLS [CODE_MIB]]: writes a library that defines FUNCTIONS, whose names
are separated by commas. With NR_SYMBOLS it has so many more, each with a name of 60,000 characters,
which take long to look through. With CODE_MIB it has so much more code, which may jump at every byte,
in as many segments as are looked at.
"""

import struct
import sys

CODE, NAMES, STRINGS, SYMBOLS = 0x1000, 0x2000, 0x3000, 0x14000
STEP = 16
HEADERS, SECTIONS = 0x40, 0xE80
MAX_SEGMENTS = 64
FUNCTION = bytes.fromhex("f30f1efa 55 31c0 5d c3")  # endbr64; push; xor; pop; ret: probed at the push
NAME_BYTES = 60000
SECTION_NAMES = b"\0.text\0.dynsym\0.dynstr\0.shstrtab\0"


def symbol(name, address):
    return struct.pack("<IBBHQQ", name, 0x12, 0, 1, address, STEP - 1)


def section(name, kind, flags, address, offset, size, link=0, entry=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, address, offset, size, link, 0, 1, entry)


def segment(offset, size):
    return struct.pack("<IIQQQQQQ", 1, 5, offset, offset, 0, size, size, 4096)


path, functions = sys.argv[1], sys.argv[2].split(",")
nr_slow, code_mib = (*map(int, sys.argv[3:5]), 0, 0)[:2]
strings, symbols = b"\0", bytes(24)
for i, function in enumerate(functions):
    symbols += symbol(len(strings), CODE + STEP * i)
    strings += function.encode() + b"\0"
symbols += symbol(len(strings), CODE) * nr_slow
strings += b"A" * NAME_BYTES + b"\0"

more_code = b"\xe8" * (code_mib << 20)
segments = segment(0, NAMES)
if more_code:
    code_offset = -(SYMBOLS + len(symbols)) // 4096 * -4096
    segments += segment(code_offset, len(more_code)) * (MAX_SEGMENTS - 1)

with open(path, "wb") as file:
    file.write(b"\x7fELF\2\1\1".ljust(16, b"\0"))
    file.write(struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, HEADERS, SECTIONS, 0, 64, 56,
                           len(segments) // 56, 64, 5, 4))
    file.write(segments)
    file.seek(SECTIONS)
    file.write(bytes(64))
    file.write(section(1, 1, 6, CODE, CODE, NAMES - CODE))
    file.write(section(7, 11, 2, SYMBOLS, SYMBOLS, len(symbols), 3, 24))
    file.write(section(15, 3, 2, STRINGS, STRINGS, len(strings)))
    file.write(section(23, 3, 0, 0, NAMES, len(SECTION_NAMES)))
    file.seek(CODE)
    file.write(FUNCTION.ljust(STEP, b"\x90") * ((NAMES - CODE) // STEP))
    for offset, content in ((NAMES, SECTION_NAMES), (STRINGS, strings), (SYMBOLS, symbols)):
        file.seek(offset)
        file.write(content)
    if more_code:
        file.seek(code_offset)
        file.write(more_code)
