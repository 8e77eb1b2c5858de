# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the integration tests share: setup and teardown, targets that wait until somebody recorded them,
# and comparisons of what a target counted itself with what the tools say.
#
# A test runs in $BATS_TEST_TMPDIR and leaves its files under fixed names there: truth (what the target
# printed), perf.data, leaks, leakrec.err. Waiting is always for a condition.

BUILD_DIR=${BUILD_DIR:?the build directory}
SOURCE_DIR=${SOURCE_DIR:?the source directory}
BIN=$BUILD_DIR/bin
TARGETS=$BUILD_DIR/test/targets

TRACEFS=/sys/kernel/tracing
[[ -e $TRACEFS/uprobe_events ]] || TRACEFS=/sys/kernel/debug/tracing

# --- Setup and teardown ---

# Skips where uprobes are not to be had; where they have to be (REQUIRE_UPROBES=1), fails.
require_uprobes() {
	local why=

	if [[ $(id -u) != 0 ]]; then
		why="only root may set uprobes"
	elif [[ ! -e $TRACEFS/uprobe_events ]]; then
		mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
		TRACEFS=/sys/kernel/tracing
		[[ -e $TRACEFS/uprobe_events ]] || why="this kernel has no uprobe_events"
	fi
	[[ -n $why ]] || return 0
	if [[ ${REQUIRE_UPROBES:-} == 1 ]]; then
		fail "uprobes are required, but $why"
	fi
	skip "$why"
}

# Skips a test for want of a program that only this test needs.
require_program() {
	command -v "$1" >/dev/null && return 0
	if [[ ${REQUIRE_UPROBES:-} == 1 ]]; then
		fail "$1 is required"
	fi
	skip "$1 is not installed"
}

# All uprobe events. The kernel gives a page at a time, and skips an event where one before it was removed
# meanwhile: what has been read twice is whole.
uprobe_events() {
	local before events

	events=$(<"$TRACEFS/uprobe_events")
	until [[ ${before-none} == "$events" ]]; do
		before=$events
		events=$(<"$TRACEFS/uprobe_events")
	done
	[[ -z $events ]] || echo "$events"
}

# Skips a test of what only recording programs can do, where perf events record instead.
require_programs() {
	"$BIN/leakrec" --call-graph none -o programs.data -- true 2>programs.err
	! grep -q "perf events record" programs.err || skip "the kernel has not what programs take"
	rm -f programs.data programs.err
}

# The events that the tools have made, "GROUP/EVENT" a line.
our_probes() {
	uprobe_events | sed -nE 's/^[pr][0-9]*:((leakprobe_|leakrec[0-9])[^ ]*) .*/\1/p' | sort
}

common_setup() {
	# bats notes its position before each command, which costs more than most commands here. That in the test itself
	# is enough.
	set +T
	declare -ft "$BATS_TEST_NAME"
	require_uprobes
	cd "$BATS_TEST_TMPDIR" || return
	STARTED_PIDS=()
	OWN_EVENTS=()
	our_probes >probes.before
	abandoned_probes >abandoned.before
}

# add_probes OPTION...: leakprobe add; what it added is removed after the test.
add_probes() {
	our_probes >probes.before-add
	"$BIN/leakprobe" add "$@" >leakprobe.out
	# Others may be adding theirs.
	sed -nE 's,^(leakprobe_[^ :]*): added .*,^\1/,p' leakprobe.out >groups
	mapfile -t -O "${#OWN_EVENTS[@]}" OWN_EVENTS < <(our_probes | comm -13 probes.before-add - | grep -f groups)
}

# GROUPs of what add_probes added.
added_groups() {
	printf '%s\n' "${OWN_EVENTS[@]%%/*}" | sort -u
}

# inode_hash FILE: as the names of groups have it (probes/tracefs/group_name.c).
inode_hash() {
	local device inode number shift hash=2166136261

	read -r device inode < <(stat -L -c '%d %i' "$1" 2>/dev/null) || return
	# glibc's major() and minor().
	for number in $((device >> 8 & 0xfff | device >> 32 & ~0xfff)) $((device & 0xff | device >> 12 & ~0xff)) \
		"$inode"; do
		for ((shift = 0; shift < 64; shift += 8)); do
			hash=$(((hash ^ number >> shift & 0xff) * 16777619 & 0xffffffff))
		done
	done
	printf '%08x\n' $hash
}

