#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Allocators in libraries that are loaded after recording has begun. None of their calls is missed.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	# Copies of our own, which no recorder has inspected before.
	cp "$TARGETS/lib/libpool_allocator.so" libfirst.so
	cp "$TARGETS/lib/libpool_allocator.so" libsecond.so
}

teardown() {
	common_teardown
}

# Prints the leaks of the sizes that only the libraries' functions were asked for.
assert_late_truth() {
	local size

	for size in "$@"; do
		assert_equal "leaks of $size" "$(grep -c "^leak $size " leaks)" "$(truth "held_$size")"
		(($(truth "held_$size") > 0))
	done
	assert_summary free_unknown 0
	assert_summary lost 0
	assert_no_unexpected
}

assert_loaded() {
	grep -q "^leakrec: recording $1, too, which process $2 has loaded" leakrec.err || fail "$(cat leakrec.err)"
}

@test "dlopen watch: libraries that an attached process loads, and its child uses" {
	record_attached "late_allocator $PWD/libfirst.so $PWD/libsecond.so"
	assert_late_truth 5001 5002 5003
	assert_loaded "$PWD/libfirst.so" "$RECORDED_PID"
	assert_loaded "$PWD/libsecond.so" "$RECORDED_PID"
	leak_stacks 5001 | grep -q '^ malloc work run main'
}

@test "dlopen watch: the same without sessions" {
	require_way multi
	record_attached "late_allocator $PWD/libfirst.so $PWD/libsecond.so" --record-by multi
	assert_late_truth 5001 5002 5003
}

@test "dlopen watch: the same by programs on perf events" {
	require_way single
	record_attached "late_allocator $PWD/libfirst.so $PWD/libsecond.so" --record-by single
	assert_late_truth 5001 5002 5003
}

@test "dlopen watch: the same without stacks, again and again" {
	for _ in 1 2 3 4; do
		rm -f target.in target.out
		record_attached "late_allocator $PWD/libfirst.so $PWD/libsecond.so" --call-graph none
		assert_late_truth 5001 5002 5003
		rm -f libfirst.so
		cp libsecond.so libfirst.so
	done
}

@test "dlopen watch: a library that another thread loads when the first has ended" {
	record_attached "late_allocator --first-ends $PWD/libfirst.so"
	assert_late_truth 5001 5002
	assert_loaded "$PWD/libfirst.so" "$RECORDED_PID"
}

@test "dlopen watch: a library that a started command loads" {
	record_command "late_allocator $PWD/libfirst.so"
	assert_late_truth 5001 5002
}

# The process has as much code with the second library as it had with the first. Both are as small as can be; the second
# one also defines C++'s operators.
@test "dlopen watch: a small library in the place of another" {
	local name size

	require_program cc
	require_program g++
	cat >small.c <<-'END'
		#include <stddef.h>
		#include <sys/mman.h>
		#define FRESH NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
		void *malloc(size_t size) { return size ? mmap(FRESH) : NULL; }
		void free(void *block) { if (block) munmap(block, 8192); }
	END
	cat >operators.cc <<-'END'
		#include <new>
		extern "C" void *malloc(std::size_t);
		extern "C" void free(void *);
		void *operator new(std::size_t size) { return malloc(size); }
		void operator delete(void *block) noexcept { free(block); }
	END
	cat >serial.c <<-'END'
		#include <dlfcn.h>
		#include <stdio.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			size_t size = 5001;
			char byte;
			setvbuf(stdout, NULL, _IONBF, 0);
			printf("ready %d\n", getpid());
			if (read(0, &byte, 1) != 1)
				return 1;
			for (int i = 1; i < argc; i++, size++) {
				void *library, *(*allocate)(size_t);
				void (*release)(void *), *(*create)(size_t);
				if (argv[i][0] == '-')
					continue;
				library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
				if (!library)
					return 1;
				allocate = (void *(*)(size_t))dlsym(library, "malloc");
				release = (void (*)(void *))dlsym(library, "free");
				create = (void *(*)(size_t))dlsym(library, "_Znwm");
				allocate(size);
				release(allocate(size));
				if (create)
					create(size + 1000);
				dlclose(library);
			}
			printf("truth done 1\n");
			return 0;
		}
	END
	cc -O1 -fno-builtin -o serial serial.c
	cc -O1 -fno-builtin -shared -fPIC -o libfirst.so small.c
	cc -O1 -fno-builtin -c -fPIC -o small.o small.c
	g++ -O1 -shared -fPIC -o libsecond.so operators.cc small.o
	TARGETS=$PWD record_attached "serial $PWD/libfirst.so $PWD/libsecond.so $PWD/libfirst.so"
	for name in first second; do
		assert_loaded "$PWD/lib$name.so" "$RECORDED_PID"
	done
	assert_summary lost 0
	assert_no_unexpected
	# 5001 is --wait's.
	for size in 5002 5003 5004 6003; do
		assert_equal "leaks of $size" "$(grep -c "^leak $size " leaks)" 1
	done
}

@test "dlopen watch: by size" {
	record_attached "late_allocator $PWD/libfirst.so $PWD/libsecond.so" --size 5002..5003
	assert_late_truth 5002 5003
	assert_equal "leaks of 5001" "$(grep -c '^leak 5001 ' leaks)" 0
}

@test "dlopen watch: perf events do not record them" {
	record_attached "late_allocator $PWD/libfirst.so" --perf-events
	assert_equal "leaks of 5001" "$(grep -c '^leak 5001 ' leaks)" 0
}
