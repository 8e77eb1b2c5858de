#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakparse's advice when nothing leaked, or when a recording lacks something.

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# says TEXT: leakparse prints it as a message and on the first screen.
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
	"$BIN/leakparse" --format tree -i perf.data 2>messages | grep -q '^Nothing leaked: '
	grep -q ' 0 blocks ' messages
	run ! grep 'nothing leaked' messages
	"$BIN/leakparse" --at 1us -i perf.data 2>messages >leaks
	grep -q 'no recorded block is held at that moment' messages
}

@test "advice: nothing was recorded" {
	start_target null_free
	"$BIN/leakrec" -p "$RECORDED_PID" -d 0.2 -o perf.data 2>leakrec.err
	go_target
	finish_target
	says "othing was recorded: no probe was hit"
}

@test "advice: a kind that was not recorded" {
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

@test "advice: nothing that the options select" {
	record_command "leaky_daemon --requests 20 --interval-us 100"
	"$BIN/leakparse" --size 77777 -i perf.data >leaks 2>messages
	grep -q 'nothing that the options select is held' messages
	# Once, and not in other words elsewhere.
	"$BIN/leakparse" --format tree --size 77777 -i perf.data >calls 2>messages
	grep -qx 'Nothing that the options select is held.' calls
	run ! grep 'nothing ' messages
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

@test "advice: generated code without names" {
	cat >runtime.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
		static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
		static void *volatile kept;
		__attribute__((noinline)) void leak(void)
		{
			kept = malloc(100);
			__asm__ volatile("" ::: "memory");
		}
		int main(int argc, char **argv)
		{
			void (*run)(void (*)(void)) = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
							   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			char path[64];
			FILE *map;
			memcpy(run, code, sizeof(code));
			for (int i = 0; i < 20; i++)
				run(leak);
			if (argc < 2)
				return 0;
			snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
			map = fopen(path, "w");
			fprintf(map, "%lx %zx generated\n", (unsigned long)run, sizeof(code));
			return fclose(map);
		}
	END
	gcc -O1 -fno-omit-frame-pointer -o runtime runtime.c
	"$BIN/leakrec" --call-graph fp -o perf.data -- ./runtime 2>leakrec.err
	says "1 of 1 stacks have functions without names in generated code: the program wrote no /tmp/perf-PID.map"
	for remedy in "node with --perf-basic-prof" "python3 with -X perf" "java with -XX:+DumpPerfMapAtExit" \
		"dotnet with DOTNET_PerfMapEnabled=1"; do
		cp runtime "${remedy%% *}"
		"$BIN/leakrec" --call-graph fp -o perf.data -- "./${remedy%% *}" 2>leakrec.err
		says "functions without names in generated code: run $remedy"
	done
	"$BIN/leakrec" --call-graph fp -o perf.data -- ./runtime map 2>leakrec.err
	map=/tmp/perf-$(sed -nE 's/.*recording .*, process ([0-9]+).*/\1/p' leakrec.err).map
	"$BIN/leakparse" --summary -i perf.data >screen 2>messages
	rm "$map"
	grep -q 'leak (runtime) < generated < main' screen
	run ! grep -F "generated code" screen messages
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
	"$BIN/leakfollow" --size 3072 -i perf.data 2>messages >operations
	grep -q 'events were lost.*larger rings' messages
}
