#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec as a service: options from files, processes that are waited for and followed across restarts, and what the
# service manager and the journal are told. support/service_manager.py takes systemd's place.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
	HIERARCHY=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	if [[ -z $HIERARCHY ]]; then
		mkdir cgroup2
		mount -t cgroup2 none cgroup2
		HIERARCHY=$PWD/cgroup2
	fi
	NAME=leaky$$-$BATS_TEST_NUMBER
	SLICE=$HIERARCHY/leaktools$$-$BATS_TEST_NUMBER.slice
	mkdir "$SLICE" "$SLICE/leaktools.slice" "$SLICE/user.service" "$SLICE/user.service/$NAME.service"
	UNIT=$SLICE/leaktools.slice/$NAME.service
	mkdir etc
}

teardown() {
	local status=0

	common_teardown || status=1
	! mountpoint -q disk || umount disk || status=1
	wait_until 60 remove_slice || status=1
	return $status
}

remove_slice() {
	find "$SLICE" -depth -type d -exec rmdir {} + 2>/dev/null || [[ ! -e $SLICE ]]
}

# enter CGROUP COMMAND...: starts the command in the cgroup, as LIFE_PID.
enter() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' enter "$@" >/dev/null 3>&- &
	LIFE_PID=$!
	STARTED_PIDS+=("$LIFE_PID")
}

# As systemd does it: each life has a cgroup of its own.
begin_life() {
	mkdir "$UNIT"
	enter "$UNIT" "$TARGETS/leaky_daemon" --requests 0 --interval-us 1000
}

end_life() {
	kill -KILL "$LIFE_PID"
	wait "$LIFE_PID" || true
	wait_until 60 rmdir "$UNIT" 2>/dev/null
}

# manage SECONDS COMMAND...: runs the command as a service. What it says is in leakrec.err.
manage() {
	"$SOURCE_DIR/test/integration/support/service_manager.py" "$PWD/told" "$@" 2>leakrec.err 3>&- &
	MANAGER_PID=$!
	STARTED_PIDS+=("$MANAGER_PID")
}

stop_manager() {
	kill -TERM "$MANAGER_PID"
	wait "$MANAGER_PID"
}

# told TEXT TIMES: has the manager been told that so often? What it is told again and again is for told_in_life.
told() {
	[[ -e told ]] && (($(grep -c -e "$1" told) >= $2))
}

# told_in_life NUMBER TEXT: has it been told that in this life of the service?
told_in_life() {
	[[ -e told ]] && awk -v number="$1" '/^start$/ { life++ } life == number' told | grep -q -e "$2"
}

is_recording_in_life() {
	told_in_life "$1" '^READY=1, WATCHDOG=1, STATUS=recording 1 process: 0 events, 0 lost$'
}

says() {
	grep -q -e "$1" "$2" 2>/dev/null
}

# True when the metrics and the state are of this life, and show the leak. On a busy machine, other causes may look like
# leaks, too. After some seconds the recording shows it also if its first window has closed, and blocks have been looked at.
life_is_judged() {
	says "^process $LIFE_PID " "$NAME.live/leaks" && says '^screen 1\. growth: ' "$NAME.live/leaks" &&
		says '^screen .*: \([4-9]\|[1-9][0-9]\)[0-9.]* s recorded' "$NAME.live/leaks" &&
		says '^leakrec_cause_leaks{.*function="query_font".*} 1$' "$NAME.prom"
}

kill_leakrec() {
	kill -KILL "$(pgrep -P "$MANAGER_PID" -x leakrec)"
	wait_until 60 told '^end -9$' 1
	wait_until 60 is_recording_in_life 5
}

# Writes the command "note", whose alerts of the leak are lines of "alerts".
write_note() {
	cat >note <<-END
		#!/bin/sh
		! grep '^	query_font+0x' >>"$PWD/lines" || echo alert >>"$PWD/alerts"
	END
	chmod +x note
}

no_parser_is_left() {
	! pgrep -s 0 -x leak-live >/dev/null
}

