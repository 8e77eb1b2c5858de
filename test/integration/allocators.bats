#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Every allocator: the targets' own counts and what is recorded are the same, and it is told which one it is.
# jemalloc has no pvalloc: a program that calls libc's and frees the block by jemalloc's free crashes, so
# the targets do without.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# library NAME: the path of a shared library that ld.so finds.
library() {
	ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'
}

# with_library NAME TARGET [ARG...]: starts the target with that library preloaded.
with_library() {
	PRELOADED=$(library "$1")
	[[ -n $PRELOADED ]] || fail "$1 is not installed; scripts/setup installs it"
	LD_PRELOAD=$PRELOADED start_target "${@:2}"
}

# exact LIBRARY TARGET [ARG...]
exact() {
	with_library "$@"
	attach
	go_target
	finish_target
	finish_leakrec
	parse
	(($(truth allocations) > 0)) || fail "${*:2} did not run: $(cat target.err)"
	assert_truth
	rm target.in target.out
}

all_exact() {
	local pvalloc=1

	[[ $1 != libjemalloc* ]] || pvalloc=0
	exact "$1" sizes
	exact "$1" random_calls --rounds 3000 --pvalloc "$pvalloc"
	exact "$1" realloc_cases
	exact "$1" aligned --pvalloc "$pvalloc"
	exact "$1" posix_memalign_cases
	exact "$1" null_free
	exact "$1" threads_cross_free
	exact "$1" thread_exits
}

@test "allocators: jemalloc, exact" {
	all_exact libjemalloc.so.2
}

@test "allocators: tcmalloc, exact" {
	all_exact libtcmalloc_minimal.so.4
}

@test "allocators: mimalloc, exact" {
	all_exact libmimalloc.so.2
}

@test "allocators: jemalloc, exact by perf events, too" {
	with_library libjemalloc.so.2 random_calls --rounds 3000 --pvalloc 0
	attach --perf-events
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
}

@test "allocators: musl, linked statically and dynamically, and static glibc, exact" {
	local target

	for target in musl_cases_static "musl_random_calls --rounds 3000" cases_static; do
		record_attached "$target"
		(($(truth allocations) > 10)) || fail "$target did not run"
		assert_truth
		rm target.in target.out
	done
}

# told FILE: what leakprobe add said of the file whose name ends so.
told() {
	sed -nE "s,^[^ ]*: (added|all) .*$1[^ ]*: (.*),\2,p" leakprobe.out
}

@test "allocators: each is named, by add, --dry-run and list" {
	local name

	while read -r file name; do
		with_library "$file" null_free
		add_probes --pid "$RECORDED_PID"
		assert_equal "add, $file" "$(told "${file%%.so*}")" "$name"
		assert_equal "add, libc" "$(told libc.so)" glibc
		"$BIN/leakprobe" add --pid "$RECORDED_PID" --dry-run >dry-run
		grep -qE "^# .*/${file%%.so*}[^/]*: $name\$" dry-run
		"$BIN/leakprobe" list >list
		grep -qE "^# .*/${file%%.so*}[^/]*: $name\$" list
		go_target
		finish_target
		rm target.in target.out
	done <<-END
		libjemalloc.so.2 jemalloc
		libtcmalloc_minimal.so.4 tcmalloc
		libmimalloc.so.2 mimalloc
	END
	"$BIN/leakprobe" add --exe "$TARGETS/cases_static" --dry-run | grep -q '^# .*/cases_static: glibc$'
	"$BIN/leakprobe" add --exe "$TARGETS/musl_cases_static" --dry-run | grep -q '^# .*/musl_cases_static: musl$'
	"$BIN/leakprobe" add --exe "$TARGETS/musl_random_calls" --dry-run | grep -q '^# .*/libc.so: musl$'
}

# places FILE...: "FUNCTION +OFFSET CLASS" of each entry probe.
places() {
	"$BIN/leakprobe" add --lib "$1" --dry-run |
		sed -nE 's,^p:[^ ]* .* # ([a-zA-Z_0-9]+)\+0x([0-9a-f]+) ([a-z0-9]+): .*,\1 \2 \3,p'
}

# The functions that programs call all the time are to cost one trap (docs/placement.md's table).
@test "allocators: probes are placed where they are cheap" {
	local name file

	for name in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
		file=$(library "$name")
		places "$file" >places
		for function in malloc calloc realloc free; do
			grep -qE "^$function [0-9a-f]+ (emulated|nop5)\$" places ||
				fail "$name: $(grep "^$function " places)"
		done
	done
	# mimalloc's malloc overwrites its argument before its first jump.
	places "$(library libmimalloc.so.2)" >places
	grep -qE '^free [0-9a-f]+ emulated$' places
	grep -qE '^malloc 0 stepped$' places
}
