#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As memory.bats, for programs written in Go, whose heap is not malloc's.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# build_go FILE OUTPUT: the runtime is compiled once.
build_go() {
	HOME=$PWD GOCACHE=$BUILD_DIR/test/go-cache GO111MODULE=off go build -o "$2" "$1"
}

# grow_go PROGRAM OPTION...: what is said of its growth by 50 MiB
grow_go() {
	mkfifo go.in
	"./$1" <>go.in >go.out 3>&- &
	RECORDED_PID=$!
	STARTED_PIDS+=("$RECORDED_PID")
	wait_until 60 grep -q ready go.out
	attach "${@:2}"
	echo >go.in
	wait_until 60 grep -q grown go.out
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	kill_now "$RECORDED_PID"
	rm go.in go.out # so that the next one is waited for
	"$BIN/leakparse" --summary perf.data >screen
	cat screen
}

@test "memory: a Go heap grows, with cgo and without" {
	require_program go
	cat >heap.go <<-'END'
		package main

		import (
			"bufio"
			"fmt"
			"os"
		)

		var kept [][]byte

		func main() {
			fmt.Println("ready")
			input := bufio.NewReader(os.Stdin)
			input.ReadString('\n')
			for i := 0; i < 50; i++ {
				block := make([]byte, 1<<20)
				for k := range block {
					block[k] = 1
				}
				kept = append(kept, block)
				call()
			}
			fmt.Println("grown")
			input.ReadString('\n')
		}
	END
	printf 'package main\nfunc call() {}\n' >pure.go
	printf 'package main\n// #include <stdlib.h>\nimport "C"\nfunc call() { C.free(C.malloc(100)) }\n' >cgo.go
	mkdir with without
	cp heap.go pure.go without
	cp heap.go cgo.go with
	CGO_ENABLED=0 build_go ./without heap.pure
	CGO_ENABLED=1 build_go ./with heap.cgo
	grow_go heap.cgo
	# The runtime may start threads, and libc allocates a small block for each.
	grep -qE '^RSS grew by [5-9][0-9]\.?[0-9]* MiB: \+?[0-9.]+ (bytes|KiB) in recorded blocks, \+[5-9][0-9]\.?[0-9]* MiB in other' screen
	grep -q '^  Record with --with mmap to see who maps memory: ' screen
	grow_go heap.cgo --with mmap
	grep -q ' runtime\.mmap' screen
	# It has no malloc.
	grow_go heap.pure --with mmap
	grep -qE '^[0-9]+ mappings, [1-9][0-9]*\.?[0-9]* MiB' screen
	grep -q '^RSS ' screen
	grep -q 'runtime\.mmap' screen
	grep -q 'so its allocator cannot be found' leakrec.err
	mkfifo go.in
	./heap.pure <>go.in 3>&- >go.out &
	STARTED_PIDS+=($!)
	wait_until 60 grep -q ready go.out
	run -1 "$BIN/leakrec" -p $! -o perf.data
	[[ $output == *"leakrec --with mmap records what it maps"* ]] || fail "$output"
	kill_now "${STARTED_PIDS[-1]}"
}
