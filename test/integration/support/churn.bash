# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Recording under load: the target endless_churn, how to see whether it runs, and what must hold after
# leakrec was killed. For overload.bats, held_back.bats and others, and test/bench/kill-loop; after helpers.bash.

# Gives the targets a libc of their own, which nobody has put probes on: leakrec adds them, and removes
# them.
own_libc() {
	local libc

	libc=$(ldd "$TARGETS/endless_churn" | awk '$1 ~ /^libc\.so/ { print $3 }')
	mkdir lib targets
	cp "$libc" lib/
	cat >targets/endless_churn <<-END
		#!/bin/sh
		LD_LIBRARY_PATH='$PWD/lib' exec '$TARGETS/endless_churn' "\$@"
	END
	chmod +x targets/endless_churn
	TARGETS=$PWD/targets
}

# start_churn [ARG...]: endless_churn, ready to begin.
start_churn() {
	start_target endless_churn --progress "$PWD/progress" "$@"
}

# Ends endless_churn and takes its counts.
finish_churn() {
	kill -TERM "$RECORDED_PID"
	finish_target
}

# How many pairs all of its threads and children have made.
progress() {
	# mawk's %d ends at 2^31.
	od -An -v -t d8 -w64 -N $((64 * CHURN_RUNNERS)) progress |
		awk '{ n += $1 } END { printf "%.0f\n", n }'
}

# endless_churn.c: the numbers of 64 bytes in the file; the number of long stops follows.
CHURN_RUNNERS=1088

# How often the target was held back for most of the second that leakrec may do that.
long_stops() {
	od -An -v -t d8 -j $((64 * CHURN_RUNNERS)) -N 8 progress | tr -d ' '
}

has_made() {
	(($(progress) >= $1))
}

# The target and its children.
churning_processes() {
	echo "$RECORDED_PID"
	cat "/proc/$RECORDED_PID/task/$RECORDED_PID/children"
}

# is_stopped PID: every thread of it is, or it is traced. One that ends meanwhile is not.
is_stopped() {
	local states

	states=$(sed 's/.*) //' "/proc/$1"/task/*/stat 2>/dev/null) && ! grep -qv '^[Tt]' <<<"$states"
}

all_stopped() {
	local pid

	for pid in $(churning_processes); do
		is_stopped "$pid" || return
	done
}

# was_held [N]: all are stopped, or since the Nth long stop were for so long that they have to go on.
was_held() {
	all_stopped || (($(long_stops) > ${1:-0}))
}

none_stopped() {
	local pid

	for pid in $(churning_processes); do
		! sed 's/.*) //' "/proc/$pid"/task/*/stat | grep -q '^[Tt]' || return
	done
}

is_untraced() {
	! grep -h '^TracerPid:' "/proc/$RECORDED_PID"/task/*/status | grep -v '[[:space:]]0$'
}

# The target makes progress, be it held back time and again.
assert_advances() {
	wait_until 60 has_made $(($(progress) + 1000))
}

# The target goes on, for good: it makes progress, is not stopped, and nobody traces it.
assert_runs() {
	assert_advances
	wait_until 60 none_stopped
	wait_until 60 is_untraced
}

# What is left of the target's recorders: their guards have the same command line.
recorders() {
	pgrep -f -- "leakrec -p $RECORDED_PID -m"
}

no_recorders() {
	! recorders >/dev/null
}

# Probes of recorders that are gone and that were not there before.
probes_left() {
	abandoned_probes | comm -13 abandoned.before -
}

# start_recorder OPTION...: leakrec on the target, in the background.
start_recorder() {
	: >leakrec.err # as attach() does
	"$BIN/leakrec" -p "$RECORDED_PID" -m 512 "$@" 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
}

# SIGKILL for leakrec: the target runs on, and nothing is left but a file and probes. How long the target
# took is in RAN_AFTER_MS.
kill_recorder() {
	local began_ms

	began_ms=$(date +%s%3N)
	kill -KILL "$LEAKREC_PID"
	assert_runs
	# shellcheck disable=SC2034 # for the sourcing script
	RAN_AFTER_MS=$(($(date +%s%3N) - began_ms))
	wait "$LEAKREC_PID" 2>/dev/null || true
	wait_until 60 no_recorders
	assert_runs
}

# What a recorder that was killed has left in a file is read as far as it goes.
assert_readable() {
	local status=0

	"$BIN/leakparse" -i "$1" >leaks 2>leakparse.err || status=$?
	((status == 1)) || fail "leakparse ended with status $status: $(cat leakparse.err)"
	# Killed before it had begun to record, or to write, it may have left nothing.
	grep -q '^leakrec: recording ' leakrec.err && [[ -s $1 ]] || return 0
	grep -qE 'did not finish|ends too early' leakparse.err || fail "$(cat leakparse.err)"
	grep -q '^# summary .*truncated=1' leaks || fail "no summary of $1"
	(($(stat -c %s "$1") < 10000000)) || grep -q '^leak 3072 ' leaks || fail "no leaks in $1"
}

# The next recorder, or leakprobe, removes the probes of one that was killed.
maybe_list_probes() {
	((RANDOM % 2)) || return 0
	"$BIN/leakprobe" list >/dev/null 2>&1
	assert_equal "probes left" "$(probes_left)" ""
}

# kill_once MILLISECONDS [OPTION...]: starts leakrec on the running target and kills it after that time.
kill_once() {
	rm -f killed.data
	start_recorder -o killed.data "${@:2}"
	nap "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
	kill_recorder
	assert_readable killed.data
	maybe_list_probes
}

# kill_held_once [OPTION...]: the same while the target is held back by a pipe that nobody reads.
kill_held_once() {
	local unread before

	[[ -p unread ]] || mkfifo unread
	before=$(long_stops)
	exec {unread}<>unread
	start_recorder -o - "$@" >unread
	wait_until 60 is_recording "$LEAKREC_PID"
	wait_until 60 was_held "$before"
	kill_recorder
	exec {unread}<&-
	maybe_list_probes
}

# After the last kill: a recorder that ends well leaves no probes, not those of others either.
assert_next_recorder_tidies() {
	"$BIN/leakrec" -p "$RECORDED_PID" -d 0.1 -o next.data 2>leakrec.err || fail "$(cat leakrec.err)"
	assert_equal "probes left" "$(probes_left)" ""
	"$BIN/leakparse" -i next.data >leaks 2>leakparse.err || fail "the next recording is not whole"
}

# end_line WORD: the number before that word in leakrec's last line.
end_line() {
	tail -n 1 leakrec.err | grep -oE "[0-9]+ $1" | cut -d ' ' -f 1
}

# The parts of leakrec that must not grow while it waits: not the rings, which are files to it.
anonymous_kb() {
	awk '$1 == "RssAnon:" { print $2 }' "/proc/$LEAKREC_PID/status"
}
