#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakrec@.service under Debian's systemd, with its Prometheus and node_exporter: see test/systemd/README.md.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "systemd: leakrec@ follows a unit through three restarts and alerts once" {
	# Here HOME is another folder.
	export LEAKTOOLS_ROOTS=${LEAKTOOLS_ROOTS:-$(getent passwd 0 | cut -d: -f6)/.cache/leaktools-roots}
	run "$SOURCE_DIR/test/systemd/run"
	[[ $status != 5 ]] || skip "$output"
	[[ $status == 0 ]] || fail "$output"
	# The guest's end kills leak-end in it. What that leaves, leakprobe removes, as the next recorder does.
	"$BIN/leakprobe" list >probes.txt
	run ! grep 'leakrec[0-9]*n[0-9a-f]*_' "$TRACEFS/uprobe_events"
}
