# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Checks of what the target "mappings" leaves mapped. After helpers.bash.

LARGE=3145728 # of the target

# Prints the mappings that are left, by function, as the target prints them.
left() {
	with_stacks | awk '/^[a-z#]/ { kept = $1 == "leak" && $9 ~ /^(mmap|mremap|brk)$/; size = $2; next }
		kept && $NF ~ /\/mappings(_static)?\)$/ {
			sub(/\+.*/, "", $1)
			if ($1 ~ /^_*(mmap|mmap64|mremap|brk|sbrk|syscall)$/)
				next
			regions[$1]++; bytes[$1] += size; kept = 0
		}
		END { for (f in regions) print "left", f, regions[f], bytes[f] }' | sort
}

# Compares "REGIONS BYTES" of all that is left, by leakparse and by the target.
left_in_all() {
	with_stacks | awk '$1 == "leak" && $9 ~ /^(mmap|mremap|brk)$/ { nr++; bytes += $2 } END { print nr, bytes }'
}

true_in_all() {
	awk '$1 == "left" { nr += $3; bytes += $4 } END { print nr, bytes }' truth
}

# Each block of the allocator counts once, and its mappings do not count.
assert_allocator() {
	assert_equal "large blocks" "$(awk -v large=$LARGE '$1 == "leak" && $2 >= large { nr++; bytes += $2 }
		END { print nr, bytes }' leaks)" "6 $((8 * LARGE))"
	assert_equal "small blocks" "$(with_stacks | grep -c '^leak 1000 .* malloc ')" 2000
	(($(summary own_mapped_bytes) > 8 * LARGE))
	assert_summary lost 0
}

assert_left() {
	grep '^left ' truth | sort | diff - <(left)
	assert_allocator
}

assert_left_in_all() {
	assert_equal "all that is left" "$(left_in_all)" "$(true_in_all)"
	assert_allocator
}
