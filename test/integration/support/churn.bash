# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Recording under load: the target endless_churn, whether it runs, and checks after leakrec was killed. For
# overload.bats, held_back.bats and others, and test/bench/kill-loop; after helpers.bash.

# Gives the targets a libc of their own without probes, so that leakrec adds and removes its own.
own_libc() {
	local libc

	# This shell's is theirs, too.
	while read -r _ _ _ _ _ libc; do
		[[ $libc != */libc.so.6 ]] || break
	done <"/proc/$BASHPID/maps"
	mkdir lib targets
	cp "$libc" lib/
	cat >targets/endless_churn <<-END
		#!/bin/sh
		LD_LIBRARY_PATH='$PWD/lib' exec '$TARGETS/endless_churn' "\$@"
	END
	chmod +x targets/endless_churn
	TARGETS=$PWD/targets
}

# start_churn [ARG...]: starts endless_churn, which waits for a line to begin.
start_churn() {
	start_target endless_churn --progress "$PWD/progress" "$@"
}

# Ends endless_churn and stores its counts.
finish_churn() {
	kill -TERM "$RECORDED_PID"
	finish_target
}

# Prints how many pairs all threads and children have made.
progress() {
	# mawk's %d ends at 2^31.
	od -An -v -t d8 -w64 -N $((64 * CHURN_RUNNERS)) progress |
		awk '{ n += $1 } END { printf "%.0f\n", n }'
}

# As in endless_churn.c: numbers 64 bytes apart, then the number of long stops.
CHURN_RUNNERS=1088

# Prints how often the target was stopped for most of the second that is the limit.
long_stops() {
	od -An -v -t d8 -j $((64 * CHURN_RUNNERS)) -N 8 progress | tr -d ' '
}

has_made() {
	(($(progress) >= $1))
}

# The target and its children.
churning_processes() {
	local children=

	read -r children <"/proc/$RECORDED_PID/task/$RECORDED_PID/children" || true # the line has no end
	echo "$RECORDED_PID $children"
}

# thread_states PID: stores in REPLY a letter for the state of each thread. Starts no process, because what it looks for
# may not last.
thread_states() {
	local file stat

	REPLY=
	for file in "/proc/$1"/task/*/stat; do
		! { read -r stat <"$file"; } 2>/dev/null || stat=${stat##*) } REPLY+=${stat::1}
	done
}

# is_stopped PID: true if every thread is stopped or traced. A process that ends meanwhile is not.
is_stopped() {
	thread_states "$1"
	[[ -n $REPLY && $REPLY != *[!Tt]* ]]
}

all_stopped() {
	local pid

	for pid in $(churning_processes); do
		is_stopped "$pid" || return
	done
}

# was_held [N]: true if all are stopped, or if there were more than N long stops.
was_held() {
	all_stopped || (($(long_stops) > ${1:-0}))
}

none_stopped() {
	local pid

	for pid in $(churning_processes); do
		thread_states "$pid"
		[[ $REPLY != *[Tt]* ]] || return
	done
}

is_untraced() {
	local file key value

	for file in "/proc/$RECORDED_PID"/task/*/status; do
		while read -r key value; do
			[[ $key != TracerPid: ]] || break
		done 2>/dev/null <"$file" || continue # the thread has ended
		[[ $value == 0 ]] || return
	done
}

# True if the target makes progress, though it may be stopped again and again.
assert_advances() {
	wait_until 60 has_made $(($(progress) + 1000))
}

# True if the target runs freely: it makes progress, and is neither stopped nor traced.
assert_runs() {
	assert_advances
	wait_until 60 none_stopped
	wait_until 60 is_untraced
}

# Lists the processes of the target's recorders that still exist.
recorders() {
	pgrep -f -- "leakrec -p $RECORDED_PID -m"
}

no_recorders() {
	! recorders >/dev/null
}

# start_recorder OPTION...: starts leakrec on the target in the background.
start_recorder() {
	: >leakrec.err # as attach() does
	"$BIN/leakrec" -p "$RECORDED_PID" -m 512 "$@" 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
}

# Kills leakrec by SIGKILL. The target must run on, after RAN_AFTER_MS, and only a file and probes may be left.
kill_recorder() {
	local began_ms

	began_ms=$((${EPOCHREALTIME/[.,]/} / 1000))
	kill -KILL "$LEAKREC_PID"
	assert_runs
	# shellcheck disable=SC2034 # for the sourcing script
	RAN_AFTER_MS=$((${EPOCHREALTIME/[.,]/} / 1000 - began_ms))
	wait "$LEAKREC_PID" 2>/dev/null || true
	wait_until 60 no_recorders
	assert_runs
}

# Checks that leakparse reads what a killed recorder has left in a file.
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

# Checks that the next recorder, or leakprobe, removes the probes of a killed one.
maybe_list_probes() {
	((RANDOM % 2)) || return 0
	"$BIN/leakprobe" list >/dev/null 2>&1
	assert_no_probes_left
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

# kill_held_once [OPTION...]: the same while the target is stopped because nothing reads the pipe.
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

# After the last kill: a recorder that ends normally leaves no probes, and removes those of killed ones.
assert_next_recorder_tidies() {
	"$BIN/leakrec" -p "$RECORDED_PID" -d 0.1 -o next.data 2>leakrec.err || fail "$(cat leakrec.err)"
	assert_no_probes_left
	"$BIN/leakparse" -i next.data >leaks 2>leakparse.err || fail "the next recording is not whole"
}

# end_line events|lost: prints the number of events, or of lost events, in leakrec's last line.
end_line() {
	local lines what=' events?,' # also "1 event,"

	[[ $1 == events ]] || what=' (or more )?events? lost'
	mapfile -t lines <leakrec.err
	[[ ! ${lines[-1]} =~ ([0-9]+)$what ]] || echo "${BASH_REMATCH[1]}"
}

# Prints the memory of leakrec that must not grow while it waits. The rings are files, so they do not count.
anonymous_kb() {
	awk '$1 == "RssAnon:" { print $2 }' "/proc/$LEAKREC_PID/status"
}
