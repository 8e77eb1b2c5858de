# SPDX-License-Identifier: GPL-2.0-or-later
"""full_table.py CROWDING_IDS: says that it is ready, and after a line of input has children with the ids that the program
CROWDING_IDS prints: more than the part of the target table that is searched for them has entries. Ends with the input, and
its children with it."""
import os
import signal
import subprocess
import sys

from sleepers import sleeper


def have_children():
    for pid in map(int, subprocess.check_output(sys.argv[1]).split()):
        if not os.path.exists(f"/proc/{pid}"):
            children.append(sleeper(pid))


children = []
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
try:
    print("ready", flush=True)
    sys.stdin.readline()
    have_children()
    sys.stdin.read()
finally:
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
