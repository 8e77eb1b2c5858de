/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of tasks whose state is not kept with the task (task_state.bpf.h): who ends, leaves. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define AT_END	"forget_state"
#define AT_EXEC "after_exec"
#define TABLE	"spare_states"

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* Loads that program alone. */
static struct bpf_object *load(const char *name)
{
	struct bpf_object *object;
	struct bpf_program *program = NULL;
	struct bpf_map *map = NULL;

	libbpf_set_print(quiet);
	object = bpf_object__open_file(TEST_BUILD_DIR "/recorder/bpf_recorder.bpf.o", NULL);
	assert_non_null(object);
	while ((program = bpf_object__next_program(object, program)))
		bpf_program__set_autoload(program, strcmp(bpf_program__name(program), name) == 0);
	/* The programs read has_spare_states, and find no target. */
	while ((map = bpf_object__next_map(object, map))) {
		size_t size = bpf_map__value_size(map);
		void *values = malloc(size);

		assert_non_null(values);
		memset(values, 1, size);
		if (strstr(bpf_map__name(map), ".bss"))
			assert_int_equal(bpf_map__set_initial_value(map, values, size), 0);
		free(values);
	}
	if (bpf_object__load(object)) {
		bpf_object__close(object);
		return NULL;
	}
	return object;
}

static void add_state(const struct bpf_map *table, uint64_t id)
{
	void *state = calloc(1, bpf_map__value_size(table));

	assert_non_null(state);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(table), &id, state, BPF_NOEXIST), 0);
	free(state);
}

static bool has_state(const struct bpf_map *table, uint64_t id)
{
	void *state = calloc(1, bpf_map__value_size(table));
	bool found;

	assert_non_null(state);
	found = bpf_map_lookup_elem(bpf_map__fd(table), &id, state) == 0;
	free(state);
	return found;
}

/* A process, and its first thread's place in the table. */
static uint64_t start_task(const struct bpf_map *table, pid_t *ret)
{
	uint64_t id;

	*ret = fork();
	assert_true(*ret >= 0);
	while (!*ret)
		pause();
	id = (uint64_t)*ret << 32 | (uint32_t)*ret;
	add_state(table, id);
	return id;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void an_ended_task_has_no_state(void **state)
{
	struct bpf_object *object = load(AT_END);
	uint64_t ended_id, living_id;
	struct bpf_map *table;
	struct bpf_link *link;
	pid_t ended, living;

	(void)state;
	if (!object)
		skip();
	table = bpf_object__find_map_by_name(object, TABLE);
	link = bpf_program__attach(bpf_object__find_program_by_name(object, AT_END));
	assert_non_null(link);
	ended_id = start_task(table, &ended);
	living_id = start_task(table, &living);
	assert_true(has_state(table, ended_id));
	end(ended);
	assert_false(has_state(table, ended_id));
	assert_true(has_state(table, living_id));
	end(living);
	bpf_link__destroy(link);
	bpf_object__close(object);
}

/* Tells its id, and execs when it is told to. */
static void *run_exec(void *argument)
{
	const int *fds = argument;
	pid_t tid = gettid();
	char byte;

	if (write(fds[1], &tid, sizeof(tid)) == sizeof(tid) && read(fds[1], &byte, 1) == 1)
		execl("/bin/sleep", "sleep", "1000", (char *)NULL);
	_exit(1);
}

static void a_thread_that_execs_has_no_state(void **state)
{
	struct bpf_object *object = load(AT_EXEC);
	int fds[2];
	struct bpf_map *table;
	struct bpf_link *link;
	pthread_t thread;
	uint64_t id;
	pid_t pid, tid;

	(void)state;
	if (!object)
		skip();
	table = bpf_object__find_map_by_name(object, TABLE);
	link = bpf_program__attach(bpf_object__find_program_by_name(object, AT_EXEC));
	assert_non_null(link);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pthread_create(&thread, NULL, run_exec, fds);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &tid, sizeof(tid)), sizeof(tid));
	id = (uint64_t)pid << 32 | (uint32_t)tid;
	add_state(table, id);
	assert_int_equal(write(fds[0], "", 1), 1);
	for (int i = 0; i < 1000 && has_state(table, id); i++)
		usleep(10000);
	end(pid);
	assert_false(has_state(table, id));
	close(fds[0]);
	close(fds[1]);
	bpf_link__destroy(link);
	bpf_object__close(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ended_task_has_no_state),
		cmocka_unit_test(a_thread_that_execs_has_no_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
