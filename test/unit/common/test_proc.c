/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is read from /proc. */
#include "common/proc/living_thread.h"
#include "common/proc/proc_file.h"
#include "common/proc/process_maps.h"
#include "common/proc/process_memory.h"
#include "common/proc/process_namespace.h"
#include "common/proc/process_stat.h"
#include "common/proc/process_status.h"
#include "common/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void files_are_read_whole_or_cut(void **state)
{
	char comm[32], cut[4];
	pid_t gone = fork();
	FILE *file = proc_file_open(getpid(), "comm");

	assert_int_equal(proc_file_read(getpid(), "comm", comm, sizeof(comm)), 0);
	assert_string_equal(comm, "test_proc\n");
	assert_int_equal(proc_file_read(getpid(), "comm", cut, sizeof(cut)), 0);
	assert_string_equal(cut, "tes");
	assert_non_null(fgets(comm, sizeof(comm), file));
	assert_string_equal(comm, "test_proc\n");
	fclose(file);
	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	assert_int_equal(proc_file_read(gone, "comm", comm, sizeof(comm)), -ESRCH);
	assert_null(proc_file_open(gone, "comm"));
}

static void paths_name_processes_and_their_mappings(void **state)
{
	char path[PROC_FILE_PATH_SIZE];

	proc_file_path(path, 12, "exe");
	assert_string_equal(path, "/proc/12/exe");
	proc_file_mapping_path(path, INT32_MAX, UINT64_MAX - 1, UINT64_MAX);
	assert_string_equal(path, "/proc/2147483647/map_files/fffffffffffffffe-ffffffffffffffff");
}

static void numbers_are_found_at_the_beginning_of_lines(void **state)
{
	static const char text[] = "Name:\tTgid: 7\nTgid:\t12\nEmpty:\t\nLast:  34 kB";
	uint64_t number;

	assert_int_equal(proc_file_number(text, "Tgid:", &number), 0);
	assert_int_equal(number, 12);
	assert_int_equal(proc_file_number(text, "Last:", &number), 0);
	assert_int_equal(number, 34);
	assert_int_equal(proc_file_number(text, "Empty:", &number), -ENODATA);
	assert_int_equal(proc_file_number(text, "gid:", &number), -ENODATA);
	assert_int_equal(proc_file_number("", "Tgid:", &number), -ENODATA);
}

