#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""leakrec in an interactive shell, suspended and resumed. Usage: drive_suspend.py LEAKREC PID PROGRESS

Files: leakrec.err, perf.data. Exits 0 if the process went on while leakrec was stopped.
"""

import re
import struct
import sys
import time

from terminal import Terminal

SECONDS = 2  # of suspension: more than any stop may last


def progress(path):
    """What endless_churn's first thread has made."""
    with open(path, "rb") as file:
        return struct.unpack("q", file.read(8))[0]


def wait_for_message(pattern):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with open("leakrec.err") as file:
            if re.search(pattern, file.read()):
                return
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {pattern!r}")


def main():
    leakrec, pid, path = sys.argv[1:]
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], columns=300)
    terminal.wait_for(r"[#$]")
    open("leakrec.err", "w").close()
    terminal.press(f"{leakrec} -p {pid} -m 64 --call-graph none 2>leakrec.err\n")
    wait_for_message("recording process")
    terminal.press("\x1a")
    terminal.wait_for("Stopped")
    suspended_until = time.monotonic() + SECONDS
    while time.monotonic() < suspended_until:
        before = progress(path)
        deadline = time.monotonic() + 20
        while progress(path) <= before:
            assert time.monotonic() < deadline, "the process is held while leakrec is suspended"
            time.sleep(0.02)
    terminal.press("fg\n")
    wait_for_message("recording goes on")
    terminal.press("\x03")
    wait_for_message(r"\d+ events?, .* events? lost")
    terminal.press("exit\n")


main()
