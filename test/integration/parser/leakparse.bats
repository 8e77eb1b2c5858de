#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# leakparse's own options.

bats_require_minimum_version 1.5.0
load ../support/helpers

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "leakparse: leaks of one size, and of a range" {
	record_command sizes
	"$BIN/leakparse" --size 3072 <perf.data >leaks
	assert_equal "leaks" "$(grep -c '^leak ' leaks)" "$(truth held_3072)"
	assert_equal "held blocks" "$(summary held_blocks)" "$(truth held_3072)"
	assert_equal "held bytes" "$(summary held_bytes)" $(($(truth held_3072) * 3072))
	assert_equal "allocations of all sizes" "$(summary allocations)" "$(truth allocations)"
	assert_equal "the size" "$(summary size)" 3072
	assert_equal "sizes" "$(awk '/^leak/ { print $2 }' leaks | sort -u)" 3072

	"$BIN/leakparse" -i perf.data >all
	"$BIN/leakparse" -i perf.data --size 1000..2000 >leaks
	assert_equal "the range" "$(summary size)" 1000..2000
	assert_equal "leaks in the range" "$(grep '^leak ' leaks)" \
		"$(awk '/^leak/ && $2 >= 1000 && $2 <= 2000' all)"
}

@test "leakparse: invalid sizes" {
	local size

	for size in "" 3x 10..5 -1 .. 1... "1 2" 99999999999999999999; do
		run --separate-stderr "$BIN/leakparse" --size "$size" </dev/null
		assert_equal "status of --size '$size'" "$status" 2
	done
}

# The daemon must leak steadily, and fill its cache within the first tenth of the time. If the machine was too busy for
# that, this records again.
record_steadily() {
	for _ in 1 2 3 4 5; do
		record_evenly "leaky_daemon --requests 400 --interval-us 2000"
		! awk -v start="$(summary start)" -v end="$(summary end)" '
			$1 == "leak" && $2 == 3072 { time[++n] = $4 }
			$1 == "leak" && $NF == "fill_cache" { filled = $4 }
			END {
				middle = time[int(n / 2)]
				exit !(time[n] - middle < 1.4 * (middle - time[1]) && filled && filled - start < (end - start) / 11)
			}' leaks || return 0
	done
	fail "the daemon has never leaked steadily: $(cat leaks)"
}

@test "leakparse: the daemon's leak comes first, and is growth" {
	record_steadily
	"$BIN/leakparse" <perf.data >leaks
	assert_equal "verdict" "$(awk '$1 == "stack" { print $3, $4, $5; exit }' leaks)" \
		"growth firm $(truth leaked_3072)"
	# The blocks of the last moment may still be freed.
	(($(grep -c '^leak 3072 .* growth ' leaks) >= $(truth leaked_3072) * 3 / 4))
	assert_equal "its blocks" "$(grep -c '^leak 3072 .* \(growth\|not-yet\) ' leaks)" "$(truth leaked_3072)"
	# The cache entries from the start that have not been replaced.
	grep -q '^stack [0-9]* start-up firm ' leaks || fail "$(grep -E '^(# summary|process|stack) ' leaks)"
	assert_equal "all are firm" "$(summary firm_blocks)" "$(truth held_blocks)"
	# A reader that does not know verdicts finds the same blocks.
	assert_equal "blocks" "$(grep -c '^leak ' leaks)" "$(truth held_blocks)"
	"$BIN/leakplot" leaks --term dumb >/dev/null

	"$BIN/leakparse" --order time -i perf.data >plain
	assert_equal "stacks in the plain list" "$(grep -c "^stack" plain)" 0
	assert_equal "in time order" "$(awk '$1 == "leak" { print $4 }' plain)" \
		"$(awk '$1 == "leak" { print $4 }' leaks | sort -n)"
	"$BIN/leakparse" --order size -i perf.data >by-size
	assert_equal "by size" "$(awk '$1 == "stack" { print $6 }' by-size)" \
		"$(awk '$1 == "stack" { print $6 }' leaks | sort -rn)"
}

