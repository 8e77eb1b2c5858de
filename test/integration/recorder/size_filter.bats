#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --size: the recording has exactly the allocations of the wanted sizes, and their frees.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/size_filter

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

@test "size filter: one size" {
	check 3072 3072
}

@test "size filter: one size at the start of a class of chunks" {
	check 3065 3065
}

@test "size filter: a range" {
	check 1000 2000
}

@test "size filter: small blocks, where chunks are not split" {
	check 104 104 --rounds 8000
}

@test "size filter: blocks that glibc maps" {
	check 200000 200100 --rounds 3000
}

@test "size filter: around the size where glibc begins to map" {
	check 131000 133000 --rounds 2000
}

# Also if the option was abbreviated.
@test "size filter: a pipe tells which sizes were recorded" {
	start_target many_sizes --rounds 300
	"$BIN/leakrec" -p "$RECORDED_PID" --siz 3072 -d 1 -o - 2>leakrec.err | "$BIN/leakparse" --summary >screen
	go_target
	finish_target
	grep -qx 'Only blocks of 3072 bytes were recorded (leakrec --size)' screen || fail "$(cat screen)"
}

@test "size filter: nothing matches, nothing is recorded" {
	record_attached "many_sizes --rounds 300" --size 77777777
	assert_summary events 0
	grep -qE ' 0 events, .* 0 events lost' leakrec.err || fail "$(cat leakrec.err)"
}

# musl has no size word before a block.
@test "size filter: musl" {
	command -v musl-gcc >/dev/null || skip "musl-gcc is not installed"
	cat >churn.c <<-'END'
		#include <stdlib.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static void *kept[400];
		static void work(void)
		{
			for (int i = 0; i < 400; i++) {
				void *p = i % 4 == 0 ? calloc(3, 1024) : malloc(3072 - i % 4);
				if (i % 7 == 0)
					p = realloc(p, 3072);
				if (i % 5)
					free(p);
				else
					kept[i] = p;
			}
		}
		int main(void)
		{
			if (fork() == 0) {
				work();
				_exit(0);
			}
			work();
			wait(NULL);
			return 0;
		}
	END
	musl-gcc -static -g -fno-builtin -o churn churn.c
	"$BIN/leakrec" -o perf.data --size 3072 -- ./churn 2>leakrec.err
	"$BIN/leakparse" --size 3072 <perf.data >leaks
	# Every fifth block is kept; every fourth or seventh of those has that size.
	assert_equal "leaks of 3072 bytes" "$(grep -c '^leak 3072 ' leaks)" \
		$((2 * $(awk 'BEGIN { for (i = 0; i < 400; i += 5) n += i % 4 == 0 || i % 7 == 0
			print n }')))
	assert_no_unexpected
}

# --- Bad usage ---

@test "size filter: not with perf events" {
	local option

	for option in --perf-events "--filter=malloc:bytes > 1"; do
		run -2 "$BIN/leakrec" --size 3072 "$option" -o perf.data -- true
		[[ $output == *"--size"*"--perf-events"* ]] || fail "$output"
		assert_equal "lines" "$(grep -c . <<<"$output")" 1
		[[ ! -e perf.data ]]
	done
}

@test "size filter: invalid sizes" {
	local size

	for size in "" x -1 5..4 1.. ..5 1..2..3 "1 " 0xg 99999999999999999999; do
		run -2 "$BIN/leakrec" "--size=$size" -o perf.data -- true
		[[ $output == leakrec:* ]] || fail "\"$size\": $output"
	done
}
