#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As html_report.bats, for reports of many leaks. They need a Chromium of their own, which nothing else slows down.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/html

MOST_SECONDS=2

MOST_BYTES=20000000

setup_file() {
	[[ $(id -u) == 0 ]] && command -v chromium >/dev/null || return 0
	cd "$BATS_FILE_TMPDIR" || return
	mkdir seen
	"$BIN/leakrec" -m 512 -o many.data -- "$TARGETS/many_stacks" >many.truth 2>many.rec && report many &
	"$BUILD_DIR/test/bench/make_stream" --events 1000000 --live 1000000 >million.data && report million
	wait
	rm million.data many.data
	PYTHONDONTWRITEBYTECODE=1 timeout 300 \
		python3 "$SOURCE_DIR/test/integration/support/drive_report.py" seen \
		"open:many.html:open:$MOST_SECONDS" hover:million.html:hover || true # each test says what is wrong
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

# Two seconds on a machine of our day, which has nothing else to do.
@test "html: 100,000 leaks from as many stacks open in less than two seconds" {
	local bytes

	assert_equal "leaks" "$(awk '$2 == "held_blocks" { print $3 }' many.truth)" 100000
	bytes=$(stat -c %s many.html)
	((bytes < MOST_BYTES)) || fail "the report has $bytes bytes"
	echo "# $bytes bytes, $(head -n 1 seen/open)" >&3
	seen open
}

@test "html: the pointer finds a point among a million without a look at each; 500 causes are printed on few pages" {
	echo "# $(head -n 1 seen/hover)" >&3
	seen hover
}
