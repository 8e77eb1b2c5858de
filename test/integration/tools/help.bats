#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# For each tool, --help and the manual page list the same options. Nothing is recorded.

bats_require_minimum_version 1.5.0
BUILD_DIR=${BUILD_DIR:?the build directory}
SOURCE_DIR=${SOURCE_DIR:?the source directory}
load ../support/helpers

# Prints the options as --help of tool $1 shows them, without the text about them: "-s, --size SIZE|MIN..MAX".
help_options() {
	"$BUILD_DIR/bin/$1" --help | sed -nE 's/^ {2,6}(-.*)/\1/p' | sed -E 's/  +.*//' | sort
}

# Prints the lines that begin an option in the manual page, without markup.
man_options() {
	grep -E '^\*-' "$SOURCE_DIR/docs/man/$1.1.scd" | tr -d '*_' | sort
}

help_synopsis() {
	"$BUILD_DIR/bin/$1" --help | sed -nE "s/^(usage: |       )($1 .*)/\2/p"
}

man_synopsis() {
	sed -n '/^# SYNOPSIS/,/^# DESCRIPTION/p' "$SOURCE_DIR/docs/man/$1.1.scd" | grep '^\*' | sed -E 's/\+\+$//' | tr -d '*_'
}

same_text() {
	[[ $(help_options "$1" | wc -l) -ge 6 ]]
	diff <(help_options "$1") <(man_options "$1")
	[[ $(help_synopsis "$1" | wc -l) -ge 2 ]]
	diff <(help_synopsis "$1") <(man_synopsis "$1")
}

@test "help: leakprobe's options and synopsis are the manual page's" { same_text leakprobe; }
@test "help: leakrec's options and synopsis are the manual page's" { same_text leakrec; }
@test "help: leakparse's options and synopsis are the manual page's" { same_text leakparse; }
@test "help: leakfollow's options and synopsis are the manual page's" { same_text leakfollow; }
@test "help: leakplot's options and synopsis are the manual page's" { same_text leakplot; }
@test "help: leakscan's options and synopsis are the manual page's" { same_text leakscan; }

@test "help: every tool prints its version" {
	for tool in leakprobe leakrec leakparse leakfollow leakplot leakscan; do
		"$BUILD_DIR/bin/$tool" --version | grep -qE "^$tool [0-9]+\.[0-9]+\.[0-9]+$"
	done
}

@test "help: an unknown option is bad usage" {
	for tool in leakprobe leakrec leakparse leakfollow leakplot leakscan; do
		run -2 "$BUILD_DIR/bin/$tool" --no-such-option
		[[ $output == "$tool: unknown option --no-such-option; see $tool --help" ]]
	done
}

@test "help: a misspelt option, or one of perf's, gets the right one suggested" {
	run -2 "$BUILD_DIR/bin/leakparse" --sumary
	[[ $output == "leakparse: unknown option --sumary: did you mean --summary?" ]] || fail "$output"
	run -2 "$BUILD_DIR/bin/leakrec" --call-grahp=dwarf
	[[ $output == "leakrec: unknown option --call-grahp=dwarf: did you mean --call-graph?" ]] || fail "$output"
	run -2 "$BUILD_DIR/bin/leakrec" --c
	[[ $output == "leakrec: --c may be one of several options; see leakrec --help" ]] || fail "$output"
	run -2 "$BUILD_DIR/bin/leakrec" -g -p 1
	[[ $output == "leakrec: unknown option -g: "*--call-graph* ]] || fail "$output"
	run -2 "$BUILD_DIR/bin/leakparse" -F comm
	[[ $output == "leakparse: unknown option -F: "*--format* ]] || fail "$output"
	run -2 "$BUILD_DIR/bin/leakparse" --top=5
	[[ $output == "leakparse: unknown option --top=5: --limit N "* ]] || fail "$output"
	run -2 "$BUILD_DIR/bin/leakrec" "--$(printf 'x%.0s' {1..10000})"
	[[ $output == "leakrec: unknown option --xxx"* ]]
}

@test "help: a full disk is a failure" {
	for tool in leakprobe leakrec leakparse leakfollow leakplot leakscan; do
		# shellcheck disable=SC2016 # expanded by the inner shell
		run -1 bash -c '"$1" --help >/dev/full' bash "$BUILD_DIR/bin/$tool"
	done
}

@test "help: every tool rejects a wrong --size in the same words" {
	for tool in leakrec leakparse leakfollow leakplot; do
		run -2 "$BUILD_DIR/bin/$tool" --size 3x
		[[ $output == "$tool: --size takes a size like 3072 or 3k, or MIN..MAX, not \"3x\"" ]]
	done
}

@test "help: only users other than root get the advice to become root" {
	[[ $(id -u) == 0 ]] || skip "needs root"
	cp "$BUILD_DIR/bin/leakprobe" "$BATS_TEST_TMPDIR"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR"
	run -1 setpriv --reuid 65534 --regid 65534 --clear-groups "$BATS_TEST_TMPDIR/leakprobe" add --dry-run --pid "$$"
	[[ $output == *": Permission denied; run it as root" ]]
	run -1 setpriv --bounding-set -all --inh-caps -all "$BATS_TEST_TMPDIR/leakprobe" add --dry-run --pid "$$"
	[[ $output == *": Permission denied; root lacks a right here, as in containers: run it on the host" ]]
}
