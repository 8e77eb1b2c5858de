#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What the tools are compiled and linked with (cmake/targets.cmake), as the binaries show it.

bats_require_minimum_version 1.5.0
BUILD_DIR=${BUILD_DIR:?the build directory}
SOURCE_DIR=${SOURCE_DIR:?the source directory}

TOOLS=(leakprobe leakrec leakparse leakfollow leakplot leakscan)

setup() {
	grep -q '^LEAKTOOLS_SANITIZE:BOOL=OFF' "$BUILD_DIR/CMakeCache.txt" || skip "sanitizers have their own flags"
}

# each_tool OPTION PATTERN: readelf OPTION prints a line with PATTERN for every tool.
each_tool() {
	for tool in "${TOOLS[@]}"; do
		readelf -W "$1" "$BUILD_DIR/bin/$tool" | grep -qE "$2" || {
			echo "$tool: readelf $1 has no $2"
			return 1
		}
	done
}

@test "hardening: position-independent, with relocations read-only from the start" {
	each_tool -h 'Type: *DYN'
	each_tool -d 'FLAGS_1.* PIE'
	each_tool -d 'BIND_NOW|FLAGS_1.* NOW'
	each_tool -l 'GNU_RELRO'
}

@test "hardening: no stack is executable" {
	each_tool -l 'GNU_STACK .* RW '
	for tool in "${TOOLS[@]}"; do
		run ! grep -qE 'GNU_STACK .* RWE ' <(readelf -lW "$BUILD_DIR/bin/$tool")
	done
}

@test "hardening: buffers and stacks are checked" {
	each_tool --dyn-syms 'UND __stack_chk_fail'
	grep -q 'CMAKE_BUILD_TYPE:.*=Rel' "$BUILD_DIR/CMakeCache.txt" || skip "nothing is checked without optimisation"
	each_tool --dyn-syms 'UND __[a-z]*printf_chk'
	run ! grep -v -e -fstack-clash-protection <(grep '"command".* -o parser/' "$BUILD_DIR/compile_commands.json")
}

# The tools start on a system that has another version of these.
@test "hardening: no library without a stable ABI is needed" {
	grep -q '^LEAKTOOLS_STATIC:BOOL=ON' "$BUILD_DIR/CMakeCache.txt" || skip "release builds only"
	for tool in "${TOOLS[@]}"; do
		run ! grep -E 'NEEDED.*\[lib(bpf|traceevent|tracefs|perf)\.' <(readelf -dW "$BUILD_DIR/bin/$tool")
	done
}

# The linker marks a program only if all its objects are marked, and Debian 12's crt1.o is not.
@test "hardening: x86's control flow is protected" {
	[[ $(uname -m) == x86_64 ]] || skip "x86 only"
	local libraries
	mapfile -t libraries < <(find "$BUILD_DIR"/{common,parser,unwind,report,top,plot,probes,recorder} \
		"$SOURCE_DIR/build/deps" -name '*.a' ! -path '*-aarch64/*')

	((${#libraries[@]} >= 8))
	for library in "${libraries[@]}"; do
		# readelf prints a heading for each member, and each member has the note.
		[[ $(readelf -n "$library" | grep -c '^File: ') == \
			$(readelf -n "$library" | grep -c 'x86 feature: IBT, SHSTK') ]] || {
			echo "$library has members without protection"
			return 1
		}
	done
	if readelf -n "$(cc -print-file-name=Scrt1.o)" | grep -q IBT; then
		each_tool -n 'x86 feature: IBT, SHSTK'
	fi
}
