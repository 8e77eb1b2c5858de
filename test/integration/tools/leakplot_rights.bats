#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakplot, run by root: what a gnuplot that a hostile name has taken over could do, and what leakplot itself.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
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
	sleep 0.3 &
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
