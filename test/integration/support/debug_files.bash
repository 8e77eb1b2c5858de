# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# A program without symbols, whose names are in debug files. After helpers.bash and chain_targets.bash.

# build_stripped OPTION...: builds "chain" without symbols, and its debug file kept/chain.debug.
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
	expand_stacks
}

build_id() {
	readelf -n "$1" | awk '/Build ID:/ { print $3 }'
}

# into_build_id_dir DIR FILE: puts the file at DIR/.build-id/12/3456.debug
into_build_id_dir() {
	local id
	id=$(build_id "$2")
	mkdir -p "$1/.build-id/${id:0:2}"
	mv "$2" "$1/.build-id/${id:0:2}/${id:2}.debug"
}

# Checks that no frame of the program has a name: all are like chain+0x1234.
check_unnamed() {
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "named frames" "$(grep -cE '	(inner|allocate|link_[0-9]+|main)\+' leaks)" 0
	(($(grep -c '	chain+0x' leaks) >= NR_BLOCKS * DEPTH)) || fail "$(head -40 leaks)"
}
