#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives leakrec --top on a pseudo-terminal. Usage: drive_top.py LEAKREC CASE PID [OPTION...]

Exits 0 if all was as it should be; what the program wrote last goes to standard output.
"""

import os
import re
import signal
import sys
import time

from terminal import Terminal


def viewer_of(leakrec):
    """The process that shows: leakrec's first child."""
    with open(f"/proc/{leakrec}/task/{leakrec}/children") as children:
        return int(children.read().split()[0])


def bytes_of(text):
    number, unit = text.split()
    return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


BAR = "[ .1-9\u2581-\u2588]"


def row_of(terminal, function, is_marked):
    """Held bytes, blocks, growth and, if there is a mark, what came since, of the row of @function."""
    amount = r" +([+-]?[\d.]+ [KMG]?i?B)"
    match = terminal.wait_for(
        r"^[> ] *([\d.]+ [KMG]?i?B) +(\d+)"
        + amount * (2 if is_marked else 1)
        + f" {BAR}{{8}} {function}"
    )
    return match.groups()


def wait_for_row(terminal, function):
    """Until the row of @function, whose blocks have 3072 bytes, is right. While it is redrawn, old and new numbers mix."""
    deadline = time.monotonic() + 60
    while True:
        held, blocks, growth, since = row_of(terminal, function, True)
        if bytes_of(since) < bytes_of(held) and bytes_of(held) / int(blocks) - 3072 < 60:
            return
        assert time.monotonic() < deadline, (held, blocks, growth, since)
        terminal.read(0.1)


def keys(terminal):
    terminal.wait_for(r"^leakrec --top: leaky_daemon \(\d+\)$")
    terminal.wait_for(r"^> .* query_font < load_font")
    row_of(terminal, "query_font", False)
    # Messages cover no keys.
    terminal.wait_for(r"recording process \d+; Ctrl-C ends it")
    terminal.wait_for_last(r"^\? help")
    terminal.wait_for(r" [1-9]\d* events/s, \d+ in all, 0 events lost")
    # Frames of a stack, and hidden again.
    terminal.press("\n")
    terminal.wait_for(r"^      load_font  leaky_daemon.c:\d+$")
    terminal.press("\n")
    terminal.wait_without(r"^      load_font ")
    # Another row, that of the cache, is selected and has frames.
    terminal.press("j")
    terminal.wait_for(r"^> +\d.*(?<!query_font < load_font)$")
    terminal.wait_for(r"^  .*query_font < load_font")
    terminal.press("k")
    # A mark: since it only what leaks has grown.
    terminal.press("m")
    terminal.wait_for("mark 1$")
    terminal.wait_for("SINCE MARK")
    wait_for_row(terminal, "query_font")
    for order, title in ORDERS:
        terminal.press("s")
        terminal.wait_for(rf"stacks? by {order}")
        terminal.wait_for(rf"^ .*{title} .*STACK")
    # Only what has a text in it.
    terminal.press("/")
    terminal.wait_for("^filter: _")
    terminal.press("REPLACE")
    terminal.wait_for("1 stack by held  with \"REPLACE\"")
    terminal.press("x\n")
    terminal.wait_for("no stack matches the filter")
    terminal.press("\x1b")
    terminal.wait_for("query_font")
    terminal.press("p")
    terminal.wait_for("FROZEN")
    terminal.settle()
    before = terminal.wait_for(r"(\d+) in all").group(1)
    for _ in range(10):
        terminal.read(0.1)
    assert terminal.wait_for(r"(\d+) in all").group(1) == before
    terminal.press("pq")
    return 0


def help_(terminal):
    terminal.wait_for(r"^> .* query_font < load_font")
    for key in "?", "h":
        terminal.press(key)
        terminal.wait_for("^  s +sort by the next column")
        terminal.wait_for("^any key: back")
        terminal.press("x")
        terminal.wait_for(r"^> .* query_font < load_font")
        terminal.wait_for_last(r"^\? help")
    terminal.resize(24, 40)
    terminal.press("?")
    for end in ("what leaked", "MARK: later", "Esc: all", "Home, End too", "goes on", "last 10 s", "wide screens"):
        terminal.wait_for(rf"^  .*{end}$")
    terminal.press("x")
    terminal.resize(24, 80)
    # Without a mark, nothing is sorted by what came after it.
    for order, title in ORDERS:
        if order != "since mark":
            terminal.press("s")
            terminal.wait_for(rf"stacks? by {order}")
            terminal.wait_for(rf"^ .*{title} .*STACK")
    terminal.press("q")
    return 0


