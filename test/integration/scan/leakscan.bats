#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What leakscan does to the process that it scans, what it refuses, and what it does with bad input.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/scan

state_of() {
	awk '$1 == "State:" { print $2 }' "/proc/$1/status"
}

is_traced() {
	grep -q '^State:[[:space:]]*t' /proc/"$1"/task/*/status
}

# The target's own count grows: it runs.
assert_runs() {
	local before

	before=$(grep -c '^truth rounds' truth || true)
	echo >&"$REACH_IN"
	wait_until 60 eval "(( \$(grep -c '^truth rounds' truth) > $before ))"
	before=$(tail -n 1 truth)
	wait_until 60 eval "echo >&$REACH_IN; [[ \$(tail -n 1 truth) != '$before' ]]"
	! is_traced "$REACH_PID"
}

refused() {
	run ! "$BIN/leakscan" "${@:2}"
	echo "$output"
	[[ $output == *"$1"* && $output != *$'\n'* ]]
}

@test "leakscan: refuses what it cannot scan, with the reason" {
	refused "there is no such process" -p 4194303
	[[ ! -d /proc/2 ]] || [[ $(cat /proc/2/comm) != kthreadd ]] || refused "it is a kernel thread" -p 2
	refused "give a process (-p PID) or a core file" --blocks
	refused "exclude each other" -p 1 --blocks --all
	refused "exclude each other" -p 1 --format json --diff x
	refused "--diff needs --other-process" --core x --diff x
	refused "No such file" -p 1 --diff missing
	refused "--format takes json" -p 1 --format xml
	refused "takes an address like" -p 1 --why 55
	refused "for running processes" --core x --once
	refused "for running processes" --core x --stop
	refused "No such file" --core missing
}

@test "leakscan: refuses a process that is traced" {
	start_reach reach_churn --paced
	mkfifo commands
	"$TARGETS/debugger" "$REACH_PID" <>commands >debugger.out 2>&1 3>&- &
	STARTED_PIDS+=($!)
	kill -STOP "$REACH_PID"
	wait_until 60 grep -q attached debugger.out
	refused "is tracing it" -p "$REACH_PID"
	kill_now "$REACH_PID"
}

@test "leakscan: a process that is stopped stays so, one that runs goes on" {
	start_reach reach_churn --paced
	leakscan >screen
	assert_runs
	kill -STOP "$REACH_PID"
	wait_until 60 grep -q '^State:[[:space:]]*T' "/proc/$REACH_PID/status"
	leakscan >screen
	grep -q '^  held ' screen
	[[ $(state_of "$REACH_PID") == T ]]
	kill -CONT "$REACH_PID"
	assert_runs
	stop_reach
}

# How often the threads have left their CPUs.
switches_of() {
	cat "/proc/$1"/task/*/status | grep ctxt_switches
}

@test "leakscan: a process that sleeps is not stopped" {
	local before

	[[ $(id -u) == 0 && $(uname -m) == x86_64 && -e /sys/kernel/btf/vmlinux ]] || skip "needs BPF and x86-64"
	# reach_memory has pages that some kernels show to tracers only.
	start_reach reach_cxx
	# It says that it is ready, and then waits.
	wait_until 60 grep -q '^State:[[:space:]]*S' "/proc/$REACH_PID/status"
	before=$(switches_of "$REACH_PID")
	leakscan >screen
	grep -q '; it slept, and was not stopped$' screen
	grep -q '^Lost, with' screen
	[[ $(switches_of "$REACH_PID") == "$before" ]]
	[[ $(leakscan --format json | jq .process.pause_us) == 0 ]]
	leakscan --stop >screen
	grep -q '; it stood still for ' screen
	[[ $(switches_of "$REACH_PID") != "$before" ]]
	stop_reach
}

# kib_of PID Anonymous|Pss_Anon: the process's own memory; Pss_Anon: of what it shares, its part.
kib_of() {
	awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/smaps_rollup"
}

@test "leakscan: what a process shares since a fork stays shared" {
	local before

	perl -e '$x = "x" x (64 << 20); fork and sleep; syswrite(STDOUT, "ready $$\n"); sleep' >truth 3>&- &
	STARTED_PIDS+=($!)
	wait_until 60 says_ready $!
	scan_child
	STARTED_PIDS+=("$REACH_PID")
	wait_until 60 grep -q '^State:[[:space:]]*S' "/proc/$REACH_PID/status"
	before=$(kib_of "$REACH_PID" Pss_Anon)
	(($(kib_of "$REACH_PID" Anonymous) - before > 30 << 10))
	leakscan --once >screen
	(($(kib_of "$REACH_PID" Pss_Anon) < before + 1024))
	leakscan --once --stop >screen
	(($(kib_of "$REACH_PID" Pss_Anon) < before + 1024))
}

