# SPDX-License-Identifier: GPL-2.0-or-later
"""full_table.py: after a line of input, has more children than the part of the target table that is searched for their
ids has entries (target_search.h). Ends with the input, and its children with it."""
import os
import signal
import sys

from sleepers import sleeper

TABLE_SIZE, SLOTS, MAX_SEARCH = 4096, 8, 16


def slot(pid):
    """As target_slot()."""
    return (pid * 2654435761 & 0xFFFFFFFF) >> 16 & TABLE_SIZE - 1


def have_children():
    for pid in range(300, 32768):
        if len(children) < SLOTS + MAX_SEARCH + 4 and slot(pid) < SLOTS and not os.path.exists(f"/proc/{pid}"):
            children.append(sleeper(pid))


children = []
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
try:
    sys.stdin.readline()
    have_children()
    sys.stdin.read()
finally:
    for child in children:
        os.kill(child, signal.SIGKILL)
