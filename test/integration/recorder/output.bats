#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Full disks, late readers and readers that never read: everything is kept that can be kept, and leakrec ends when it is
# told to. held_back.bats tests the effects on targets, without -z.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn

setup() {
	common_setup
}

teardown() {
	common_teardown
}

# start_own_churn ARG...: starts endless_churn with a libc of its own, whose probes no other process uses.
start_own_churn() {
	own_libc
	start_churn "$@"
}

# --- Readers ---

@test "output: a reader that comes late, -z: memory does not grow" {
	mkfifo pipe go
	{
		read -r _ <go
		exec "$BIN/leakparse" >leaks 2>leakparse.err
	} <pipe 3>&- &
	READER_PID=$!
	STARTED_PIDS+=("$READER_PID")
	start_own_churn --threads 4 --leak-every 1000
	attach -z -o - --call-graph fp >pipe
	go_target
	wait_until 60 was_held
	(($(anonymous_kb) < 48 << 10)) || fail "leakrec has $(anonymous_kb) KiB of memory"
	echo >go
	assert_advances
	finish_churn
	finish_leakrec
	wait "$READER_PID" || fail "leakparse: $(cat leakparse.err)"
	grep -q ' lost, paused ' leakrec.err
	assert_equal "recorded and lost" $(($(summary events) + $(end_line lost))) \
		$(($(truth malloc) + $(truth free)))
	# Unless the machine took longer than a process may be stopped.
	(($(truth long_stops) > 0)) || assert_truth
}

@test "output: a closed standard output is seen before a probe is placed" {
	local status=0

	"$BIN/leakrec" -o - -- touch ran 2>leakrec.err >&- || status=$?
	assert_equal "status" "$status" 1
	assert_equal "messages" "$(grep -v '^leakrec: warning: ' leakrec.err)" \
		"leakrec: cannot write to standard output: Bad file descriptor"
	[[ ! -e ran ]]
}

