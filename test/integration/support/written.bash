# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Recordings whose every call is written down by the test, as perf script prints them: what is held when is known
# exactly, and neither root nor probes are needed.
#
#	{ allocations leak 0 60 10 1000; ...; } | recording >text

NR_CALLS=0

# allocations FUNCTION FROM TO PER-SECOND BYTES [LIFETIME [PID]]: one call in a line, to be sorted; with a LIFETIME, each
# block is freed after so many seconds.
allocations() {
	awk -v name="$1" -v from="$2" -v to="$3" -v rate="$4" -v bytes="$5" -v life="${6:-0}" -v pid="${7:-4165}" \
		-v base=$((++NR_CALLS)) '
		function call(t, what) {
			printf "%.6f\tserver %d/%d [000] %.6f: probe_libc:%s\1\t%x %s+0x10 (/gone/server)" \
				"\1\t9000 main+0x10 (/gone/server)\1\n", t, pid, pid, 100 + t, what, base * 4096, name
		}
		BEGIN {
			for (i = 0; i < (to - from) * rate; i++) {
				t = from + i / rate
				at = base * 2 ^ 25 + i * 4096
				call(t, sprintf("malloc_call: (7f01 <- 55d0) bytes=%d ret=0x%x", bytes, at))
				if (life)
					call(t + life, sprintf("free: (7f02) block=0x%x", at))
			}
		}'
}

# recording: what allocations printed, as text
recording() {
	sort -n | cut -f 2- | tr '\1' '\n'
}
