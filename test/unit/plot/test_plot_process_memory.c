/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plot/memory/process_memory.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ONE_HOUR_NS 3600000000000
#define BLOCK_BYTES ((size_t)16 << 20)

/* Starts a child that waits until it is killed. */
static pid_t fork_sleeper(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	while (pid == 0) /* NOLINT(bugprone-infinite-loop): it waits for a signal */
		pause();
	return pid;
}

static void end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Both sources count blocks that were written to, not reserved ones. */
static void assert_sees_blocks(uint64_t read_ns_max, bool use_status)
{
	struct process_memory process;
	struct memory_sample before, reserved, written;

	assert_int_equal(process_memory_open(getpid(), read_ns_max, &process), 0);
	assert_int_equal(process.use_status, use_status);
	assert_int_equal(process_memory_read(&process, &before), 0);
	char *block =
		mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(block, MAP_FAILED);
	assert_int_equal(process_memory_read(&process, &reserved), 0);
	memset(block, 1, BLOCK_BYTES);
	assert_int_equal(process_memory_read(&process, &written), 0);
	munmap(block, BLOCK_BYTES);

	/* The test itself allocates a little, too, above all with a sanitizer. */
	assert_true(reserved.heap_bytes < before.heap_bytes + BLOCK_BYTES / 2);
	assert_true(written.heap_bytes > before.heap_bytes + BLOCK_BYTES / 2);
	assert_true(written.rss_bytes > before.rss_bytes + BLOCK_BYTES / 2);
	assert_true(written.time_ns >= before.time_ns);
	process_memory_close(&process);
}

static void counted_pages_show_used_memory(void **state)
{
	assert_sees_blocks(ONE_HOUR_NS, false);
}

static void counters_show_used_memory(void **state)
{
	/* No read takes 0 ns, so the counters are used. */
	assert_sees_blocks(0, true);
}

static void the_name_is_the_processs(void **state)
{
	struct process_memory process;

	assert_int_equal(process_memory_open(getpid(), ONE_HOUR_NS, &process), 0);
	assert_int_equal(strncmp(process.name, "test_plot_proce", 15), 0);
	process_memory_close(&process);
}

static void an_exited_process_is_gone(void **state)
{
	struct process_memory process;
	struct memory_sample sample;
	pid_t pid = fork_sleeper();

	assert_int_equal(process_memory_open(pid, ONE_HOUR_NS, &process), 0);
	assert_int_equal(process_memory_read(&process, &sample), 0);
	end_sleeper(pid);
	assert_int_equal(process_memory_read(&process, &sample), -ESRCH);
	process_memory_close(&process);
	assert_true(process_memory_open(pid, ONE_HOUR_NS, &process) < 0);
}

static void a_zombie_has_no_memory(void **state)
{
	struct process_memory process;
	siginfo_t info;
	pid_t pid = fork_sleeper();

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(process_memory_open(pid, ONE_HOUR_NS, &process) < 0);
	end_sleeper(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted_pages_show_used_memory),
		cmocka_unit_test(counters_show_used_memory),
		cmocka_unit_test(the_name_is_the_processs),
		cmocka_unit_test(an_exited_process_is_gone),
		cmocka_unit_test(a_zombie_has_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