# A socket, which sshd gives its commands, stays blocking, and nothing reads from it.
@test "output: Ctrl-C twice ends leakrec though write() hangs" {
	start_own_churn --threads 4
	perl -MSocket -e '
		socketpair(my $unread, my $out, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die;
		my $pid = fork() // die;
		if (!$pid) {
			open(STDOUT, ">&", $out) or die;
			exec(@ARGV) or die;
		}
		close($out);
		open(my $file, ">", "leakrec.pid.new") or die;
		print $file "$pid\n";
		close($file);
		rename("leakrec.pid.new", "leakrec.pid");
		waitpid($pid, 0);
		exit($? >> 8);
	' "$BIN/leakrec" -p "$RECORDED_PID" -m 512 -o - --call-graph dwarf 2>leakrec.err 3>&- &
	PERL_PID=$!
	STARTED_PIDS+=("$PERL_PID")
	wait_until 60 test -e leakrec.pid
	LEAKREC_PID=$(cat leakrec.pid)
	wait_until 60 is_recording "$LEAKREC_PID"
	go_target
	wait_until 60 has_made 5000 # by far more than the socket takes
	wait_until 60 was_held
	kill -INT "$LEAKREC_PID"
	wait_until 60 contains leakrec.err 'Ctrl-C drops it'
	# Half a second later leakrec drops it by itself, and ends.
	kill -INT "$LEAKREC_PID" 2>/dev/null || true
	wait_until 60 has_ended "$LEAKREC_PID"
	wait "$PERL_PID" && fail "leakrec ended with status 0"
	assert_runs
	assert_probes_go
	finish_churn
}

# --- Disks ---

# full_disk SIZE OPTION...: records the running target to a disk of that size until the disk is full.
full_disk() {
	mkdir -p mnt
	cat >full <<-'END'
		mount -t tmpfs -o size="$3" none mnt
		timeout 300 "$1/leakrec" -p "$2" -m 512 -o mnt/perf.data "${@:4}" 2>leakrec.err 3>&-
		echo $? >status
		[[ ! -e mnt/perf.data ]] || cp mnt/perf.data perf.data
	END
	unshare -m --propagation private bash full "$BIN" "$RECORDED_PID" "$@"
	assert_equal "leakrec's status" "$(cat status)" 1
	assert_equal "lines about it" "$(grep -ci 'no space left' leakrec.err)" 1
	assert_runs
	assert_no_probes_left
}

@test "output: a full disk, -z: whole records are read" {
	start_own_churn --threads 4 --leak-every 10
	go_target
	assert_runs
	full_disk 2m -z --call-graph fp
	finish_churn
	"$BIN/leakparse" <perf.data >leaks 2>leakparse.err || fail "$(cat leakparse.err)"
	grep -q '^leak 3072 ' leaks
	# Unless the machine took longer than a process may be stopped.
	(($(truth long_stops) > 0)) || assert_summary lost 0
	assert_summary truncated 0
	# Most of the 2 MiB of compressed records are kept.
	(($(summary events) > 20000)) || fail "$(summary events) events only"
	require_program perf
	perf script -i perf.data -F event >script 2>script.err
	assert_equal "events that perf script prints" \
		"$(LC_ALL=C grep -cE '(leakrec[0-9]+|leakprobe)_[^ ]*:' script)" "$(summary events)"
}

@test "output: a disk that is full before the first record" {
	start_own_churn --threads 1
	go_target
	assert_runs
	full_disk 8k --record-by perf
	# Before it placed a probe.
	assert_equal "lines" "$(grep -c . leakrec.err)" 1
	[[ ! -e perf.data ]] || fail "there is a file: $(ls -l perf.data)"
	finish_churn
}

# --- The writing thread ---

@test "output: -z, leakrec is killed, and whole records are read" {
	start_own_churn --threads 4 --leak-every 100
	go_target
	start_recorder -z -o killed.data --call-graph dwarf
	wait_until 60 is_recording "$LEAKREC_PID"
	wait_until 60 has_made $(($(progress) + 50000))
	kill_recorder
	assert_readable killed.data
	grep -q '^leak 3072 ' leaks
	assert_next_recorder_tidies
	finish_churn
}

# check_rights CAPABILITIES OPTION...: leakrec has these capabilities and no others.
check_rights() {
	local task tasks=0 writers=0

	start_target leaky_daemon --requests 60
	attach "${@:2}"
	for task in "/proc/$LEAKREC_PID/task"/*; do
		tasks=$((tasks + 1))
		# CAP_KILL continues stopped targets, CAP_SYS_NICE lets the end not wait for busy CPUs, CAP_PERFMON
		# opens events that children inherit, and CAP_LEASE is for files that are overwritten. The writing
		# thread needs no capability.
		if [[ ${task##*/} == "$LEAKREC_PID" ]]; then
			grep -qE "^CapPrm:[[:space:]]0*$1\$" "$task/status"
		else
			writers=$((writers + 1))
			# The thread drops them itself when it first runs.
			wait_until 60 grep -qE '^CapPrm:[[:space:]]0*$' "$task/status"
			# All signals except SIGKILL, SIGSTOP and the two that the C library uses itself.
			grep -qE '^SigBlk:[[:space:]]fffffffe7ffbfeff$' "$task/status"
		fi
		grep -qE '^CapBnd:[[:space:]]0*(20)?$' "$task/status"
	done
	assert_equal "threads that write" $writers 1
	go_target
	finish_target
	finish_leakrec
	parse
	assert_truth
}

@test "output: no thread of leakrec keeps capabilities, and only one gets signals" {
	check_rights 10800020 --perf-events --call-graph fp
}

# These capabilities read the code of other users' processes, in containers, and replaced on disk, to unwind, and to
# find allocators that are mapped later.
@test "output: to unwind, leakrec keeps only the right to read code" {
	check_rights 14010880024
}

@test "output: to look for allocators, leakrec keeps only the right to read code" {
	check_rights 14010880024 --call-graph fp
}
