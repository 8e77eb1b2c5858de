# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # as in bad_input.bats
#
# What a tool says of bad input. After helpers.bash.

# refused STATUS WORDS COMMAND...: the command exits with the status, prints one line on stderr that begins with the
# tool's name and matches the words in any case, and nothing on stdout.
refused() {
	local expected=$1 words=${2,,}

	shift 2
	run --separate-stderr "$@"
	assert_equal "status of $*" "$status" "$expected"
	[[ $stderr != *$'\n'* ]] || fail "several lines on stderr: $stderr"
	[[ $stderr =~ ^leak(rec|probe|parse|follow|plot):\  ]] || fail "no tool's name: $stderr"
	[[ ${stderr,,} =~ $words ]] || fail "'$words' is not in: $stderr"
	# leakfollow prints its header before it has read anything.
	[[ $1 == */leakfollow ]] || assert_equal stdout "$output" ""
}