# A C++ server with cycles of sessions and connections: few stacks, all of them deep.
@test "leakparse: a stack is written once, however many blocks it has" {
	require_program g++
	cat >cycle.cpp <<-END
		#include <memory>
		#include <string>
		#include <vector>
		struct connection;
		struct session {
			std::shared_ptr<connection> peer;
			std::vector<std::string> headers;
		};
		struct connection {
			std::shared_ptr<session> owner;
		};
		__attribute__((noinline)) static int handle_request(int i)
		{
			auto s = std::make_shared<session>();
			auto c = std::make_shared<connection>();
			for (int k = 0; k < 20; k++)
				s->headers.push_back("X-Header-value-" + std::to_string(k) + " and some more");
			s->peer = c;
			if (i % 10)
				c->owner = s;
			return s.use_count();
		}
		int main()
		{
			int sum = 0;
			for (int i = 0; i < 500; i++)
				sum += handle_request(i);
			return sum < 0;
		}
	END
	g++ -O1 -g -o cycle cycle.cpp
	"$BIN/leakrec" -o perf.data -- ./cycle 2>leakrec.err
	for order in verdict size time; do
		"$BIN/leakparse" --order "$order" -i perf.data >leaks
		assert_equal "$order: stacks defined twice" "$(awk '$1 == "frames" { print $2 }' leaks | sort | uniq -d)" ""
		with_stacks >repeated
		assert_equal "$order: blocks" "$(grep -c '^leak ' leaks)" "$(summary held_blocks)"
		(($(summary held_blocks) > 450 * 20)) || fail "$(head -n 3 leaks)"
		(($(stat -c %s leaks) * 10 < $(stat -c %s repeated))) ||
			fail "$order: $(stat -c %s leaks) bytes, of $(stat -c %s repeated) with each block's stack"
	done
	# The lines of blocks contain what users search for.
	(($(grep -c '^leak .* handle_request$' leaks) > 450 * 10)) || fail "$(grep -m 5 '^leak' leaks)"
	# The one-liners of docs/leaks-format.md.
	# shellcheck disable=SC2016 # the fences of code
	sed -n '/^## With awk/,/^## Version/p' "$SOURCE_DIR/docs/leaks-format.md" | sed -n '/^```$/,/^```$/p' |
		grep -v '^```' >awk.sh
	bash -e awk.sh >out 2>err || fail "$(cat err)"
	[[ ! -s err ]] || fail "$(cat err)"
	grep -q $'^\thandle_request+0x' out
}

@test "leakparse: one screen" {
	record_steadily
	"$BIN/leakparse" --summary -i perf.data >screen
	(($(wc -l <screen) <= 24)) || fail "$(cat screen)"
	head -n 1 screen | grep -q '^leaky_daemon ([0-9]*): .* 0 events lost$'
	grep -q "^1\. growth: $(truth leaked_3072) blocks, .* blocks/s, " screen
	grep -q '^   query_font (leaky_daemon.c:[0-9]*) < load_font < render_answer ' screen || fail "$(cat screen)"
}

