# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The tables of test/bench/recorders: medians of the rows in $WORK/rows, one for each run, tab-separated:
#
#	1 recorder  2 threads  3 pairs  4 us per pair  5 seconds  6 events  7 bytes  8 lost
#	9 CPU ns  10 pauses  11 paused seconds
#
# "-" stands for values that a recorder does not report. A table is made as lines of cells, separated by "|".

what_is() {
	case $1 in
	untraced) echo "untraced" ;;
	bare-traps) echo "leakrec's traps, an empty program" ;;
	heaptrack) echo "heaptrack (LD_PRELOAD)" ;;
	perf-fp) echo "perf record -g" ;;
	perf-dwarf) echo "perf record --call-graph dwarf" ;;
	bpftrace) echo "bpftrace, map keyed by pointer" ;;
	leakrec-none) echo "leakrec --call-graph none" ;;
	leakrec-fp) echo "leakrec --call-graph fp" ;;
	leakrec-free-stacks) echo "leakrec --call-graph fp --free-stacks" ;;
	leakrec-dwarf-2k) echo "leakrec --call-graph dwarf,2048" ;;
	leakrec-dwarf-8k) echo "leakrec --call-graph dwarf" ;;
	leakrec-drop) echo "leakrec --call-graph fp --on-overload drop" ;;
	leakrec-fp-z) echo "leakrec --call-graph fp -z" ;;
	leakrec-dwarf-8k-z) echo "leakrec --call-graph dwarf -z" ;;
	leakrec-multi) echo "leakrec --call-graph fp --record-by multi" ;;
	leakrec-single-none) echo "leakrec --call-graph none --record-by single" ;;
	leakrec-single) echo "leakrec --call-graph fp --record-by single" ;;
	leakrec-single-dwarf) echo "leakrec --call-graph dwarf --record-by single" ;;
	leakrec-size-other) echo "leakrec --size, of another size" ;;
	leakrec-size-same) echo "leakrec --size, of the pairs' size" ;;
	esac
}

# Functions that the awk programs of both tables need.
# shellcheck disable=SC2016 # awk's
AWK_MEDIANS='
	function add(key, value) { values[key, ++count[key]] = value }
	function sorted(key,   i, j, v) {
		for (i = 2; i <= count[key]; i++) {
			v = values[key, i]
			for (j = i - 1; j && values[key, j] > v; j--) values[key, j + 1] = values[key, j]
			values[key, j + 1] = v
		}
	}
	function median(key,   n) {
		sorted(key); n = count[key]
		return n % 2 ? values[key, (n + 1) / 2] : (values[key, n / 2] + values[key, n / 2 + 1]) / 2
	}'

# The cost for the target: us per pair, its range, the ratios to perf record -g and to the bare traps, the lost part.
cost_table() {
	local n name

	printf 'recorder'
	for n in "${THREADS[@]}"; do
		printf '|%d thread%s: us per pair|range|perf -g = 1|traps = 1|lost' "$n" "$( ((n == 1)) || echo s)"
	done
	echo
	for name in "${RECORDERS[@]}"; do
		what_is "$name" | tr -d '\n'
		for n in "${THREADS[@]}"; do
			awk -F '\t' -v name="$name" -v threads="$n" "$AWK_MEDIANS"'
				$2 != threads { next }
				function ratio_to(key,   ratio) {
					ratio = count[key] ? us / median(key) : 0
					if (ratio) printf "%.*f", ratio < 0.01 ? 4 : 2, ratio
					printf "|"
				}
				$1 == "perf-fp" { add("perf", $4 + 0) }
				$1 == "bare-traps" { add("traps", $4 + 0) }
				$1 == name {
					add("us", $4 + 0)
					if ($8 != "-") add("lost", $8 / ($6 + $8 ? $6 + $8 : 1))
				}
				END {
					us = median("us")
					digits = us < 1 ? 3 : us < 10 ? 2 : 1
					printf "|%.*f|%.*f-%.*f|", digits, us, digits, values["us", 1],
						digits, values["us", count["us"]]
					ratio_to("perf")
					ratio_to("traps")
					if (count["lost"]) printf "%.3g %%", 100 * median("lost")
				}' "$WORK/rows"
		done
		echo
	done
}

# The recorder's work on its events, if it has any, with the largest number of threads.
throughput_table() {
	local name

	printf '%s|' recorder pairs 'events per pair' 'events/s without loss' lost \
		'CPU us per event' 'CPU us per pair' 'bytes per event' 'bytes per pair' pauses
	echo "paused, s"
	for name in "${RECORDERS[@]}"; do
		awk -F '\t' -v what="$(what_is "$name")" -v name="$name" -v threads="$MOST_THREADS" \
			"$AWK_MEDIANS"'
			$1 != name || $2 != threads || $6 == "-" { next }
			{
				pairs = $3
				add("events", ($6 + $8) / $3); add("rate", $6 / $5); add("lost", $8)
				add("cpu_pair", $9 / 1e3 / $3); add("bytes_pair", $7 / $3)
				add("pauses", $10 + 0); add("paused", $11 + 0)
				if ($6) { add("cpu", $9 / 1e3 / $6); add("bytes", $7 / $6) }
			}
			END {
				if (!count["events"]) exit
				printf "%s|%d|%.2g|%s|%d|", what, pairs, median("events"),
					median("lost") ? "" : int(median("rate")), median("lost")
				printf "%s|%.2f|", count["cpu"] ? sprintf("%.2f", median("cpu")) : "",
					median("cpu_pair")
				printf "%s|%.0f|", count["bytes"] ? sprintf("%.0f", median("bytes")) : "",
					median("bytes_pair")
				printf "%d|%.2f\n", median("pauses"), median("paused")
			}' "$WORK/rows"
	done
}

# print_table FUNCTION: prints a table for the terminal, or for docs/.
print_table() {
	"$1" | awk -F '|' -v markdown="$MARKDOWN" '
		function pad(text, width) { return sprintf("%*s", width, text) }
		{
			for (i = 1; i <= NF; i++) {
				cell[NR, i] = $i
				if (length($i) > width[i]) width[i] = length($i)
			}
			fields = NF > fields ? NF : fields
		}
		END {
			for (row = 1; NR > 1 && row <= NR; row++) {
				line = sprintf("%-*s", width[1], cell[row, 1])
				for (i = 2; i <= fields; i++)
					line = line (markdown ? " | " : "  ") pad(cell[row, i], width[i])
				print markdown ? "| " line " |" : line
				if (row > 1 || !markdown) continue
				gsub(/[^|]/, "-", line)
				gsub(/-\|/, ":|", line)
				sub(/:/, "-", line)
				print "|-" line ":|"
			}
		}'
	echo
}
