# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Targets that use another allocator than that of the C library they were linked with. After helpers.bash.

# library PATTERN: prints the path of the first shared library with such a name that ld.so finds.
library() {
	local name path

	while read -r name path; do
		# shellcheck disable=SC2053 # a pattern
		[[ $name != $1 ]] || break
	done < <(ldconfig -p | awk '{ print $1, $NF }')
	[[ -z $name ]] || echo "$path"
}

# with_library NAME TARGET [ARG...]: starts the target with that library preloaded.
with_library() {
	PRELOADED=$(library "$1")
	[[ -n $PRELOADED ]] || fail "$1 is not installed; scripts/setup --test installs it"
	LD_PRELOAD=$PRELOADED start_target "${@:2}"
}

# exact LIBRARY TARGET [ARG...]
exact() {
	with_library "$@"
	attach
	go_target
	finish_target
	finish_leakrec
	parse
	(($(truth allocations) > 0)) || fail "${*:2} did not run: $(cat target.err)"
	assert_truth
	rm target.in target.out
}

# start_copy FILE [ARG...]: as start_target, for another file.
start_copy() {
	TARGETS=$(dirname "$1") start_target "$(basename "$1")" "${@:2}"
}

# exact_copy FILE [ARG...]
exact_copy() {
	start_copy "$@"
	attach
	go_target
	finish_target
	finish_leakrec
	parse
	(($(truth allocations) > 10)) || fail "$1 did not run"
	assert_truth
	rm target.in target.out
}

# all_exact LIBRARY: runs the targets that together call every function.
all_exact() {
	local pvalloc=1

	[[ $1 != libjemalloc* ]] || pvalloc=0
	exact "$1" sizes
	exact "$1" random_calls --rounds 3000 --pvalloc "$pvalloc"
	exact "$1" realloc_cases
	exact "$1" aligned --pvalloc "$pvalloc"
	exact "$1" posix_memalign_cases
	exact "$1" null_free
	exact "$1" threads_cross_free
	exact "$1" thread_exits
}
