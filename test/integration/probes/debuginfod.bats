#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Names from a debuginfod server. The chain of calls is the generator's (chain_targets.bash).

bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/chain_targets
load ../support/debug_files

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

# start_server DIR [hang | slow]: sets DEBUGINFOD_URLS.
start_server() {
	python3 "$SOURCE_DIR/test/integration/support/debug_server.py" "$@" >requests 3>&- &
	SERVER=$!
	wait_until 60 grep -q . requests
	DEBUGINFOD_URLS="http://127.0.0.1:$(head -1 requests)/"
	DEBUGINFOD_CACHE_PATH=$PWD/cache
	export DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH
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

	# Use another cache: this one remembers that there was no answer.
	export DEBUGINFOD_CACHE_PATH=$PWD/other-cache
	script -qec "$BIN/leakparse -i perf.data >leaks" terminal >/dev/null
	grep -q 'asking debuginfod for chain' terminal || fail "$(cat terminal)"
}

# Longer than a server may be silent.
@test "debug files: a debuginfod server that takes its time" {
	require_program python3
	build_stripped
	record_only
	mkdir served
	cp kept/chain.debug "served/$(build_id chain).debug"
	start_server served slow
	parse
	check_chain
	assert_equal "on stderr" "$(grep -c 'from debuginfod within' leakparse.err)" 0
}
