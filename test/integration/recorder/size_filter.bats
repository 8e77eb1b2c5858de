#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --size: the recording has exactly the allocations of the wanted sizes, and their frees.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
}

teardown() {
	common_teardown
}

# calls: prints "FUNCTION SIZE" for each recorded call of an allocating function.
calls() {
	perf script -i perf.data -F event,trace 2>/dev/null | awk '
		function field(name,   value) {
			if (!match($0, " " name "=[0-9]+")) return -1
			value = substr($0, RSTART, RLENGTH)
			sub(/.*=/, "", value)
			return value
		}
		{
			name = $1
			sub(/:$/, "", name); sub(/.*:/, "", name); sub(/_call$/, "", name)
			if (name ~ /_ret$|_store|^free$/) next
			size = field(name == "posix_memalign" ? "size" : "bytes")
			if (name == "calloc") size = field("n") * field("elem_size")
			if (size >= 0) print name, size
		}' | sort | uniq -c | awk '{ print $2, $3, $1 }' >calls
}

# The recorded calls are those that the target counted, and otherwise only reallocs of such blocks.
assert_calls() { # MIN MAX
	local name wrong=0

	calls
	for name in malloc calloc realloc aligned_alloc memalign posix_memalign valloc; do
		# aligned_alloc is another name of memalign.
		[[ $name != aligned_alloc && $name != memalign ]] || continue
		assert_equal "$name calls" "$(calls_of "$name" "$1" "$2")" "$(truth "matching_$name")" ||
			wrong=1
	done
	assert_equal "aligned_alloc, memalign calls" \
		$(($(calls_of aligned_alloc "$1" "$2") + $(calls_of memalign "$1" "$2"))) \
		$(($(truth matching_aligned_alloc) + $(truth matching_memalign))) || wrong=1
	assert_equal "calls for other sizes" "$(awk -v min="$1" -v max="$2" '
		$1 != "realloc" && ($2 < min || $2 > max)' calls)" "" || wrong=1
	((!wrong)) || fail "the calls differ"
}

calls_of() { # NAME MIN MAX
	awk -v name="$1" -v min="$2" -v max="$3" '
		$1 == name && $2 >= min && $2 <= max { n += $3 } END { print n + 0 }' calls
}

# Leaks of these sizes equal the target's, size by size, and no operation is unexpected.
assert_leaks_of() { # MIN MAX
	"$BIN/leakparse" --size "$1..$2" <perf.data >leaks
	sed -nE 's/^truth held_([0-9]+) ([0-9]+)$/\1 \2/p' truth |
		awk -v min="$1" -v max="$2" '$1 >= min && $1 <= max { n[$1] += $2 }
			END { for (s in n) print s, n[s] }' | sort >sizes.truth
	awk '$1 == "leak" { n[$2]++ } END { for (s in n) print s, n[s] }' leaks | sort >sizes.leaks
	diff sizes.truth sizes.leaks ||
		fail "leaks by size differ (<: the target's, >: leakparse's)"
	[[ -s sizes.truth ]] || fail "the target holds none"
	assert_no_unexpected
	assert_summary lost 0
}


options() { # MIN MAX [OPTION...]
	echo "--min $1 --max $2 ${*:3}"
}

check() { # MIN MAX [TARGET-OPTION...]
	local range=$1..$2

	[[ $1 != "$2" ]] || range=$1
	record_attached "many_sizes $(options "$@")" --size "$range"
	assert_leaks_of "$1" "$2"
	assert_calls "$1" "$2"
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

@test "size filter: forked children" {
	check 3072 3072 --children 4
}

@test "size filter: forked children, a range" {
	check 500 1500 --children 4 --rounds 1000
}

@test "size filter: forked children, attached before they exist, started" {
	"$BIN/leakrec" -m 512 -o perf.data --size 3072 -- "$TARGETS/many_sizes" --children 3 \
		>truth 2>leakrec.err
	assert_leaks_of 3072 3072
	assert_calls 3072 3072
}

# check_reallocs SIZE [OPTION...]: after a realloc that fails, the old block is still held.
check_reallocs() {
	rm -f target.in target.out
	record_attached realloc_cases --size "$@"
	"$BIN/leakparse" --size "$1" <perf.data >leaks
	assert_equal "leaks of $1 bytes" "$(grep -c '^leak ' leaks)" "$(truth "held_$1")"
	if grep '^unexpected' leaks | grep -v alloc-failed; then
		fail "nothing unexpected happened to blocks of $1 bytes"
	fi
}

@test "size filter: reallocs of all kinds" {
	local size

	for size in 200 301 303 3072 6000; do
		check_reallocs $size
	done
}

@test "size filter: without sessions" {
	record_attached "many_sizes $(options 500 1500 --children 2 --rounds 1000)" --size 500..1500 --record-by multi
	assert_leaks_of 500 1500
	assert_calls 500 1500
	check_reallocs 301 --record-by multi
	check_reallocs 6000 --record-by multi
}

@test "size filter: nothing matches, nothing is recorded" {
	record_attached "many_sizes --rounds 300" --size 77777777
	assert_summary events 0
	grep -qE ' 0 events, .* 0 lost' leakrec.err || fail "$(cat leakrec.err)"
}

@test "size filter: nothing matches in forked children" {
	record_attached "many_sizes --rounds 300 --children 3" --size 77777777
	assert_summary events 0
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
