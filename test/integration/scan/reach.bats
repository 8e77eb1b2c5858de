#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakscan agrees with programs that know which of their blocks are held, and by what.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/scan

# scan_cases TARGET [ARG...]: as it is, and stopped.
scan_cases() {
	start_reach "$@"
	leakscan --blocks >blocks
	compare_cases
	leakscan --blocks --stop >blocks
	compare_cases
	stop_reach
}

# scan_core TARGET [ARG...]: a core file does not say what the kernel keeps, and is one moment.
scan_core() {
	require_program gcore
	start_reach "$@"
	gcore -o core "$REACH_PID" >gcore.out 2>&1
	"$BIN/leakscan" --core "core.$REACH_PID" --blocks >blocks
	compare_cases any-lost=unknown epoll=unknown epoll-own-table=unknown timer=unknown
	stop_reach
}

@test "reach: data, blocks, cycles, pointers into blocks, mappings, the kernel" {
	scan_cases reach_memory
}

@test "reach: registers, stacks, thread-local variables, coroutines, ended threads, libraries" {
	scan_cases reach_threads "$TARGETS/lib/libreach_library.so"
}

@test "reach: C++ containers and objects" {
	scan_cases reach_cxx
}

@test "reach: a static program" {
	scan_cases reach_memory_static
}

@test "reach: a core file" {
	scan_core reach_memory
}

@test "reach: a core file with threads" {
	scan_core reach_threads "$TARGETS/lib/libreach_library.so"
}

@test "reach: --why shows the way to a block, and that there is none" {
	local last lost child

	start_reach reach_memory
	read -r _ _ _ last < <(grep "^case list-last " truth)
	read -r _ _ _ lost < <(grep "^case lost " truth)
	read -r _ _ _ child < <(grep "^case lost-child " truth)
	leakscan --why "$last" >why
	cat why
	grep -qx "block $last of 56 bytes: held" why
	grep -qE "^  and 99[0-9]{2} more blocks$" why
	grep -qx "  in reach_memory list" why
	leakscan --why "$lost" >why
	grep -qx "block $lost of 56 bytes: lost: nothing points to it" why
	leakscan --why "$child" >why
	grep -qx "  through block $lost of 56 bytes" why
	run ! leakscan --why 0x10
	[[ $output == *"no block in use is at 0x10"* ]]
	stop_reach
}

@test "reach: JSON adds up, and escapes names" {
	start_reach reach_cxx
	leakscan --format json >census.json
	python3 -m json.tool census.json >/dev/null
	[[ $(jq -c '[.format, .version, .pid, .why_not_lost, .process.threads]' census.json) == \
		"[\"leakscan\",1,$REACH_PID,null,1]" ]]
	jq -r .start census.json | grep -qx "$(LC_ALL=C sed 's/.*) //' "/proc/$REACH_PID/stat" | awk '{ print $20 }')"
	jq -e '[.rows[].blocks] | add > 1000' census.json
	jq -e '([.rows[].blocks] | add) == .heap.used.blocks + .heap.mapped.blocks' census.json
	jq -e '([.rows[].blocks] | add) == ([.classes[].blocks] | add)' census.json
	jq -e '([.rows[] | .size * .blocks] | add) == ([.classes[].bytes] | add)' census.json
	jq -e '([.lost[].total_bytes] | add) == ([.classes | .lost, .cycle, .["lost-through"] | .bytes] | add)' census.json
	jq -e '.process.name == "\"\\<\u001b\ufffd\u2028"' census.json
	jq -e '.lost[] | select(.type == "reach::operator\"\" _quoted(unsigned long long)::quoted") | .size == 216' census.json
	jq -e '.lost[] | select(.cycle_blocks == 2)' census.json
	jq -e '.rows[] | select(.type == "reach::derived") | .lost == 1' census.json
	LC_ALL=C run ! grep -qP '[\x00-\x08\x0b-\x1f\x7f-\xff<]' census.json
	stop_reach
}

@test "reach: what is only in the kernel is lost, and the screen says where it did not look" {
	local places

	start_reach reach_kernel
	places=$(sed -n 's/^truth not-seen //p' truth)
	leakscan --blocks >blocks
	for name in in-pipe in-pipe-between-tables in-socket in-socket-of-ended signal-stack; do
		read -r _ _ _ address < <(grep "^case $name " truth)
		grep -qE "^lost [0-9]+ $address " blocks
	done
	leakscan >screen
	cat screen
	grep -qxF "Not seen: $places." screen
	leakscan --blocks --not-held >lines
	grep -qxF "# not seen: $places" lines
	[[ $(leakscan --format json | jq -r .not_seen) == "$places" ]]
	# All of it is still there.
	leakscan >screen
	grep -qxF "Not seen: $places." screen
	stop_reach
	start_reach reach_kernel close-ring
	leakscan >screen
	grep -qxF "Not seen: $places." screen
	stop_reach
	start_reach reach_cxx
	leakscan >screen
	grep -q "^Lost, with" screen
	run ! grep "^Not seen" screen
	stop_reach
}

@test "reach: the screen names types, and what is lost through what" {
	start_reach reach_cxx
	leakscan --all >screen
	cat screen
	grep -qE '^ +64 bytes +24 +1  0x[0-9a-f]+ +reach::holder<reach::derived>$' screen
	grep -qE ' 40 +[0-9]+  reach::derived$' screen
	grep -qE ' 40 +0  0x[0-9a-f]+ +std::_Sp_counted_ptr_inplace<.*, a cycle of 2 blocks$' screen
	stop_reach
}
