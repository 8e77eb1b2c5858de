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
	same_as_raw -- ./chain
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
