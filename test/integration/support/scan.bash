# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Programs of test/targets/reach/, which leakscan scans. They need no uprobes.

setup() {
	[[ $(id -u) == 0 || $(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0) == 0 ]] ||
		skip "only root may look into another process"
	cd "$BATS_TEST_TMPDIR" || return
	STARTED_PIDS=()
}

teardown() {
	local pid

	for pid in "${STARTED_PIDS[@]}"; do
		has_ended "$pid" || kill -KILL "$pid" || true
	done
	wait
}

says_ready() {
	grep -q "^${REACH_WORD:-ready}" truth || has_ended "$1"
}

# start_reach TARGET [ARG...]: starts it, and returns when it is ready, or has said REACH_WORD. What it said is in truth.
start_reach() {
	rm -f reach.in
	mkfifo reach.in
	"$TARGETS/$1" "${@:2}" <reach.in >truth 2>reach.err 3>&- &
	REACH_PID=$!
	STARTED_PIDS+=("$REACH_PID")
	exec {REACH_IN}>reach.in
	wait_until 60 says_ready "$REACH_PID"
	grep -q "^${REACH_WORD:-ready}" truth || fail "$1 ended before it was ready: $(cat reach.err)"
}

# Afterwards, what is scanned is the child process that has said that it is ready.
scan_child() {
	REACH_PID=$(awk '/^ready/ { print $2 }' truth)
}

# It ends with its standard input.
stop_reach() {
	exec {REACH_IN}>&-
	wait_until 60 has_ended "$REACH_PID"
}

# leakscan [OPTION...]: scans what start_reach has started. On a busy machine, its threads may take long to stop.
leakscan() {
	"$BIN/leakscan" -p "$REACH_PID" --pause-limit 30 "$@"
}

# Compares `leakscan --blocks` in the file blocks with what the target said. "NAME=CLASS" are cases where another
# class is right; "any-lost=CLASS" stands for all that are lost in one way or another.
compare_cases() {
	awk -v exceptions="$*" '
		BEGIN {
			count = split(exceptions, list, " ")
			for (i = 1; i <= count; i++) {
				split(list[i], pair, "=")
				other[pair[1]] = pair[2]
			}
		}
		FNR == NR { class[$3] = $1; next }
		$1 == "case" {
			expected = $2 in other ? other[$2] : $3
			if ("any-lost" in other && expected ~ /^(lost|cycle|lost-through)$/)
				expected = other["any-lost"]
			nr++
			if (class[$4] != expected) {
				print $2 ": " class[$4] ", not " expected
				wrong++
			}
		}
		END { print nr + 0 " cases"; exit wrong > 0 || nr < 20 }' blocks truth
}
