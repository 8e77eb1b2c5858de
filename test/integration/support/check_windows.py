#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""check_windows.py LOG SCRIPT PID: compares a recording in windows with what the target steady_calls, PID, noted.

SCRIPT is what `perf script --ns -F pid,tid,time,event,trace` prints. What children of the target do is not in the
log: on a busy machine, one may still run when the next window opens, and is recorded then. Each call that lies within a
window must be in the recording, each recorded event must be one of the calls, at its time, and each return must have its
entry in the same window. Prints "NR_WINDOWS NR_EVENTS"."""
import bisect
import collections
import re
import sys

LINE = re.compile(r"^\s*(\d+)/(\d+)\s+(\d+)\.(\d+):\s+([\w.]+):(\w+): (.*)$")


def fail(*what):
    print(*what, file=sys.stderr)
    sys.exit(1)


def read_script(path, pid):
    windows, events = [], []
    for line in open(path, encoding="utf8"):
        match = LINE.match(line)
        if not match:
            continue
        tid, time = int(match[2]), int(match[3]) * 10**9 + int(match[4])
        name, fields = match[6], dict(re.findall(r"(\w+)=(\S+)", match[7]))
        if name == "window":
            is_open = int(fields["open"], 0)
            if is_open == (bool(windows) and len(windows[-1]) == 1):
                fail("window samples do not alternate at", time)
            windows.append([time]) if is_open else windows[-1].append(time)
        elif match[5].startswith("leakrec") and match[5] != "leakrec" and int(match[1]) == pid:
            events.append((time, tid, name, fields))
    if windows and len(windows[-1]) == 1:
        fail("the last window does not end")
    return windows, events


def kinds_of(name, fields):
    """The kind, and the address, of what the event is in the log."""
    if name.startswith("malloc"):
        return ("m", int(fields["ret"], 16))
    if name.startswith("free"):
        return ("f", int(fields["mem"], 16))
    if name == "realloc":
        return ("F", int(fields["oldmem"], 16))
    if name == "realloc_ret":
        return ("M", int(fields["ret"], 16))
    return None


def main():
    windows, events = read_script(sys.argv[2], int(sys.argv[3]))
    opens = [window[0] for window in windows]

    def window_at(time):
        nth = bisect.bisect_right(opens, time) - 1
        return nth if nth >= 0 and time <= windows[nth][1] else None

    recorded = collections.defaultdict(list)
    entries = {}
    for time, tid, name, fields in sorted(events, key=lambda event: event[0]):
        nth = window_at(time)
        if nth is None:
            fail("outside of all windows:", time, tid, name, fields)
        if name == "realloc":
            entries[tid] = nth
        if name == "realloc_ret" and entries.pop(tid, None) != nth:
            fail("a return without entry in its window:", time, tid, fields)
        key = kinds_of(name, fields)
        if key is None:
            fail("unknown event", name)
        recorded[key].append(time)
    for line in open(sys.argv[1], encoding="utf8"):
        kind, address, begin, end = line.split()
        key, begin, end = (kind, int(address, 16)), int(begin), int(end)
        times = recorded.get(key, [])
        at = bisect.bisect_left(times, begin)
        if at < len(times) and times[at] <= end:
            times.pop(at)
            continue
        # A program that saw the window open, and then waited for a CPU, notes the call when the window has closed.
        last = bisect.bisect_right(opens, begin) - 1
        closed = windows[last][1] if last >= 0 else begin
        if closed < begin and closed in times:
            times.remove(closed)
            continue
        nth = window_at(begin)
        if nth is not None and end <= windows[nth][1]:
            fail("missing in window", nth, windows[nth], "of", len(windows), ":", line.strip())
    for key, times in recorded.items():
        # Of a call that lasted beyond the window, one half may be missing.
        if times:
            fail("no such call:", key, times)
    print(len(windows), len(events))


main()
