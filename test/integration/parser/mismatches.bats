#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --mismatch: each release by a wrong function is reported once, with both stacks. Correct pairs are not reported, and malloc called by operator new still counts once.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/allocators

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# Prints "FUNCTION MAKER RELEASER TAKER" for each mismatch: the allocating function and its caller, the releasing
# function and its caller.
mismatches() {
	with_stacks | awk '
		function flush() { if (line != "" && made != "") print line, made; line = made = "" }
		/^unexpected mismatch / { flush(); line = $10; want = "release"; next }
		/^allocated / && line != "" { made = $9; want = "allocation"; next }
		/^[^\t]/ { flush(); want = "" }
		/^\t(make|take)_/ && want != "" {
			sub(/\+.*/, "", $1)
			if (want == "release") line = line " " $1; else made = made " " $1
			want = ""
		}
		END { flush() }' | sort
}

every_pair() {
	sort <<-END
		operator_delete take_delete malloc make_malloc
		operator_delete_array take_delete_array malloc make_malloc
		free take_free operator_new make_new
		operator_delete_array take_delete_array operator_new make_new
		realloc take_realloc operator_new make_new
		free take_free operator_new_array make_new_array
		operator_delete take_delete operator_new_array make_new_array
		operator_delete take_delete_sized operator_new_array make_new_array
	END
}

# counts: prints the other counts.
assert_counts() {
	local key

	for key in mismatch allocations frees held_blocks; do
		assert_summary "$key" "$(truth "$key")"
	done
	for key in free_unknown double_free still_held realloc_unknown lost unpaired_entries \
		unpaired_returns; do
		assert_summary "$key" 0
	done
}

assert_every_pair() {
	assert_counts
	mismatches >pairs
	every_pair | diff - pairs
}

@test "mismatch: each wrong pair is reported once, with both stacks" {
	record_attached mismatches --mismatch
	assert_equal "pairs made" "$(truth mismatch)" 8
	assert_every_pair
	"$BIN/leakparse" --summary <perf.data 2>/dev/null | grep -q '^! 8 releases by another family'
	"$BIN/leakparse" --format json <perf.data 2>/dev/null | grep -q '"mismatch":8'
}

@test "mismatch: correct pairs are not reported" {
	record_attached "mismatches --clean" --mismatch
	assert_counts
	assert_no_unexpected
}

@test "mismatch: operators linked into the program, recorded from its start and by perf events" {
	local key

	record_attached mismatches_static --mismatch --perf-events
	assert_every_pair
	record_command "mismatches_static" --mismatch
	mismatches >pairs
	every_pair | diff - pairs
	record_command "mismatches --clean" --mismatch
	assert_no_unexpected
}

@test "mismatch: an allocator with operators of its own" {
	local library

	library=$(ldconfig -p | awk '$1 == "libjemalloc.so.2" { print $NF; exit }')
	LD_PRELOAD=$library start_target mismatches --clean
	attach --mismatch
	go_target
	finish_target
	finish_leakrec
	parse
	assert_counts
	assert_no_unexpected
	with_stacks | grep -q '^leak .* operator_new_array '
}

@test "mismatch: functions that share their code are not judged" {
	local library

	for library in libtcmalloc_minimal.so.4 'libmimalloc.so.[1-9]'; do
		with_library "$library" mismatches --clean
		attach --mismatch
		grep -q "^leakrec: .*lib.*malloc.*: some of malloc, free and C++'s operators" leakrec.err
		go_target
		finish_target
		finish_leakrec
		parse
		assert_counts
		assert_no_unexpected
		rm target.in target.out
	done
}

@test "mismatch: without the option no operator of libstdc++ is recorded" {
	record_attached mismatches
	assert_equal "operators" "$(events operator_new operator_delete new delete)" 0
	for key in allocations frees held_blocks; do
		assert_summary "$key" "$(truth "$key")"
	done
	assert_summary mismatch 0
}

@test "mismatch: leakprobe adds the operators, lists them, and removes them" {
	start_target mismatches
	add_probes --pid "$RECORDED_PID" --mismatch
	grep -q 'libstdc.*: C++ operators that call malloc$' leakprobe.out
	"$BIN/leakprobe" list >list
	grep -qE ':operator_delete_array +_ZdaPv\+0x' list
	attach --mismatch
	go_target
	finish_target
	finish_leakrec
	parse
	assert_every_pair
	rm target.in target.out
	start_target mismatches
	# A recorder of the whole machine may be using them.
	wait_until 60 "$BIN/leakprobe" del --pid "$RECORDED_PID"
	assert_equal "probes left" "$(our_probes | grep -F -f <(printf '%s\n' "${OWN_EVENTS[@]}"))" ""
	go_target
	finish_target
}

# malloc() of a small static program is near main(): main's calls must not count as its inner ones.
@test "failures: of an allocator next to main" {
	cat >near.c <<-'END'
		#include <setjmp.h>
		#include <stdlib.h>
		#include <string.h>
		#include <unistd.h>
		#define OUT_OF_LINE __attribute__((noinline))
		static char pool[1 << 20];
		static size_t used;
		static int jumps;
		static jmp_buf back;
		OUT_OF_LINE void *malloc(size_t n)
		{
			if (jumps) {
				jumps = 0;
				longjmp(back, 1);
			}
			if (used + n > sizeof(pool))
				return NULL;
			used += (n + 15) & ~15ul;
			return pool + used - ((n + 15) & ~15ul);
		}
		OUT_OF_LINE void free(void *p) { __asm__ volatile(""); }
		OUT_OF_LINE void *calloc(size_t a, size_t b) { return malloc(a * b); }
		OUT_OF_LINE void *realloc(void *old, size_t n)
		{
			void *p = malloc(n);
			if (p)
				memcpy(p, old, 16);
			return p;
		}
		int main(int argc, char **argv)
		{
			void *volatile kept = malloc(32), *volatile p;
			for (int i = 0; i < 10; i++) {
				if (argc == 1) {
					p = realloc(kept, 64 << 20);
				} else if (!setjmp(back)) {
					jumps = 1;
					p = malloc(100);
				}
				p = malloc(64 << 20);
			}
			(void)p;
			_exit(0);
		}
	END
	cc -static -O1 -o near near.c
	require_way session
	for way in session perf; do
		"$BIN/leakrec" --record-by $way ./near 2>leakrec.err
		"$BIN/leakparse" perf.data >leaks
		assert_summary alloc_failed 20
		"$BIN/leakrec" --record-by $way ./near jump 2>leakrec.err
		"$BIN/leakparse" perf.data >leaks
		assert_summary alloc_failed 10
	done
	# With perf events, entries are recorded also of calls that longjmp() left.
	assert_summary unpaired_entries 10
	assert_equal "calls without a return" "$(awk '$2 == "audit:" && $3 ~ /^entry-/ { n += $4 } END { print n }' leaks)" 10
}
