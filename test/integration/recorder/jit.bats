#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Generated code: stacks pass it by its frame pointers, and its names come from the program's /tmp/perf-PID.map.

bats_require_minimum_version 1.5.0
load ../support/helpers

SIZE=54321
NR_BLOCKS=20

setup() {
	common_setup
	require_program cc
	write_jit
	cc -g -O2 -fomit-frame-pointer -o jit jit.c
}

teardown() {
	[[ ! -s maps ]] || xargs rm -f <maps
	common_teardown
}

# A program with generated code: "jit outer" calls "jit inner", which allocates. It prints its pid. With an argument it
# waits for a line before it goes on, and again before it ends.
write_jit() {
	cat >jit.c <<-END
		#include <stdint.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/mman.h>
		#include <unistd.h>
		static uint8_t *emit(uint8_t *at, uint64_t callee)
		{
			static const uint8_t begin[] = {0x55, 0x48, 0x89, 0xe5, 0xbf}; /* push %rbp; mov %rsp,%rbp; mov SIZE,%edi */
			static const uint8_t end[] = {0xff, 0xd0, 0x5d, 0xc3}; /* call *%rax; pop %rbp; ret */
			uint32_t size = $SIZE;
			memcpy(at, begin, 5);
			memcpy(at + 5, &size, 4);
			memcpy(at + 9, "\x48\xb8", 2); /* mov CALLEE,%rax */
			memcpy(at + 11, &callee, 8);
			memcpy(at + 19, end, 4);
			return at + 23;
		}
		static void wait_for_line(int wanted)
		{
			if (wanted && getchar() == EOF)
				exit(1);
		}
		int main(int argc, char **argv)
		{
			uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			uint8_t *inner = code + 64, *outer = code + 128;
			char path[64];
			FILE *map;
			emit(inner, (uint64_t)malloc);
			emit(outer, (uint64_t)inner);
			mprotect(code, 4096, PROT_READ | PROT_EXEC);
			snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
			map = fopen(path, "w");
			fprintf(map, "%lx 17 was there before\n", (long)inner);
			fprintf(map, "%lx 17 jit inner\n%lx 17 LazyCompile:~outer /a b.js:1:1\n", (long)inner, (long)outer);
			fclose(map);
			printf("%d\n", (int)getpid());
			fflush(stdout);
			wait_for_line(argc > 1);
			for (volatile int i = 0; i < $NR_BLOCKS; i++)
				((void (*)(void))outer)();
			puts("done");
			fflush(stdout);
			wait_for_line(argc > 1);
			return 0;
		}
	END
}

parse_jit() {
	"$BIN/leakparse" --order time --size $SIZE -i perf.data "$@" >leaks 2>leakparse.err ||
		fail "leakparse: $(cat leakparse.err)"
	expand_stacks
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "unwind failures" "$(summary unwind_failures)" 0
	assert_equal "starts" "$(grep -c '	_start+' leaks)" "$NR_BLOCKS"
}

# check_named PID
check_named() {
	assert_equal "inner" \
		"$(grep -cxF "	jit inner+0x15  (/tmp/perf-$1.map)" leaks)" "$NR_BLOCKS"
	assert_equal "outer" \
		"$(grep -cxF "	LazyCompile:outer /a b.js:1:1+0x15  (/tmp/perf-$1.map)" leaks)" "$NR_BLOCKS"
}

check_unnamed() {
	assert_equal "unknown frames" "$(grep -cE '	0x[0-9a-f]+  \(unknown\)' leaks)" $((2 * NR_BLOCKS))
}

record_jit() {
	"$BIN/leakrec" "$@" -- ./jit >pid 2>leakrec.err || fail "leakrec: $(cat leakrec.err)"
	PID=$(head -1 pid)
	MAP=/tmp/perf-$PID.map
	echo "$MAP" >maps
}

@test "jit: a program that has ended" {
	record_jit --call-graph dwarf
	parse_jit
	check_named "$PID"
}

@test "jit: raw dumps, unwound later" {
	record_jit --call-graph dwarf --raw-stacks
	parse_jit
	check_named "$PID"
}

@test "jit: below --symfs" {
	record_jit --call-graph dwarf
	mkdir -p root/tmp
	mv "$MAP" root/tmp
	parse_jit
	check_unnamed
	parse_jit --symfs "$PWD/root"
	check_named "$PID"
}

@test "jit: an untrusted file" {
	record_jit --call-graph dwarf
	mv "$MAP" map

	ln -s "$PWD/map" "$MAP"
	parse_jit
	check_unnamed

	rm "$MAP"
	cp map "$MAP"
	chown 1234 "$MAP"
	parse_jit
	check_unnamed
	assert_equal "notes" "$(grep -c 'belongs to user 1234' leakparse.err)" 1

	rm "$MAP"
	mkfifo "$MAP"
	parse_jit
	check_unnamed

	rm "$MAP"
	{
		printf 'ffffffffffffffff ffffffffffffffff over the end\n-1 5 minus\nzz\n\n1\n1 \n1 2\n'
		head -c 100000 /dev/urandom
		printf '\n'
		cat map
		head -1 map | tr -d '\n'
	} >"$MAP"
	parse_jit
	check_named "$PID"
}

@test "jit: in a container, by the process id there" {
	local own_pid line

	mkfifo jit.in jit.out
	unshare -m -p -f --propagation private sh -c \
		'mount -t tmpfs none /tmp && exec ./jit wait' <jit.in >jit.out 2>jit.err 3>&- &
	STARTED_PIDS+=("$!")
	exec {TARGET_IN}>jit.in {TARGET_OUT}<jit.out
	read -r -t 60 -u "$TARGET_OUT" own_pid
	RECORDED_PID=$(pgrep -P "${STARTED_PIDS[0]}")
	[[ $own_pid == 1 && -n $RECORDED_PID ]]
	attach --call-graph dwarf
	echo >&"$TARGET_IN"
	read -r -t 60 -u "$TARGET_OUT" line
	assert_equal "it says" "$line" "done"
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	[[ ! -e /tmp/perf-$RECORDED_PID.map ]]
	parse_jit
	check_named "$RECORDED_PID"

	# When a process has ended, its root is gone, too.
	echo >&"$TARGET_IN"
	wait "${STARTED_PIDS[0]}"
	exec {TARGET_IN}>&- {TARGET_OUT}<&-
	parse_jit
	check_unnamed
}
