/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fills two caches that variables hold, one that only a thread's stack does, and one whose first
 * block is known to a mapping right behind the variables, for a recording that begins when it
 * waits: reach_holders BLOCKS. After "go" on stdin it allocates BLOCKS blocks for each; then it
 * says "ready" and waits for the end of stdin.
 */
#include "reach.h"

#include <pthread.h>
#include <sys/mman.h>

struct query {
	char bytes[3000];
};

struct session {
	struct session *next;
	char bytes[4000];
};

struct job {
	struct job *next;
	char bytes[5000];
};

struct note {
	struct note *next;
	char bytes[6000];
};

static struct {
	long nr;
	struct query **queries;
} query_cache;

static struct session *session_list;
static long nr_blocks;
static pthread_barrier_t barrier;

extern char _end[]; /* the linker's: behind all variables */

static REACH_CASE void cache_query(void)
{
	query_cache.queries[query_cache.nr++] = block_of(sizeof(struct query));
}

static REACH_CASE void begin_session(void)
{
	struct session *session = block_of(sizeof(*session));

	session->next = session_list;
	session_list = session;
}

/* The kernel makes one mapping of this and the variables without a value, if there is room. */
static REACH_CASE struct note **map_behind_variables(void)
{
	char *end = _end + (-(uintptr_t)_end & 4095);
	void *page = mmap(end, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		abort();
	return page;
}

static REACH_CASE void add_note(struct note **first)
{
	struct note *note = block_of(sizeof(*note));

	note->next = *first;
	*first = note;
}

static REACH_CASE struct job *add_job(struct job *first)
{
	struct job *job = block_of(sizeof(*job));

	job->next = first;
	return job;
}

static void *serve(void *unused)
{
	struct job *volatile jobs = NULL;

	for (long i = 0; i < nr_blocks; i++)
		jobs = add_job(jobs);
	clear_stack();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return jobs ? unused : NULL;
}

int main(int argc, char **argv)
{
	struct note **notes = map_behind_variables();
	char line[32];
	pthread_t thread;

	nr_blocks = argc > 1 ? atol(argv[1]) : 0;
	query_cache.queries = need(calloc((size_t)nr_blocks + 1, sizeof(struct query *)));
	pthread_barrier_init(&barrier, NULL, 2);
	puts("waits");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin) || strncmp(line, "go", 2) != 0)
		return 0;
	if (pthread_create(&thread, NULL, serve, NULL))
		return 1;
	for (long i = 0; i < nr_blocks; i++) {
		cache_query();
		begin_session();
		add_note(notes);
	}
	pthread_barrier_wait(&barrier);
	wait_for_line();
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	return 0;
}
