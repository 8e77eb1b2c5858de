#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# A SIGKILL at the wrong moment leaves no breakpoint in a process: for leakrec while it places its probes, and for
# leak-end while it removes them.

# shellcheck disable=SC2030,SC2031,SC2153,SC2154 # as in ending.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/churn
load ../support/ending
load ../support/system_wide

MAPPERS=300 # with so many processes, the kernel needs a while to place a probe

eval "system_wide_$(declare -f setup)"

setup() {
	system_wide_setup
	own_libc
	declare -gA OTHERS=()
}

# kill_at_change COMMAND...: starts leakrec by the command and kills it when libc's code in the target changes. Without a
# command, ends leakrec, and kills its leak-end. Looks at the allocator's code only, because it looks very often.
kill_at_change() {
	local code

	code=$(nm -D --defined-only lib/libc.so.6 | sort |
		awk '$3 ~ /^(malloc|free|calloc|realloc|memalign)@/ { first = first ? first : $1; last = $1 } END { print first, last }')
	# leakrec has a higher priority than ordinary processes while it places probes.
	# shellcheck disable=SC2016,SC2086 # expanded by perl; two words
	chrt --reset-on-fork --rr 1 perl -e 'use Time::HiRes qw(usleep time);
		my ($pid, $recorder, $first, $last, @command) = @ARGV;
		open my $maps, "<", "/proc/$pid/maps" or die;
		open my $mem, "<:raw", "/proc/$pid/mem" or die;
		while (<$maps>) {
			($from, $offset) = /^(\w+)-\w+ r-xp (\w+) .*\/lib\/libc\.so/ and last;
		}
		$from = hex($from) - hex($offset) + hex $first;
		sub code { sysseek $mem, $from, 0; sysread $mem, my $now, hex($last) - hex($first) + 1 or die; $now }
		my ($before, $victim) = code();
		if (@command) {
			$victim = fork // die;
			exec @command or die unless $victim;
		}
		kill "INT", $recorder unless $victim;
		until ($victim) {
			open my $children, "<", "/proc/$recorder/task/$recorder/children" or exit;
			for (split " ", readline($children) // "") {
				open my $comm, "<", "/proc/$_/comm" or next;
				$victim = $_ if (readline($comm) // "") eq "leak-end\n";
			}
			usleep 300 unless $victim; # the kernel needs this CPU, too
		}
		my $end = time + 60;
		usleep 500 while code() eq $before && time < $end && kill 0, $victim;
		usleep rand 2000;
		kill "KILL", $victim;
		wait' "$RECORDED_PID" "${LEAKREC_PID:-0}" $code "$@" 3>&-
}

# While the kernel removes the probes of a process that ends, it has no directory any more: exit_task_work() comes after
# exit_fs() in do_exit(), kernel/exit.c (5.15 to 6.18). Those of other tests were seen in another directory before.
none_left() {
	local pid

	for pid in $(pgrep '^leak'); do
		if [[ -e /proc/$pid/cwd && ! /proc/$pid/cwd -ef . ]]; then
			OTHERS[$pid]=
		elif [[ ! -v OTHERS[$pid] || -e /proc/$pid/cwd ]]; then
			has_ended "$pid" || return
		fi
	done 2>/dev/null
}

# The next recorder would remove what is left, so look each time.
assert_nothing_left() {
	wait_until 60 none_left
	# A kernel thread may remove the last ones (bpf_link_put(), kernel/bpf/syscall.c, 6.18).
	wait_until 60 is_unprobed || fail "breakpoints are left: $(dmesg | grep 'leaking uprobe' | tail -n 1)"
}

@test "killed: leakrec, while it places probes" {
	local pids=()

	start_churn --resting --threads 1
	echo "$RECORDED_PID" >"$HIERARCHY/$CGROUP/cgroup.procs"
	# The kernel places breakpoints in all processes that map the file.
	for _ in $(seq $MAPPERS); do
		LD_LIBRARY_PATH=$PWD/lib sleep 1000 3>&- &
		pids+=("$!")
	done
	STARTED_PIDS+=("${pids[@]}")
	for _ in {1..6}; do
		kill_at_change "$BIN/leakrec" --cgroup "$CGROUP" -d 10 -o perf.data 2>leakrec.err
		assert_nothing_left
	done
	kill_now "${pids[@]}"
	go_target
	finish_churn
}

@test "killed: leak-end, while it removes probes" {
	start_churn --resting --threads 2
	go_target
	for _ in {1..8}; do
		attach
		kill_at_change
		wait "$LEAKREC_PID" || true
		assert_nothing_left
	done
	finish_churn
}
