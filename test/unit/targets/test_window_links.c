/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes a window is linked to when links fail. The links are stubs. */
#include "recorder/programs/bpf_windows.h"

#include "bpf_recorder.skel.h"
#include "common/proc/living_thread.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Process i has slot i of the table. */
#define FIRST	     300
#define NR_PROCESSES 64

static struct target_table table;
static int errors[NR_PROCESSES]; /* of the links to each process */
static size_t nr_tries;

struct target_table *bpf_recorder_target_table(const struct bpf_recorder *recorder)
{
	return &table;
}

int bpf_recorder_try_link(struct bpf_recorder *recorder, pid_t pid,
			  const struct probe_file **ret_file)
{
	int err = errors[pid - FIRST];

	nr_tries++;
	*ret_file = NULL;
	recorder->nr_links += !err;
	return err;
}

void bpf_recorder_unlink(struct bpf_recorder *recorder, size_t nr_kept,
			 const struct probe_file *file)
{
	recorder->nr_links = nr_kept;
}

struct apart_closing *bpf_recorder_begin_unlink(struct bpf_recorder *recorder, size_t nr_kept,
						const struct probe_file *file)
{
	recorder->nr_links = nr_kept;
	return NULL;
}

pid_t living_thread(pid_t pid)
{
	return pid;
}

bool living_thread_has_memory(pid_t tid)
{
	return true;
}

/* Opens a window. Returns how many processes are linked, and in @ret_tried how many were tried. */
static int open_window(struct bpf_recorder *recorder, size_t *ret_tried)
{
	uint64_t opened_ns;
	int nr;

	bpf_window_begin_unlink(recorder);
	nr_tries = 0;
	nr = bpf_window_open(recorder, UINT64_MAX / 2, &opened_ns);
	*ret_tried = nr_tries;
	return nr;
}

/* It has no links. The first window has been, whose failures are errors; others were warned of. */
static struct bpf_recorder *recorder_of(struct bpf_recorder_bpf *bpf)
{
	static struct bpf_recorder recorder;

	memset(&table, 0, sizeof(table));
	memset(errors, 0, sizeof(errors));
	for (int i = 0; i < NR_PROCESSES; i++)
		table.targets[i].tgid = (unsigned int)(FIRST + i);
	bpf->bss = calloc(1, sizeof(*bpf->bss));
	assert_non_null(bpf->bss);
	bpf->bss->window.nr = 1;
	recorder = (struct bpf_recorder){.bpf = bpf, .has_left_out = true};
	return &recorder;
}

static void one_process_without_memory_does_not_keep_the_others(void **state)
{
	struct bpf_recorder_bpf bpf;
	struct bpf_recorder *recorder = recorder_of(&bpf);
	size_t tried;

	errors[1] = -ENOMEM;
	/* This window ends with it, the next ones begin with it. */
	assert_int_equal(open_window(recorder, &tried), 1);
	assert_int_equal(open_window(recorder, &tried), NR_PROCESSES - 1);
	assert_int_equal(open_window(recorder, &tried), NR_PROCESSES - 1);
	assert_int_equal(recorder->nr_failed, 0);
	free(bpf.bss);
}

/* To try all of them would take long. But no window may begin with the same ones. */
static void many_processes_without_memory_are_tried_in_turn(void **state)
{
	struct bpf_recorder_bpf bpf;
	struct bpf_recorder *recorder = recorder_of(&bpf);
	size_t tried;

	for (int i = 0; i < NR_PROCESSES; i++)
		errors[i] = -ENOMEM;
	errors[NR_PROCESSES - 1] = 0;
	for (int i = 0; open_window(recorder, &tried) == 0; i++) {
		assert_int_equal(tried, 8);
		assert_true(i < NR_PROCESSES / 7);
	}
	/* The one that has memory came before the eighth failure; with it, the next one ends it. */
	assert_in_range(tried, 1, 9);
	assert_int_equal(recorder->nr_failed, 0);
	free(bpf.bss);
}

/* To try them would take long. */
static void without_descriptors_the_others_wait(void **state)
{
	struct bpf_recorder_bpf bpf;
	struct bpf_recorder *recorder = recorder_of(&bpf);
	size_t tried;

	for (int i = 0; i < NR_PROCESSES; i++)
		errors[i] = -EMFILE;
	assert_int_equal(open_window(recorder, &tried), 0);
	assert_int_equal(tried, 1);
	assert_int_equal(recorder->nr_failed, 1);
	free(bpf.bss);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process_without_memory_does_not_keep_the_others),
		cmocka_unit_test(many_processes_without_memory_are_tried_in_turn),
		cmocka_unit_test(without_descriptors_the_others_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
