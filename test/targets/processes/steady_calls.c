// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of the allocator, and the exact time of each, for recordings in windows. Each of --threads
 * N (4) threads allocates blocks, grows some by realloc() and frees them, until SIGTERM or, with
 * --calls N, until each has made that many calls. --pause-us N sleeps between two calls (0). At the
 * end, --log FILE has for each call "KIND ADDRESS BEGIN END": m or f, and CLOCK_MONOTONIC in ns
 * before and after it. A realloc is both: F of its old block and M of its new one. --fork-every N
 * has the first thread fork a child, which allocates and ends, at each Nth call; children are not
 * in the log.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 1024
#define MAX_CALLS   2000000 /* of all threads, that the log has room for */
#define NR_HELD	    32

struct call {
	uint64_t address, begin_ns, end_ns;
	char kind;
};

struct worker {
	pthread_t thread;
	struct call *calls;
	long nr, max;
};

static struct worker workers[MAX_THREADS];
static long nr_threads = 4, max_calls, pause_us, fork_every;
static volatile sig_atomic_t is_over;
static pthread_barrier_t go;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void end(int signal)
{
	is_over = 1;
}

static void note(struct worker *worker, char kind, void *address, uint64_t begin_ns)
{
	if (worker->nr < worker->max)
		worker->calls[worker->nr++] =
			(struct call){(uint64_t)address, begin_ns, now_ns(), kind};
}

static void *get(struct worker *worker, size_t size)
{
	uint64_t begin_ns = now_ns();
	void *block = malloc(size);

	note(worker, 'm', block, begin_ns);
	return block;
}

static void *grow(struct worker *worker, void *block, size_t size)
{
	uint64_t begin_ns = now_ns();
	void *grown = realloc(block, size);

	note(worker, 'F', block, begin_ns);
	note(worker, 'M', grown, begin_ns);
	return grown;
}

static void put(struct worker *worker, void *block)
{
	uint64_t begin_ns = now_ns();

	free(block);
	note(worker, 'f', block, begin_ns);
}

static void fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < 100; i++)
			free(malloc(100));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void *run(void *argument)
{
	struct worker *worker = argument;
	void *held[NR_HELD] = {NULL};

	pthread_barrier_wait(&go);
	for (long i = 0; !is_over && (!max_calls || i < max_calls); i++) {
		void **slot = &held[i * 7 % NR_HELD];

		if (!*slot)
			*slot = get(worker, 24 + (size_t)(i % 50) * 8);
		else if (i % 3 == 0)
			*slot = grow(worker, *slot, 24 + (size_t)(i % 90) * 16);
		else
			put(worker, *slot), *slot = NULL;
		if (pause_us)
			usleep((useconds_t)pause_us);
		if (fork_every && worker == workers && i % fork_every == 0)
			fork_child();
	}
	return NULL;
}

static void write_log(FILE *log)
{
	for (long i = 0; i < nr_threads && log; i++)
		for (long j = 0; j < workers[i].nr; j++)
			fprintf(log, "%c %llx %llu %llu\n", workers[i].calls[j].kind,
				(unsigned long long)workers[i].calls[j].address,
				(unsigned long long)workers[i].calls[j].begin_ns,
				(unsigned long long)workers[i].calls[j].end_ns);
	if (log)
		fclose(log);
}

static void parse(int argc, char **argv, FILE **ret_log)
{
	for (int i = 1; i + 1 < argc; i++) {
		const char *value = argv[i + 1];

		if (strcmp(argv[i], "--threads") == 0)
			nr_threads = atol(value);
		else if (strcmp(argv[i], "--calls") == 0)
			max_calls = atol(value);
		else if (strcmp(argv[i], "--pause-us") == 0)
			pause_us = atol(value);
		else if (strcmp(argv[i], "--fork-every") == 0)
			fork_every = atol(value);
		else if (strcmp(argv[i], "--log") == 0)
			*ret_log = fopen(value, "w");
	}
}

static void start_threads(void)
{
	pthread_barrier_init(&go, NULL, (unsigned int)nr_threads + 1);
	for (long i = 0; i < nr_threads; i++) {
		struct worker *worker = &workers[i];

		worker->max = MAX_CALLS / nr_threads;
		worker->calls = calloc((size_t)worker->max, sizeof(*worker->calls));
		if (!worker->calls || pthread_create(&worker->thread, NULL, run, worker))
			exit(1);
	}
}

int main(int argc, char **argv)
{
	static char buffer[1 << 16];
	FILE *log = NULL;
	char line;

	parse(argc, argv, &log);
	/* From now on nothing but the workers allocates. */
	if (log)
		setvbuf(log, buffer, _IOFBF, sizeof(buffer));
	signal(SIGTERM, end);
	start_threads();
	dprintf(STDOUT_FILENO, "ready %d\n", (int)getpid());
	if (read(STDIN_FILENO, &line, 1) < 0)
		return 1;
	pthread_barrier_wait(&go);
	for (long i = 0; i < nr_threads; i++)
		pthread_join(workers[i].thread, NULL);
	write_log(log);
	_exit(0);
}