static void status_tells_of_this_process(void **state)
{
	struct process_status status;
	struct process_stat stat;
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(process_status_read(getpid(), &status), 0);
	assert_int_equal(status.tgid, getpid());
	assert_int_equal(status.effective_uid, geteuid());
	assert_true(status.code_bytes > 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(process_status_tracer(child), getpid());
	assert_int_equal(process_stat_read(child, &stat), 0);
	assert_int_equal(stat.state, 't');
	assert_int_equal(stat.parent, getpid());
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(process_status_tracer(child), -ESRCH);
}

static void memory_is_told_of_the_living(void **state)
{
	_cleanup_close_ int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			    gone = -1;
	struct process_memory memory;
	char path[32];
	pid_t child;

	assert_int_equal(process_memory_parse("Name:\tRssAnon:\nRssAnon:\t   4 kB\nRssFile: 3 kB\n"
					      "RssShmem: 2 kB\nVmData: 9 kB\nVmSwap: 1 kB\n",
					      &memory),
			 0);
	assert_int_equal(memory.anon_bytes, 4096);
	assert_int_equal(memory.file_bytes, 3072);
	assert_int_equal(memory.shared_bytes, 2048);
	assert_int_equal(memory.swap_bytes, 1024);
	assert_int_equal(memory.data_bytes, 9216);
	assert_int_equal(process_memory_parse("Name:\tkthreadd\n", &memory), -ENODATA);
	assert_int_equal(process_memory_read_at(self, &memory), 0);
	assert_true(memory.anon_bytes > 0 && memory.file_bytes > 0);
	child = fork();
	if (child == 0)
		_exit(0);
	snprintf(path, sizeof(path), "/proc/%d", (int)child);
	gone = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(gone >= 0);
	assert_int_equal(waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_memory_read_at(gone, &memory), -ENODATA);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(process_memory_read_at(gone, &memory) < 0);
}

static void *wait_forever(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static void another_thread_is_found_when_the_first_has_ended(void **state)
{
	struct process_memory memory;
	struct process_namespace namespace;
	char path[PROC_FILE_PATH_SIZE];
	pid_t living_two[2];
	pthread_t thread;
	pid_t child = fork(), living;
	int proc_fd;

	if (child == 0) {
		pthread_create(&thread, NULL, wait_forever, NULL);
		syscall(SYS_exit, 0);
	}
	while ((living = living_thread(child)) == child)
		usleep(1000);
	assert_true(living > 0);
	proc_file_path(path, child, "");
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(living_thread_at(proc_fd), living);
	assert_int_equal(living_threads_lasting(child, living_two, 2), 1);
	assert_int_equal(living_two[0], living);
	assert_false(living_thread_is_ending(living));
	assert_true(living_thread_is_ending(child));
	assert_true(living_thread_has_memory(living));
	assert_false(living_thread_has_memory(child));
	assert_int_equal(process_memory_read_at(proc_fd, &memory), 0);
	assert_true(memory.anon_bytes > 0);
	process_namespace_read(child, &namespace);
	assert_int_equal(namespace.own_pid, child);
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT), 0);
	assert_int_equal(living_thread(child), child);
	assert_int_equal(living_thread_at(proc_fd), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(living_thread(child), child);
	assert_int_equal(living_thread(getpid()), getpid());
	close(proc_fd);
}

static void maps_lines_are_parsed(void **state)
{
	char code[] = "7f92a64ef000-7f92a6645000 r-xp 00026000 fe:00 332835    /usr/lib/a b.so\n";
	char data[] =
		"7f92a669c000-7f92a669e000 rw-p 001d3000 fe:00 332835    /usr/lib/libc.so.6\n";
	char heap[] = "561d5cb90000-561d5cbb1000 rwxp 00000000 00:00 0         [heap]\n";
	char none[] = "7f92a669e000-7f92a66ab000 r-xp 00000000 00:00 0 \n";
	char broken[] = "7f92a669e000-7f92a66ab000 r-xp\n";
	char backwards[] = "2000-1000 r-xp 00000000 fe:00 1 /x\n";
	struct process_mapping mapping;

	assert_int_equal(process_maps_parse_line(code, &mapping), 0);
	assert_true(process_mapping_is_code(&mapping));
	assert_int_equal(mapping.start, 0x7f92a64ef000);
	assert_int_equal(mapping.end, 0x7f92a6645000);
	assert_string_equal(mapping.permissions, "r-xp");
	assert_int_equal(mapping.file_offset, 0x26000);
	assert_int_equal(mapping.major, 0xfe);
	assert_int_equal(mapping.minor, 0);
	assert_int_equal(mapping.inode, 332835);
	assert_string_equal(mapping.path, "/usr/lib/a b.so");
	assert_int_equal(process_maps_parse_line(data, &mapping), 0);
	assert_false(process_mapping_is_code(&mapping));
	assert_int_equal(process_maps_parse_line(heap, &mapping), 0);
	assert_false(process_mapping_is_code(&mapping));
	assert_int_equal(process_maps_parse_line(none, &mapping), 0);
	assert_false(process_mapping_is_code(&mapping));
	assert_int_equal(process_maps_parse_line(broken, &mapping), -EINVAL);
	assert_int_equal(process_maps_parse_line(backwards, &mapping), -EINVAL);
}

static void stat_is_parsed_past_odd_names(void **state)
{
	struct process_stat stat;

	assert_int_equal(process_stat_parse("12 (a) b) R) Z 1 2 3 4 5 2097152 7 8 9 10 11 12 13 "
					    "14 15 16 17 18 424242 19\n",
					    &stat),
			 0);
	assert_int_equal(stat.state, 'Z');
	assert_true(stat.kernel_thread);
	assert_int_equal(stat.nr_threads, 17);
	assert_false(process_stat_is_dead(&stat));
	stat.nr_threads = 1;
	assert_true(process_stat_is_dead(&stat));
	assert_int_equal(stat.start_time_ticks, 424242);
	assert_int_equal(process_stat_parse("12 (a) R 1 2", &stat), -EINVAL);
	assert_int_equal(process_stat_parse("12 (a)", &stat), -EINVAL);
	assert_int_equal(process_stat_parse("", &stat), -EINVAL);
}

static void paths_are_those_from_a_process_own_root(void **state)
{
	struct process_namespace namespace = {.root = "/srv/box"};

	assert_string_equal(process_namespace_path(&namespace, "/srv/box/lib/libc.so.6"),
			    "/lib/libc.so.6");
	assert_string_equal(process_namespace_path(&namespace, "/srv/box2/libc.so.6"),
			    "/srv/box2/libc.so.6");
	assert_string_equal(process_namespace_path(&namespace, "/srv/box"), "/srv/box");
	assert_string_equal(process_namespace_path(&namespace, "[vdso]"), "[vdso]");
	namespace.root[0] = '\0';
	assert_string_equal(process_namespace_path(&namespace, "/lib/libc.so.6"), "/lib/libc.so.6");
}

static void a_process_of_this_namespace_is_in_no_container(void **state)
{
	char name[PROCESS_NAME_MAX], expected[PROCESS_NAME_MAX];

	snprintf(expected, sizeof(expected), "process %d", (int)getpid());
	assert_false(process_namespace_format_name(getpid(), name));
	assert_string_equal(name, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_read_whole_or_cut),
		cmocka_unit_test(paths_name_processes_and_their_mappings),
		cmocka_unit_test(numbers_are_found_at_the_beginning_of_lines),
		cmocka_unit_test(status_tells_of_this_process),
		cmocka_unit_test(memory_is_told_of_the_living),
		cmocka_unit_test(another_thread_is_found_when_the_first_has_ended),
		cmocka_unit_test(maps_lines_are_parsed),
		cmocka_unit_test(stat_is_parsed_past_odd_names),
		cmocka_unit_test(paths_are_those_from_a_process_own_root),
		cmocka_unit_test(a_process_of_this_namespace_is_in_no_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
