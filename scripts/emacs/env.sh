# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh disable=SC2034 # used by the scripts that source this
# Settings and helpers that all scripts in this folder share; sourced, not run.
#
# Everything the example starts lives below one private directory: the daemon's socket, its HOME,
# the X server's cookie. So it never meets the Emacs that its user works in.

emacs=${EMACS:-emacs-lucid}
name=leaky
uid=$(id -u)
state=${LEAK_EMACS_DIR:-${XDG_RUNTIME_DIR:-/tmp}/leak-emacs-$uid}
# Emacs puts its socket in $XDG_RUNTIME_DIR/emacs (server-socket-dir in lisp/server.el).
socket=$state/emacs/$name

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# Runs a command as root. The daemon runs as an ordinary user, but the tools that inspect it need root.
as_root() {
	if [ "$uid" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# Makes the private directory. Its name in /tmp is predictable, so a directory that somebody else has made is rejected.
make_state() {
	mkdir -m 0700 "$state" 2>/dev/null || true
	if [ -L "$state" ] || [ ! -d "$state" ] || [ ! -O "$state" ]; then
		die "$state: not a directory of yours: remove it, or set LEAK_EMACS_DIR to another"
	fi
	mkdir -p "$state/home" "$state/emacs"
	chmod 0700 "$state" "$state/emacs"
}

# Evaluates Lisp in the daemon and prints the value; returns when the evaluation is done.
lisp() {
	emacsclient -s "$socket" --eval "$1"
}

is_running() {
	[ -S "$socket" ] && lisp t >"$state/ping" 2>&1
}

need_daemon() {
	is_running || die "no Emacs daemon: start one with ${0%/*}/daemon"
}

# The display that the daemon draws on: a user's own, or the Xvfb that `daemon` started.
daemon_display() {
	cat "$state/display"
}

daemon_pid() {
	lisp '(emacs-pid)'
}

# is_process PID NAME: true if PID exists and is called NAME: the kernel reuses PIDs.
is_process() {
	[ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ]
}

# wait_end PID: waits ten seconds at most for a process to end. A zombie has ended.
wait_end() {
	for _ in $(seq 100); do
		grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null || return 0
		sleep 0.1
	done
	return 1
}

rss_kib() {
	awk '/^VmRSS:/ { print $2 }' "/proc/$1/status"
}
