#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Processes that fork while their parents, their programs or leakrec end. None is missed, and none stays stopped.

# shellcheck disable=SC2030,SC2031,SC2154 # as in bad_input.bats
bats_require_minimum_version 1.5.0
load ../support/helpers
load ../support/fork_follow

setup() {
	common_setup
}

teardown() {
	common_teardown
}

@test "followers: a parent that ends at once" {
	record_attached "fork_storm --orphan --threads 2 --forks 6"
	(($(truth workers) > 0))
	assert_storm
}

# The kernel sends SIGHUP to a stopped process group that becomes an orphan.
@test "followers: a daemon of a shell with job control" {
	set -m
	for _ in 1 2 3 4 5; do
		rm -f target.in target.out
		record_attached "fork_storm --orphan --threads 2 --forks 2"
		(($(truth workers) > 0)) || fail "the daemon was killed"
		assert_storm
	done
}

# The job's first process ends when it sees the daemon stopped for the second time (the first stop is for the fork). The
# daemon loads one new file after the other.
@test "followers: a daemon of a shell with job control loads libraries" {
	require_program cc
	cat >loads.c <<-'END'
		#include <dlfcn.h>
		#include <stdio.h>
		#include <sys/wait.h>
		#include <unistd.h>
		int main(void)
		{
			char line[32];
			int i = 0, status, nr_stops = 0;
			pid_t daemon;
			setvbuf(stdout, NULL, _IOLBF, 0);
			printf("ready %d\n", getpid());
			if (read(0, line, 1) != 1)
				return 1;
			daemon = fork();
			if (daemon > 0) {
				do
					i = waitpid(daemon, &status, WUNTRACED);
				while (WIFSTOPPED(status) && ++nr_stops < 2);
				_exit(i != daemon);
			}
			for (; i < 20; i++) {
				snprintf(line, sizeof(line), "./lib%d.so", i);
				if (!dlopen(line, RTLD_NOW))
					return 1;
			}
			printf("truth loaded %d\n", i);
			return 0;
		}
	END
	cc -o loads loads.c
	echo 'int answer(void) { return 42; }' | cc -shared -fPIC -o lib.so -xc -
	for i in {0..19}; do
		cp lib.so "lib$i.so"
	done
	set -m
	TARGETS=$PWD record_attached loads
	assert_equal "libraries that the daemon loaded" "$(truth loaded)" 20
}

@test "followers: a thread execs" {
	record_attached "fork_storm --from-thread"
	(($(truth execed) > 0))
	assert_storm
}
