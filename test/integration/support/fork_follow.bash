# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Checks of fork_storm's recordings. After helpers.bash.

# assert_storm [SIZE...]: compares the held blocks of these sizes; by default those that only fork_storm's own processes
# hold.
assert_storm() {
	local size wrong=0 sizes=(4000 4100 4200)

	((!$#)) || sizes=("$@")
	for size in "${sizes[@]}"; do
		assert_equal "held blocks of $size bytes" "$(grep -c "^leak $size " leaks)" \
			"$(truth "held_$size")" || wrong=1
	done
	assert_summary lost 0 || wrong=1
	((!wrong)) || fail "$(cat leakrec.err)"
	assert_no_unexpected || fail "$(cat leakrec.err)"
}
