#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Each format of another tool, read by that tool. The recording is generated, with names that look like the formats' own
# syntax (test/unit/report/test_report_formats.c); another one is in windows. Nothing is recorded here.

bats_require_minimum_version 1.5.0
BUILD_DIR=${BUILD_DIR:?the build directory}

setup_file() {
	"$BUILD_DIR/test/unit/test_report_formats" "$BATS_FILE_TMPDIR/perf.data"
	"$BUILD_DIR/test/unit/test_window_reports" "$BATS_FILE_TMPDIR/windows.data"
}

# The recording holds 20 blocks of 3072 bytes by one stack, one of 500 bytes, and one of 16.
held_bytes=61956

format() {
	"$BUILD_DIR/bin/leakparse" -i "$BATS_FILE_TMPDIR/perf.data" --format "$1" \
		-o "$BATS_TEST_TMPDIR/$2" 2>"$BATS_TEST_TMPDIR/messages"
}

@test "formats: json is what jq and python3 read, as the page documents it" {
	format json x.json
	python3 -m json.tool "$BATS_TEST_TMPDIR/x.json" >/dev/null
	run -0 jq -r '[.version, .summary.held_bytes, (.stacks | length), (.blocks | length),
		([.blocks[].size] | add)] | join(" ")' "$BATS_TEST_TMPDIR/x.json"
	[[ $output == "1 $held_bytes 3 22 $held_bytes" ]]
	# The documentation names every key.
	jq -r 'paths | map(select(type == "string")) | last' "$BATS_TEST_TMPDIR/x.json" | sort -u |
		while read -r key; do
			grep -q "\`$key\`" "$SOURCE_DIR/docs/json-format.md" ||
				{ echo "$key is not documented"; false; }
		done
}

@test "formats: html says of which moment it is" {
	for moment in 'end:at the end' 'peak:at the peak' '0.1:after 100 ms'; do
		run -0 --separate-stderr "$BUILD_DIR/bin/leakparse" -i "$BATS_FILE_TMPDIR/perf.data" --format html --at "${moment%:*}"
		[[ $output == *"\"moment\":\"${moment#*:}\""* ]]
	done
}

@test "formats: csv has the same number of fields in each line, and no formula" {
	format csv x.csv
	python3 - "$BATS_TEST_TMPDIR/x.csv" "$held_bytes" <<'END'
import csv, sys
rows = list(csv.reader(open(sys.argv[1], newline="", encoding="utf-8")))
assert len(rows) == 4 and all(len(row) == len(rows[0]) for row in rows), rows
column = rows[0].index("held_bytes")
assert sum(int(row[column]) for row in rows[1:]) == int(sys.argv[2])
assert not any(field[:1] in "=+-@" for row in rows for field in row if field), rows
END
}

@test "formats: folded stacks add up" {
	format folded x.folded
	# Splits lines as flamegraph.pl does: the last word is the count, semicolons separate the frames.
	awk -v held="$held_bytes" '
		!/^[^;]+(;[^;]+)* [0-9]+$/ { bad = 1 }
		{ sum += $NF; frames = gsub(/;/, ";") + 1; if (frames < 4 || frames > 6) bad = 1 }
		END { exit bad || sum != held || NR != 3 }' "$BATS_TEST_TMPDIR/x.folded"
}

@test "formats: folded stacks are what speedscope's importer takes" {
	format folded x.folded
	python3 - "$BATS_TEST_TMPDIR/x.folded" "$held_bytes" <<'END'
import re, sys
# As speedscope's src/import/bg-flamegraph.ts reads "collapsed" stacks: a line that does not match is dropped.
lines = [line for line in open(sys.argv[1], encoding="utf-8").read().split("\n") if line]
parsed = [re.match(r"^(.*) (\d+)$", line) for line in lines]
assert all(parsed), lines
stacks = [(match[1].split(";"), int(match[2])) for match in parsed]
assert all(all(frames) for frames, _ in stacks), stacks
assert len({";".join(frames) for frames, _ in stacks}) == len(stacks), stacks
assert sum(weight for _, weight in stacks) == int(sys.argv[2])
# The frames, outermost first, are those of the tree.
assert all(frames[0] == "server+0x1010" and frames[-1] == "libc.so.6+0x800" for frames, _ in stacks), stacks
END
}

@test "formats: gprof2dot's schema" {
	format gprof2dot x.json
	python3 - "$BATS_TEST_TMPDIR/x.json" "$held_bytes" <<'END'
import json, sys
# Checks what gprof2dot.py's JsonParser assumes.
profile = json.load(open(sys.argv[1], encoding="utf-8"))
assert profile["version"] == 0
assert all(cost["description"] and cost["unit"] for cost in profile["costs"])
functions = profile["functions"]
assert all(isinstance(function["name"], str) for function in functions)
assert all(isinstance(function.get("module", ""), str) for function in functions)
for event in profile["events"]:
    assert event["callchain"] and all(functions[i] for i in event["callchain"])
    assert len(event["cost"]) == len(profile["costs"])
assert sum(event["cost"][0] for event in profile["events"]) == int(sys.argv[2])
# Innermost first.
assert functions[profile["events"][0]["callchain"][0]]["name"] == "libc.so.6+0x800"
END
}

