#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakscan and the published tests of memcheck and LeakSanitizer: every block has the verdict that they give it, except
# those that docs/reachability.md explains ("Published tests").

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/scan

# Prints what is lost or not decided and belongs to no test.
others_lost() {
	awk 'FNR == NR { named[$4]; next } $1 !~ /^(held|possible)$/ && !($3 in named)' truth blocks
}

# As memcheck's tests print it: "TEST LEAKED DUBIOUS REACHABLE", in blocks.
counts() {
	awk '
		FNR == NR { class[$3] = $1; next }
		$1 == "case" {
			split($2, name, "/")
			nr[name[1], class[$4] ~ /^(held|possible)$/ ? class[$4] : "leaked"]++
			tests[name[1]]
		}
		END {
			for (test in tests)
				print test, nr[test, "leaked"] + 0, nr[test, "possible"] + 0, nr[test, "held"] + 0
		}' blocks truth
}

is_ready() {
	[[ $(grep -c "^ready" truth) == "$1" ]]
}

# go_on TIMES: lets the target change what holds a block, and returns when it is ready for so many times.
go_on() {
	echo >&"$REACH_IN"
	wait_until 60 is_ready "$1"
}

# class_of CASE
class_of() {
	awk -v name="$1" 'FNR == NR { if ($2 == name) address = $4; next } $3 == address { print $1 }' truth blocks
}

@test "published: memcheck's tests" {
	start_reach reach_memcheck "$TARGETS/lib/libreach_library.so"
	leakscan --blocks >blocks
	compare_cases leak-delta/{32,42,43}=possible leak-segv-jmp/1000=held leak_cpp_interior/empty-array=possible nanoleak_supp/block=lost
	others_lost >others
	[[ ! -s others ]]
	counts >got
	cat got
	while read -r line; do
		grep -qx "$line" got
	done <<-END
		leak-0 0 0 1
		leak-cases 5 6 4
		leak-cycle 18 0 0
		leak-delta 0 3 3
		leak-segv-jmp 0 1 2
		leak-tree 4 0 3
		leak_cpp_interior 0 1 8
		trivialleak 1000 0 0
	END
	go_on 2
	leakscan --blocks >blocks
	[[ $(class_of leak-delta/10) == possible ]]
	go_on 3
	leakscan --blocks >blocks
	[[ $(class_of leak-delta/10) == held ]]
	stop_reach
}

# LeakSanitizer ignores what the program tells it to.
compare_with_lsan() {
	leakscan --blocks >blocks
	compare_cases use_unaligned/block=possible {disabler,ignore_object}/p=lost {disabler,ignore_object}/block=lost-through \
		lsan_annotations/{x,y,z}=lost link_turned_off/x=lost disabler_in_tsd_destructor/block=lost \
		suppressions_{default,file}/suppressed=lost swapcontext/on-heap=lost \
		register_root_region/not-registered=held use_poisoned_asan/block=held \
		leak_check_segv/{mapped,in-heap}=held new_array_with_dtor_0/block=possible \
		exit_atexit_stale_stack/block=held
	others_lost >others
	[[ ! -s others ]]
}

@test "published: LeakSanitizer's tests" {
	start_reach reach_lsan "$TARGETS/lib/libreach_library.so"
	compare_with_lsan
	go_on 2
	leakscan --blocks >blocks
	[[ $(class_of recoverable_leak_check/p) == lost ]]
	stop_reach
}

@test "published: LeakSanitizer's tests, in a child process" {
	start_reach reach_lsan "$TARGETS/lib/libreach_library.so" child
	scan_child
	compare_with_lsan
	stop_reach
}