@test "service: a unit through three restarts and a kill -9, with one alert and the same causes" {
	require_programs
	write_note
	printf '%s\n' 'budget 50%' 'live %i.live' 'live-every 1' 'metrics %i.prom' 'on-leak ./note' >etc/leakrec.conf
	# A user's own manager can give its cgroups any name.
	enter "$SLICE/user.service/$NAME.service" sleep 1000
	OTHER_PID=$LIFE_PID
	manage 20 "$BIN/leakrec" --service "$PWD/etc/$NAME"
	wait_until 60 told "^READY=1, WATCHDOG=1, STATUS=waiting for processes of $NAME\$" 1
	for life in 1 2 3 4; do
		begin_life
		wait_until 60 is_recording_in_life "$life"
		wait_until 60 life_is_judged
		sed -n 's/^leakrec_cause_leaks\({.*function="query_font".*}\) 1$/\1/p' "$NAME.prom" >"causes.$life"
		((life < 4)) || kill_leakrec
		end_life
		wait_until 60 told '^end 0$' "$life"
		cmp causes.1 "causes.$life"
	done
	grep -q 'function="query_font",module="leaky_daemon"' causes.1
	# The fifth life of the service began while the process ran.
	wait_until 60 told_in_life 6 'STATUS=waiting for'
	stop_manager
	# They start commands.
	wait_until 60 no_parser_is_left
	kill "$OTHER_PID"
	wait "$OTHER_PID" || true
	assert_equal "alerts" "$(grep -c . alerts)" 1
	assert_equal "file" "$(grep -c '^query_font leaky_daemon$' "$NAME.live/reported")" 1
	assert_equal "stops" "$(grep -c '^STOPPING=1$' told)" 4
	run ! grep -E 'foreign|silent' told
	assert_equal "ends" "$(grep '^end' told | xargs)" "end 0 end 0 end 0 end -9 end 0 end -15"
}

@test "service: an alert whose command is missing is given when it is there, once" {
	require_programs
	printf '%s\n' 'budget 50%' 'live %i.live' 'live-every 1' 'metrics %i.prom' 'on-leak ./note' >etc/leakrec.conf
	manage 20 "$BIN/leakrec" --service "$PWD/etc/$NAME"
	begin_life
	wait_until 60 is_recording_in_life 1
	wait_until 60 life_is_judged
	wait_until 60 says 'cannot start ./note: No such file or directory' leakrec.err
	run ! grep -q '^query_font ' "$NAME.live/reported"
	write_note
	end_life
	# At the end it is started again.
	wait_until 60 says '^query_font leaky_daemon$' "$NAME.live/reported"
	begin_life
	wait_until 60 is_recording_in_life 2
	wait_until 60 life_is_judged
	end_life
	wait_until 60 told '^end 0$' 2
	stop_manager
	wait_until 60 no_parser_is_left
	assert_equal "alerts" "$(grep -c . alerts)" 1
}

# In a recording, or in the files of one, query_font is the first cause, and leaks. A file that is still being written is
# truncated, and leakparse exits with status 1. It may have been closed for a moment, and its blocks be unobserved since.
names_the_leak() {
	"$BIN/leakparse" --summary "$@" >summary.txt 2>&1 || (($? == 1)) || return
	awk -v verdicts="${VERDICTS:-growth|overdue}" '
		$0 ~ "^1\\. (" verdicts ")(, doubtful:truncated(,unobserved)?)?: " { getline; getline; found = /query_font / }
		END { exit !found }' summary.txt
}

# The same at the end of a life. If a window has closed just before, leakrec may not have looked at its blocks yet. What they
# are is then unclear. Where all of the time was observed, it is not.
still_names_the_leak() {
	names_the_leak "$@" || { grep -q ' s recorded in [0-9]* window' summary.txt && VERDICTS=unclear names_the_leak "$@"; }
}

# recording_names_the_leak NUMBER: the same of one recording in the directory.
recording_names_the_leak() {
	names_the_leak "recording/00000$1."*.data
}

# life_is_recorded NUMBER: the live parser has judged this life, and its recording shows the same.
life_is_recorded() {
	life_is_judged && recording_names_the_leak "$1"
}

@test "service: segments, across restarts of the target and of the service" {
	local life recording

	require_programs
	printf '%s\n' 'budget 50%' 'live %i.live' 'live-every 1' 'metrics %i.prom' >etc/leakrec.conf
	echo 'keep 1G' >"etc/$NAME.conf"
	manage 20 "$BIN/leakrec" --service "$PWD/etc/$NAME"
	for life in 1 2 3 4; do
		begin_life
		wait_until 60 life_is_recorded "$life"
		((life == 4)) || end_life
		((life == 4)) || wait_until 60 told '^end 0$' "$life"
	done
	kill -TERM "$(pgrep -P "$MANAGER_PID" -x leakrec)"
	wait_until 60 is_recording_in_life 5
	# The service has been started again in the fourth life.
	wait_until 60 recording_names_the_leak 5
	stop_manager
	end_life
	assert_equal "owner" "$(stat -c %u:%a recording)" 0:700
	# The earlier ones are there, too.
	for recording in 1 2 3 4 5; do
		still_names_the_leak "recording/00000$recording."*.data || fail "$recording: $(cat summary.txt)"
	done
	names_the_leak recording || fail "all: $(cat summary.txt)"
	run ! grep -e truncated -e 'did not finish' summary.txt
	run ! grep -E 'foreign|silent' told
}

