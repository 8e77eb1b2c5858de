#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
make_elf.py FILE FUNCTIONS [NR_SYMBOLS]: writes a library that defines FUNCTIONS, whose names are
separated by commas. With NR_SYMBOLS it has so many more, each with a name of 60,000 characters, which
take long to look through.
"""

import struct
import sys

CODE, NAMES, STRINGS, SYMBOLS = 0x1000, 0x2000, 0x3000, 0x14000
STEP = 16
NAME_BYTES = 60000
SECTION_NAMES = b"\0.text\0.dynsym\0.dynstr\0.shstrtab\0"


def symbol(name, address):
    return struct.pack("<IBBHQQ", name, 0x12, 0, 1, address, STEP - 1)


def section(name, kind, flags, address, offset, size, link=0, entry=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, address, offset, size, link, 0, 1, entry)


path, functions = sys.argv[1], sys.argv[2].split(",")
nr_slow = int(sys.argv[3]) if len(sys.argv) > 3 else 0
strings, symbols = b"\0", bytes(24)
for i, function in enumerate(functions):
    symbols += symbol(len(strings), CODE + STEP * i)
    strings += function.encode() + b"\0"
symbols += symbol(len(strings), CODE) * nr_slow
strings += b"A" * NAME_BYTES + b"\0"

with open(path, "wb") as file:
    file.write(b"\x7fELF\2\1\1".ljust(16, b"\0"))
    file.write(struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0x100, 0, 64, 56, 1, 64, 5, 4))
    file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, NAMES, NAMES, 4096))
    file.seek(0x100)
    file.write(bytes(64))
    file.write(section(1, 1, 6, CODE, CODE, NAMES - CODE))
    file.write(section(7, 11, 2, SYMBOLS, SYMBOLS, len(symbols), 3, 24))
    file.write(section(15, 3, 2, STRINGS, STRINGS, len(strings)))
    file.write(section(23, 3, 0, 0, NAMES, len(SECTION_NAMES)))
    file.seek(CODE)
    file.write((b"\x31\xc0\xc3".ljust(STEP, b"\x90")) * ((NAMES - CODE) // STEP))
    for offset, content in ((NAMES, SECTION_NAMES), (STRINGS, strings), (SYMBOLS, symbols)):
        file.seek(offset)
        file.write(content)