def sizes(terminal):
    terminal.wait_for("query_font")
    for lines, columns in ((10, 40), (50, 132), (5, 20), (2, 10), (24, 80)):
        terminal.resize(lines, columns)
        terminal.wait_for("^held " if columns < 40 else "leakrec --top")
        if columns >= 20:
            terminal.wait_for("STACK$")
            terminal.wait_for(r"^> +[\d.]+ [KM]iB .*query_fon")
            terminal.wait_for_last(r"^\? help")
        if columns > 100:
            terminal.wait_for(r"SOURCE +STACK$")
            terminal.wait_for(r" leaky_daemon.c:\d+ +query_font < ")
        terminal.press("\n")
        assert all(len(line) <= columns for line in terminal.screen.text())
    terminal.wait_for("query_font")
    # A long filter stays in its line.
    terminal.resize(10, 30)
    terminal.press("/" + 100 * "x" + "\n")
    terminal.wait_for("^  no stack matches")
    terminal.wait_without("^x")
    terminal.press("q")
    return 0


def one_size(terminal):
    terminal.wait_for(r"^leakrec --top: leaky_daemon \(\d+\), only blocks of 3072 bytes$")
    terminal.wait_for(r"^> .* query_font < load_font")
    terminal.press("q")
    return 0


def send(number, to_viewer, expected):
    def case(terminal):
        terminal.wait_for("query_font")
        os.kill(viewer_of(terminal.pid) if to_viewer else terminal.pid, number)
        return expected

    return case


def interrupt(terminal):
    """Ctrl-C, which the terminal sends to both."""
    terminal.wait_for("query_font")
    terminal.press("\x03")
    return 0


def end_of_target(terminal):
    terminal.wait_for("query_font")
    os.kill(int(sys.argv[3]), signal.SIGTERM)
    return 0


def hostile(terminal):
    terminal.wait_for(r"evil\\x1b\[2J\\x07<")
    terminal.press("\n/x1b\n")
    terminal.wait_for(r"^      evil\\x1b\[2J")
    terminal.press("q")
    return 0


def until_end(terminal):
    """Whatever it does, until the target is done."""
    terminal.wait_for("nothing allocated yet")
    with open("shown", "w"):
        return 0


ORDERS = (
    ("growth", "PER S"),
    ("since mark", "SINCE MARK"),
    ("blocks", "BLOCKS"),
    ("allocations", "ALLOCATIONS"),
    ("held", "HELD"),
)

CASES = {
    "keys": keys,
    "help": help_,
    "sizes": sizes,
    "one-size": one_size,
    "interrupt": interrupt,
    "term": send(signal.SIGTERM, False, 0),
    "term-viewer": send(signal.SIGTERM, True, 0),
    "hangup": send(signal.SIGHUP, False, 0),
    "kill-viewer": send(signal.SIGKILL, True, 1),
    "kill": send(signal.SIGKILL, False, 128 + signal.SIGKILL),
    "end-of-target": end_of_target,
    "hostile": hostile,
    "until-end": until_end,
}


def main():
    leakrec, case, pid = sys.argv[1:4]
    terminal = Terminal([leakrec, "-p", pid, "--top", *sys.argv[4:]])
    expected = CASES[case](terminal)
    status = terminal.finish(120)
    if case == "kill":
        # What shows outlives what records by a moment.
        terminal.wait_for_text(r"s recorded, \d+ allocations")
        terminal.wait_until_restored()
    assert status == expected, status
    assert terminal.is_restored(), "the terminal's modes are not what they were"
    assert not re.search(rb"\x07|\x1b\]", terminal.screen.raw), "an escape of a name's"
    print(terminal.screen.written_last())


if __name__ == "__main__":
    main()
