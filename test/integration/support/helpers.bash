# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the integration tests share: setup and teardown, targets that wait until they are recorded, and comparisons of
# the target's own counts with the tools' results.
#
# A test runs in $BATS_TEST_TMPDIR. Its files have fixed names there: truth (the target's output), perf.data, leaks,
# leakrec.err. Tests wait for conditions, never for a time.

BUILD_DIR=${BUILD_DIR:?the build directory}
SOURCE_DIR=${SOURCE_DIR:?the source directory}
BIN=$BUILD_DIR/bin
TARGETS=$BUILD_DIR/test/targets

TRACEFS=/sys/kernel/tracing
[[ -e $TRACEFS/uprobe_events ]] || TRACEFS=/sys/kernel/debug/tracing

# --- Setup and teardown ---

# Skips the test if uprobes are not available; fails it if REQUIRE_UPROBES=1.
require_uprobes() {
	local why=

	if ((EUID)); then
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

# Skips a test if a program is missing that only this test needs.
require_program() {
	command -v "$1" >/dev/null && return 0
	if [[ ${REQUIRE_UPROBES:-} == 1 ]]; then
		fail "$1 is required"
	fi
	skip "$1 is not installed"
}

# Stores all uprobe events in EVENTS, a line for each. The kernel returns a page at a time, and skips an event if an
# earlier one is removed meanwhile. Two equal readings are complete.
read_events() {
	local before

	mapfile -t EVENTS <"$TRACEFS/uprobe_events"
	until [[ ${before-none} == "${EVENTS[*]}" ]]; do
		before=${EVENTS[*]}
		mapfile -t EVENTS <"$TRACEFS/uprobe_events"
	done
}

# Prints them.
uprobe_events() {
	read_events
	((!${#EVENTS[@]})) || printf '%s\n' "${EVENTS[@]}"
}

# Skips a test that needs BPF programs if perf events record instead, as they may on older kernels than 6.0.
require_programs() {
	local major minor

	"$BIN/leakrec" -v --call-graph none -o programs.data -- true 2>programs.err
	if grep -q "perf events record" programs.err; then
		IFS=.- read -r major minor _ </proc/sys/kernel/osrelease
		((major < 6)) || grep -q 'this kernel is preemptible' programs.err || fail "$(cat programs.err)"
		skip "the kernel has not what programs take"
	fi
	rm -f programs.data programs.err
}

# require_way WAY: skips a test that records by that way if an older kernel does not have it.
require_way() {
	local major minor

	if "$BIN/leakrec" --record-by "$1" --call-graph none -o way.data -- true 2>way.err; then
		rm -f way.data way.err
		return
	fi
	IFS=.- read -r major minor _ </proc/sys/kernel/osrelease
	case $1 in
	session) ((major != 6 || minor < 13)) ;;
	multi) ((major < 6 || (major == 6 && minor < 6))) ;;
	single) ((major < 6)) ;;
	*) false ;;
	esac || fail "$(cat way.err)"
	skip "$(cat way.err)"
}

