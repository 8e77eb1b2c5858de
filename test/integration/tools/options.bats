#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# An option means the same in each tool that has it. Uses a generated recording; nothing is recorded.

# shellcheck disable=SC2086 # a tool and its options
bats_require_minimum_version 1.5.0
bin=${BUILD_DIR:?the build directory}/bin

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	"$BUILD_DIR/test/bench/make_stream" --events 1000 --live 10 --stacks 5 >perf.data
	"$bin/leakparse" perf.data >leaks 2>/dev/null
}

@test "options: a file may be an argument, the value of -i, or standard input" {
	for tool in "leakparse --summary" "leakfollow --size 1..40"; do
		$bin/$tool <perf.data >expected 2>/dev/null
		[[ -s expected ]]
		$bin/$tool perf.data 2>/dev/null | diff expected -
		$bin/$tool -i perf.data 2>/dev/null | diff expected -
	done
	"$bin/leakplot" --term dumb <leaks >expected
	"$bin/leakplot" --term dumb leaks | diff expected -
	"$bin/leakplot" --term dumb -i leaks | diff expected -
	run -2 "$bin/leakplot" --term dumb -i leaks leaks
	[[ $output == "leakplot: only one file can be plotted; unexpected argument leaks; "* ]]
	run -2 "$bin/leakplot" --mem 1 -i leaks
}

@test "options: -o writes what standard output would get" {
	for tool in "leakparse --summary" "leakfollow --size 1..40"; do
		$bin/$tool perf.data >expected 2>/dev/null
		$bin/$tool -o written perf.data 2>/dev/null
		diff expected written
		[[ $(stat -c %a written) == 600 ]]
		ln -sf written link
		run -1 $bin/$tool -o link perf.data
		[[ $output == *"cannot write link"* ]]
		rm written
	done
}

@test "options: a closed standard output cannot be written" {
	for command in "leakparse perf.data" "leakparse --every 1 perf.data" "leakfollow --size 1..40 perf.data" \
		"leakplot --term dumb leaks" "leakrec --help"; do
		run -1 bash -c "'$bin/'$command >&-"
		[[ $output == "${command%% *}: cannot write "*": Bad file descriptor" ]]
	done
}

@test "options: -s is --size" {
	for tool in "leakparse" "leakfollow"; do
		$bin/$tool --size 1..40 perf.data 2>/dev/null >expected
		$bin/$tool -s 1..40 perf.data 2>/dev/null | diff expected -
	done
	"$bin/leakplot" --term dumb --size 1..40 leaks >expected
	"$bin/leakplot" --term dumb -s 1..40 leaks | diff expected -
}

@test "options: a folder that is missing or is a file is an error" {
	for option in --symfs --debug-dir; do
		for tool in "leakparse" "leakfollow --size 1..40"; do
			run -1 $bin/$tool $option missing perf.data
			[[ $output == "${tool%% *}: cannot use $option missing: No such file or directory" ]]
			run -1 $bin/$tool $option leaks perf.data
			[[ $output == *": Not a directory" ]]
			$bin/$tool $option . perf.data >reported
		done
	done
}

@test "options: --at past the end reports the end, and says so" {
	run -0 --separate-stderr "$bin/leakparse" --summary perf.data
	expected=$output
	run -0 --separate-stderr "$bin/leakparse" --summary --at 99 perf.data
	diff <(echo "$expected") <(echo "$output")
	# shellcheck disable=SC2154 # run sets it
	[[ $stderr == *"--at is past its end" ]]
}
