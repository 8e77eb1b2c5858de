#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Probed files that are overwritten in place. What runs from them afterwards must not hit probes at the old offsets.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/system_wide

# Both have an allocator. "second" has other instructions where the probes of "first" were, and notices if one is changed.
build_programs() {
	cat >allocator.h <<-'END'
		#include <stddef.h>
		#include <sys/mman.h>
		#define FRESH NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
		void *malloc(size_t size) { return size ? mmap(FRESH) : NULL; }
		void free(void *block) { if (block) munmap(block, 8192); }
	END
	cat >first.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		asm(".text\n.skip 8192, 0x90");
		#include "allocator.h"
		int main(int argc, char **argv)
		{
			char byte;
			if (argc > 1) {
				dprintf(1, "ready %d\n", getpid());
				if (read(0, &byte, 1) != 1)
					return 1;
			}
			for (int i = 0; i < 100; i++)
				malloc(5001);
			return 0;
		}
	END
	cat >second.c <<-'END'
		int sum(void)
		{
			unsigned int a = 1;
			asm volatile(".rept 40000\n add $0x11223344, %%eax\n .endr" : "+a"(a));
			return a == 1 + 40000 * 0x11223344u ? 0 : 1;
		}
		#include "allocator.h"
		int main(void) { return sum(); }
	END
	cat >host.c <<-'END'
		#include <dlfcn.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/wait.h>
		#include <unistd.h>
		static int call_sum(void)
		{
			void *plugin = dlopen("./plugin.so", RTLD_NOW);
			int (*sum)(void) = (int (*)(void))dlsym(plugin, "sum");
			return sum();
		}
		int main(void)
		{
			void *plugin = dlopen("./plugin.so", RTLD_NOW);
			void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(plugin, "malloc");
			char byte;
			int status;
			dprintf(1, "ready %d\n", getpid());
			if (read(0, &byte, 1) != 1)
				return 1;
			allocate(5001);
			dlclose(plugin);
			if (system("cp second.so plugin.so"))
				return 2;
			if (fork() == 0)
				_exit(call_sum());
			wait(&status);
			return status ? 3 : call_sum();
		}
	END
	cc -O1 -fno-builtin -fno-toplevel-reorder -o first first.c
	cc -O1 -fno-builtin -fno-toplevel-reorder -o second second.c
	cc -O1 -fno-builtin -fno-toplevel-reorder -shared -fPIC -o first.so first.c
	cc -O1 -fno-builtin -fno-toplevel-reorder -shared -fPIC -o second.so second.c
	cc -O1 -o host host.c
}

# They are built once for all tests of the file.
make_programs() {
	local built=$BATS_FILE_TMPDIR/programs

	require_program cc
	if [[ ! -e $built ]]; then
		mkdir "$built.new"
		(cd "$built.new" && build_programs)
		mv "$built.new" "$built"
	fi
	cp "$built"/{first,second,host} "$built"/*.so .
	cp first program
	cp first.so plugin.so
}

assert_told() {
	grep -q "^leakrec: no longer recording $PWD/$1, which is being overwritten" leakrec.err || fail "$(cat leakrec.err)"
	grep -q ', 0 or more events lost' leakrec.err || fail "$(cat leakrec.err)"
	# What was held then may have been released since.
	"$BIN/leakparse" <perf.data >doubted 2>/dev/null
	grep -q '^# summary .* firm_blocks=0 .* unguarded_tasks=[1-9]' doubted || fail "$(grep '^# summary' doubted)"
}

# It is also recorded again.
RUN_ALL='./program && cp second program && ./program && cp first program && ./program'

@test "overwritten: a program that a command runs" {
	require_programs
	make_programs
	"$BIN/leakrec" -o perf.data -- sh -c "$RUN_ALL" 2>leakrec.err || fail "status $?: $(cat leakrec.err)"
	parse
	assert_told program
	assert_equal "leaks of 5001" "$(grep -c '^leak 5001 ' leaks)" 200
}

@test "overwritten: a program in a cgroup" {
	require_programs
	make_programs
	attach_all --cgroup "$CGROUP"
	(enter "$CGROUP" sh -c "$RUN_ALL") || fail "status $?: $(cat leakrec.err)"
	stop_leakrec
	assert_told program
	assert_equal "leaks of 5001" "$(grep -c '^leak 5001 ' leaks)" 200
}

@test "overwritten: a program in a cgroup, with perf events" {
	make_programs
	TARGETS=$PWD start_target_there program
	attach_all --cgroup "$CGROUP" --perf-events
	go_target
	finish_target
	cp second program
	(enter "$CGROUP" ./program) || fail "status $?: $(cat leakrec.err)"
	stop_leakrec
	assert_told program
	assert_equal "leaks of 5001" "$(grep -c '^leak 5001 ' leaks)" 100
}

# overwrite_plugin OPTION...
overwrite_plugin() {
	make_programs
	TARGETS=$PWD record_attached host "$@"
	assert_told plugin.so
	assert_equal "leaks of 5001" "$(grep -c '^leak 5001 ' leaks)" 1
}

@test "overwritten: a library that an attached process loads again, and its child" {
	overwrite_plugin
}

@test "overwritten: the same with perf events" {
	overwrite_plugin --perf-events
}

@test "overwritten: a library between its analysis and its lease" {
	make_programs
	TARGETS=$PWD start_target host
	WAITS_AT=lease LD_PRELOAD=$TARGETS/lib/libwaits.so "$BIN/leakrec" -p "$RECORDED_PID" 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 test -e waiting
	cp second.so plugin.so
	rm waiting
	wait "$LEAKREC_PID" && fail "leakrec did not fail"
	grep -q "^leakrec: cannot record: $PWD/plugin.so has changed since it was analysed; try again" leakrec.err ||
		fail "$(cat leakrec.err)"
	kill_now "$TARGET_PID"
}

@test "overwritten: the same in a cgroup; the library is left out, and is not counted" {
	make_programs
	TARGETS=$PWD start_target_there host
	WAITS_AT=lease LD_PRELOAD=$TARGETS/lib/libwaits.so "$BIN/leakrec" -o perf.data --cgroup "$CGROUP" 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 test -e waiting
	cp second.so plugin.so
	rm waiting
	wait_until 60 is_recording "$LEAKREC_PID"
	grep -q "^leakrec: warning: $PWD/plugin.so is not recorded: it has changed since it was analysed" leakrec.err ||
		fail "$(cat leakrec.err)"
	grep -q ': 1 process with 1 allocator so far;' leakrec.err || fail "$(cat leakrec.err)"
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	kill_now "$TARGET_PID"
}

# What NFS and Ceph do, and from Linux 7.0 on other file systems, too. It is said of each file.
@test "overwritten: without leases, leakrec says so, also of a file that is mapped later" {
	make_programs
	start_target late_allocator "$TARGETS/lib/libpool_allocator.so"
	NO_LEASES=1 LD_PRELOAD=$TARGETS/lib/libwaits.so attach
	go_target
	finish_target
	finish_leakrec
	for file in 'libc\.so\.6' 'libpool_allocator\.so'; do
		assert_equal "warnings of $file" "$(grep -c "^leakrec: warning: do not overwrite .*/$file in place, .*: its file system has no leases; a new file" leakrec.err)" 1
	done
}
