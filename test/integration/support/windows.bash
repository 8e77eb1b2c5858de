# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Recordings in windows (leakrec --budget) that go on, in stream.data.

# Prints the samples of an event of leakrec's own.
own_samples() {
	perf script -i stream.data --ns -F time,event,trace 2>/dev/null | grep "leakrec:$1:"
}

is_open() {
	own_samples window | tail -n 1 | grep -q "open=1"
}

is_shut() {
	own_samples window | tail -n 1 | grep -q "open=0"
}

# Prints how many samples of memory there are: one comes each second, whatever else happens.
nr_turns() {
	own_samples memory | wc -l
}

has_turns() {
	(($(nr_turns) >= $1))
}

stands_still() {
	! grep -qs '^State:[[:space:]]*[^TZX[:space:]]' "/proc/$LEAKREC_PID"/task/*/status
}

# leave_descriptors NR: leaves leakrec no more descriptors than it has now, without its links, and so many. It stands
# still meanwhile: it may close a link, which then seems to be another descriptor.
leave_descriptors() {
	local nr room=0

	kill -STOP "$LEAKREC_PID"
	wait_until 60 stands_still
	for ((nr = 0; room < $1; nr++)); do
		[[ -e /proc/$LEAKREC_PID/fd/$nr ]] && ! grep -qs uprobe_multi "/proc/$LEAKREC_PID/fdinfo/$nr" || room=$((room + 1))
	done
	prlimit --pid "$LEAKREC_PID" --nofile="$nr:"
	kill -CONT "$LEAKREC_PID"
}
