#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# As bad_input.bats, for recordings. What was recorded before the damage is read.

# shellcheck disable=SC2030,SC2031,SC2154 # each test is a subshell; run sets status and stderr
# shellcheck disable=SC2016,SC2034 # bash -c's own variables; descriptors that hold a FIFO open
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/bad_input

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "bad input: an empty file" {
	refused 1 "empty|not a perf|no perf" "$BIN/leakparse" </dev/null
	: >empty
	refused 1 "empty" "$BIN/leakparse" -i empty
	refused 1 "empty" "$BIN/leakfollow" --size 1 -i empty
}

@test "bad input: a file that does not exist, or a directory" {
	refused 1 "nothere.*No such file" "$BIN/leakparse" -i nothere
	refused 1 "irectory" "$BIN/leakparse" -i .
}

@test "bad input: a file that is no perf.data" {
	refused 1 "perf" "$BIN/leakparse" -i "$TARGETS/null_free"
	echo "hello, this is a text of some length, and none of it is perf data at all" >text
	refused 1 "perf" "$BIN/leakparse" -i text
	refused 1 "perf" "$BIN/leakfollow" --size 1 -i text
}

@test "bad input: a perf.data without allocator events" {
	require_program perf
	perf record -q -e cpu-clock -o other.data -- true
	refused 1 "alloc|probe" "$BIN/leakparse" -i other.data
}

@test "bad input: a truncated file" {
	local bytes size

	recorded daemon "leaky_daemon --requests 50 --interval-us 0" -z0
	size=$(stat -c %s perf.data)
	for bytes in 1 8 60 104 110 200 1000 $((size / 2)) $((size - 1000)); do
		head -c "$bytes" perf.data >cut.data
		run --separate-stderr "$BIN/leakparse" -i cut.data
		assert_equal "status for $bytes of $size bytes" "$status" 1
		[[ $stderr == "leakparse: "*cut.data* ]] || fail "$stderr"
	done
}

@test "bad input: a pipe that breaks off is read as far as it goes" {
	local size

	start_target leaky_daemon --requests 300 --interval-us 300
	attach -o - >pipe.data
	go_target
	finish_target
	finish_leakrec
	size=$(stat -c %s pipe.data)
	# This is inside a record: records begin at multiples of four.
	head -c $((size * 9 / 10 / 4 * 4 + 1)) pipe.data >cut.data
	run --separate-stderr "$BIN/leakparse" -i cut.data
	assert_equal status "$status" 1
	[[ $stderr == *cut.data* ]] || fail "$stderr"
	grep -q '^# leaks 2' <<<"$output"
	(($(grep -c '^leak 3072 ' <<<"$output") > 5))
	grep -q '^# summary .*truncated=1' <<<"$output"
}

@test "bad input: corrupted files crash nothing" {
	record_command "leaky_daemon --requests 5 --interval-us 0" -z0
	# Four bytes change in each copy: of the first fifty in the headers, of the others anywhere.
	perl -e 'srand 1;
		open my $in, "<:raw", "perf.data" or die;
		my $whole = do { local $/; <$in> };
		for my $i (0 .. 99) {
			my $bad = $whole;
			my $within = $i < 50 && length $whole > 2000 ? 2000 : length $whole;
			substr($bad, int rand $within, 1) = chr int rand 256 for 1 .. 4;
			open my $out, ">:raw", "bad.$i" or die;
			print $out $bad;
			close $out or die;
		}'
	cat >read-all <<-'END'
		# The names in libc's debug file would take most of the time.
		[[ ! -d /usr/lib/debug ]] || mount -t tmpfs none /usr/lib/debug
		for file in bad.*; do
			for tool in leakparse "leakfollow --size 3072"; do
				status=0
				"$1/"$tool -i $file >out 2>&1 || status=$?
				((status < 3)) || { echo "$tool, $file, status $status:"; cat out; exit 1; }
				((++nr))
			done
		done
		((nr == 200))
	END
	unshare -m --propagation private bash read-all "$BIN"
}

@test "bad input: a closed pipe ends leakparse and leakfollow" {
	local tool

	# More text than fits in a pipe.
	record_command "leaky_daemon --requests 5000 --interval-us 0"
	for tool in "leakparse" "leakfollow --size 0..9999"; do
		# shellcheck disable=SC2086
		{
			"$BIN/"$tool <perf.data 2>err 3>&- && echo 0 >status || echo $? >status
		} | head -c 100 >/dev/null
		# The reader has read enough: that is not an error to report.
		grep 'cannot write' err && fail "$(cat err)"
		assert_equal status "$(cat status)" 1
	done
}

@test "bad input: a full disk under leakparse" {
	recorded daemon "leaky_daemon --requests 50 --interval-us 0" -z0
	run --separate-stderr bash -c '"$1" <perf.data >/dev/full' x "$BIN/leakparse"
	assert_equal status "$status" 1
	[[ $stderr == *"No space left"* ]] || fail "$stderr"
}
