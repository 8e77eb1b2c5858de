#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs leakparse on a pseudo-terminal. Usage: drive_reader.py CASE COMMAND...

Exits 0 if all was as it should be; prints what the terminal shows in the end.
"""

import os
import re
import signal
import sys
import time

from terminal import Terminal, run_first


def wait_for_reader(pid, path):
    """Until the process has opened the file."""
    path = os.path.realpath(path)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{fd}") == path:
                    return
        except FileNotFoundError:
            pass
    raise AssertionError(f"nobody reads {path}")


def main():
    case, command = sys.argv[1], sys.argv[2:]
    # What the summary says of the memory takes a line more or less.
    terminal = Terminal(command, lines=40 if case == "coloured" else 24)
    if case == "paged":
        # less fills the screen and waits. Show the next page, then leave.
        terminal.wait_for(r"^# leaks 2$")
        terminal.wait_for(r"^:")
        terminal.press(" ")
        terminal.wait_without(r"^# leaks 2$")
        terminal.press("q")
    if case == "progress":
        # Stop it while it reads, so that reading takes more than a second on every machine.
        run_first()
        wait_for_reader(terminal.pid, command[-1])
        os.kill(terminal.pid, signal.SIGSTOP)
        start = time.monotonic()
        while time.monotonic() - start < 1.2:
            terminal.read(0.1)
        os.kill(terminal.pid, signal.SIGCONT)
    status = terminal.finish()
    if case == "progress":
        # It may have been stopped before it had read much.
        shown = re.findall(rb"(\d+) %, [\d.]+ \w+ of [\d.]+ .iB, [\d.]+ \w+/s, [\w ]+ left\r",
                           terminal.screen.raw)
        assert shown, terminal.screen.raw
        assert not any("left" in line for line in terminal.screen.text())
    assert status == 0, status
    assert terminal.is_restored()
    coloured = re.search(rb"\x1b\[[0-9;]*3[0-9]m", terminal.screen.raw)
    if case == "coloured":
        assert coloured, terminal.screen.raw
    elif case in ("plain", "paged"):
        assert not coloured, terminal.screen.raw
    print("\n".join(terminal.screen.text()))


if __name__ == "__main__":
    main()
