#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs leakparse on a pseudo-terminal. Usage: drive_reader.py CASE COMMAND...

Exits 0 if all was as it should be; prints what the terminal shows in the end.
"""

import re
import sys

from terminal import Terminal


def main():
    case, command = sys.argv[1], sys.argv[2:]
    terminal = Terminal(command)
    if case == "paged":
        # less fills the screen and waits; the next page, and the user has seen enough.
        terminal.wait_for(r"^# leaks 1$")
        terminal.wait_for(r"^:")
        terminal.press(" ")
        terminal.wait_without(r"^# leaks 1$")
        terminal.press("q")
    status = terminal.finish()
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