# Prints the tools' events, a line "GROUP/EVENT" for each.
our_probes() {
	local line event

	read_events
	for line in "${EVENTS[@]}"; do
		event=${line#*:} event=${event%% *}
		[[ $event != leakprobe_* && $event != leakrec[0-9]* ]] || echo "$event"
	done
}

# Setup and teardown start no process if the test leaves nothing behind: on a busy machine a process costs more than
# most tests' own work.
common_setup() {
	# bats notes its position before each command, which costs more than most commands here. That in the test itself
	# is enough. Scripts of test/bench have none.
	set +T
	[[ -z ${BATS_TEST_NAME:-} ]] || declare -ft "$BATS_TEST_NAME"
	require_uprobes
	cd "$BATS_TEST_TMPDIR" || return
	STARTED_PIDS=()
	OWN_EVENTS=()
	ABANDONED_BEFORE=()
	find_abandoned
	ABANDONED_BEFORE=("${ABANDONED[@]}")
	IS_SET_UP=yes
}

# add_probes OPTION...: runs leakprobe add. Teardown removes what it added.
add_probes() {
	local line event
	local -A before=() added=()

	for event in $(our_probes); do
		before[$event]=
	done
	"$BIN/leakprobe" add "$@" >leakprobe.out
	# Other tests may be adding probes.
	while read -r line; do
		[[ $line != leakprobe_*": added "* ]] || added[${line%%:*}]=
	done <leakprobe.out
	for event in $(our_probes); do
		[[ -v before[$event] || ! -v added[${event%%/*}] ]] || OWN_EVENTS+=("$event")
	done
}

# The groups that add_probes has added.
added_groups() {
	printf '%s\n' "${OWN_EVENTS[@]%%/*}" | sort -u
}

# inode_hash FILE: prints the hash that names of groups contain (probes/tracefs/group_name.c).
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

# Stores in ABANDONED the probes that recorders have left which ended since setup, which should be none. Ignores other
# tests' probes, which are on their own copies at the same paths, and those of recorders in other PID namespaces, whose
# ids tell nothing here.
find_abandoned() {
	local line event pid path
	local -A ended=() hashes=() found=()

	ABANDONED=()
	read_events
	for line in "${EVENTS[@]}"; do
		event=${line#*:} event=${event%% *}
		[[ $event == leakrec[0-9]* ]] || continue
		pid=${event#leakrec} pid=${pid%%_*}
		[[ $pid != *n* ]] || continue
		if [[ ! -v ended[$pid] ]]; then
			has_ended "$pid" && ended[$pid]=yes || ended[$pid]=no
		fi
		[[ ${ended[$pid]} == yes && " ${ABANDONED_BEFORE[*]} " != *" $event "* ]] || continue
		path=${line#* } path=${path%:0x*}
		[[ -v hashes[$path] ]] || hashes[$path]=$(inode_hash "$path") || true
		[[ -z ${hashes[$path]} || ${event%/*} != *_"${hashes[$path]}"_* ]] || found[$event]=
	done
	((${#found[@]})) || return 0
	# Ignore probes that a recorder has removed meanwhile.
	for event in $(our_probes); do
		[[ ! -v found[$event] ]] || ABANDONED+=("$event")
	done
}

none_abandoned() {
	find_abandoned
	((!${#ABANDONED[@]}))
}

assert_no_probes_left() {
	none_abandoned || fail "probes are left: ${ABANDONED[*]}"
}

# After a signal, leakrec waits for half a second only; then leak-end waits for the kernel.
assert_probes_go() {
	wait_until 60 none_abandoned || assert_no_probes_left
}

remove_event() {
	echo "-:$1" >>"$TRACEFS/uprobe_events"
}

# True if leakrec has said that a stop reached its limit, so that events are missing.
was_late() {
	grep -qsE 'continued before its child or its new file was set up|continued after a stop of one second|watchdog did not run for a second' \
		"$BATS_TEST_TMPDIR"/*.err
}

# Ends the test's processes and removes its probes. A test that passed fails if it has left anything behind. Does not
# touch other users' probes. A test that failed is run up to two more times if a stop had reached its limit: on a very
# busy machine, or while other tests place and remove probes all the time, leakrec gets its turn too late.
common_teardown() {
	local pid line event left=
	local -A own=()

	[[ ${IS_SET_UP:-} == yes ]] || return 0 # skipped
	if [[ -z ${BATS_TEST_COMPLETED:-} ]] && was_late; then
		export BATS_TEST_RETRIES=2
		echo "# a stop reached its limit, try $BATS_TEST_TRY_NUMBER of 3: $BATS_TEST_DESCRIPTION" >&3
	fi
	for pid in "${STARTED_PIDS[@]}"; do
		if ! has_ended "$pid" && is_ours "$pid"; then
			left+=" process $pid ($(tr '\0' ' ' <"/proc/$pid/cmdline"))"
			kill -KILL "$pid"
		fi
	done
	# Of one that seems to be a zombie, only the first thread may have ended.
	[[ -z ${RECORDED_PID:-} ]] || ! is_ours "$RECORDED_PID" || kill -KILL "$RECORDED_PID" || true
	wait
	# Some tests make probes with names of their own.
	for event in "${OWN_EVENTS[@]}"; do
		own[$event]=
	done
	EVENTS=()
	((!${#own[@]})) || read_events
	for line in "${EVENTS[@]}"; do
		event=${line#*:} event=${event%% *}
		[[ -v own[$event] ]] || continue
		unset "own[$event]" # an event may have several lines
		remove_event "$event"
	done
	# leak-end may still be removing probes. A second look may find the leak-end of another recorder, of all
	# processes.
	if [[ -z ${BATS_TEST_COMPLETED:-} ]] || ! wait_until 60 none_abandoned; then
		find_abandoned
		for event in "${ABANDONED[@]}"; do
			left+=" probe $event"
			remove_event "$event" || true
		done
	fi
	# This must be the last command, or be followed by "|| return": bats runs teardown without the effect of set -e.
	[[ -z $left || -z ${BATS_TEST_COMPLETED:-} ]] || fail "the test left behind:$left"
}

fail() {
	echo "$*" >&2
	return 1
}

# is_ours PID: true if the process belongs to this test, so that it is not another one that got the same id.
is_ours() {
	local mine its

	{ read -r mine <"/proc/$$/stat" && read -r its <"/proc/$1/stat"; } 2>/dev/null || return
	# After the name: state, parent, process group, session.
	read -r _ _ _ mine _ <<<"${mine##*) }"
	read -r _ _ _ its _ <<<"${its##*) }"
	[[ $mine == "$its" ]]
}

# Without a process, as other conditions to wait for.
is_zombie() {
	local stat

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null && [[ ${stat##*) } == [ZX]* ]]
}

has_ended() {
	[[ ! -e /proc/$1 ]] || is_zombie "$1"
}

# kill_now PID...: sends SIGKILL, and returns when the processes have ended.
kill_now() {
	local pid

	kill -KILL "$@"
	for pid; do
		wait_until 60 has_ended "$pid"
	done
}

NAP=${BATS_FILE_TMPDIR:-$BATS_TEST_TMPDIR}/nap

# nap SECONDS: sleeps without a process, by reading a FIFO to which nothing is written. Only for loops that poll, and
# for processes that must be late.
nap() {
	[[ -p $NAP ]] || mkfifo "$NAP" || [[ -p $NAP ]]
	read -rt "$1" <>"$NAP" || true
}

# wait_until SECONDS COMMAND...: waits until the command succeeds. WAIT_FACTOR multiplies the time on slow machines. It
# looks less often as time passes, and the longer a look takes: a look costs 5 ms of CPU time or, if it reads a
# recording, seconds, and what is waited for needs the CPUs, too.
wait_until() {
	local deadline=$((SECONDS + $1 * ${WAIT_FACTOR:-1})) least_ms=10 began_us ms pause

	shift
	while true; do
		began_us=${EPOCHREALTIME/[.,]/}
		! "$@" || return 0
		if ((SECONDS > deadline)); then
			fail "waited in vain for: $*"
			return
		fi
		ms=$(((${EPOCHREALTIME/[.,]/} - began_us) / 1000))
		printf -v pause 0.%03d $((ms > 999 ? 999 : ms > least_ms ? ms : least_ms))
		nap "$pause"
		((least_ms >= 80)) || least_ms=$((least_ms * 2))
	done
}

# prefer PID: lets the process run whenever it can, however busy the machine is. A nice value would only count within
# its session (sched(7), "The autogroup feature"). The session must not be preferred as a whole: its busy targets then
# leave the kernel's threads so little time that nobody's probes are added or removed for a minute.
prefer() {
	chrt --all-tasks --rr --pid 1 "$1" 2>/dev/null || renice -n -20 -p "$1" >/dev/null
}

# evenly COMMAND...: runs the command whenever it can run, however busy the machine is, as prefer does. Verdicts depend on
# times: where the target waits for a CPU, its leak looks like a burst, and its start like growth.
evenly() {
	if chrt --rr 1 true 2>/dev/null; then
		chrt --rr 1 "$@"
	else
		"$@"
	fi
}

# set_niceness N: of the test's own shell, and of what it starts from now on. A shell that waits for its turn behind a
# busy target lets the target fill the recording meanwhile.
set_niceness() {
	renice -n "$1" -p "$BASHPID" >/dev/null
}

# contains FILE TEXT: without a process, as other conditions to wait for.
contains() {
	local contents

	IFS= read -rd '' contents <"$1" || true
	[[ $contents == *"$2"* ]]
}

# has_grown_to FILE BYTES
has_grown_to() {
	(($(stat -c %s "$1") >= $2))
}

# --- Targets ---

# start_target NAME [ARG...]: starts the target with --wait, and returns when it is ready. RECORDED_PID is the process
# that does the work, TARGET_PID the one that was started.
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

# Reaps the target, whose status is then in TARGET_STATUS. With job control, wait also returns when leakrec stops it.
target_is_reaped() {
	TARGET_STATUS=0
	wait "$TARGET_PID" || TARGET_STATUS=$?
	((TARGET_STATUS != 128 + 19)) # SIGSTOP
}

# Stores the target's true counts and reaps it.
finish_target() {
	cat <&"$TARGET_OUT" >truth
	wait_until 60 target_is_reaped || return
	((!TARGET_STATUS)) || fail "the target ended with status $TARGET_STATUS: $(cat target.err)" || return
	exec {TARGET_IN}>&- {TARGET_OUT}<&-
}

# True when leakrec has said that it records; its messages are in leakrec.err.
is_recording() {
	contains leakrec.err 'leakrec: recording ' || has_ended "$1"
}

# attach [OPTION...]: starts leakrec in the background, with -p for the target unless the options say otherwise. Returns
# when leakrec records.
attach() {
	local pid=(-p "$RECORDED_PID")

	[[ ! ${1:-} =~ ^(-p|-a|--cgroup)$ ]] || pid=()
	: >leakrec.err # what an earlier one said there is not to be taken for this one's
	"$BIN/leakrec" "${pid[@]}" -m 512 -o perf.data "$@" 2>leakrec.err 3>&- &
	LEAKREC_PID=$!
	STARTED_PIDS+=("$LEAKREC_PID")
	wait_until 60 is_recording "$LEAKREC_PID"
	contains leakrec.err 'leakrec: recording ' || fail "leakrec ended before it recorded: $(cat leakrec.err)"
}

# leakrec ends by itself when its target has ended.
finish_leakrec() {
	wait "$LEAKREC_PID" || {
		local status=$?

		cat leakrec.err
		fail "leakrec ended with status $status"
	}
}

# record_attached "TARGET ARG..." [OPTION...]: attaches to a target and records it until it ends.
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

# record_command "TARGET ARG..." [OPTION...]: the same for a target that leakrec starts, by $RECORD_BY if that is set.
record_command() {
	local target

	read -ra target <<<"$1"
	shift
	"${RECORD_BY:-command}" "$BIN/leakrec" -m 512 -o perf.data "$@" -- "$TARGETS/${target[0]}" "${target[@]:1}" \
		>truth 2>leakrec.err || {
		cat leakrec.err
		fail "leakrec failed"
	}
	parse
}

# record_evenly "TARGET ARG..." [OPTION...]: the same for verdicts.
record_evenly() {
	RECORD_BY=evenly record_command "$@"
}

# recorded NAME "TARGET ARG..." [OPTION...]: the same, but records only once for all tests of the file with that NAME.
recorded() {
	local kept=$BATS_FILE_TMPDIR/$1

	if [[ ! -e $kept ]]; then
		record_command "${@:2}"
		! was_late || return 0
		mkdir "$kept.new"
		cp truth perf.data leaks leakrec.err "$kept.new"
		mv "$kept.new" "$kept"
	fi
	cp "$kept"/* .
	rm -f events
}

parse() {
	rm -f events
	# In time order, recordings of the same program can be compared. Other orders use verdicts, which depend on
	# times.
	"$BIN/leakparse" --order time <perf.data >leaks
}

# --- Comparisons ---

# Sets EVENTS_PER_MALLOC. Without single-trap points (docs/placement.md) only sessions record a call as one event, and
# AArch64 does not have such points yet.
count_without_single_traps() {
	EVENTS_PER_MALLOC=1
	"$BIN/leakrec" -v -o way.data -- true 2>way
	grep -qF '(session)' way || EVENTS_PER_MALLOC=2
}

count_events_per_malloc() {
	# shellcheck disable=SC2034 # for the tests
	EVENTS_PER_MALLOC=1
	[[ $(uname -m) == x86_64 ]] || count_without_single_traps
}

# truth NAME: prints the target's own count; 0 if it printed none.
truth() {
	local lines line value=0

	mapfile -t lines <truth
	for line in "${lines[@]}"; do
		[[ $line != "truth $1 "* ]] || value=${line#"truth $1 "}
	done
	echo "$value"
}

# summary KEY: prints a value of leakparse's summary line.
summary() {
	summary_value "$1"
	echo "$REPLY"
}

# Stores it in REPLY.
summary_value() {
	local line

	REPLY=missing
	while read -r line; do
		[[ $line == "# summary "* ]] || continue
		[[ " $line " != *" $1="* ]] || REPLY=${line#*" $1="} REPLY=${REPLY%% *}
		break
	done <leaks
}

# events NAME...: prints how many events of these names perf script finds in perf.data.
events() {
	local nr name sum=0

	[[ -e events ]] || perf script -i perf.data -F event 2>/dev/null |
		awk '{ sub(/: *$/, ""); sub(/.*[: ]/, ""); n[$0]++ } END { for (name in n) print n[name], name }' >events
	while read -r nr name; do
		[[ " $* " != *" $name "* ]] || sum=$((sum + nr))
	done <events
	echo $sum
}

# assert_equal WHAT ACTUAL EXPECTED
assert_equal() {
	[[ $2 == "$3" ]] || fail "$1: $2, but it should be $3"
}

assert_summary() {
	summary_value "$1"
	assert_equal "summary $1" "$REPLY" "$2"
}

# Compares the target's counts with leakparse's. They must be equal.
assert_truth() {
	local wrong=0 line

	read -r line <leaks || true
	[[ $line == '# leaks 2' ]] || fail "no leaks file"
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

# Compares the leaks by size, as lines "SIZE NUMBER" of the target and of leakparse. The target does not count sizes of
# 64 KiB and more separately.
assert_sizes() {
	awk 'FILENAME == "truth" && $1 == "truth" && $2 ~ /^held_[0-9]+$/ { held[substr($2, 6)] += $3 }
	FILENAME == "leaks" && $1 == "leak" && $2 < 65536 { leaks[$2]++ }
	END {
		for (size in held)
			if (held[size] != leaks[size] + 0)
				wrong = wrong sprintf("\n%s bytes: %s leaks, but it should be %s", size, leaks[size] + 0, held[size])
		for (size in leaks)
			if (!(size in held))
				wrong = wrong sprintf("\n%s bytes: %s leaks, but it should be none", size, leaks[size])
		if (wrong != "")
			print "leaks by size differ:" wrong >"/dev/stderr"
		exit wrong != ""
	}' truth leaks
}

# leaks_of PID: prints lines "SIZE NUMBER".
leaks_of() {
	awk -v pid="$1" '$1 == "leak" && $6 == pid { n[$2]++ } END { for (s in n) print s, n[s] }' leaks | sort
}

# assert_held_by PID: the process holds what it counted itself, whatever other processes hold.
assert_held_by() {
	sed -nE 's/^truth held_([0-9]+) ([0-9]+)$/\1 \2/p' truth | sort >sizes.truth
	leaks_of "$1" | diff sizes.truth - || fail "leaks of $1 differ (<: the target's, >: leakparse's)"
}

# assert_events [--more-frees]: each function has as many events, at entry and return, as the target made calls.
# --more-frees allows more frees, because a thread's exit frees memory by itself.
assert_events() {
	local name wrong=0 ret

	for name in malloc calloc realloc posix_memalign valloc pvalloc; do
		# A call is recorded as one event or as two.
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

# Checks that the summary accounts for every free event.
assert_frees_classified() {
	local by_realloc accounted

	by_realloc=$(truth frees_by_realloc)
	accounted=$(($(summary frees) - by_realloc + $(summary null_frees) +
		$(summary thread_exit_frees) + $(summary free_unknown) + $(summary double_free)))
	assert_equal "frees accounted for" "$accounted" "$(events free)"
}

# assert_no_unexpected: no operation is listed as unexpected.
assert_no_unexpected() {
	if grep '^unexpected' leaks; then
		fail "nothing unexpected happened"
	fi
}

# with_stacks [FILE]: prints FILE (by default "leaks") in version 1, in which each leak has its function and is followed
# by its frames.
with_stacks() {
	awk -f "$SOURCE_DIR/test/integration/support/leaks_1.awk" "${1:-leaks}"
}

# Replaces the file "leaks" by that.
expand_stacks() {
	mv leaks leaks.2
	with_stacks leaks.2 >leaks
}

# leak_stacks SIZE: prints for each leak of that size a line with the functions of its stack, innermost first.
leak_stacks() {
	with_stacks | awk -v size="$1" '
		function flush() { if (stack != "") print stack; stack = "" }
		/^[^\t]/ { flush(); wanted = $1 == "leak" && $2 == size }
		/^\t/ && wanted { name = $1; sub(/\+0x.*/, "", name); stack = stack " " name }
		END { flush() }'
}
