# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154,SC2034 # as in bad_input.bats
#
# Recordings of all processes, or of those of the test's own cgroup, $HIERARCHY/$CGROUP. After helpers.bash.

setup() {
	common_setup
	require_program perf
	HIERARCHY=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	if [[ -z $HIERARCHY ]]; then
		mkdir cgroup2
		mount -t cgroup2 none cgroup2
		HIERARCHY=$PWD/cgroup2
	fi
	CGROUP=leaktools-test-$$-$BATS_TEST_NUMBER
	mkdir "$HIERARCHY/$CGROUP" "$HIERARCHY/$CGROUP/inner"
}

teardown() {
	local status=0

	common_teardown || status=1
	wait_until 60 remove_cgroup || status=1
	return $status
}

remove_cgroup() {
	rmdir "$HIERARCHY/$CGROUP/inner" "$HIERARCHY/$CGROUP" 2>/dev/null || [[ ! -e $HIERARCHY/$CGROUP ]]
}

# enter CGROUP COMMAND...: executes the command, which is in the cgroup from its first instruction.
enter() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	exec sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' enter "$HIERARCHY/$1" "${@:2}"
}

# The target is moved while it waits.
start_target_there() {
	start_target "$@"
	echo "$RECORDED_PID" >"$HIERARCHY/$CGROUP/cgroup.procs"
}

stop_leakrec() {
	kill -INT "$LEAKREC_PID"
	finish_leakrec
	parse
}

# attach_all OPTION...: starts leakrec in the background, and returns when it records.
attach_all() {
	: >leakrec.err
	"$BIN/leakrec" -o perf.data "$@" 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	grep -q '^leakrec: recording ' leakrec.err || fail "leakrec ended before it recorded: $(cat leakrec.err)"
}
