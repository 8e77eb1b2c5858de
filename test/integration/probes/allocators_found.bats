#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Where allocators are found, and whether they are named right: in static programs, with a prefix, loaded by dlmopen(),
# by symbols in debug files.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/allocators

setup() {
	common_setup
}

teardown() {
	[[ -z ${BUILD_ID_FILE:-} ]] || rm -f "$BUILD_ID_FILE"
	common_teardown
}

# told FILE: prints what leakprobe add said about the file whose name ends in FILE.
told() {
	sed -nE "s,^[^ ]*: (added|all) .*$1[^ ]*: (.*),\2,p" leakprobe.out
}

@test "allocators: musl, linked statically and dynamically, and static glibc, exact" {
	local target

	for target in musl_cases_static "musl_random_calls --rounds 3000" cases_static; do
		record_attached "$target"
		(($(truth allocations) > 10)) || fail "$target did not run"
		assert_truth
		rm target.in target.out
	done
}

@test "allocators: a prefix, an indirect function, and libc's own, exact" {
	exact_copy "$TARGETS/prefixed_allocator"
	start_target prefixed_allocator
	add_probes --pid "$RECORDED_PID"
	assert_equal "the program's" "$(told prefixed_allocator)" "jemalloc (app_...)"
	assert_equal "libc's" "$(told libc)" glibc
	"$BIN/leakprobe" list >list
	grep -q '  app_calloc+0x' list
	go_target
	finish_target
}

# strip_to_debug_file FILE COPY: makes a stripped copy, with its symbols in COPY.debug.
strip_to_debug_file() {
	objcopy --only-keep-debug "$1" "$2.debug"
	objcopy --strip-all --add-gnu-debuglink="$2.debug" "$1" "$2"
}

@test "allocators: symbols in a separate debug file, by its link and by its build-id, exact" {
	local target id place

	require_program objcopy
	mkdir stripped
	for target in cases_static prefixed_allocator; do
		strip_to_debug_file "$TARGETS/$target" "stripped/$target"
		assert_equal "symbol tables" "$(readelf -SW "stripped/$target" | grep -c '\.symtab' || true)" 0
		exact_copy "$PWD/stripped/$target"
	done
	# Without link and .symtab, nothing shows where the static program's functions are.
	objcopy --remove-section=.gnu_debuglink stripped/cases_static stripped/alone
	run ! "$BIN/leakprobe" add --exe stripped/alone --dry-run
	[[ $output == *"stripped of these symbols"* ]]
	# By build-id, below /usr/lib/debug, of which this test has a private copy.
	id=$(readelf -n stripped/alone | awk '/Build ID:/ { print $3 }')
	place=/usr/lib/debug/.build-id/${id:0:2}
	mkdir -p "$place"
	cp stripped/cases_static.debug "$place/${id:2}.debug"
	BUILD_ID_FILE=$place/${id:2}.debug
	exact_copy "$PWD/stripped/alone"
	# Symbols of another build are not used.
	cp stripped/prefixed_allocator.debug "$BUILD_ID_FILE"
	run ! "$BIN/leakprobe" add --exe stripped/alone --dry-run
}

@test "allocators: symbols that other users could have written are not used" {
	local program=stripped/cases_static

	require_program objcopy
	mkdir stripped
	strip_to_debug_file "$TARGETS/cases_static" "$program"
	"$BIN/leakprobe" add --exe "$program" --dry-run
	# Another user's debug file, beside the system's program.
	chown 65534 "$program.debug"
	run ! "$BIN/leakprobe" add --exe "$program" --dry-run
	# The same beside that user's own program.
	chown 65534 "$program"
	"$BIN/leakprobe" add --exe "$program" --dry-run
	chmod o+w "$program.debug"
	run ! "$BIN/leakprobe" add --exe "$program" --dry-run
	[[ $output == *"stripped of these symbols"* ]]
}

@test "allocators: a second libc behind dlmopen, the same file and another one, exact" {
	exact_copy "$TARGETS/two_libcs"
	cp "$(ldd "$TARGETS/sizes" | awk '$1 ~ /^libc\.so/ { print $3 }')" other-libc.so
	exact_copy "$TARGETS/two_libcs" --libc "$PWD/other-libc.so"
}

@test "allocators: each is named, by add, --dry-run and list" {
	local name

	while read -r file name; do
		with_library "$file" null_free
		add_probes --pid "$RECORDED_PID"
		assert_equal "add, $file" "$(told "${file%%.so*}")" "$name"
		assert_equal "add, libc" "$(told libc.so)" glibc
		"$BIN/leakprobe" add --pid "$RECORDED_PID" --dry-run >dry-run
		grep -qE "^# .*/${file%%.so*}[^/]*: $name\$" dry-run
		"$BIN/leakprobe" list >list
		grep -qE "^# .*/${file%%.so*}[^/]*: $name\$" list
		go_target
		finish_target
		rm target.in target.out
	done <<-END
		libjemalloc.so.2 jemalloc
		libtcmalloc_minimal.so.4 tcmalloc
		libmimalloc.so.[1-9] mimalloc
	END
	"$BIN/leakprobe" add --exe "$TARGETS/cases_static" --dry-run | grep -q '^# .*/cases_static: glibc$'
	"$BIN/leakprobe" add --exe "$TARGETS/musl_cases_static" --dry-run | grep -q '^# .*/musl_cases_static: musl$'
	"$BIN/leakprobe" add --exe "$TARGETS/musl_random_calls" --dry-run | grep -q '^# .*/libc.so: musl$'
}

# places FILE...: prints "FUNCTION +OFFSET CLASS" for each entry probe.
places() {
	"$BIN/leakprobe" add --lib "$1" --dry-run |
		sed -nE 's,^p:[^ ]* .* # ([a-zA-Z_0-9]+)\+0x([0-9a-f]+) ([a-z0-9]+): .*,\1 \2 \3,p'
}

# The functions that programs call most must cost one trap (the table in docs/placement.md).
@test "allocators: probes are placed where they are cheap" {
	local name file

	for name in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
		file=$(library "$name")
		places "$file" >places
		for function in malloc calloc realloc free; do
			grep -qE "^$function [0-9a-f]+ emulated\$" places ||
				fail "$name: $(grep "^$function " places)"
		done
	done
	places "$(library 'libmimalloc.so.[1-9]')" >places
	# Where they overwrite their argument before the first jump, as the malloc of 2.0 and 3.0 and the free of 3.0.
	grep -qE '^malloc 0 stepped$' places
	if [[ -n $(library libmimalloc.so.2) ]]; then
		grep -qE '^free [0-9a-f]+ emulated$' places
	else
		grep -qE '^free 0 stepped$' places
	fi
}
