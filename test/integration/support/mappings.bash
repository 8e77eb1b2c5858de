# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the target "mappings" leaves. After helpers.bash.

# What is left of mappings, by function, as the target says it.
left() {
	awk '/^[a-z#]/ { kept = $1 == "leak" && $9 ~ /^(mmap|mremap|brk)$/; size = $2; next }
		kept && $NF ~ /\/mappings(_static)?\)$/ {
			sub(/\+.*/, "", $1)
			if ($1 ~ /^_*(mmap|mmap64|mremap|brk|sbrk|syscall)$/)
				next
			regions[$1]++; bytes[$1] += size; kept = 0
		}
		END { for (f in regions) print "left", f, regions[f], bytes[f] }' leaks | sort
}
