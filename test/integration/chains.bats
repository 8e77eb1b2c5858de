#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Whole stacks: programs are generated whose every allocation comes through a chain of calls that is
# known, function by function and line by line, and are built in all the ways that make unwinding
# hard. Each stack of --call-graph dwarf must be that chain, and lead on to the program's start.

bats_require_minimum_version 1.5.0
load helpers
load chain_targets

setup() {
	common_setup
	require_program cc
}

teardown() {
	common_teardown
}

# compile_and_check COMPILER OPTION...: one program of it all, in C.
compile_and_check() {
	write_chain c
	write_main
	"$@" -g -o chain chain.c main.c -pthread -ldl 2>cc.err || fail "$(cat cc.err)"
	record --call-graph dwarf -- ./chain
	check_chain
}

@test "chains: cc -O0" {
	compile_and_check cc -O0
}

@test "chains: cc -O2" {
	compile_and_check cc -O2
}

@test "chains: cc -O2 -fomit-frame-pointer" {
	compile_and_check cc -O2 -fomit-frame-pointer
}

@test "chains: cc -O3 -fno-pie -no-pie" {
	compile_and_check cc -O3 -fno-pie -no-pie
}

@test "chains: cc -static" {
	compile_and_check cc -O2 -fomit-frame-pointer -static
}

@test "chains: only .debug_frame" {
	compile_and_check cc -O2 -fomit-frame-pointer -fno-asynchronous-unwind-tables
}

@test "chains: clang -O2" {
	require_program clang
	compile_and_check clang -O2
}

@test "chains: C++ with exceptions and inlined functions" {
	require_program g++
	EXTERN='extern "C"' write_chain c++
	write_main
	cc -g -O2 -c main.c
	g++ -g -O2 -c chain.cc
	g++ -o chain chain.o main.o -pthread -ldl
	record --call-graph dwarf -- ./chain
	check_chain
}

@test "chains: a thread's" {
	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -o chain chain.c main.c -pthread -ldl
	record --call-graph dwarf -- ./chain thread
	MUST_START='' check_chain
}

@test "chains: a library opened with dlopen" {
	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -fPIC -shared -o libchain.so chain.c
	cc -g -O2 -o chain main.c -pthread -ldl
	record --call-graph dwarf -- ./chain ./libchain.so
	check_chain
}

@test "chains: stripped, with a separate debug file" {
	require_program objcopy
	write_chain c
	write_main
	cc -g -O2 -fomit-frame-pointer -o chain chain.c main.c -pthread -ldl
	objcopy --only-keep-debug chain chain.debug
	strip chain
	objcopy --add-gnu-debuglink=chain.debug chain
	record --call-graph dwarf -- ./chain
	check_chain
}

@test "chains: recursion 1,000 frames deep" {
	write_recursion
	record --call-graph dwarf,65000 -- ./deep 999
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "unwind failures" "$(summary unwind_failures)" 0
	assert_equal "frames" "$(grep -c '	dive+' leaks)" $((NR_BLOCKS * 1000))
	assert_equal "starts" "$(grep -c '	_start+' leaks)" "$NR_BLOCKS"
}

@test "chains: deeper than a dump can be" {
	write_recursion
	record --call-graph dwarf,65000 -- ./deep 100000
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$NR_BLOCKS"
	assert_equal "unwind failures" "$(summary unwind_failures)" "$NR_BLOCKS"
}
