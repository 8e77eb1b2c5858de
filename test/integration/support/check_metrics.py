#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks a file by the rules of Prometheus' text format 0.0.4, and by those of node_exporter's textfile collector."""
import re
import sys

LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)$")


def check(path):
    text = open(path, "rb").read().decode("utf-8")
    assert text.endswith("\n"), "the last line has no end"
    types, helps, series, last = {}, {}, set(), None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, words = line[7:].split(" ", 1)
            assert name not in helps and words, line
            helps[name] = words
            continue
        if line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name not in types and kind in ("counter", "gauge"), line
            assert (kind == "counter") == name.endswith("_total"), line
            types[name] = kind
            continue
        match = SAMPLE.match(line)
        assert match, f"not a sample: {line}"  # a time would not match, either
        name, labels, value = match.groups()
        assert name in types and name in helps, line
        # The samples of a metric are one group.
        assert name == last or not any(known.startswith(name + "{") for known in series), line
        assert labels and labels.startswith('recording="'), line
        key = f"{name}{{{labels}}}"
        assert key not in series, f"twice: {line}"
        series.add(key)
        number = float(value)
        assert types[name] == "gauge" or number >= 0, line
        last = name
    assert series, "no samples"


check(sys.argv[1])