@test "formats: callgrind_annotate reads callgrind" {
	format callgrind callgrind.out
	run -0 --separate-stderr callgrind_annotate --inclusive=yes --auto=no --threshold=100 \
		"$BATS_TEST_TMPDIR/callgrind.out"
	grep -E '^61,956 \(100\.0%\) 22 \(100\.0%\) +PROGRAM TOTALS' <<<"$output"
	grep -E '^61,956 \(100\.0%\) 22 \(100\.0%\) .*:server\+0x2020 ' <<<"$output"
	grep -E '^ +500 .*:=a;b <script>"#\(1\)\\x5c\\x0a\\xff,%s\.so\+0x3030 ' <<<"$output"
}

@test "formats: ms_print reads massif" {
	format massif massif.out
	run -0 --separate-stderr ms_print --threshold=0 "$BATS_TEST_TMPDIR/massif.out"
	# The peak is not at the end, but while the block of 100,000 bytes lives.
	grep -E 'Detailed snapshots: \[[0-9]+ \(peak\), [0-9]+\]' <<<"$output"
	grep -E '^ +[0-9]+ +130 +139,936 +139,936 ' <<<"$output"
	grep -F -e '->71.46% (100,000B) 0x0: =a;b <script>"\x23(1)' <<<"$output"
	grep -E '^ *[0-9]+ +250 +61,956 ' <<<"$output"
	run -2 "$BUILD_DIR/bin/leakparse" --format massif --min-age 1 -i /dev/null
}

@test "formats: massif and --at peak are refused where only windows were observed" {
	run -1 "$BUILD_DIR/bin/leakparse" --format massif -i "$BATS_FILE_TMPDIR/windows.data" -o "$BATS_TEST_TMPDIR/massif.out"
	[[ $output == "leakparse: the recording is in windows: what was held over time, "*", is not known; "* ]]
	[[ ! -e $BATS_TEST_TMPDIR/massif.out ]]
	for format in leaks html; do
		run -1 "$BUILD_DIR/bin/leakparse" --format "$format" --at peak -i "$BATS_FILE_TMPDIR/windows.data" -o "$BATS_TEST_TMPDIR/peak.out"
		[[ $output == "leakparse: the recording is in windows: when most was held, "*", is not known; "* ]]
		[[ ! -e $BATS_TEST_TMPDIR/peak.out ]]
	done
}

@test "formats: heaptrack_print reads heaptrack's data" {
	format heaptrack x.heaptrack
	run -0 heaptrack_print --print-leaks 1 --shorten-templates 0 -f "$BATS_TEST_TMPDIR/x.heaptrack"
	grep -F '61.44K leaked over 20 calls from:' <<<"$output"
	grep -F '500B leaked over 1 calls from:' <<<"$output"
	grep -F '=a;b <script>"#(1)\x5c\x0a\xff,%s.so+0x3030' <<<"$output"
	grep -F 'total memory leaked: 61.96K' <<<"$output"
	[[ $output != *"failed to parse"* ]]
}

@test "formats: go tool pprof reads pprof" {
	format pprof x.pb.gz
	export HOME=$BATS_TEST_TMPDIR
	run -0 go tool pprof -raw "$BATS_TEST_TMPDIR/x.pb.gz"
	grep -F 'inuse_objects/count inuse_space/bytes[dflt]' <<<"$output"
	grep -E '^ +20 +61440: 1 2 3 4' <<<"$output"
	grep -E '^ +1 +16: 1 2 3 3 3 4' <<<"$output"
	grep -F 's=0(=a;b <script>"#(1)\x5c\x0a\xff,%s.so+0x3030)' <<<"$output"
	run -0 go tool pprof -top "$BATS_TEST_TMPDIR/x.pb.gz"
	grep -E '^ +60\.50kB +100% .* libc\.so\.6\+0x800$' <<<"$output"
	# Blocks without a stack are not left out.
	"$BUILD_DIR/test/unit/test_report_formats" "$BATS_TEST_TMPDIR/no_stack.data" no-stack
	"$BUILD_DIR/bin/leakparse" -i "$BATS_TEST_TMPDIR/no_stack.data" --format pprof -o "$BATS_TEST_TMPDIR/no_stack.pb.gz"
	run -0 go tool pprof -top "$BATS_TEST_TMPDIR/no_stack.pb.gz"
	grep -E '^ +20kB .* \(no stack\)$' <<<"$output"
	# It is not written to a terminal.
	run -1 script -qec "'$BUILD_DIR/bin/leakparse' -i '$BATS_FILE_TMPDIR/perf.data' --format pprof" /dev/null
	[[ $output == *"not for a terminal"* ]]
}

@test "formats: an unknown format is bad usage" {
	run -2 "$BUILD_DIR/bin/leakparse" --format nonsense -i /dev/null
	[[ $output == *'--format takes tree, html, '*' or gprof2dot, not "nonsense"'* ]]
	run -2 "$BUILD_DIR/bin/leakparse" --format tree --by nonsense -i /dev/null
	run -2 "$BUILD_DIR/bin/leakparse" --format tree --threshold 101 -i /dev/null
	run -2 "$BUILD_DIR/bin/leakparse" --format tree --depth 0 -i /dev/null
	for options in --inverted "--depth 3" "--by module" "--threshold 2 --format html" "--summary --format tree"; do
		# shellcheck disable=SC2086
		run -2 "$BUILD_DIR/bin/leakparse" $options -i /dev/null
	done
	run -2 "$BUILD_DIR/bin/leakparse" --diff --format json -i /dev/null
	run -2 "$BUILD_DIR/bin/leakparse" --diff --format tree --by size -i /dev/null
}
