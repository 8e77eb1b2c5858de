#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Names of stripped programs: which separate debug files are used, and which must not be. The chain of calls is the
# generator's (chain_targets.bash).

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/chain_targets
load ../support/debug_files

setup() {
	common_setup
	require_program cc
	require_program objcopy
}

teardown() {
	common_teardown
}

@test "debug files: by build-id, in --debug-dir" {
	build_stripped
	record_only
	parse
	check_unnamed
	into_build_id_dir debug kept/chain.debug
	parse --debug-dir debug
	check_chain
	"$BIN/leakfollow" --size "$SIZE" -i perf.data --debug-dir debug >followed 2>/dev/null
	assert_equal "named by leakfollow" "$(grep -c '	allocate+' followed)" "$NR_BLOCKS"
}

@test "debug files: the program itself is missing" {
	build_stripped
	record_only
	rm chain
	parse
	check_unnamed
	parse --debug-dir kept
	check_chain
	into_build_id_dir debug kept/chain.debug
	parse --debug-dir debug
	check_chain
	# A debug file of another build gives no names, and does no harm.
	cc -g -O2 -DPAD=48 -o chain chain.c main.c -pthread -ldl
	parse
	check_unnamed
	parse --debug-dir debug
	check_chain
}

@test "debug files: by build-id, of another build" {
	build_stripped
	record_only
	id=$(build_id chain)
	cc -g -O2 -DPAD=48 -o other chain.c main.c -pthread -ldl
	mkdir -p "debug/.build-id/${id:0:2}"
	cp other "debug/.build-id/${id:0:2}/${id:2}.debug"
	parse --debug-dir debug
	check_unnamed
	assert_equal "notes" "$(grep -c 'not the debug file of .*/chain' leakparse.err)" 1
}

@test "debug files: by .gnu_debuglink and its checksum" {
	build_stripped -Wl,--build-id=none
	objcopy --add-gnu-debuglink=kept/chain.debug chain
	record_only
	parse
	check_unnamed
	parse --debug-dir kept
	check_chain
	mkdir .debug
	mv kept/chain.debug .debug
	parse
	check_chain
	mv .debug/chain.debug .
	parse
	check_chain
	echo >>chain.debug
	parse
	check_unnamed
	assert_equal "notes" "$(grep -c 'not the debug file of .*/chain' leakparse.err)" 1
}

@test "debug files: a FIFO in a debug file's place" {
	build_stripped -Wl,--build-id=none
	objcopy --add-gnu-debuglink=kept/chain.debug chain
	record_only
	mkfifo chain.debug
	parse
	check_unnamed
}

@test "debug files: parts that dwz has moved to a shared file" {
	require_program dwz
	build_stripped
	mv kept/chain.debug chain.dbg
	cp chain.dbg twin.dbg
	dwz -m common.debug chain.dbg twin.dbg
	readelf -S chain.dbg | grep -q gnu_debugaltlink || fail "dwz moved nothing"
	record_only
	# The debug file names it, in its own directory.
	id=$(build_id chain)
	into_build_id_dir debug chain.dbg
	mv common.debug "debug/.build-id/${id:0:2}"
	parse --debug-dir debug
	check_chain
	mv "debug/.build-id/${id:0:2}/common.debug" .
	into_build_id_dir debug common.debug
	parse --debug-dir debug
	check_chain
	# The right file is not there, but another one has its place. A message must say what is missing.
	id=$(build_id chain)
	rm -r debug/.build-id/"$(cd debug/.build-id && find . -name '*.debug' ! -path "./${id:0:2}/*" -printf '%h')"
	mkfifo "debug/.build-id/${id:0:2}/common.debug"
	parse --debug-dir debug
	assert_equal "link_1" "$(grep -c '	link_1+' leaks)" "$NR_BLOCKS"
}

@test "debug files: another file at the recorded path, and --symfs" {
	write_chain c
	write_main
	cc -g -O2 -o chain chain.c main.c -pthread -ldl
	record_only
	mkdir -p "root$PWD"
	mv chain "root$PWD/chain"
	cc -g -O2 -DPAD=48 -o chain chain.c main.c -pthread -ldl
	parse
	check_unnamed
	assert_equal "notes" "$(grep -c '/chain: not the recorded file' leakparse.err)" 1
	parse --symfs "$PWD/root"
	check_chain
	assert_equal "notes" "$(grep -c 'not the one' leakparse.err)" 0
}

@test "debug files: code between the parts of a unit gets no line of the unit" {
	# main is placed before _start, the rest after it, and the last line of main belongs to no instruction.
	cat >around.c <<-'END'
		#include <stdlib.h>
		void *kept;
		__attribute__((noinline)) void keep(int size)
		{
			kept = malloc(size);
		}
		int main(void)
		{
			keep(10);
			keep(20);
			__asm__ volatile("call exit@plt\n\t.loc 1 11 1 view .LV900\n\t"
					 ".loc 1 12 1 view .LV901" :: "D"(0));
			__builtin_unreachable();
		}
	END
	gcc -O2 -g -o around around.c
	objdump --dwarf=decodedline around | grep -qE '^around.c +12 '
	"$BIN/leakrec" -- ./around 2>leakrec.err
	"$BIN/leakparse" -i perf.data >leaks
	grep -qE '	keep\+0x[0-9a-f]+  .*around.c:5 ' leaks
	grep -qE '	_start\+0x[0-9a-f]+  \(.*around\)' leaks || fail "$(grep _start leaks)"
}
