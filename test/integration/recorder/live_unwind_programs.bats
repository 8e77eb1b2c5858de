#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As live_unwind.bats, for static programs, other compilers, and libraries that are opened while the program runs.

# shellcheck disable=SC2030,SC2031,SC2034,SC2094,SC2153 # as in bad_input.bats; SIZE is chain_targets'
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/chain_targets
load ../support/live_unwind

setup() {
	common_setup
	require_program cc
}

teardown() {
	common_teardown
}

@test "live: a static program" {
	build_chain cc -O2 -fomit-frame-pointer -static
	chmod a+w chain # so leakrec and leakparse unwind with a copy
	same_as_raw -- ./chain
}

# musl has no call frame information.
@test "live: musl, whose stacks end below main and a thread's first function" {
	local how

	command -v musl-gcc >/dev/null || skip "musl-gcc is not installed"
	cat >two.c <<-END
		#include <pthread.h>
		#include <stdlib.h>
		__attribute__((noinline)) void *keep(int size) { return malloc(size); }
		static void *work(void *unused) { void *volatile block = keep(1001); return block; }
		int main(void)
		{
			pthread_t thread;
			void *volatile block = keep(1000);
			return pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL);
		}
	END
	for how in -O2 "-Os -static"; do
		# shellcheck disable=SC2086 # two words
		musl-gcc -g $how -o two two.c
		chmod a+w two # so leakrec unwinds with a copy
		"$BIN/leakrec" -o perf.data -- ./two 2>leakrec.err
		tail -n 1 leakrec.err | grep -q '[0-9] events\? lost: perf.data$' || fail "$(cat leakrec.err)"
		"$BIN/leakparse" <perf.data >leaks 2>/dev/null
		leak_stacks 1000 | grep -qE ' main [^ ]+$'
		leak_stacks 1001 | grep -qE ' work [^ ]+$'
	done
}

@test "live: a program without call frame information goes on where it calls exit()" {
	cat >exits.c <<-END
		#include <stdlib.h>
		__attribute__((noinline)) int work(void) { void *volatile block = malloc(1000); return !block; }
		__attribute__((noinline)) void run(void) { exit(work()); }
		int main(void) { run(); return 1; }
	END
	cc -O1 -fno-asynchronous-unwind-tables -fno-omit-frame-pointer -o exits exits.c
	"$BIN/leakrec" -o perf.data -- ./exits 2>leakrec.err
	"$BIN/leakparse" <perf.data >leaks 2>/dev/null
	leak_stacks 1000 | grep -q ' work run main ' || fail "$(cat leakrec.err leaks)"
}

@test "live: clang, no PIE" {
	require_program clang
	build_chain clang -O2 -fno-pie -no-pie
	same_as_raw -- ./chain
}

@test "live: a library opened with dlopen" {
	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -fPIC -shared -o libchain.so chain.c
	cc -g -O2 -o chain main.c -pthread -ldl
	same_as_raw -- ./chain ./libchain.so
}
