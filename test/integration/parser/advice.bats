#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What leakparse says when nothing leaked, or when a recording lacks something.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# says TEXT: both as leakparse's message and on its screen.
says() {
	"$BIN/leakparse" -i perf.data >leaks 2>messages
	grep -qF "$1" messages || fail "not in: $(cat messages)"
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -qF "$1" screen || fail "not in: $(cat screen)"
}

says_nothing_of() {
	"$BIN/leakparse" --summary -i perf.data >screen 2>messages
	"$BIN/leakparse" -i perf.data 2>>messages >leaks
	run ! grep -F "$1" screen messages
}

@test "advice: nothing leaked" {
	cat >tidy.c <<-'END'
		#include <stdlib.h>
		int main(void)
		{
			for (int i = 0; i < 10; i++) {
				void *volatile p = malloc(10);
				free(p);
			}
			return 0;
		}
	END
	gcc -O1 -o tidy tidy.c
	"$BIN/leakrec" -o perf.data -- ./tidy 2>leakrec.err
	"$BIN/leakparse" -i perf.data >leaks 2>messages
	grep -q 'nothing leaked' messages
	"$BIN/leakparse" --summary -i perf.data | grep -q '^Nothing held at the end'
	"$BIN/leakparse" --format tree -i perf.data 2>messages | grep -q 'no leaks'
	grep -q 'nothing leaked' messages
}

@test "advice: nothing was recorded" {
	start_target null_free
	"$BIN/leakrec" -p "$RECORDED_PID" -d 0.2 -o perf.data 2>leakrec.err
	go_target
	finish_target
	says "othing was recorded: no probe was hit"
}

@test "advice: a kind that nobody recorded" {
	record_command "descriptors" --no-heap --with fd
	for tool in leakparse "leakparse --summary" leakfollow; do
		# shellcheck disable=SC2086
		"$BIN"/$tool --kind file -i perf.data 2>messages >out
		grep -qF "no resource of kind file was recorded; the recorded kinds are memory, fd" messages
		# shellcheck disable=SC2086
		"$BIN"/$tool --kind fd -i perf.data 2>messages >out
		run ! grep -F "no resource of kind" messages
	done
}

@test "advice: nothing of what was asked for" {
	record_command "leaky_daemon --requests 20 --interval-us 100"
	"$BIN/leakparse" --size 77777 -i perf.data >leaks 2>messages
	grep -q 'nothing that the options select is held' messages
	says_nothing_of "nothing "
}

@test "advice: stacks without callers" {
	record_command "leaky_daemon --requests 20 --interval-us 100" --call-graph none
	says "stacks end at the allocator's caller: code without frame pointers needs --call-graph dwarf"
	record_command "leaky_daemon --requests 20 --interval-us 100"
	says_nothing_of "end at the allocator's caller"
}

@test "advice: frames without names" {
	cp "$TARGETS/leaky_daemon" stripped
	strip -s stripped
	"$BIN/leakrec" -o perf.data -- ./stripped --requests 20 --interval-us 100 >/dev/null 2>leakrec.err
	says "frames have no name, as in $(realpath stripped): install its debug symbols"
	record_command "leaky_daemon --requests 20 --interval-us 100"
	says_nothing_of "have no name"
}

@test "advice: lost events" {
	start_churn
	attach -m 1 --on-overload drop
	go_target
	wait_until 60 has_made 100000
	kill_now "$RECORDED_PID"
	finish_leakrec
	grep -q 'record without --on-overload drop, or with larger rings (-m)' <("$BIN/leakparse" --summary -i perf.data)
	"$BIN/leakparse" -i perf.data 2>messages >leaks
	grep -q 'events were lost.*larger rings' messages
}
