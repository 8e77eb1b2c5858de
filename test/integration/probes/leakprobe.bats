#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What leakprobe registers, lists, removes and reports as stale. The test probes only files of its own.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	LIBC=$(ldd "$TARGETS/null_free" | awk '$1 ~ /^libc\.so/ { print $3 }')
	cp "$LIBC" mylibc.so
}

teardown() {
	common_teardown
}

definitions() {
	uprobe_events | grep -F " $PWD/mylibc.so:"
}

@test "leakprobe: add puts entry and return probes on each function, once" {
	local function functions

	add_probes --lib mylibc.so
	definitions >defs
	for function in malloc calloc realloc posix_memalign valloc pvalloc; do
		assert_equal "$function" "$(grep -cE "^p[0-9]*:[^ ]*/$function " defs)" 1
		assert_equal "${function}_ret" "$(grep -cE "^r[0-9]*:[^ ]*/${function}_ret " defs)" 1
	done
	assert_equal "free" "$(grep -cE '^p[0-9]*:[^ ]*/free ' defs)" 1
	assert_equal "free's return" "$(grep -cE '/free_ret ' defs || true)" 0
	# One function in glibc 2.36, two in 2.41.
	functions=$(readelf -W --dyn-syms mylibc.so | awk '$8 ~ /^(memalign|aligned_alloc)@/ { print $2 }' | sort -u | wc -l)
	assert_equal "memalign, aligned_alloc" "$(grep -cE '^p[0-9]*:[^ ]*/(memalign|aligned_alloc) ' defs)" "$functions"
}

@test "leakprobe: no two entry probes at one address, none outside .text" {
	local offset size address

	add_probes --lib mylibc.so
	definitions | awk '/^p/ { print $2 }' | sort | uniq -d >twice
	assert_equal "addresses probed twice" "$(cat twice)" ""
	read -r offset size < <(readelf -SW mylibc.so | sed 's/^ *\[ *[0-9]*\]//' |
		awk '$1 == ".text" { print "0x" $4, "0x" $5 }')
	definitions | sed -E 's/.*mylibc\.so:(0x[0-9a-f]+).*/\1/' >addresses
	while read -r address; do
		((address >= offset && address < offset + size)) || fail "$address is not in .text"
	done <addresses
}

@test "leakprobe: adding again is no error and changes nothing" {
	add_probes --lib mylibc.so
	definitions >once
	"$BIN/leakprobe" add --lib mylibc.so
	definitions | diff once -
}

@test "leakprobe: --dry-run prints definitions and registers nothing" {
	run --separate-stderr "$BIN/leakprobe" add --lib mylibc.so --dry-run
	assert_equal status "$status" 0
	[[ $output == *"p:leakprobe_mylibc_so_"*"/malloc "* ]]
	echo "$output" >dry-run
	grep -qE ':0x[0-9a-f]+ mem=[^#]* # free\+0x[0-9a-f]+ (emulated|stepped): [a-z]+' dry-run
	run ! definitions
	add_probes --lib mylibc.so
	assert_equal "definitions" "$(definitions | wc -l)" "$(grep -c '^[pr]' dry-run)"
}

@test "leakprobe: list counts hits" {
	require_program perf
	add_probes --exe "$TARGETS/null_free"
	# They are counted while somebody uses the probe. leakrec has its own.
	perf stat -o stat -e "$(added_groups):free" "$TARGETS/null_free" >truth 2>stat.err || fail "$(cat stat.err)"
	"$BIN/leakprobe" list >list
	assert_equal "hits of free" "$(awk -v event="$(added_groups):free" '$1 == event { print $5 }' list)" "$(truth free)"
	assert_equal "events listed" "$(grep -cF -f <(added_groups) list)" "${#OWN_EVENTS[@]}"
}

@test "leakprobe: list shows where a probe is and what it costs, while the file is the same" {
	local group

	add_probes --lib mylibc.so
	group=$(added_groups)
	"$BIN/leakprobe" list | grep "^$group:" >list
	assert_equal "probes" "$(grep -cE ' [a-z_]+\+0x[0-9a-f]+ .* (emulated|stepped) +[a-z]+' list)" \
		"${#OWN_EVENTS[@]}"
	cp mylibc.so new.so
	mv new.so mylibc.so
	"$BIN/leakprobe" list | grep "^$group:" >list
	assert_equal "unknown" "$(grep -cE ' \? +\?$' list)" "${#OWN_EVENTS[@]}"
}

