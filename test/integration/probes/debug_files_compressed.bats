#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Names from compressed debug information, and files that would expand to fill the memory. The chain of calls
# is the generator's (chain_targets.bash).

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
	head -c 300000000 /dev/zero | xz -0 >bomb.xz # the limit is 256 MiB (common/elf/elf_file.c)
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
	# Whatever its size: none is used.
	head -c 60000000 /dev/zero | gzip -1 >chain.debug
	objcopy --add-gnu-debuglink=chain.debug chain
	record_only
	parse
	check_unnamed
	# Root's leakparse does not even open it: it is no ELF file.
	assert_equal "notes" "$(grep -c '/chain.debug: its compressed sections would take' leakparse.err)" $((UID != 0))
}

@test "debug files: the C library's, as the distribution has left it" {
	local files=$BUILD_DIR/test/plain_debug/list

	[[ -s $files ]] || skip "the C library's debug file is not installed"
	"$BIN/leakrec" --call-graph dwarf -- "$TARGETS/sizes" >truth 2>leakrec.err
	"$BIN/leakparse" --order time -i perf.data >leaks
	grep -q '/libc-start.c:[0-9]' leaks || fail "$(cat leaks)"
	# Only `isolated` has uncompressed ones.
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare -m sh -euc 'while read -r file; do umount "$file"; done <"$1"
		exec "$2/leakparse" --order time -i perf.data' sh "$files" "$BIN" >compressed || fail "$(cat compressed)"
	diff leaks compressed
}
