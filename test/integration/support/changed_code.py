#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""changed_code.py PID...: prints where the processes' code differs from the files that it is mapped from."""

import sys

CHUNK = 1 << 20


def changes(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            words = line.split(maxsplit=5)
            if len(words) < 6 or "x" not in words[1] or not words[5].startswith("/"):
                continue
            start, end = (int(word, 16) for word in words[0].split("-"))
            with open(f"/proc/{pid}/map_files/{start:x}-{end:x}", "rb") as file:
                file.seek(int(words[2], 16))
                memory.seek(start)
                there, expected = memory.read(end - start), file.read(end - start)
            for at, (a, b) in enumerate(zip(there, expected)):
                if a != b:
                    yield f"{pid}: {words[5].strip()}+{int(words[2], 16) + at:#x}: {b:#04x} is {a:#04x}"


for pid in sys.argv[1:]:
    for change in changes(pid):
        print(change)