@test "leakprobe: existing probes at the entries are used" {
	local group line

	# Registers them as a version without placement would have done.
	"$BIN/leakprobe" add --lib mylibc.so --dry-run >dry-run
	grep -E '/(free|malloc|malloc_ret) ' dry-run >few
	while read -r line; do
		[[ $line =~ :(0x[0-9a-f]+)\ .*\ \#\ [a-z_]+\+(0x[0-9a-f]+)\  ]]
		line=${line/:${BASH_REMATCH[1]} /:$(printf 0x%x $((BASH_REMATCH[1] - BASH_REMATCH[2]))) }
		echo "${line%% #*}" >>"$TRACEFS/uprobe_events"
		line=${line%% *}
		OWN_EVENTS+=("${line#[pr]:}")
	done <few
	definitions >before
	group=${OWN_EVENTS[0]%%/*}
	add_probes --lib mylibc.so
	grep -q "^$group: added $(($(grep -c '^[pr]' dry-run) - 3)) of " leakprobe.out
	definitions | head -n 3 | diff before -
	"$BIN/leakprobe" list | grep -qE "^$group:free +free\+0x0 "
}

@test "leakprobe: del NAME removes one, a group, and only what was named" {
	local group

	add_probes --lib mylibc.so
	group=$(added_groups)
	"$BIN/leakprobe" del "$group:free"
	run ! grep "$group/free " < <(uprobe_events)
	grep -q "$group/malloc " < <(uprobe_events)
	"$BIN/leakprobe" del "$group"
	run ! definitions
}

@test "leakprobe: del fails for probes that do not exist, or are not leakprobe's" {
	echo "p:notours_$$/x $PWD/mylibc.so:0x$(readelf -W --dyn-syms mylibc.so |
		awk '$8 ~ /^free@@/ { print $2 }')" >>"$TRACEFS/uprobe_events"
	OWN_EVENTS+=("notours_$$/x")
	run ! "$BIN/leakprobe" del "notours_$$/x"
	grep -q "notours_$$/x" < <(uprobe_events)
	run ! "$BIN/leakprobe" del leakprobe_nothing_00000000_00000000
}

@test "leakprobe: del --pid" {
	local group

	start_target cases_static --rounds 1
	add_probes --pid "$RECORDED_PID"
	group=$(added_groups)
	[[ $group == leakprobe_cases_static_* ]]
	grep -q ":$group/" < <(uprobe_events)
	"$BIN/leakprobe" del --pid "$RECORDED_PID"
	run ! grep ":$group/" < <(uprobe_events)
	go_target
	finish_target
}

@test "leakprobe: several processes; a failure does not prevent the others" {
	start_target cases_static --rounds 1
	"$BIN/leakprobe" add --dry-run --pid "$$,$RECORDED_PID" >planned
	grep -q '^# .*/libc.so.6: ' planned
	grep -q '^# .*/cases_static: ' planned
	# The probes are removed by their names if the test fails.
	add_probes --pid "$RECORDED_PID"
	group=$(added_groups | grep _cases_static_)
	uprobe_events | grep -q ":$group/"
	"$BIN/leakprobe" del --pid "$RECORDED_PID,$RECORDED_PID"
	run ! grep ":$group/" < <(uprobe_events)
	run -1 "$BIN/leakprobe" add --pid "4194304,$RECORDED_PID"
	grep -q "^leakprobe: no process 4194304" <<<"$output" || fail "$output"
	run "$BIN/leakprobe" check --pid "$RECORDED_PID,$$"
	grep -q "^process $RECORDED_PID: .*/cases_static: has all .* probes" <<<"$output" || fail "$output"
	grep -q "^process $$: .*/libc" <<<"$output" || fail "$output"
	run -1 "$BIN/leakprobe" del --pid "4194304,$RECORDED_PID"
	run ! grep ":$group/" < <(uprobe_events)
	run -2 "$BIN/leakprobe" add --pid "$$,x"
	[[ $output == *"--pid takes process ids, separated by commas, not"* ]]
	go_target
	finish_target
}

@test "leakprobe: a static program's allocators are in its executable" {
	start_target cases_static --rounds 1
	add_probes --pid "$RECORDED_PID"
	uprobe_events | grep ":$(added_groups)/malloc " | grep -q /cases_static:
	go_target
	finish_target
}

@test "leakprobe: a process in a container has its own libc" {
	mkdir rootfs
	cat >enter <<-'END'
		mount -t tmpfs none rootfs
		mkdir -p rootfs/lib64 rootfs/lib/x86_64-linux-gnu rootfs/proc
		cp "$1" rootfs/target
		cp "$2" rootfs/lib/x86_64-linux-gnu/libc.so.6
		cp "$3" rootfs/lib64/
		exec chroot rootfs /target --wait
	END
	mkfifo target.in target.out
	unshare -m --propagation private bash -e enter "$TARGETS/null_free" "$LIBC" \
		/lib64/ld-linux-x86-64.so.2 <target.in >target.out 3>&- &
	TARGET_PID=$!
	exec {TARGET_IN}>target.in {TARGET_OUT}<target.out
	read -r -t 60 -u "$TARGET_OUT" _ RECORDED_PID
	attach
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
	# The system's libc is another file: no probe was on it.
	run ! grep -qF " $LIBC" leakrec.err
}

@test "leakprobe: check reports a file that was replaced" {
	add_probes --lib mylibc.so
	"$BIN/leakprobe" check >check.before || true # other tests may have stale probes
	grep -q "$PWD/mylibc.so: ok" check.before
	cp mylibc.so new.so
	mv new.so mylibc.so
	run "$BIN/leakprobe" check
	assert_equal status "$status" 1
	grep -q "$PWD/mylibc.so: the file was replaced" <<<"$output" || fail "$output"
}

@test "leakprobe: check --pid reports allocators without probes" {
	start_target cases_static --rounds 1
	run "$BIN/leakprobe" check --pid "$RECORDED_PID"
	assert_equal status "$status" 1
	grep -q "^process $RECORDED_PID: .*/cases_static: " <<<"$output" || fail "$output"
	add_probes --pid "$RECORDED_PID"
	run "$BIN/leakprobe" check --pid "$RECORDED_PID"
	grep -q "^process $RECORDED_PID: .*/cases_static: has all .* probes" <<<"$output" ||
		fail "$output"
	go_target
	finish_target
}

@test "leakprobe: mounts tracefs if it is not mounted" {
	run unshare -m --propagation private bash -c '
		umount /sys/kernel/debug/tracing 2>/dev/null
		umount /sys/kernel/tracing || exit 77
		"$1" list && grep -q " /sys/kernel/tracing tracefs" /proc/self/mounts' x "$BIN/leakprobe"
	assert_equal status "$status" 0
}