# A block's only pointer is in a register of the other process.
@test "leakscan: where another process runs in the same memory, nothing is called lost" {
	local how

	[[ $(id -u) == 0 && $(uname -m) == x86_64 && -e /sys/kernel/btf/vmlinux ]] || skip "needs BPF and x86-64"
	start_reach reach_threads --process
	for how in --pause-limit=30 --stop; do
		leakscan "$how" --blocks --not-held >blocks
		grep -q "^unknown 24 $(awk '$2 == "register-of-process" { print $4 }' truth) " blocks
		grep -q "another process uses its memory" blocks
	done
	stop_reach
}

# It sleeps before and after its memory is copied, which takes many times as long as it sleeps.
@test "leakscan: a process that runs now and then is stopped" {
	perl -e '$x = "x" x (64 << 20); syswrite(STDOUT, "ready"); select(undef, undef, undef, 0.0005) while 1' >truth 3>&- &
	STARTED_PIDS+=($!)
	wait_until 60 says_ready $!
	REACH_PID=$! leakscan --once >screen
	grep -q '; it stood still for ' screen
}

# Starts a scan, and returns when it has stopped the process; false if that was too short to be seen.
is_caught() {
	local state

	leakscan >screen 3>&- &
	SCAN=$!
	STARTED_PIDS+=("$SCAN")
	until read -r _ _ state _ <"/proc/$REACH_PID/stat" && [[ $state == t ]]; do
		if has_ended "$SCAN"; then
			wait "$SCAN" || true
			return 1
		fi
		nap 0.002
	done
}

@test "leakscan: a process that sleeps at the second look only was stopped" {

	perl -e '$x = "x" x (64 << 20); syswrite(STDOUT, "ready"); select(undef, undef, undef, 0.0005) until -e "quiet"; sleep' \
		>truth 3>&- &
	REACH_PID=$!
	STARTED_PIDS+=("$REACH_PID")
	wait_until 60 says_ready "$REACH_PID"
	wait_until 60 is_caught
	touch quiet
	wait "$SCAN"
	grep -q '; it stood still for ' screen
}

# Until the FIFO has a reader, the child of posix_spawn() runs in the memory of the process.
@test "leakscan: memory that a child uses, too, is not taken for that of a process that sleeps" {
	mkfifo fifo
	python3 -c 'import os
actions = [(os.POSIX_SPAWN_OPEN, 1, "fifo", os.O_WRONLY, 0)]
os.posix_spawn("/bin/true", ["true"], {}, file_actions=actions)' 3>&- &
	STARTED_PIDS+=($!)
	# Without a child, python may be waiting for the disk.
	wait_until 60 grep -q . "/proc/$!/task/$!/children"
	wait_until 60 grep -q '^State:[[:space:]]*D' "/proc/$!/status"
	refused "had not stopped" -p $! --pause-limit 20ms
	read -r <fifo || true
	wait $!
}

@test "leakscan: --pause-limit lets the process go" {
	start_reach reach_churn --paced --mib 100
	refused " --pause-limit" -p "$REACH_PID" --pause-limit 2ms
	assert_runs
	leakscan --pause-limit 20 --once >screen
	grep -qE '^  held +819,[0-9]{3} blocks' screen || grep -qE '^  held +82[0-9],[0-9]{3} blocks' screen
	stop_reach
}

@test "leakscan: a copy that would take the rest of the machine's memory is refused" {
	[[ $(id -u) == 0 ]] || skip "only root may mount"
	start_reach reach_churn --paced --mib 100
	echo "MemAvailable:   100000 kB" >meminfo
	run ! unshare -m --propagation private sh -ec 'mount --bind meminfo /proc/meminfo; exec "$@"' - \
		"$BIN/leakscan" -p "$REACH_PID" --pause-limit 30
	echo "$output"
	[[ $output == *"takes 1"*" MiB, and 97.7 MiB is available; "*"--core on another machine" && $output != *$'\n'* ]]
	# What is in swap has to come back.
	echo "MemAvailable:   300000 kB" >meminfo
	sed 's/^VmSwap:.*/VmSwap: 200000 kB/' "/proc/$REACH_PID/status" >status
	run ! unshare -m --propagation private sh -ec "mount --bind meminfo /proc/meminfo
		mount --bind status /proc/$REACH_PID/status"'; exec "$@"' - "$BIN/leakscan" -p "$REACH_PID" --pause-limit 30
	echo "$output"
	[[ $output == *", and 97.7 MiB is available; "* && $output != *$'\n'* ]]
	stop_reach
}

