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
