#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakplot, run by root: what a gnuplot that a hostile name has taken over could do, and what leakplot itself.

# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # as in bad_input.bats; SC2016: the fake gnuplot expands it
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	[[ $EUID -eq 0 ]] || skip "not root"
	leakplot="$BIN/leakplot"
	cd "$BATS_TEST_TMPDIR" || return
	unset DISPLAY WAYLAND_DISPLAY
	echo '# leaks 1' >leaks
	echo 'leak 3072 0x1000 101.500000000 10 4165 4165 emacs malloc 13' >>leaks
	# All users reach this directory.
	OPEN=$(mktemp -d)
	chmod 777 "$OPEN"
}

teardown() {
	[[ -z ${READER_PID:-} ]] || kill_now "$READER_PID"
	[[ -z ${OPEN:-} ]] || rm -rf "$OPEN"
}

# status_is FIELD VALUE: what /proc/PID/status has.
status_is() {
	local name values

	while IFS=$':\t' read -r name values; do
		[[ $name != "$1" ]] || break
	done <"/proc/$READER_PID/status"
	[[ ${values//$'\t'/ } == "$2" ]]
}

@test "leakplot's rights: what reads the file has none, and ends with its broker" {
	local broker

	mkfifo input
	"$leakplot" -o p.png - <input >output 2>messages 3>&- &
	READER_PID=$!
	exec {input}>input
	wait_until 60 status_is Seccomp 2
	status_is NoNewPrivs 1
	status_is Uid "65534 65534 65534 65534"
	status_is CapPrm 0000000000000000
	assert_equal "descriptors" "$(find "/proc/$READER_PID/fd" -type l | wc -l)" 4
	read -r broker _ <"/proc/$READER_PID/task/$READER_PID/children" || true
	kill -KILL "$broker"
	cat leaks >&"$input"
	exec {input}>&-
	# Nobody draws and nobody writes.
	wait "$READER_PID" && fail "it has drawn"
	READER_PID=
	assert_equal "message" "$(<messages)" "leakplot: warning: leak-broker, which opens files for this process, has ended: \
it was killed, or it failed; run this again"
}

@test "leakplot's rights: a reader that is killed leaves no gnuplot and no broker" {
	local broker

	fake_gnuplot
	sed -i 's/^while read -r name values/[[ -z $ENDLESS ]] || exec sleep 1000\n&/' "$OPEN/gnuplot"
	ENDLESS=1 PATH=$OPEN:$PATH "$leakplot" --term qt leaks >output 2>messages 3>&- &
	READER_PID=$!
	wait_until 60 status_is Seccomp 2
	read -r broker _ <"/proc/$READER_PID/task/$READER_PID/children" || true
	wait_until 60 has_child "$broker" sleep
	kill_now "$READER_PID"
	READER_PID=
	wait_until 60 has_ended "$broker"
	wait_until 60 has_ended "$CHILD"
}

# has_child PID NAME: sets CHILD.
has_child() {
	read -r CHILD _ <"/proc/$1/task/$1/children" || true
	[[ -n $CHILD && $(<"/proc/$CHILD/comm") == "$2" ]]
}

@test "leakplot's rights: files belong to who called sudo" {
	export SUDO_UID=12345 SUDO_GID=12345
	"$leakplot" -o p.png --save saved leaks
	assert_equal "owners" "$(stat -c %u p.png saved saved/leaks.gnuplot saved/leaks-series0.dat | sort -u)" 12345
	# Its own files again, and a file of root's that is in the way.
	"$leakplot" -o p.png --save saved leaks
	echo old >root.png
	chown 1 root.png
	run -1 "$leakplot" -o root.png leaks
	assert_equal "message" "$output" "leakplot: cannot write root.png: it belongs to another user; remove it, or name another file"
	assert_equal "file" "$(<root.png)" old
}

@test "leakplot's rights: inputs that are pipes and links" {
	"$leakplot" --term dumb leaks >direct
	"$leakplot" --term dumb <(cat leaks) >piped
	cmp direct piped
	ln -s leaks link
	"$leakplot" --term dumb link >linked
	cmp direct linked
	run -1 "$leakplot" --term dumb not/there
	assert_equal "message" "$output" "leakplot: cannot read not/there: No such file or directory"
	ln -s /etc/shadow secret
	run -1 "$leakplot" --term dumb secret
	[[ ${#lines[@]} -eq 1 && $output != *root* ]] || fail "$output"
}

# fake_gnuplot: one that says as its error what it has and what it gained. It can start nothing, so all is the shell's.
fake_gnuplot() {
	cat >"$OPEN/gnuplot" <<-'END'
		#!/bin/bash
		read -r -d '' script <"$2"
		if [[ $script == *GPVAL_TERMINALS* ]]; then
			echo " dumb qt pngcairo "
			exit
		fi
		while read -r name values; do
			case $name in
			Uid: | CapPrm: | NoNewPrivs: | Seccomp:) has+=" ${name,,}${values%%[[:blank:]]*}" ;;
			esac
		done </proc/self/status
		exec 5>&2 2>/dev/null
		[[ ! -r /etc/shadow ]] || gained+=" shadow"
		kill -0 "$PPID" && gained+=" kill"
		true 6<>/dev/udp/127.0.0.1/9 && gained+=" socket"
		for fd in {6..30}; do
			[[ ! -e /proc/self/fd/$fd ]] || gained+=" descriptor"
		done
		read -r cookie <"${XAUTHORITY:-/not/there}" && gained+=" cookie:$cookie"
		echo "has$has; gained:${gained:- nothing}" >&5
		# The shell ends if it cannot.
		(exit 0)
		echo "has$has; gained:$gained fork" >&5
		exit 3
	END
	chmod 755 "$OPEN/gnuplot"
}

@test "leakplot's rights: gnuplot that is taken over" {
	fake_gnuplot
	PATH=$OPEN:$PATH run -1 "$leakplot" -o p.png leaks
	assert_equal "it" "$output" \
		"leakplot: gnuplot failed: has uid:65534 capprm:0000000000000000 nonewprivs:1 seccomp:2; gained: nothing"
}

@test "leakplot's rights: gnuplot with a window has what its display needs, and no more" {
	fake_gnuplot
	echo secret >cookies
	chmod 600 cookies
	XAUTHORITY=$PWD/cookies PATH=$OPEN:$PATH run -1 "$leakplot" --term qt leaks
	assert_equal "it" "$output" \
		"leakplot: gnuplot failed: has uid:65534 capprm:0000000000000000 nonewprivs:1 seccomp:2; gained: socket cookie:secret fork"
}

@test "leakplot's rights: --mem's gnuplot" {
	fake_gnuplot
	sleep 3 &
	PATH=$OPEN:$PATH run -1 "$leakplot" --mem $! --interval 50 -o p.png
	[[ $output == *"uid:65534"*"gained: nothing" ]] || fail "$output"
}

@test "leakplot's rights: a gnuplot that only root may execute" {
	fake_gnuplot
	chmod 700 "$OPEN/gnuplot"
	PATH=$OPEN run -1 "$leakplot" -o p.png leaks
	assert_equal "message" "$output" \
		"leakplot: cannot start gnuplot: all users must be able to execute it: Permission denied"
}