# Huge pages for the small parts of their stacks that are in use would take 2 MiB for each.
@test "leakscan: the copy of many stacks takes no more than they do" {
	python3 -c 'import os, threading
for _ in range(200):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()' >truth 3>&- &
	REACH_PID=$!
	STARTED_PIDS+=("$REACH_PID")
	wait_until 60 says_ready "$REACH_PID"
	leakscan --once >screen
	python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$BIN/leakscan" -p "$REACH_PID" --pause-limit 30 --once >kib
	cat kib
	(($(<kib) < $(kib_of "$REACH_PID" Anonymous) + (64 << 10)))
}

scan_in_cgroup() {
	unshare -m --propagation private sh -ec "mount --bind cgroup '$CGROUPS'"'; exec "$@"' - \
		"$BIN/leakscan" -p "$REACH_PID" --pause-limit 30 --once
}

@test "leakscan: a copy that would take the rest of its cgroup's memory is refused" {
	[[ $(id -u) == 0 ]] || skip "only root may mount"
	CGROUPS=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
	[[ -n $CGROUPS ]] || skip "cgroup v2 is not mounted"
	start_reach reach_churn --paced --mib 100
	# Without the controller, no cgroup has these files.
	mkdir cgroup
	echo max >cgroup/memory.max
	echo 150000000 >cgroup/memory.high
	echo 90000000 >cgroup/memory.current
	printf '%s\n' "anon 50000000" "inactive_file 10000000" "active_file 30000000" >cgroup/memory.stat
	run ! scan_in_cgroup
	echo "$output"
	[[ $output == *"takes 1"*" MiB, and 95.4 MiB is available in leakscan's cgroup; "* && $output != *$'\n'* ]]
	echo 1500000000 >cgroup/memory.high
	scan_in_cgroup
	stop_reach
}

# start_slow_reader: leakscan waits for who reads its output. It has written nothing before its last process.
start_slow_reader() {
	start_reach reach_memory
	mkfifo output
	exec {SLOW}<>output
	"$BIN/leakscan" -p "$REACH_PID" --pause-limit 30 --blocks >&"$SLOW" 3>&- &
	SCAN_PID=$!
	STARTED_PIDS+=("$SCAN_PID")
	read -r <&"$SLOW"
}

@test "leakscan: if memory is exhausted, the kernel ends leakscan first" {
	start_slow_reader
	[[ $(<"/proc/$SCAN_PID/oom_score_adj") == 1000 && $(cat /proc/"$(pgrep -P "$SCAN_PID" leak-reader)"/oom_score_adj) == 1000 ]]
	kill_now "$SCAN_PID"
	stop_reach
}

