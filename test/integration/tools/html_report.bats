#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakparse --format html, opened and used in headless Chromium (drive_report.py). Its start takes longer than most
# tests, so one does for all of them, before the first: each test looks at what was found. With PICTURES=DIR the
# screenshots for docs/ go there. For reports of many leaks see html_report_large.bats.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/html

# record NAME TARGET [ARG...]: makes NAME.data and NAME.html.
record() {
	evenly leakrec -m 512 -o "$1.data" -- "$2" "${@:3}" >"$1.truth" 2>"$1.rec" && report "$1"
}

# The target loses 30 blocks, keeps 20, and is scanned.
record_scanned() {
	mkfifo in
	reach_leaks 30 20 <in >scanned.truth 2>&1 3>&- &
	exec {SCANNED_IN}>in
	wait_until 60 grep -q waits scanned.truth
	leakrec --scan -p $! -o scanned.data 2>scanned.rec &
	wait_until 60 grep -q 'recording process' scanned.rec
	echo go >&"$SCANNED_IN"
	wait_until 60 grep -q '^ready' scanned.truth
	kill -INT $!
	wait $!
	exec {SCANNED_IN}>&-
	report scanned
}

# A stack leaks a tenth of its blocks, and holds 3 MiB that are too young to judge.
make_young() {
	awk 'BEGIN {
		event = "server 7/7 [000] %.6f: young:%s: (7000 <- 400010) %s=0x%x%s\n\t400010 serve+0x10 (/server)\n\n"
		for (i = 0; i < 1000; i++) {
			at = i < 997 ? 100 + i / 100 : 109.97 + i / 1e6
			printf event, at, "malloc_call", "ret", 4096 * (i + 1), i < 997 ? " bytes=1024" : " bytes=1048576"
			if (i % 10 && i < 997)
				printf event, at + 1e-4, "free", "ptr", 4096 * (i + 1), ""
		}
	}'
}

# A stack leaks 256 bytes each 500 seconds. The name of the process turns the direction of writing.
make_slow() {
	awk 'BEGIN {
		for (i = 0; i < 60; i++)
			printf "free\342\200\256eerf 7/7 [000] %d.000000: slow:malloc_call: (7000 <- 400010) ret=0x%x bytes=256\n\t400010 serve+0x10 (/server)\n\n",
				100 + i * 500, 4096 * (i + 1)
	}'
}

# Where the target's start takes so long that the tables look like a pool, it runs again.
record_kinds() {
	for _ in {1..5}; do
		record kinds leak_kinds || return
		"$BIN/leakparse" -i kinds.data >kinds.leaks 2>/dev/null
		[[ $(grep -c '^stack [0-9]* plateau ' kinds.leaks) != 1 ]] || ! grep -q '^stack [0-9]* start-up ' kinds.leaks ||
			return 0
	done
	return 1
}

record_all() {
	local moment PATH=$BIN:$TARGETS:$PATH # the page shows the command line

	record forked fork_tree || return
	record some many_stacks --leaks 2000 --interval-us 200 && record marks marked_requests &
	leakrec -m 512 -o - -- many_stacks --leaks 0 >clean.data 2>clean.rec && report clean &
	record_scanned &
	record_kinds || return
	ln -s kinds.data one.data
	ln -s kinds.data early.data
	ln -s clean.data none.data
	report one --stack '^open_session$'
	# A moment before the burst.
	"$BIN/leakparse" --order time --stack '^import_record$' -i kinds.data >burst 2>burst.err
	moment=$(awk '/^# summary/ { sub(/.* start=/, ""); start = $1 }
		$1 == "leak" { printf "%.6f", $4 - start - 0.01; exit }' burst)
	report early --at "$moment"
	wait
	# When the last request has leaked, and the recording goes on.
	ln -s marks.data marks_at.data
	moment=$("$BIN/leakparse" --order time -i marks.data 2>/dev/null | awk '/^# summary/ { sub(/.* start=/, ""); start = $1 }
		$1 == "leak" { last = $4 - start } END { printf "%.6f", last }')
	report marks_at --at "$moment"
	report none --size 1
	make_young >young.data
	report young
	make_slow >slow.data
	report slow
	"$BUILD_DIR/test/unit/test_window_reports" windows.data && report windows
}

setup_file() {
	[[ $(id -u) == 0 ]] && command -v chromium >/dev/null || return 0
	cd "$BATS_FILE_TMPDIR" || return
	mkdir seen
	record_all || return
	PYTHONDONTWRITEBYTECODE=1 timeout 300 \
		python3 "$SOURCE_DIR/test/integration/support/drive_report.py" seen load:kinds.html:load,offline \
		finding:kinds.html:search,range,table flame:kinds.html:flame points:kinds.html:points \
		verdicts:kinds.html:verdicts sizes:kinds.html:sizes hostile:kinds.html:hostile \
		looks:kinds.html:narrow,print,theme causes:some.html:causes,narrow marks:marks.html:marks marks_at:marks_at.html:marks_at \
		clean:clean.html:clean none:none.html:clean young:young.html:young slow:slow.html:slow,invisible,rounding windows:windows.html:windows exits:forked.html:exits scanned:scanned.html:scanned one:one.html:only_leaky early:early.html:before_burst \
		"pictures:kinds.html:pictures:${PICTURES:-.}" || true # each test says what is wrong
}

setup() {
	common_setup
	require_program chromium
	cd "$BATS_FILE_TMPDIR" || return
}

teardown() {
	cd "$BATS_TEST_TMPDIR" || return
	common_teardown
}

@test "html: the report loads, says where it is from, and asks for nothing but itself" {
	seen load
}

@test "html: search, a range of time; the table sorts, filters and has a keyboard" {
	seen finding
}

@test "html: the flame graph zooms, filters, turns over and has a keyboard" {
	seen flame
}

@test "html: a point's click selects its stack everywhere" {
	seen points
}

@test "html: verdicts differ in shape, and in colours that the colour-blind see, too" {
	seen verdicts
}

@test "html: blocks are counted by size" {
	seen sizes
}

@test "html: names that are HTML are shown, not run" {
	# One script of data, one of code: the name ends neither.
	assert_equal "ends of scripts" "$(grep -o '</script' kinds.html | wc -l)" 2
	seen hostile
}

@test "html: young blocks of a leaking stack are not called leaked" {
	seen young
}

@test "html: slow growth is not zero; names have no invisible characters" {
	seen slow
}

@test "html: blocks of a process that has exited were held until then" {
	seen exits
}

@test "html: of a recording in windows, nothing that was not observed" {
	seen windows
}

@test "html: one row for a cause of many stacks, which it shows; no two rows look the same" {
	seen causes
}

@test "html: what changed between marks" {
	seen marks
	seen marks_at
}

@test "html: light, dark, narrow, and printed on few pages" {
	seen looks
}

@test "html: a program without leaks" {
	seen clean
}

@test "html: options select what is in it" {
	seen one
	seen early
}

@test "html: what a scan has proven: a column, and a selection of blocks" {
	seen scanned
}

@test "html: no events at all" {
	seen none
}

@test "html: pictures for docs/" {
	seen pictures
	file "${PICTURES:-.}"/html-report-*.png | grep -c 'PNG image data, 1440 x' | grep -qx 2
}
