# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Drives leakrec --top on a daemon. After helpers.bash.

# drive CASE [OPTION...]: on RECORDED_PID; the screen at the end is in the file screen. A machine so busy that leakrec
# gets no CPU for longer than a process may be held loses events, and says so in place of the message that is expected.
drive() {
	(
		prefer "$BASHPID"
		PYTHONDONTWRITEBYTECODE=1 exec timeout 300 python3 "$SOURCE_DIR/test/integration/support/drive_top.py" \
			"$BIN/leakrec" "$1" "$RECORDED_PID" "${@:2}" >screen 3>&-
	) || fail "$1: $(cat screen)"
}

start_daemon() {
	start_target leaky_daemon --requests 1000000 --interval-us 1000
	go_target
}

end_daemon() {
	kill_now "$RECORDED_PID"
	wait "$TARGET_PID" 2>/dev/null || true
	rm -f target.in target.out
}