# The probes of recorders that are gone: none should be left. Not those of others, who have copies of their own by
# the same paths.
abandoned_probes() {
	local pid event path
	local -A ended=() hashes=() found=()

	while read -r pid event path; do
		if [[ -z ${ended[$pid]-} ]]; then
			has_ended "$pid" && ended[$pid]=yes || ended[$pid]=no
		fi
		[[ ${ended[$pid]} == yes ]] || continue
		[[ -v hashes[$path] ]] || hashes[$path]=$(inode_hash "$path") || true
		[[ -z ${hashes[$path]} || ${event%/*} != *_"${hashes[$path]}"_* ]] || found[$event]=
	done < <(uprobe_events | sed -nE 's/^[pr][0-9]*:(leakrec([0-9]+)_[^ ]*) (.*):0x[0-9a-f]+.*/\2 \1 \3/p')
	# Not those that a recorder has removed meanwhile, and ended.
	((${#found[@]} == 0)) || our_probes | comm -12 - <(printf '%s\n' "${!found[@]}" | sort)
}

none_abandoned() {
	[[ -z $(abandoned_probes | comm -13 "$BATS_TEST_TMPDIR/abandoned.before" -) ]]
}

remove_event() {
	echo "-:$1" >>"$TRACEFS/uprobe_events"
}

# Ends what the test started and removes its probes; what a passed test has left behind fails it. Other
# people's probes are not touched.
common_teardown() {
	local pid event left=

	[[ -e $BATS_TEST_TMPDIR/probes.before ]] || return 0 # skipped
	for pid in "${STARTED_PIDS[@]}"; do
		if ! has_ended "$pid" && is_ours "$pid"; then
			left+=" process $pid ($(tr '\0' ' ' <"/proc/$pid/cmdline"))"
			kill -KILL "$pid"
		fi
	done
	[[ -z ${RECORDED_PID:-} || ! -e /proc/$RECORDED_PID ]] || kill -KILL "$RECORDED_PID" || true
	wait
	# Tests make some by other names than the tools do.
	for event in $(uprobe_events | sed -E 's/^[pr][0-9]*:([^ ]*) .*/\1/' | sort -u |
		comm -12 - <(printf '%s\n' "${OWN_EVENTS[@]}" | sort -u)); do
		remove_event "$event"
	done
	# leak-end may still be at work. Who looks again may see that of another recorder, on all processes.
	if [[ -z ${BATS_TEST_COMPLETED:-} ]] || ! wait_until 60 none_abandoned; then
		for event in $(abandoned_probes | comm -13 "$BATS_TEST_TMPDIR/abandoned.before" -); do
			left+=" probe $event"
			remove_event "$event" || true
		done
	fi
	# The last command, or followed by "|| return": bats runs teardown where set -e does nothing.
	[[ -z $left || -z ${BATS_TEST_COMPLETED:-} ]] || fail "the test left behind:$left"
}

fail() {
	echo "$*" >&2
	return 1
}

# is_ours PID: and not somebody else's that has got the number since.
is_ours() {
	local session

	session=$(ps -o sid= -p "$1") && ((session == $(ps -o sid= -p $$)))
}

# Without a process, as other conditions to wait for.
is_zombie() {
	local stat

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null && [[ ${stat##*) } == [ZX]* ]]
}

has_ended() {
	[[ ! -e /proc/$1 ]] || is_zombie "$1"
}

# kill_now PID...: returns when they have ended, which SIGKILL takes a moment for.
kill_now() {
	local pid

	kill -KILL "$@"
	for pid; do
		wait_until 60 has_ended "$pid"
	done
}

NAP=${BATS_FILE_TMPDIR:-$BATS_TEST_TMPDIR}/nap

# nap SECONDS: without a process; nobody writes to the FIFO. Only for who looks again, or is to be late.
nap() {
	[[ -p $NAP ]] || mkfifo "$NAP" || [[ -p $NAP ]]
	read -rt "$1" <>"$NAP" || true
}

# wait_until SECONDS COMMAND...: until the command succeeds. WAIT_FACTOR is for machines that are slow.
wait_until() {
	local deadline=$((SECONDS + $1 * ${WAIT_FACTOR:-1}))

	shift
	until "$@"; do
		if ((SECONDS > deadline)); then
			fail "waited in vain for: $*"
			return
		fi
		nap 0.02
	done
}

# prefer PID: it runs when it can, however busy the machine is. The priority is one among those of a session,
# which has its own (sched(7), "The autogroup feature").
prefer() {
	renice -n -20 -p "$1" >/dev/null
	[[ ! -e /proc/$1/autogroup ]] || echo -20 >"/proc/$1/autogroup"
}

# has_grown_to FILE BYTES
has_grown_to() {
	(($(stat -c %s "$1") >= $2))
}

# --- Targets ---

# start_target NAME [ARG...]: starts it with --wait and returns when it says that it is ready.
# RECORDED_PID is the process that does the work, TARGET_PID the one that was started.
start_target() {
	local word

	mkfifo target.in target.out
	"$TARGETS/$1" --wait "${@:2}" <target.in >target.out 2>target.err 3>&- &
	TARGET_PID=$!
	STARTED_PIDS+=("$TARGET_PID")
	exec {TARGET_IN}>target.in {TARGET_OUT}<target.out
	read -r -t $((60 * ${WAIT_FACTOR:-1})) -u "$TARGET_OUT" word RECORDED_PID
	[[ $word == ready ]]
}

# Lets the target begin its counted work.
go_target() {
	echo >&"$TARGET_IN"
}

# Takes the target's true counts and reaps it.
finish_target() {
	cat <&"$TARGET_OUT" >truth
	wait "$TARGET_PID" || fail "the target ended with status $?: $(cat target.err)" || return
	exec {TARGET_IN}>&- {TARGET_OUT}<&-
}

# leakrec says when it records; its messages are in leakrec.err.
is_recording() {
	[[ $'\n'$(<leakrec.err) == *$'\nleakrec: recording '* ]] || has_ended "$1"
}

# attach [OPTION...]: leakrec -p on the target (or as the options say), in the background; returns when it
# records.
attach() {
	local pid=(-p "$RECORDED_PID")

	[[ ! ${1:-} =~ ^(-p|-a|--cgroup)$ ]] || pid=()
	: >leakrec.err # what an earlier one said there is not to be taken for this one's
	"$BIN/leakrec" "${pid[@]}" -m 512 -o perf.data "$@" 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	grep -q '^leakrec: recording ' leakrec.err || fail "leakrec ended before it recorded: $(cat leakrec.err)"
}

# leakrec ends by itself when its target is gone.
finish_leakrec() {
	wait "$LEAKREC_PID" || {
		local status=$?

		cat leakrec.err
		fail "leakrec ended with status $status"
	}
}

# record_attached "TARGET ARG..." [OPTION...]: the whole life of a target, attached to.
record_attached() {
	local target

	read -ra target <<<"$1"
	shift
	start_target "${target[@]}"
	attach "$@"
	go_target
	finish_target
	finish_leakrec
	parse
}

# record_command "TARGET ARG..." [OPTION...]: the same for a target that leakrec starts.
record_command() {
	local target

	read -ra target <<<"$1"
	shift
	"$BIN/leakrec" -m 512 -o perf.data "$@" -- "$TARGETS/${target[0]}" "${target[@]:1}" \
		>truth 2>leakrec.err || {
		cat leakrec.err
		fail "leakrec failed"
	}
	parse
}

# recorded NAME "TARGET ARG..." [OPTION...]: the same, once for all tests of the file that give that name.
recorded() {
	local kept=$BATS_FILE_TMPDIR/$1

	if [[ ! -e $kept ]]; then
		record_command "${@:2}"
		mkdir "$kept.new"
		cp truth perf.data leaks leakrec.err "$kept.new"
		mv "$kept.new" "$kept"
	fi
	cp "$kept"/* .
	rm -f events
}

parse() {
	rm -f events
	# In time order recordings of the same program can be compared; verdicts depend on times.
	"$BIN/leakparse" --order time <perf.data >leaks
}

# --- Comparisons ---

# truth NAME: what the target counted; 0 if it did not print it.
truth() {
	awk -v name="$1" '$1 == "truth" && $2 == name { value = $3 } END { print value + 0 }' truth
}

# summary KEY: from leakparse's summary line.
summary() {
	awk -v key="$1" '$1 == "#" && $2 == "summary" {
		for (i = 3; i <= NF; i++)
			if (index($i, key "=") == 1) { print substr($i, length(key) + 2); found = 1 }
		exit
	} END { if (!found) print "missing" }' leaks
}

# events NAME...: how many events of these names perf script prints of perf.data.
events() {
	[[ -e events ]] || perf script -i perf.data -F event 2>/dev/null |
		sed -E 's/^ *//; s/: *$//; s/.*://' | sort | uniq -c >events
	awk -v names="$*" 'BEGIN { split(names, list, " "); for (i in list) wanted[list[i]] = 1 }
		$2 in wanted { n += $1 } END { print n + 0 }' events
}

# assert_equal WHAT ACTUAL EXPECTED
assert_equal() {
	[[ $2 == "$3" ]] || fail "$1: $2, but it should be $3"
}

assert_summary() {
	assert_equal "summary $1" "$(summary "$1")" "$2"
}

# What the target counted and leakparse found must be the same, to the event.
assert_truth() {
	local wrong=0

	head -n 1 leaks | grep -qx '# leaks 2' || fail "no leaks file"
	awk 'BEGIN {
		n = split("allocations frees held_blocks held_bytes alloc_failed free_unknown double_free still_held" \
			" realloc_unknown lost", keys)
	}
	FILENAME == "truth" && $1 == "truth" { expected[$2] = $3 }
	FILENAME == "leaks" && $1 == "#" && $2 == "summary" {
		for (i = 3; i <= NF; i++) {
			at = index($i, "=")
			found[substr($i, 1, at - 1)] = substr($i, at + 1)
		}
		exit
	}
	END {
		for (i = 1; i <= n; i++) {
			key = keys[i]
			is = key in found ? found[key] : "missing"
			should = key in expected ? expected[key] : "0"
			if (is "" == should "")
				continue
			printf "summary %s: %s, but it should be %s\n", key, is, should
			wrong = 1
		}
		exit wrong
	}' truth leaks || wrong=1
	assert_sizes || wrong=1
	if ((wrong)); then
		echo "truth:" && cat truth && grep '^# summary' leaks && cat leakrec.err
		return 1
	fi
}

# The leaks by size: "SIZE NUMBER" a line, from the target and from leakparse. The target does not
# count sizes of 64 KiB and more one by one.
assert_sizes() {
	sed -nE 's/^truth held_([0-9]+) ([0-9]+)$/\1 \2/p' truth | sort >sizes.truth
	awk '$1 == "leak" && $2 < 65536 { n[$2]++ } END { for (s in n) print s, n[s] }' leaks |
		sort >sizes.leaks
	diff sizes.truth sizes.leaks || fail "leaks by size differ (<: the target's, >: leakparse's)"
}

# leaks_of PID: "SIZE NUMBER" a line.
leaks_of() {
	awk -v pid="$1" '$1 == "leak" && $6 == pid { n[$2]++ } END { for (s in n) print s, n[s] }' leaks | sort
}

# assert_held_by PID: what the process holds is what it says, whatever others hold.
assert_held_by() {
	sed -nE 's/^truth held_([0-9]+) ([0-9]+)$/\1 \2/p' truth | sort >sizes.truth
	leaks_of "$1" | diff sizes.truth - || fail "leaks of $1 differ (<: the target's, >: leakparse's)"
}

# assert_events [--more-frees]: the events of each function, entry and return, are as many as the
# target's calls. A thread's exit frees what the target did not ask for: --more-frees.
assert_events() {
	local name wrong=0 ret

	for name in malloc calloc realloc posix_memalign valloc pvalloc; do
		# A call comes as one event, or as two.
		assert_equal "$name events" "$(events $name ${name}_call)" "$(truth $name)" || wrong=1
		ret=$(events "${name}_ret" "${name}_call")
		assert_equal "${name}_ret events" "$ret" "$(truth $name)" || wrong=1
	done
	assert_equal "aligned_alloc, memalign events" "$(events aligned_alloc memalign)" \
		$(($(truth aligned_alloc) + $(truth memalign))) || wrong=1
	if [[ ${1:-} == --more-frees ]]; then
		(($(events free) >= $(truth free))) ||
			fail "free events: $(events free), fewer than $(truth free)" || wrong=1
	else
		assert_equal "free events" "$(events free)" "$(truth free)" || wrong=1
		assert_summary null_frees "$(truth null_frees)" || wrong=1
		assert_summary thread_exit_frees 0 || wrong=1
	fi
	assert_frees_classified || wrong=1
	((!wrong)) || fail "the events differ: $(tr '\n' ';' <events)"
}

# Every free event is something: what realloc released aside, the summary accounts for all of them.
assert_frees_classified() {
	local by_realloc accounted

	by_realloc=$(truth frees_by_realloc)
	accounted=$(($(summary frees) - by_realloc + $(summary null_frees) +
		$(summary thread_exit_frees) + $(summary free_unknown) + $(summary double_free)))
	assert_equal "frees accounted for" "$accounted" "$(events free)"
}

# assert_no_unexpected: not one operation is listed as unexpected.
assert_no_unexpected() {
	if grep '^unexpected' leaks; then
		fail "nothing unexpected happened"
	fi
}

# with_stacks [FILE]: the leaks of FILE (else: leaks), each line with its function, and its frames below it (version 1).
with_stacks() {
	awk -f "$SOURCE_DIR/test/integration/support/leaks_1.awk" "${1:-leaks}"
}

# The same in the place of leaks.
expand_stacks() {
	mv leaks leaks.2
	with_stacks leaks.2 >leaks
}

# leak_stacks SIZE: for each leak of that size its functions, innermost first, in one line.
leak_stacks() {
	with_stacks | awk -v size="$1" '
		function flush() { if (stack != "") print stack; stack = "" }
		/^[^\t]/ { flush(); wanted = $1 == "leak" && $2 == size }
		/^\t/ && wanted { name = $1; sub(/\+0x.*/, "", name); stack = stack " " name }
		END { flush() }'
}

# The events that a leaks file is made from, without what differs from one recording to the next of the
# same process: size, function and stack, without times, in order.
comparable_leaks() {
	with_stacks "$1" | awk '$1 == "leak" { print $1, $2, $3, $6, $7, $8, $9 } /^\t/ { print "\t" $1, $2 }'
}