@test "service: the end of the live parser is that of the recording, and both begin anew" {
	require_programs
	printf '%s\n' 'budget 50%' 'live %i.live' 'live-every 1' 'metrics %i.prom' >etc/leakrec.conf
	echo 'keep 1G' >"etc/$NAME.conf"
	manage 20 "$BIN/leakrec" --service "$PWD/etc/$NAME"
	begin_life
	wait_until 60 life_is_recorded 1
	kill -KILL "$(pgrep -s 0 -x leak-live)"
	wait_until 60 told '^end 1$' 1
	assert_equal "said" "$(grep -c 'there are no live reports any more: the recording ends, too' leakrec.err)" 1
	rm "$NAME.live/leaks" "$NAME.prom"
	wait_until 60 is_recording_in_life 2
	wait_until 60 life_is_recorded 2
	stop_manager
	end_life
	still_names_the_leak recording/000001.*.data
}

@test "service: a ring, written at the end of each life" {
	local life written

	require_programs
	printf '%s\n' 'budget 50%' 'live %i.live' 'live-every 1' 'metrics %i.prom' >etc/leakrec.conf
	printf '%s\n' 'ring 5min' 'when signal' 'when end' >"etc/$NAME.conf"
	manage 20 "$BIN/leakrec" --service "$PWD/etc/$NAME"
	for life in 1 2 3; do
		begin_life
		wait_until 60 life_is_judged
		((life < 3)) || stop_manager
		end_life
		((life == 3)) || wait_until 60 told '^end 0$' "$life"
		written=(recording/*Z.*)
		assert_equal "written" "${#written[@]}" "$life"
		still_names_the_leak "${written[-1]}" || fail "${written[*]}: $(cat summary.txt)"
	done
}

mount_disk() {
	mkdir disk
	mount -t tmpfs -o size=16m tmpfs disk || skip "tmpfs cannot be mounted"
	mkdir -m 700 disk/live
}

fill_disk() {
	mountpoint -q disk
	head -c 16M /dev/zero >disk/zeros 2>/dev/null || true
}

# The recorded process runs, without probes.
is_left_alone() {
	! [[ $(sed 's/.*) //' "/proc/$LIFE_PID/stat") == [TZ]* ]] &&
		[[ -z $(python3 "$SOURCE_DIR/test/integration/support/changed_code.py" "$LIFE_PID") ]]
}

@test "service: a full disk ends a recording, and it goes on when there is room again" {
	local nr

	require_programs
	mount_disk
	printf '%s\n' 'budget 50%' 'live %i.live' 'live-every 1' 'metrics %i.prom' >etc/leakrec.conf
	printf '%s\n' 'keep 1G' 'output disk/recording' >"etc/$NAME.conf"
	manage 20 "$BIN/leakrec" --service "$PWD/etc/$NAME"
	begin_life
	# For a second or more: after its end it may count a few ms less, and 0.2 s are too short to tell a leak.
	has_leak() { names_the_leak disk/recording && grep -q ": [0-9.]* s recorded" summary.txt; }
	wait_until 60 has_leak
	fill_disk
	wait_until 60 told '^end 1$' 3
	only_first() { [[ $(cd disk/recording && echo *) == 000001.00000001.data ]]; }
	# The one that it has started fails, and there is no other one.
	kill -STOP "$MANAGER_PID"
	wait_until 60 only_first
	wait_until 60 is_left_alone
	kill -TERM "$MANAGER_PID"
	kill -CONT "$MANAGER_PID"
	wait "$MANAGER_PID"
	# One line for each start that has failed.
	nr=$(grep -c '^leakrec: cannot write disk/recording/.*: No space left on device' leakrec.err)
	((nr >= 3 && nr <= $(grep -c '^end 1$' told)))
	still_names_the_leak disk/recording || fail "$(cat summary.txt)"
	rm told*
	manage 20 "$BIN/leakrec" --service "$PWD/etc/$NAME"
	wait_until 60 told '^end 1$' 1
	rm disk/zeros
	# The first one names it already.
	newest_names_the_leak() {
		local files=(disk/recording/*.data)

		[[ ${files[-1]} != */000001.* ]] && names_the_leak "${files[-1]%.*.data}."*.data
	}
	wait_until 60 newest_names_the_leak
	stop_manager
	end_life
}

