#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A stack is named after the function that wants the memory, not after a wrapper of malloc.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "leakparse: a stack is named after the user's frame, not after a wrapper of malloc" {
	cat >wrapped.c <<-'END'
		#include <stdlib.h>
		__attribute__((noinline)) void *zmalloc_usable(size_t size)
		{
			void *volatile block = malloc(size);
			return block;
		}
		__attribute__((noinline)) int fill_cache(void)
		{
			void *volatile key = zmalloc_usable(10);
			void *volatile value = zmalloc_usable(20);
			return key && value;
		}
		int main(void)
		{
			return !fill_cache();
		}
	END
	gcc -O1 -o wrapped wrapped.c
	"$BIN/leakrec" -o perf.data -- ./wrapped 2>leakrec.err
	"$BIN/leakparse" --summary -i perf.data >screen
	# Two calls in one function without known lines: the addresses tell them apart.
	grep -oE '^   fill_cache \(wrapped\+0x[0-9a-f]+\) < main < ' screen | sort -u >paths
	[[ $(wc -l <paths) == 2 ]]
	"$BIN/leakparse" --format pprof -i perf.data >x.pb.gz
	HOME=$PWD go tool pprof -top x.pb.gz | grep -qx 'File: wrapped'
	"$BIN/leakparse" --format csv -i perf.data | cut -d, -f19 | grep -cx '"fill_cache"' | grep -qx 2
	gcc -g -O1 -o wrapped wrapped.c
	"$BIN/leakrec" -o perf.data -- ./wrapped 2>leakrec.err
	"$BIN/leakparse" --summary -i perf.data | grep -cE '^   fill_cache \(wrapped.c:(9|10)\) < main < ' | grep -qx 2
}

@test "leakparse: a wrapper without a known name is recognised by what it does" {
	record_evenly own_wrapper
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -q '^1\. .*growth: 500 blocks' screen
	grep -qE '^   remember_session \(own_wrapper.c:[0-9]+\) < main < ' screen
	"$BIN/leakparse" -i perf.data >leaks
	grep -qE '^wrapper grab \(/.*/own_wrapper\)$' leaks
	grep -qE '^leak 96 .* growth remember_session' leaks
	"$BIN/leakplot" --term dumb leaks | grep -q 'remember_session <- main'
	"$BIN/leakparse" --format csv -i perf.data | grep -q '"remember_session"'
	# What leaks whoever calls it is no mere wrapper.
	record_command "own_wrapper all"
	"$BIN/leakparse" --summary -i perf.data >screen
	grep -q '^   grab ' screen
	"$BIN/leakparse" -i perf.data >leaks
	run ! grep -q '^wrapper ' leaks
}