@test "leakparse: options select what is listed" {
	record_steadily
	all=("$BIN/leakparse" -i perf.data)
	"${all[@]}" >leaks.all
	"${all[@]}" --stack 'load_f.nt' >leaks
	assert_equal "of a stack" "$(grep -c '^leak ' leaks)" "$(truth leaked_3072)"
	assert_equal "narrowed" "$(summary narrowed)" 1
	"${all[@]}" --stack '^load$' >leaks
	assert_equal "of no stack" "$(grep -c '^leak ' leaks)" 0
	"${all[@]}" --verdict growth >leaks
	assert_equal "of a verdict" "$(grep -c '^leak ' leaks)" "$(grep -c '^leak .* growth ' leaks.all)"
	"${all[@]}" --reach lost >leaks 2>err
	assert_equal "lost without a scan" "$(grep -c '^leak ' leaks)" 0
	grep -q 'no scan' err
	"${all[@]}" --reach lost,not-scanned >leaks
	assert_equal "not scanned" "$(grep -c '^leak ' leaks)" "$(grep -c '^leak ' leaks.all)"
	"${all[@]}" --func malloc >leaks
	assert_equal "of malloc" "$(grep -c '^leak ' leaks)" "$(truth held_blocks)"
	"${all[@]}" --func calloc >leaks
	assert_equal "of calloc" "$(grep -c '^leak ' leaks)" 0
	"${all[@]}" --thread leaky_daemon >leaks
	assert_equal "of a thread" "$(grep -c '^leak ' leaks)" "$(truth held_blocks)"
	"${all[@]}" --thread 1 >leaks
	assert_equal "of another" "$(grep -c '^leak ' leaks)" 0
	"${all[@]}" --limit 1 >leaks
	assert_equal "of the first stack" "$(grep -c '^leak ' leaks)" "$(truth leaked_3072)"
	"${all[@]}" --min-age 1h >leaks
	assert_equal "of an hour" "$(grep -c '^leak ' leaks)" 0
	"${all[@]}" --max-age 1h >leaks
	assert_equal "in an hour" "$(grep -c '^leak ' leaks)" "$(truth held_blocks)"
}

@test "leakparse: options for scripts" {
	record_command "leaky_daemon --requests 100 --interval-us 0"
	all=("$BIN/leakparse" -i perf.data)
	run -3 "${all[@]}" --fail-on-leak
	bytes=$(truth held_bytes)
	run -3 "${all[@]}" --fail-on-leak=$((bytes - 1))
	run -0 "${all[@]}" --fail-on-leak="$bytes"
	run -0 "${all[@]}" --fail-on-leak --stack '^no such$'
	printf '# known\nleak:^fill_cache$\nleak:^replace_cached$\nleak:query_*nt\nleak:never_heard\n' >known
	run -0 --separate-stderr "${all[@]}" --fail-on-leak --suppressions known
	# shellcheck disable=SC2154 # bats sets stderr
	[[ $stderr == *"leak:never_heard (line 5) matches no held block"* ]] || fail "$stderr"
	[[ $stderr != *"leak:query"*"matches no"* ]] || fail "$stderr"
	grep -q "^# suppressed: $(truth leaked_3072) blocks, .* by leak:query_\*nt$" <<<"$output"
	echo 'race:foo' >known
	run -2 "${all[@]}" --suppressions known
	run -1 "${all[@]}" --suppressions nothere
}

@test "leakparse: wrong options" {
	local option

	for option in --limit=0 --limit=x --order=age --min-age=x --max-age=3y --max-age=0 --every=0 --stack='(' --verdict=leak \
		--verdict=grow --fail-on-leak=x; do
		run --separate-stderr "$BIN/leakparse" "$option" </dev/null
		assert_equal "status of $option" "$status" 2
	done
}

follow_all() {
	"$BIN/leakfollow" --size 0..1000000000000 <perf.data 2>/dev/null
}

# held [OPTION...]: prints the held bytes of the summary.
held() {
	"$BIN/leakparse" "$@" <perf.data 2>/dev/null |
		sed -nE 's/^# summary.* held_bytes=([0-9]+).*/\1/p'
}

# a_period_ends_at_peak LEAKS
a_period_ends_at_peak() {
	local peak

	peak=$(sed -nE 's/^history all .* at_peak_bytes=([0-9]+).*/\1/p' "$1")
	grep -qE "^history all .*held_bytes=([0-9]+,)*${peak}[, ]" "$1"
}

