#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec stops no exempt process, and records no process that was not named. Children that exist already are reported.

# shellcheck disable=SC2030,SC2031,SC2154,SC2016,SC2034,SC2094 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "exempt: leakrec does not record itself" {
	run -2 timeout -k 5 60 bash -c "exec '$BIN/leakrec' -d 1 -o self.data -p \$\$"
	[[ $output == *"cannot record process "*": that is leakrec itself"* ]] || fail "$output"
}

@test "exempt: leakrec records its own parent" {
	cat >parent.py <<-'END'
		import os, subprocess, sys
		recorder = subprocess.Popen([sys.argv[1], "-p", str(os.getpid()), "-d", "2", "-m", "8", "-o",
		                             "parent.data", "--with", "mmap"])
		while recorder.poll() is None:
		    blocks = [bytes(1000) for _ in range(1000)]
		sys.exit(recorder.returncode)
	END
	timeout -k 5 60 python3 parent.py "$BIN/leakrec" 2>leakrec.err 3>&- || fail "$(cat leakrec.err)"
	grep -q 'is never stopped: leakrec is its child' leakrec.err || fail "$(cat leakrec.err)"
}

@test "exempt: leakrec refuses a process that gets the id of one that ends during set-up" {
	for option in --call-graph=none --perf-events; do
		run -1 timeout -k 5 200 python3 "$SOURCE_DIR/test/integration/support/reuse_pid.py" \
			"$BIN/leakrec" $option -d 1 -o reuse.data 3>&-
		[[ $output == *"cannot attach: process "*" has ended, and another one has its id now; "* ]] || fail "$output"
	done
}

# A process that must not be stopped forks: what the child does before it has events is missing, and not counted.
@test "exempt: first calls that may be missing are not 0 events lost" {
	cat >parent.py <<-'END'
		import os, signal, subprocess, sys
		recorder = subprocess.Popen([sys.argv[1], "-p", str(os.getpid()), "-o", "perf.data"],
		                            stderr=subprocess.PIPE, text=True)
		for line in recorder.stderr:
		    sys.stderr.write(line)
		    if "Ctrl-C ends it" in line:
		        for _ in range(3):
		            if os.fork() == 0:
		                os._exit(0)
		            os.wait()
		        recorder.send_signal(signal.SIGINT)
		sys.exit(recorder.wait())
	END
	timeout -k 5 60 python3 parent.py "$BIN/leakrec" 2>leakrec.err 3>&- || fail "$(cat leakrec.err)"
	tail -n 1 leakrec.err | grep -q '[0-9] s, 0 or more events lost' || fail "$(cat leakrec.err)"
	"$BIN/leakparse" --summary -i perf.data >summary.txt
	grep -qE ' frees?, 0 or more events lost' summary.txt || fail "$(cat summary.txt)"
	parse
	assert_summary lost_more 1
	! grep -q unguarded_tasks leaks || fail "leakparse doubts what is held"
}

# Not the shell that it was forked from.
waits_for_pipe() {
	grep -q 'exec <pipe' "/proc/$1/cmdline" && grep -q ' r-xp .*/libc\.so' "/proc/$1/maps"
}

@test "exempt: the reader of the recording is not recorded" {
	local reader

	mkfifo pipe
	# It opens the pipe when leakrec does, and must have its libraries by then.
	bash -c 'exec <pipe; cat >/dev/null; exit' 3>&- &
	reader=$!
	STARTED_PIDS+=("$reader")
	wait_until 60 waits_for_pipe "$reader"
	run -1 timeout -k 5 60 bash -c "exec '$BIN/leakrec' -d 1 -o - -p $reader 2>&1 >pipe"
	[[ $output == *"cannot record process $reader: it reads the recording"* ]] || fail "$output"
	wait_until 60 has_ended "$reader"
}

# An orphan, adopted by init, which opens files all the time. It ends at the latest when the test's files are removed.
start_orphan() {
	mkfifo nothing
	bash -c 'setsid bash -c "echo \$\$ >orphan.pid; while [[ -p nothing && ! -e end ]]; do read -rt 0.01 <>nothing; done" &' \
		>/dev/null 2>&1 3>&-
	wait_until 60 test -s orphan.pid
	ORPHAN_PID=$(<orphan.pid)
	wait_until 60 grep -q '^PPid:[[:space:]]*1$' "/proc/$ORPHAN_PID/status" || skip "init has no orphans here"
}

@test "exempt: init's other children are not recorded" {
	require_program perf
	local word

	start_orphan
	start_target orphans
	attach --with fd --call-graph none
	go_target
	read -r -t 120 -u "$TARGET_OUT" _ word _
	assert_equal "what the target does" "$word" forked
	nap 1 # several rounds of leakrec, and several checks by its watchdog
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	echo >end
	go_target
	finish_target
	assert_equal "events of the orphan" \
		"$(perf script -i perf.data -F pid,event 2>/dev/null | awk -v pid="$ORPHAN_PID" '$1 == pid' | wc -l)" 0
}

@test "exempt: existing children are reported" {
	local parent child

	bash -c 'sleep 1000 & echo $! >child.pid; wait' 3>&- &
	parent=$!
	STARTED_PIDS+=("$parent")
	wait_until 60 test -s child.pid
	child=$(<child.pid)
	STARTED_PIDS+=("$child")
	"$BIN/leakrec" -p "$parent" -d 0.1 -o perf.data 2>leakrec.err
	grep -q "an existing child, process $child, is not recorded; --children" leakrec.err ||
		fail "$(cat leakrec.err)"
	"$BIN/leakrec" -p "$parent,$child" -d 0.1 -o perf.data 2>leakrec.err
	! grep -q 'not recorded' leakrec.err || fail "$(cat leakrec.err)"
	kill_now "$parent" "$child"
}

@test "exempt: --children records the children that exist, and theirs" {
	cat >prefork.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>

		/* Loses ten blocks when it has read a byte. */
		static void work(int generation)
		{
			char byte;

			printf("%d\n", (int)getpid());
			fflush(stdout);
			if (read(0, &byte, 1) != 1)
				_exit(1);
			for (int i = 0; i < 10; i++)
				if (!malloc(1000 + generation))
					_exit(2);
			if (write(1, "done\n", 5) == 5)
				pause();
		}

		int main(void)
		{
			for (int i = 0; i < 5; i++) {
				if (fork())
					continue;
				for (int k = 0; k < 2; k++)
					if (!fork())
						work(2);
				work(1);
			}
			work(0);
		}
	END
	gcc -o prefork prefork.c
	mkfifo lines
	./prefork <>lines >said 3>&- &
	RECORDED_PID=$!
	STARTED_PIDS+=("$RECORDED_PID")
	wait_until 60 eval '(($(wc -l <said) == 16))'
	cp said pids
	attach
	grep -q '5 existing children, processes [0-9,]*, are not recorded; --children' leakrec.err
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	attach --children
	run ! grep 'not recorded' leakrec.err
	grep -q 'recording 16 processes' leakrec.err
	printf '%16s' '' >lines
	wait_until 60 eval '(($(grep -c done said) == 16))'
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	parse
	mapfile -t pids <pids
	kill_now "${pids[@]}"
	assert_equal "leaks by size" "$(awk '$1 == "leak" && $2 > 999 && $2 < 1003 { n[$2]++ }
		END { print n[1000], n[1001], n[1002] }' leaks)" "10 50 100"
}
