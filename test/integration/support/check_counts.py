#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the counts of calls in a recording with the times that the target logged for them.

usage: check_counts.py LOG SCRIPT

SCRIPT has the samples of leakrec:calls, as perf script prints them with times. Prints, for the function that was called
when the log says so, how many calls a second were counted, how many in windows, and how many blocks came of these.
Exits with 1 if there is none.
"""
import re
import sys

with open(sys.argv[1], encoding="ascii") as log:
    called_ns = [int(line) for line in log]
samples = {}
with open(sys.argv[2], encoding="utf-8", errors="replace") as script:
    for line in script:
        found = re.search(r"(\d+)\.(\d{9}): +leakrec:calls: (.*)", line)
        if found:
            values = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", found[3])}
            values["time"] = int(found[1]) * 1000000000 + int(found[2])
            samples[values["number"]] = values

for number, last in sorted(samples.items()):
    # Calls may come while the probe is placed, and while the sample is written.
    sure = sum(last["since"] <= ns < last["time"] - 5000000 for ns in called_ns)
    most = sum(last["since"] - 5000000 <= ns < last["time"] for ns in called_ns)
    if last["observed"] and sure <= last["all"] <= most:
        a_second = 1e9 * last["all"] / (last["time"] - last["since"])
        print(round(a_second), last["observed"], last["blocks"])
        sys.exit(0)
print("calls counted:", samples, "calls made:", len(called_ns), file=sys.stderr)
sys.exit(1)