@test "service: without a recording, a full disk costs no more than the state" {
	require_programs
	write_note
	mount_disk
	printf '%s\n' 'budget 50%' 'live disk/live' 'live-every 1' 'metrics disk/m.prom' "on-leak $PWD/note" >etc/leakrec.conf
	fill_disk
	manage 20 "$BIN/leakrec" --service "$PWD/etc/$NAME"
	begin_life
	wait_until 60 test -s alerts
	wait_until 60 says 'cannot write disk/live/reported: No space left on device' leakrec.err
	assert_equal "ends" "$(grep -c '^end' told)" 0
	# It goes on by itself, and what could not be written is.
	rm disk/zeros
	wait_until 60 test -s disk/live/reported
	wait_until 60 says '^screen 1\. growth: ' disk/live/leaks
	wait_until 60 says '^leakrec_cause_leaks{.*} 1$' disk/m.prom
	for file in disk/live disk/live/reported disk/m.prom; do
		assert_equal "messages of $file" "$(grep -c "cannot write $file: No space" leakrec.err)" 1
	done
	stop_manager
	wait_until 60 no_parser_is_left
	end_life
	assert_equal "alerts" "$(grep -c . alerts)" 1
}

@test "service: whoever hangs is not alive, and the target goes on" {
	start_target leaky_daemon --requests 0 --interval-us 100
	# Nobody reads the pipe.
	manage 3 "$BIN/leakrec" -p "$RECORDED_PID" --call-graph none -o -
	wait_until 60 told 'STATUS=recording 1 process' 1
	go_target
	wait_until 120 told '^silent$' 1
	target_runs() { [[ $(sed 's/.*) //' "/proc/$RECORDED_PID/stat") != T* ]]; }
	wait_until 60 target_runs
	stop_manager
	kill "$RECORDED_PID"
	finish_target
}

@test "service: a program that is replaced is followed, too" {
	cp "$TARGETS/leaky_daemon" server
	"$BIN/leakrec" --program "$PWD/server" -o perf.data 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 says "^leakrec: waiting for processes of $PWD/server\$" leakrec.err
	cp "$TARGETS/leaky_daemon" new
	mv new server
	./server --requests 0 >/dev/null 3>&- &
	LIFE_PID=$!
	STARTED_PIDS+=("$LIFE_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	# It is named only if it holds something.
	wait_until 60 has_grown_to perf.data $(($(stat -c %s perf.data) + 3000))
	kill "$LIFE_PID"
	wait "$LEAKREC_PID" || fail "$(cat leakrec.err)"
	"$BIN/leakparse" perf.data >leaks 2>/dev/null
	says "^process $LIFE_PID server" leaks
}

@test "service: what files say, and files that are refused" {
	run -2 "$BIN/leakrec" --service "$PWD/etc/x"
	[[ $output == *"$PWD/etc/leakrec.conf: there is no such file"* ]]
	printf 'budgett 2%%\n' >etc/leakrec.conf
	run -2 "$BIN/leakrec" --service "$PWD/etc/x"
	[[ $output == *"unknown option --budgett=2%: did you mean --budget?"* ]]
	printf 'budget 2%%\nlive state\n' >etc/leakrec.conf
	printf 'unset budget\nunit /%s\nduration 0.1\noutput -\n' "${SLICE#"$HIERARCHY/"}" >etc/x.conf
	# The last word is the command line's, but the file's target is one.
	run -2 "$BIN/leakrec" --service "$PWD/etc/x" -a
	[[ $output == *"give either"* ]]
	run -2 "$BIN/leakrec" --service "$PWD/etc/x" --size 3 --perf-events
	[[ $output == *"--size needs BPF programs"* ]]
	run -2 "$BIN/leakrec" --live state --service "$PWD/etc/x"
	[[ $output == *"--service has to be the first option"* ]]
	for name in ../x x/y .x '' 'a b' $'a\nb'; do
		run -2 "$BIN/leakrec" --service "$PWD/etc/$name"
	done
	chmod 664 etc/x.conf
	run -2 "$BIN/leakrec" --service "$PWD/etc/x"
	[[ $output == *"cannot take options from $PWD/etc/x.conf: other users can write to it"* ]]
	chmod 777 etc
	run -2 "$BIN/leakrec" --service "$PWD/etc/x"
	[[ $output == *"cannot take options from $PWD/etc: other users can write to it"* ]]
	run -2 "$BIN/leakrec" --unit ../x
	run -2 "$BIN/leakrec" --program x
}

@test "service: the journal gets priorities, others do not" {
	: >err
	stream=$(stat -c %d:%i err)
	JOURNAL_STREAM=$stream "$BIN/leakrec" --nothing 2>>err || true
	grep -q '^<3>leakrec: unknown option --nothing' err
	JOURNAL_STREAM=1:2 "$BIN/leakrec" --nothing 2>other || true
	grep -q '^leakrec: unknown option --nothing' other
}
