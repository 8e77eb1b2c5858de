#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# glibc's malloc, recorded by one trap where its outcome is known (docs/placement.md).

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	GROUP=outcomes_$$
}

teardown() {
	common_teardown
}

# Prints the points' offsets in malloc, as leakprobe shows them.
points() {
	"$BIN/leakprobe" add --dry-run --exe "$1" | sed -nE 's/^# leakrec: malloc\+(0x[0-9a-f]+) .*/\1/p'
}

libc_of() {
	ldd "$1" | awk '$1 ~ /^libc\.so/ { print $3 }'
}

# bytes_at OFFSET...: prints the bytes at these offsets of libc's code in process RECORDED_PID.
bytes_at() {
	local libc start

	libc=$(libc_of "$TARGETS/malloc_ends")
	libc=$(readlink -f "$libc")
	start=$(awk -v path="$libc" '
		$2 ~ /x/ && $6 == path { print $1 "-" $3 }' "/proc/$RECORDED_PID/maps")
	python3 - "$RECORDED_PID" "$start" "$@" <<-'END'
		import sys
		pid, span = sys.argv[1], sys.argv[2].split("-")
		with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
		    for at in sys.argv[3:]:
		        memory.seek(int(span[0], 16) + int(at) - int(span[2], 16))
		        print(f"{memory.read(1)[0]:02x}")
	END
}

malloc_offset() {
	readelf -W --dyn-syms "$(libc_of "$TARGETS/malloc_ends")" |
		awk '$8 ~ /^malloc@@/ { print "0x" $2; exit }'
}

# Each thread's exit frees more than the program does.
assert_counts() {
	local key

	for key in allocations frees held_blocks held_bytes alloc_failed still_held; do
		assert_summary "$key" "$(truth "$key")"
	done
	assert_summary lost 0
	assert_sizes
}

@test "single-trap points: malloc has one trap, and none when leakrec is gone" {
	local base point places=() before during after

	base=$(malloc_offset)
	for point in $(points "$(libc_of "$TARGETS/malloc_ends")"); do
		places+=($((base + point)))
	done
	((${#places[@]} >= 3))
	start_target malloc_ends
	before=$(bytes_at $((base)) "${places[@]}")
	run ! grep -x cc <<<"$before"
	attach
	during=$(bytes_at $((base)) "${places[@]}")
	assert_equal "code" "$during" "${before%%$'\n'*}$(printf '\ncc%.0s' "${places[@]}")"
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	after=$(bytes_at $((base)) "${places[@]}")
	assert_equal "code" "$after" "$before"
	go_target
	finish_target
}

@test "single-trap points: each is passed by some path through malloc" {
	local libc base point hit

	require_program perf
	libc=$(libc_of "$TARGETS/malloc_ends")
	base=$(malloc_offset)
	for point in $(points "$libc"); do
		printf 'p:%s/at_%s %s:0x%x\n' "$GROUP" "$point" "$libc" $((base + point)) >>"$TRACEFS/uprobe_events"
		OWN_EVENTS+=("$GROUP/at_$point")
	done
	((${#OWN_EVENTS[@]} >= 3))
	perf stat -x, -o stat -e "$GROUP:*" "$TARGETS/malloc_ends" >truth
	hit=$(awk -F, '$3 ~ /:/ && $1 > 0' stat | wc -l)
	# The target was written for glibc 2.36's paths. 2.41 has ten points, of which it passes seven.
	if [[ $(getconf GNU_LIBC_VERSION) == "glibc 2.36" ]]; then
		assert_equal "points with hits" "$hit" "${#OWN_EVENTS[@]}"
	else
		((hit >= 3)) || fail "only $hit of ${#OWN_EVENTS[@]} points have hits: $(cat stat)"
	fi
}

@test "single-trap points: every way in which malloc ends, exactly" {
	record_attached malloc_ends --call-graph fp
	assert_counts
	record_command malloc_ends --call-graph dwarf
	assert_counts
	record_command malloc_ends --call-graph none
	assert_counts
}

@test "single-trap points: the same as by entry and return" {
	local engine

	for engine in "" --perf-events; do
		# shellcheck disable=SC2086 # none, or one
		record_command malloc_ends --call-graph fp $engine
		assert_counts
		perf script -i perf.data -F event,ip,sym 2>/dev/null |
			awk '/malloc_(call|ret):/ { stack = ""; on = 1; next }
				on && NF { stack = stack " " $2; next }
				on { print stack; on = 0 }' | sort | uniq -c |
			sed -E 's/^.* (exhaust )/some \1/' >"stacks$engine" # as many as memory allows
	done
	(($(wc -l <stacks) >= 5))
	diff stacks stacks--perf-events
}

@test "single-trap points: by size" {
	record_command malloc_ends --size 3072
	assert_equal "blocks" "$(summary held_blocks)" "$(truth held_3072)"
	assert_equal "bytes" "$(summary held_bytes)" $((3072 * $(truth held_3072)))
	assert_summary lost 0
	# Requests that exceed the memory are seen, too, with their size: one by each thread except the last.
	record_command malloc_ends --size 4611686018427387904..9223372036854775807
	assert_summary alloc_failed "$(truth threads)"
	assert_summary allocations 0
}