@test "leakparse: --at a time, the peak, the end" {
	local peak start time

	# On a busy machine a period of the plot may end at the peak. Then the plot would show it anyway.
	for _ in {1..5}; do
		record_command "random_calls --seed 4711"
		"$BIN/leakparse" -i perf.data >leaks 2>/dev/null
		a_period_ends_at_peak leaks || break
	done
	assert_equal "at the end" "$(held --at end)" "$(held)"
	assert_equal "long after" "$(held --at 1h)" "$(held)"
	run -0 --separate-stderr "$BIN/leakparse" --at 1h --summary -i perf.data
	[[ $stderr == *": --at is past its end"* ]] || fail "$stderr"
	run -0 --separate-stderr "$BIN/leakparse" --from 1h --to 2h -i perf.data
	[[ $stderr == *": --from is past its end"* ]] || fail "$stderr"
	run -0 --separate-stderr "$BIN/leakparse" --at 0.000001 --summary -i perf.data
	[[ $stderr != *"past its end"* && $output == *" held after 1.00 us"* ]] || fail "$output $stderr"
	follow_all | awk '
		$1 == "enter" { held += $3; if (held > peak) peak = held }
		$1 == "exit" { held -= $3 }
		END { print peak }' >peak
	peak=$(cat peak)
	((peak > $(held))) || fail "the target should have held more before its end"
	assert_equal "the peak" "$(held --at peak)" "$peak"
	# The plot's periods end before and after it, but it shows the peak, too.
	assert_equal "the peak in the history" \
		"$(sed -nE 's/^history all .* at_peak_bytes=([0-9]+).*/\1/p' leaks)" "$peak"
	run ! a_period_ends_at_peak leaks
	"$BIN/leakplot" --plot held --save kept -o held.svg leaks
	assert_equal "the peak in the plot" "$peak" "$(awk -v unit="$(sed -nE "s/.*held \((.*)\).*/\1/p" kept/*.gnuplot | head -1)" '
		BEGIN { bytes = unit ~ /^MiB/ ? 1048576 : unit ~ /^KiB/ ? 1024 : 1 }
		!/^#/ && $NF > most { most = $NF }
		END { printf "%.0f", most * bytes }' kept/*layers.dat)"

	# At this moment a call has just returned. The program has one thread, so no other call is open.
	record_command "leaky_daemon --requests 300 --interval-us 200"
	start=$("$BIN/leakparse" <perf.data 2>/dev/null | sed -nE 's/^# summary.* start=([0-9.]+).*/\1/p')
	follow_all | awk -v start="$start" '$1 == "enter" && ++nr % 400 == 0 {
		printf "%.9f\n", $5 - start }' >moments
	(($(wc -l <moments) >= 3))
	while read -r time; do
		assert_equal "after $time s" "$(held --at "$time")" "$("$BIN/leakparse" --from 0 \
			--to "$(awk -v t="$time" 'BEGIN { printf "%.9f", t + 0.000000001 }')" \
			<perf.data 2>/dev/null | awk '$1 == "interval" { print $6 + 0 }')"
	done <moments
	# A pipe cannot be read twice, which is the point.
	run -1 "$BIN/leakparse" --at peak < <(cat perf.data)
	[[ $output == *"give a file, not a pipe"* ]]
}

@test "leakparse: sizes as people write them" {
	local size

	record_command "leaky_daemon --requests 50 --interval-us 100"
	"$BIN/leakparse" --size 3072 -i perf.data >expected 2>/dev/null
	grep -q '^leak 3072 ' expected
	for size in 3k 3K 3KiB 3..3k; do
		"$BIN/leakparse" --size $size -i perf.data 2>/dev/null | grep -v '^# size' |
			diff <(grep -v '^# size' expected) -
		"$BIN/leakfollow" --size $size -i perf.data >followed 2>/dev/null
		assert_equal "sizes followed" "$(awk '$1 == "enter" { print $3 }' followed | sort -u)" 3072
	done
	"$BIN/leakparse" --fail-on-leak=1M -i perf.data >/dev/null 2>&1
	run -3 "$BIN/leakparse" --fail-on-leak=10k -i perf.data
}
