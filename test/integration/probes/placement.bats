#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Compares leakprobe's probes with probes at the functions' entries: both must give the same events, with the same
# arguments, callers and return values. Uses a copy of libc that only these tests' programs load.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	require_program perf
	mkdir lib
	ldd "$TARGETS/sizes" | awk '$3 ~ /^\// { print $3 }' | xargs -I{} cp {} lib/
	LOADER=$(ldd "$TARGETS/sizes" | awk '$1 ~ /^\/.*ld-linux/ { print $1 }')
	LIBC=$PWD/$(echo lib/libc.so*)
}

teardown() {
	common_teardown
}

# add_placed GROUP: adds leakprobe's probes, in a group of the test.
add_placed() {
	"$BIN/leakprobe" add --lib "$LIBC" --dry-run | grep -v '_store\|^#' |
		sed -E "s,^([pr]):[^/]*/,\1:$1/," >definitions
	register
}

# add_at_entry GROUP: the same, but at the functions' entries.
add_at_entry() {
	local line offset place

	"$BIN/leakprobe" add --lib "$LIBC" --dry-run | grep -v '_store\|^#' >dry-run
	while read -r line; do
		[[ $line =~ :(0x[0-9a-f]+)\ .*\ \#\ [a-z_]+\+(0x[0-9a-f]+)\  ]]
		offset=${BASH_REMATCH[1]} place=${BASH_REMATCH[2]}
		sed -E "s,^([pr]):[^/]*/,\1:$1/,; s,:$offset ,:$(printf '0x%x' $((offset - place))) ," \
			<<<"$line"
	done <dry-run >definitions
	register
}

register() {
	local line

	while read -r line; do
		echo "$line" >>"$TRACEFS/uprobe_events"
		line=${line%% *}
		OWN_EVENTS+=("${line#[pr]:}")
	done <definitions
}

remove_group() {
	local event kept=()

	for event in "${OWN_EVENTS[@]}"; do
		if [[ $event == "$1"/* ]]; then remove_event "$event"; else kept+=("$event"); fi
	done
	OWN_EVENTS=("${kept[@]}")
}

# fields_of GROUP TARGET...: prints a line for each event with its fields, without the probe's own address.
# Address randomisation is off, so that two runs have the same blocks and stacks.
fields_of() {
	local i

	# perf 6.1 crashes where another recorder asks the kernel for build-ids on the same CPUs (docs/promises.md).
	for i in {1..20}; do
		record_fields "$@"
		grep -q 'util/build-id.c' "$1.err" || return 0
		nap 1
	done
}

record_fields() {
	perf record -q -B -m 4096 -o "$1.data" -e "$1:*" -- setarch -R "$LOADER" --library-path "$PWD/lib" \
		"$TARGETS/$2" "${@:3}" >"$1.truth" 2>"$1.err" ||
		echo "perf record: status $?" >>"$1.err" # a target may abort
	perf report --stats -i "$1.data" >"$1.stats" 2>>"$1.err"
	perf script -i "$1.data" -F event,trace 2>>"$1.err" |
		sed -E 's/^ *[^:]*:([a-z_]+): \([0-9a-f]+( <- ([0-9a-f]+))?\)/\1 \3/' >"$1.fields"
}

# same_events TARGET...
same_events() {
	local group name=placement_$$

	for group in entry placed; do
		if [[ $group == entry ]]; then add_at_entry "${name}_entry"; else add_placed "${name}_placed"; fi
		fields_of "${name}_$group" "$@"
		remove_group "${name}_$group"
	done
	(($(wc -l <"${name}_entry.fields") > 20)) || fail "no events: $(cat "${name}_entry".{err,stats})"
	run ! grep -H LOST "${name}_entry.stats" "${name}_placed.stats"
	diff "${name}_entry.fields" "${name}_placed.fields" >differences ||
		fail "$* differs: $(head -n 20 differences; cat "${name}"_*.err)"
}

@test "placement: the same events as at the entry, with the same fields" {
	same_events random_calls --rounds 10000
	same_events sizes
	same_events posix_memalign_cases
}

@test "placement: the same number of events as at the entry, in many threads" {
	local name=placement_$$ event

	add_at_entry "${name}_entry"
	add_placed "${name}_placed"
	perf stat -x, -o counts -e "${name}_entry:*" -e "${name}_placed:*" -- "$LOADER" --library-path \
		"$PWD/lib" "$TARGETS/threads_cross_free" >threads.truth
	for event in "${OWN_EVENTS[@]}"; do
		[[ $event == "${name}_entry"/* ]] || continue
		event=${event#*/}
		assert_equal "$event" "$(awk -F, -v e="${name}_placed:$event" '$3 == e { print $1 }' counts)" \
			"$(awk -F, -v e="${name}_entry:$event" '$3 == e { print $1 }' counts)"
	done
	(($(awk -F, -v e="${name}_placed:malloc" '$3 == e { print $1 }' counts) > 1000))
}

# first_cheap FUNCTION-OFFSET: finds in objdump's text the offset of the first push, jump, call or nop before which
# nothing writes %rdi, %rsi, %rdx or %rsp. Prints nothing if there is none.
first_cheap() {
	objdump -d --no-show-raw-insn --start-address="$1" --stop-address=$(($1 + 128)) "$LIBC" |
		awk -v start="$(printf '%x' "$1")" '
			/^ +[0-9a-f]+:/ {
				sub(":", "", $1)
				if ($2 == "push" && $3 ~ /^%/ || $2 ~ /^j[a-z]+$/ && $3 !~ /^\*/ || $2 == "call" && $3 !~ /^\*/ || $2 == "nop") {
					print "0x" $1
					exit
				}
				if ($2 !~ /^(test|cmp|endbr64)/ && $0 ~ /(^|[ ,])%[re]?(di|si|dx|sp)[lhwb]?( .*)?$/) exit
				if ($2 ~ /^(mul|div|imul|idiv|leave|ret|pop|rep|xchg|syscall)/) exit
			}'
}

@test "placement: as good as in objdump's text" {
	local line place cheap nr=0

	# first_cheap() knows what is cheap on x86-64.
	[[ $(uname -m) == x86_64 ]] || skip "elsewhere probes of calls stay at the first instruction"
	require_program objdump
	"$BIN/leakprobe" add --lib "$LIBC" --dry-run >dry-run
	while read -r line; do
		[[ $line =~ ^p:[^\ ]*/([a-z_]+)\ .*:(0x[0-9a-f]+)\ .*\ \#\ [a-z_]+\+(0x[0-9a-f]+)\ ([a-z0-9]+): ]] ||
			continue # a return probe
		[[ ${BASH_REMATCH[1]} != *_store* ]] || continue
		place=$((BASH_REMATCH[2]))
		cheap=$(first_cheap $((place - BASH_REMATCH[3])))
		echo "$line: objdump says ${cheap:-none}"
		[[ -z $cheap ]] || [[ ${BASH_REMATCH[4]} != stepped ]] || fail "$line: could be at $cheap"
		[[ -z $cheap ]] || assert_equal "${BASH_REMATCH[1]}" "$place" $((cheap))
		nr=$((nr + 1))
	done <dry-run
	((nr >= 8))
}
