#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Where names come from when the program itself has lost them: separate debug files, and what must
# not be believed. The chain of calls is the generator's (chain_targets.bash).

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/chain_targets

setup() {
	common_setup
	require_program cc
	require_program objcopy
	SERVER=
}

teardown() {
	[[ -z $SERVER ]] || kill "$SERVER" 2>/dev/null || true
	common_teardown
}

# build_stripped OPTION...: chain without symbols, and its debug file kept/chain.debug.
build_stripped() {
	write_chain c
	write_main
	cc -g -O2 "$@" -o chain chain.c main.c -pthread -ldl
	mkdir kept
	objcopy --only-keep-debug chain kept/chain.debug
	strip chain
}

record_only() {
	"$BIN/leakrec" --call-graph dwarf -- ./chain 2>leakrec.err || fail "leakrec: $(cat leakrec.err)"
}

# parse OPTION...
parse() {
	timeout 300 "$BIN/leakparse" --order time --size "$SIZE" -i perf.data "$@" >leaks 2>leakparse.err ||
		fail "leakparse: $(cat leakparse.err)"
}

build_id() {
	readelf -n "$1" | awk '/Build ID:/ { print $3 }'
}

# into_build_id_dir DIR FILE: as DIR/.build-id/12/3456.debug
into_build_id_dir() {
	local id
	id=$(build_id "$2")
	mkdir -p "$1/.build-id/${id:0:2}"
	mv "$2" "$1/.build-id/${id:0:2}/${id:2}.debug"
}

# The program's frames are all chain+0x1234: none has a name.
check_unnamed() {
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "named frames" "$(grep -cE '	(inner|allocate|link_[0-9]+|main)\+' leaks)" 0
	(($(grep -c '	chain+0x' leaks) >= NR_BLOCKS * DEPTH)) || fail "$(head -40 leaks)"
}

# start_server DIR [hang]: sets DEBUGINFOD_URLS.
start_server() {
	python3 "$SOURCE_DIR/test/integration/support/debug_server.py" "$@" >requests 3>&- &
	SERVER=$!
	wait_until 60 grep -q . requests
	DEBUGINFOD_URLS="http://127.0.0.1:$(head -1 requests)/"
	DEBUGINFOD_CACHE_PATH=$PWD/cache
	export DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH
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

@test "debug files: of a program that is not there" {
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
	# Another build in its place names nothing, and hinders nothing.
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

@test "debug files: a pipe in a debug file's place" {
	build_stripped -Wl,--build-id=none
	objcopy --add-gnu-debuglink=kept/chain.debug chain
	record_only
	mkfifo chain.debug
	parse
	check_unnamed
}

@test "debug files: what dwz has moved to a common file" {
	require_program dwz
	build_stripped
	mv kept/chain.debug chain.dbg
	cp chain.dbg twin.dbg
	dwz -m common.debug chain.dbg twin.dbg
	readelf -S chain.dbg | grep -q gnu_debugaltlink || fail "dwz moved nothing"
	record_only
	# Where the debug file says that it is: beside itself.
	id=$(build_id chain)
	into_build_id_dir debug chain.dbg
	mv common.debug "debug/.build-id/${id:0:2}"
	parse --debug-dir debug
	check_chain
	mv "debug/.build-id/${id:0:2}/common.debug" .
	into_build_id_dir debug common.debug
	parse --debug-dir debug
	check_chain
	# Neither is there, but something else in its place: what is left is to be told.
	id=$(build_id chain)
	rm -r debug/.build-id/"$(cd debug/.build-id && find . -name '*.debug' ! -path "./${id:0:2}/*" -printf '%h')"
	mkfifo "debug/.build-id/${id:0:2}/common.debug"
	parse --debug-dir debug
	assert_equal "link_1" "$(grep -c '	link_1+' leaks)" "$NR_BLOCKS"
}

@test "debug files: MiniDebugInfo" {
	require_program xz
	write_chain c
	write_main
	cc -O2 -o chain chain.c main.c -pthread -ldl
	nm -D chain --format=posix --defined-only | awk '{ print $1 }' | sort >dynamic
	nm chain --format=posix --defined-only | awk '$2 == "T" || $2 == "t" { print $1 }' |
		sort | comm -13 dynamic - >keep
	objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep chain mini
	strip --strip-all -R .comment chain
	xz mini
	objcopy --add-section .gnu_debugdata=mini.xz chain
	record_only
	parse
	for function in allocate link_1 link_$DEPTH run_chain main; do
		assert_equal "$function" "$(grep -c "	$function+" leaks)" "$NR_BLOCKS"
	done
	assert_equal "unnamed" "$(grep -c '	chain+' leaks)" 0
}

@test "debug files: compressed ones that would fill the memory" {
	require_program xz
	build_stripped -Wl,--build-id=none
	record_only
	head -c 600000000 /dev/zero | xz -1 >bomb.xz
	objcopy --add-section .gnu_debugdata=bomb.xz chain
	(
		ulimit -v 500000
		parse
	)
	check_unnamed
	assert_equal "notes" "$(grep -c '/chain: its compressed sections would take' leakparse.err)" 1
}

@test "debug files: one that is compressed as a whole" {
	build_stripped -Wl,--build-id=none
	head -c 600000000 /dev/zero | gzip -1 >chain.debug
	objcopy --add-gnu-debuglink=chain.debug chain
	record_only
	parse
	check_unnamed
	assert_equal "notes" "$(grep -c '/chain.debug: its compressed sections would take' leakparse.err)" 1
}

@test "debug files: from a debuginfod server, each once" {
	require_program python3
	build_stripped
	record_only
	mkdir served
	id=$(build_id chain)
	cp kept/chain.debug "served/$id.debug"
	start_server served

	DEBUGINFOD_URLS='' parse
	check_unnamed
	env -u DEBUGINFOD_URLS "$BIN/leakparse" -i perf.data >/dev/null 2>&1
	assert_equal "requests" "$(grep -c / requests)" 0

	parse
	check_chain
	assert_equal "requests for chain" "$(grep -c "$id" requests)" 1
	assert_equal "requests asked twice" "$(grep / requests | sort | uniq -d)" ""
	assert_equal "on stderr" "$(grep -c 'asking\|warning' leakparse.err)" 0
}

@test "debug files: a debuginfod server that never answers" {
	require_program python3
	build_stripped
	record_only
	start_server . hang
	export DEBUGINFOD_TIMEOUT=2
	SECONDS=0
	parse
	((SECONDS < 60)) || fail "it took $SECONDS s"
	check_unnamed
	assert_equal "notes" "$(grep -c 'from debuginfod within' leakparse.err)" 1
	assert_equal "requests" "$(grep -c / requests)" 1
	assert_equal "progress where there is no terminal" "$(grep -c asking leakparse.err)" 0

	# Not that cache: it remembers that there was no answer.
	export DEBUGINFOD_CACHE_PATH=$PWD/other-cache
	script -qec "$BIN/leakparse -i perf.data >leaks" terminal >/dev/null
	grep -q 'asking debuginfod for chain' terminal || fail "$(cat terminal)"
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

@test "debug files: code between that of a unit has no line of it" {
	# main goes before _start, the rest behind it; and main's last line is that of no instruction.
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
