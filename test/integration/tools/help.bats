#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What --help lists and what the manual page documents are the same, for each tool; nothing is recorded.

bats_require_minimum_version 1.5.0
BUILD_DIR=${BUILD_DIR:?the build directory}
SOURCE_DIR=${SOURCE_DIR:?the source directory}

# The long options that a text names, one a line.
long_options() {
	grep -oE -e '--[a-z][a-z-]+' | sort -u
}

same_options() {
	"$BUILD_DIR/bin/$1" --help | long_options >"$BATS_TEST_TMPDIR/help"
	# In a manual page, the lines that begin an option are bold.
	grep -E '^(\*-|\*leak[a-z]+\*)' "$SOURCE_DIR/docs/man/$1.1.scd" | long_options \
		>"$BATS_TEST_TMPDIR/man"
	[[ -s $BATS_TEST_TMPDIR/help ]]
	diff "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/man"
}

@test "help: leakprobe" { same_options leakprobe; }
@test "help: leakrec" { same_options leakrec; }
@test "help: leakparse" { same_options leakparse; }
@test "help: leakfollow" { same_options leakfollow; }
@test "help: leakplot" { same_options leakplot; }

@test "help: every tool tells its version" {
	for tool in leakprobe leakrec leakparse leakfollow leakplot; do
		"$BUILD_DIR/bin/$tool" --version | grep -qE "^$tool [0-9]+\.[0-9]+\.[0-9]+$"
	done
}

@test "help: an unknown option is bad usage" {
	for tool in leakprobe leakrec leakparse leakfollow leakplot; do
		run -2 "$BUILD_DIR/bin/$tool" --no-such-option
	done
}