@test "leakscan: its analysis ends with it, and so does its broker" {
	local children child

	start_slow_reader
	mapfile -t children < <(pgrep -P "$SCAN_PID")
	[[ $(id -u) != 0 ]] || ((${#children[@]} == 2))
	kill_now "$SCAN_PID"
	for child in "${children[@]}"; do
		wait_until 60 has_ended "$child"
	done
	stop_reach
}

# leakscan_with DEED [OPTION...]: a libelf that the target's file has taken over does DEED (test/targets/libraries/bad_libelf.c).
leakscan_with() {
	BAD_DEED=$1 BAD_GAIN=$PWD/gained BAD_INODE=$(stat -c %i "$TARGETS/reach_memory") \
		LD_PRELOAD=$BUILD_DIR/test/targets/lib/libbad_libelf.so leakscan "${@:2}"
}

@test "leakscan: root's analysis can open nothing, start nothing and reach nobody" {
	[[ $(id -u) == 0 ]] || skip "only root has rights that the analysis gives up"
	start_reach reach_memory
	# Whoever may open files could make one here.
	chmod 777 .
	leakscan --once --blocks >good
	leakscan_with attack --once --blocks >attacked
	cmp good attacked
	run ! leakscan_with crash --once --blocks
	[[ $output == *"the analysis was ended by signal 11"* ]]
	[[ $(compgen -G "gained.*") == "" ]]
	stop_reach
}

# disturb SIGNAL: sends it to a leakscan that has stopped the target. Fails if it was too late.
disturb() {
	local state scan

	"$BIN/leakscan" -p "$REACH_PID" --pause-limit 3 --once >/dev/null 2>&1 3>&- &
	scan=$!
	STARTED_PIDS+=("$scan")
	until read -r _ _ state _ <"/proc/$REACH_PID/stat" && [[ $state == t ]]; do
		! has_ended "$scan" || return 1
		nap 0.002
	done
	kill "-$1" "$scan"
	if ! wait_until 10 has_ended "$scan"; then
		[[ $(state_of "$REACH_PID") != t ]] || touch left-stopped
		kill_now "$scan"
		return 1
	fi
	! wait "$scan"
}

@test "leakscan: when it is killed or stopped, the process goes on" {
	start_reach reach_churn --paced --mib 200
	wait_until 60 disturb KILL
	assert_runs
	wait_until 60 disturb STOP
	assert_runs
	[[ ! -e left-stopped ]] || fail "leakscan was stopped, and the process with it"
	stop_reach
}

@test "leakscan: while nobody reads its message, the process goes on" {
	local message scan status=0

	start_reach reach_churn --paced --mib 100
	mkfifo message
	exec {message}<>message
	head -c 65536 /dev/zero >&"$message" # a full pipe
	"$BIN/leakscan" -p "$REACH_PID" --pause-limit 2ms >/dev/null 2>message 3>&- &
	scan=$!
	STARTED_PIDS+=("$scan")
	wait_until 60 grep -qE '^(1|64) 0x2 ' "/proc/$scan/syscall" # write(2, ...), also on aarch64
	sleep 2 # if the process still stood still, the guard of the pause would end leakscan after 1 s
	assert_runs
	head -c 65536 <&"$message" >/dev/null
	wait "$scan" || status=$?
	((status == 1))
	stop_reach
}

@test "leakscan: works without privileges for one's own processes" {
	[[ $(id -u) == 0 ]] || skip "only root can become somebody else"
	chmod 755 . "$BATS_TEST_TMPDIR"
	mkfifo in
	setpriv --reuid 65534 --regid 65534 --clear-groups "$TARGETS/reach_memory" <in >truth 3>&- &
	REACH_PID=$!
	STARTED_PIDS+=("$REACH_PID")
	exec {REACH_IN}>in
	wait_until 60 says_ready "$REACH_PID"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$BIN/leakscan" -p "$REACH_PID" --blocks >blocks
	compare_cases
	stop_reach
}

@test "leakscan: an allocator that it does not know" {
	start_target musl_cases_static
	REACH_PID=$RECORDED_PID
	leakscan --once >screen
	grep -q "No allocator that leakscan knows was found" screen
	grep -q '^leakparse --summary show what grows' screen
}

@test "leakscan: damaged core files end in a message or a result" {
	require_program gcore
	start_reach reach_memory_static
	gcore -o core "$REACH_PID" >gcore.out 2>&1
	stop_reach
	mv core.* good.core
	python3 - "$BIN/leakscan" <<-'END'
		import random, subprocess, sys
		good = open("good.core", "rb").read()
		rng = random.Random(7)
		for i in range(40):
		    bad = bytearray(good)
		    if i % 4 == 0:
		        del bad[rng.randrange(len(bad)):]
		    for _ in range(rng.choice((1, 20, 2000))):
		        at = rng.randrange(min(len(bad), 8192 if i % 2 else len(bad)) or 1)
		        if at < len(bad):
		            bad[at] = rng.choice((0, 255, 1, 127, rng.randrange(256)))
		    open("bad.core", "wb").write(bad)
		    done = subprocess.run([sys.argv[1], "--core", "bad.core", "--all"], timeout=60, capture_output=True)
		    assert done.returncode in (0, 1), (i, done.returncode, done.stderr)
		    assert b"ended by signal" not in done.stderr, (i, done.stderr)
	END
}

@test "leakscan: a full disk is reported" {
	start_reach reach_memory
	run ! leakscan --once --blocks -o /dev/full
	[[ $output == *"No space left on device"* ]]
	stop_reach
}
