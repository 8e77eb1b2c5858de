# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # as in bad_input.bats
#
# Recordings of some sizes only, of the target many_sizes. After helpers.bash.

# calls: prints "FUNCTION SIZE" for each recorded call of an allocating function.
calls() {
	perf script -i perf.data -F event,trace 2>/dev/null | awk '
		function field(name,   value) {
			if (!match($0, " " name "=[0-9]+")) return -1
			value = substr($0, RSTART, RLENGTH)
			sub(/.*=/, "", value)
			return value
		}
		{
			name = $1
			sub(/:$/, "", name); sub(/.*:/, "", name); sub(/_call$/, "", name)
			if (name ~ /_ret$|_store|^free$/) next
			size = field(name == "posix_memalign" ? "size" : "bytes")
			if (name == "calloc") size = field("n") * field("elem_size")
			if (size >= 0) print name, size
		}' | sort | uniq -c | awk '{ print $2, $3, $1 }' >calls
}

# The recorded calls are those that the target counted, and otherwise only reallocs of such blocks.
assert_calls() { # MIN MAX
	local name wrong=0

	calls
	for name in malloc calloc realloc aligned_alloc memalign posix_memalign valloc; do
		# aligned_alloc is another name of memalign.
		[[ $name != aligned_alloc && $name != memalign ]] || continue
		assert_equal "$name calls" "$(calls_of "$name" "$1" "$2")" "$(truth "matching_$name")" ||
			wrong=1
	done
	assert_equal "aligned_alloc, memalign calls" \
		$(($(calls_of aligned_alloc "$1" "$2") + $(calls_of memalign "$1" "$2"))) \
		$(($(truth matching_aligned_alloc) + $(truth matching_memalign))) || wrong=1
	assert_equal "calls for other sizes" "$(awk -v min="$1" -v max="$2" '
		$1 != "realloc" && ($2 < min || $2 > max)' calls)" "" || wrong=1
	((!wrong)) || fail "the calls differ"
}

calls_of() { # NAME MIN MAX
	awk -v name="$1" -v min="$2" -v max="$3" '
		$1 == name && $2 >= min && $2 <= max { n += $3 } END { print n + 0 }' calls
}

# Leaks of these sizes equal the target's, size by size, and no operation is unexpected.
assert_leaks_of() { # MIN MAX
	"$BIN/leakparse" --size "$1..$2" <perf.data >leaks
	sed -nE 's/^truth held_([0-9]+) ([0-9]+)$/\1 \2/p' truth |
		awk -v min="$1" -v max="$2" '$1 >= min && $1 <= max { n[$1] += $2 }
			END { for (s in n) print s, n[s] }' | sort >sizes.truth
	awk '$1 == "leak" { n[$2]++ } END { for (s in n) print s, n[s] }' leaks | sort >sizes.leaks
	diff sizes.truth sizes.leaks ||
		fail "leaks by size differ (<: the target's, >: leakparse's); $(cat leakrec.err)"
	[[ -s sizes.truth ]] || fail "the target holds none"
	assert_no_unexpected
	assert_summary lost 0
}

options() { # MIN MAX [OPTION...]
	echo "--min $1 --max $2 ${*:3}"
}

check() { # MIN MAX [TARGET-OPTION...]
	local range=$1..$2

	[[ $1 != "$2" ]] || range=$1
	record_attached "many_sizes $(options "$@")" --size "$range"
	assert_leaks_of "$1" "$2"
	assert_calls "$1" "$2"
}
