// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The program that test/bench/recorders and test/bench/parser record: --threads N threads share
 * --pairs N pairs of malloc(--size BYTES) and free. They do nothing else, as fast as they can, from
 * a stack of 12 frames. With --paths N, from so many stacks in turn.
 *
 * Prints "ready PID", reads a line from stdin (recorders attach meanwhile) and begins. At the end
 * it prints
 *
 *	pairs 200000 seconds 0.612345678 us_per_pair 3.062 held 2
 *
 * The seconds are from the first thread's first pair to the last thread's last one, by
 * CLOCK_MONOTONIC. us_per_pair is the time of one thread's pair. Each thread allocates one block
 * before and one after this time, and does not free them: a recorder that has "held" blocks of this
 * size has seen the whole time.
 *
 * The threads exist before a recorder attaches, end only with the process, and print nothing in
 * between. So glibc allocates and frees nothing for them during the recording.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 1024
/* run_thread() and its caller start_thread() are the other two of the 12 frames. */
#define DEPTH	  10
#define MAX_PATHS (1L << (DEPTH - 2)) /* of choose_path() below descend() */

struct pairs_thread {
	pthread_t thread;
	long long began_ns, ended_ns;
	void *first, *last;
};

static long nr_threads = 1, nr_pairs = 200000, size_bytes = 100, nr_paths = 1, pairs_each;
static struct pairs_thread threads[MAX_THREADS];
static pthread_barrier_t go, done;

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline __attribute__((always_inline)) void make_pair(void)
{
	void *block = malloc((size_t)size_bytes);

	__asm__ volatile("" : : "r"(block) : "memory"); /* the pair is not optimised away */
	free(block);
}

/* The bits of @path tell from which of two places each level is called. */
static void __attribute__((noinline)) choose_path(long path, int depth)
{
	if (depth == 0) {
		make_pair();
	} else if (path & 1) {
		__asm__ volatile("# one"); /* the calls are not made one */
		choose_path(path >> 1, depth - 1);
		__asm__ volatile("# one"); /* no tail call: a frame for each level */
	} else {
		__asm__ volatile("# the other");
		choose_path(path >> 1, depth - 1);
		__asm__ volatile("# the other");
	}
}

static void __attribute__((noinline)) descend(struct pairs_thread *thread, int depth)
{
	if (depth > 1) {
		descend(thread, depth - 1);
		__asm__ volatile(""); /* as above */
		return;
	}
	thread->first = malloc((size_t)size_bytes);
	thread->began_ns = now_ns();
	for (long i = 0; i < pairs_each; i++) {
		if (nr_paths > 1)
			choose_path(i % nr_paths, DEPTH - 2);
		else
			make_pair();
	}
	thread->ended_ns = now_ns();
	thread->last = malloc((size_t)size_bytes);
}

static void *run_thread(void *arg)
{
	pthread_barrier_wait(&go);
	descend(arg, nr_paths > 1 ? 1 : DEPTH);
	pthread_barrier_wait(&done);
	for (;;)
		pause();
	return NULL;
}

static int parse_count(const char *text, long max, long *ret)
{
	char *end;

	errno = 0;
	*ret = strtol(text, &end, 10);
	return errno || end == text || *end || *ret < 1 || *ret > max ? -EINVAL : 0;
}

static int parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"threads", required_argument, NULL, 't'},
		{"pairs", required_argument, NULL, 'p'},
		{"size", required_argument, NULL, 's'},
		{"paths", required_argument, NULL, 'n'},
		{0},
	};
	int opt, err = 0;

	while (!err && (opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 't')
			err = parse_count(optarg, MAX_THREADS, &nr_threads);
		else if (opt == 'p')
			err = parse_count(optarg, 1L << 40, &nr_pairs);
		else if (opt == 's')
			err = parse_count(optarg, 1L << 30, &size_bytes);
		else if (opt == 'n')
			err = parse_count(optarg, MAX_PATHS, &nr_paths);
		else
			err = -EINVAL;
	}
	pairs_each = nr_pairs / nr_threads;
	return err || optind < argc || !pairs_each ? -EINVAL : 0;
}

/* Returns when all threads have started and wait. */
static int start_threads(void)
{
	pthread_barrier_init(&go, NULL, (unsigned)nr_threads + 1);
	pthread_barrier_init(&done, NULL, (unsigned)nr_threads + 1);
	for (long i = 0; i < nr_threads; i++) {
		int err = pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]);

		if (err) {
			fprintf(stderr, "pairs: cannot create a thread: %s\n", strerror(err));
			return -err;
		}
	}
	return 0;
}

static void print_result(void)
{
	long long began_ns = threads[0].began_ns, ended_ns = threads[0].ended_ns;

	for (long i = 1; i < nr_threads; i++) {
		if (threads[i].began_ns < began_ns)
			began_ns = threads[i].began_ns;
		if (threads[i].ended_ns > ended_ns)
			ended_ns = threads[i].ended_ns;
	}
	printf("pairs %ld seconds %.9f us_per_pair %.4f held %ld\n", pairs_each * nr_threads,
	       (double)(ended_ns - began_ns) / 1e9,
	       (double)(ended_ns - began_ns) / 1e3 / (double)pairs_each, 2 * nr_threads);
}

int main(int argc, char **argv)
{
	char c;

	if (parse_options(argc, argv)) {
		fputs("usage: pairs [--threads N] [--pairs N] [--size BYTES] [--paths N]\n",
		      stderr);
		return 2;
	}
	if (start_threads())
		return 1;
	printf("ready %d\n", getpid());
	fflush(stdout);
	/* The end of standard input counts as a line: the recorder may have failed. */
	do {
		if (read(STDIN_FILENO, &c, 1) != 1)
			return 1;
	} while (c != '\n');
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&done);
	print_result();
	return 0;
}
