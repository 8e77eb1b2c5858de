# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Checks of recordings of the targets throwing, throwing_own and throwing_static. After helpers.bash.

# The sizes that the target reports. Other blocks, of the target and its libraries, do not count.
assert_blocks() {
	grep -E '^truth held_300[0-9] ' truth | sed -E 's/^truth held_([0-9]+) /\1 /' | sort >sizes.truth
	awk '$1 == "leak" && $2 > 3000 && $2 < 3010 { n[$2]++ } END { for (s in n) print s, n[s] }' leaks |
		sort >sizes.leaks
	[[ -s sizes.truth ]]
	diff sizes.truth sizes.leaks || fail "leaks by size differ (<: the target's, >: leakparse's)"
	assert_summary lost 0
	for key in free_unknown double_free still_held realloc_unknown; do
		assert_summary "$key" 0
	done
	# As many exceptions were thrown as without a recorder.
	assert_equal "exceptions" "$(truth thrown)" 520
}

# --- With another allocator ---

LIBS=/usr/lib/x86_64-linux-gnu

no_return_probes_on_operators() {
	! "$BIN/leakprobe" add --pid "$RECORDED_PID" --dry-run | grep -E '^r:[^ ]*/(operator_)?new' ||
		fail "a return probe on an operator"
}

# with_allocator LIBRARY [OPTION...]: attaches to the target, which has that library before libc.
with_allocator() {
	[[ -e $LIBS/$1 ]] || skip "no $1"
	LD_PRELOAD=$LIBS/$1 start_target throwing
	no_return_probes_on_operators
	attach "${@:2}"
	go_target
	finish_target
	finish_leakrec
	parse
	assert_blocks
}
