#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakparse --call-sites: which calls allocate and release the blocks of a cause, where in their files, and how often.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/written

setup() {
	common_setup
	require_program objdump
	require_program readelf
}

teardown() {
	common_teardown
}

# call_sites OPTION...: writes the calls of the first row into the file "sites".
call_sites() {
	"$BIN/leakparse" --call-sites 1 "$@" perf.data >sites 2>call_sites.err || fail "$(cat call_sites.err)"
}

# counts alloc|release: the numbers of its lines.
counts() {
	awk -v kind="$1" '$1 == kind { print $2 }' sites
}

# frames alloc|release: the frames of its lines.
frames() {
	awk -v kind="$1" '/^[^\t]/ { on = $1 == kind; next } on { print substr($0, 2) }' sites
}

# address_of FILE OFFSET: sets ADDRESS to that of the byte in the ELF file.
address_of() {
	local type at address bytes

	while read -r type at address _ bytes _; do
		[[ $type == LOAD ]] || continue
		((at <= $2 && $2 < at + bytes)) || continue
		printf -v ADDRESS %x $((address + $2 - at))
		return
	done < <(readelf -lW "$1")
	fail "$1 is not loaded at $2"
}

# returns_of FILE: prints where its calls return to, and what they call, as "ADDRESS <FUNCTION@plt>".
returns_of() {
	objdump -d --no-show-raw-insn "$1" | awk '
		/^ +[0-9a-f]+:/ {
			if (called != "")
				print substr($1, 1, length($1) - 1), called
			called = $2 ~ /^(call|callq|bl|blr)$/ ? $NF : ""
		}'
}

# is_in FUNCTION FILE: ADDRESS is in that function.
is_in() {
	local value size

	read -r value size < <(readelf -W --dyn-syms "$2" | awk -v name="^$1(@@|\$)" '$8 ~ name { print $2, $3; exit }')
	((0x$value <= 0x$ADDRESS && 0x$ADDRESS < 0x$value + size))
}

# assert_frames alloc|release FUNCTION CALLERS: its one line is about calls of FUNCTION by the target's functions; so
# many of them are in the target.
assert_frames() {
	local build_id offset path nr=0 nr_callers=0

	while IFS=$'\t' read -r build_id offset path; do
		assert_equal "build-id of $path" "$build_id" "$(readelf -n "$path" | awk '/Build ID:/ { print $3 }')"
		address_of "$path" "$offset"
		if ((nr++ == 0)); then
			is_in "$2" "$path" || fail "$offset of $path is not in $2: $(cat sites)"
		elif [[ $path == "$TARGETS/leaky_daemon" ]]; then
			grep -qE "^$ADDRESS $( ((nr == 2)) && echo "<$2@plt>")" returns || fail "no call at $offset: $(cat sites)"
			nr_callers=$((nr_callers + 1))
		fi
	done < <(frames "$1")
	assert_equal "callers of $2" "$nr_callers" "$3"
}

@test "call sites: the calls that allocate and release the blocks of a leak" {
	local requests

	recorded daemon "leaky_daemon --requests 300 --interval-us 1000"
	requests=$(truth requests)
	call_sites --size 3072
	assert_equal allocations "$(counts alloc)" "$requests"
	assert_equal releases "$(counts release)" $((requests - $(truth leaked_3072)))
	returns_of "$TARGETS/leaky_daemon" >returns
	# From query_font() to _start(), and load_font().
	assert_frames alloc malloc 7
	assert_frames release free 1
	# The first row of the summary is the same cause.
	"$BIN/leakparse" --summary --size 3072 perf.data >screen
	sed -nE '1s/^# cause 1: [0-9]+ blocks, [0-9.]+ KiB: //p' sites >path
	grep -q '^query_font (leaky_daemon.c:[0-9]*) < load_font < ' path || fail "$(cat sites)"
	grep -qxF "   $(cat path)" screen || fail "$(cat sites screen)"
}

@test "call sites: blocks that another function releases" {
	recorded daemon "leaky_daemon --requests 300 --interval-us 1000"
	call_sites --stack fill_cache
	assert_equal allocations "$(counts alloc)" "$(truth cached)"
	# Every tenth request replaces one of every tenth slot.
	assert_equal releases "$(counts release)" $(($(truth cached) / 10))
	returns_of "$TARGETS/leaky_daemon" >returns
	assert_frames release free 1
}

@test "call sites: whole stacks of frees" {
	record_command "leaky_daemon --requests 100 --interval-us 1000" --free-stacks
	call_sites --size 3072
	assert_equal releases "$(counts release)" $(($(truth requests) - $(truth leaked_3072)))
	returns_of "$TARGETS/leaky_daemon" >returns
	assert_frames release free 6
}

@test "call sites: a row that there is not, and options that contradict it" {
	local options nr

	recorded daemon "leaky_daemon --requests 300 --interval-us 1000"
	nr=$("$BIN/leakparse" --summary --limit 1000 perf.data | grep -cE '^[0-9]+\. ')
	"$BIN/leakparse" --call-sites "$nr" perf.data >sites 2>leakparse.err
	run -1 --separate-stderr "$BIN/leakparse" --call-sites "$((nr + 1))" perf.data
	[[ -z $output ]]
	[[ $stderr == "leakparse: there is no row $((nr + 1)): the recording has only $nr causes; leakparse --summary lists them" ]] ||
		fail "$stderr"
	run -1 "$BIN/leakparse" --call-sites 1 --size 1 perf.data
	[[ $output == "leakparse: there is no row 1: nothing that the options select is held" ]] || fail "$output"
	for nr in 0 -1 x 1x ""; do
		run -2 "$BIN/leakparse" --call-sites="$nr" perf.data
		[[ $output == 'leakparse: --call-sites takes a number of at least 1, not "'"$nr"\" ]] || fail "$output"
	done
	for options in --summary "--format tree" --diff "--every 1" "--from 1" "--to 1" "--limit 1" --list-unknown \
		--fail-on-leak "--on-leak true"; do
		# shellcheck disable=SC2086 # an option and its value
		run -2 "$BIN/leakparse" --call-sites 1 $options perf.data
		[[ $output == "leakparse: --call-sites prints a text of its own: it does not go with "*"${options%% *}"* ]] ||
			fail "$options: $output"
	done
}

@test "call sites: perf script's text has no places in files" {
	allocations leak 0 60 10 1000 | recording >text
	run -1 "$BIN/leakparse" --call-sites 1 text
	[[ $output == "leakparse: --call-sites reads no text of perf script, "*": give the recording itself" ]] || fail "$output"
}
