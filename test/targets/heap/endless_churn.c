// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Endless load: --threads N threads malloc and free as fast as a recorder can record them, from a
 * stack 12 frames deep, until SIGTERM or, with --pairs N, until each has made that many pairs.
 * --leak-every N forgets a 3072-byte block (0: never). --children N forks that many processes,
 * which do the same in their one thread; with --orphans, a child of its own forks each and ends at
 * once, as for a daemon.
 *
 * The threads exist before the recorder starts, and end only with the process. So glibc allocates
 * and frees nothing for them during the recording, and all events are exact.
 *
 * SIGUSR1 slows all of them down to 16,000 pairs in a second, for what needs no load; --resting
 * does so from the beginning. --own-group gives it a process group of its own; --counts-tstp counts
 * SIGTSTP, which else stops it.
 *
 * --progress FILE: for each thread, the number of its pairs, 64 bytes apart, for a reader that
 * checks whether the threads run. After the room for MAX_THREADS and MAX_CHILDREN comes the number
 * of times that the main thread did not run for LONG_STOP_MS: it was stopped.
 */
#include "truth.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

#define MAX_THREADS  1024
#define MAX_CHILDREN 64
#define LONG_STOP_MS 700
#define BATCH	     8192 /* pairs */
#define RESTING	     128  /* a batch after SIGUSR1 */
#define BATCH_MS     8

struct progress {
	_Atomic long pairs;
	long pad[7];
};

/* What threads and children share. */
struct churn_shared {
	struct progress progress[MAX_THREADS + MAX_CHILDREN];
	_Atomic long nr_long_stops;
	_Atomic int stop, is_resting;
	_Atomic long nr_done, nr_leaked, nr_continued, nr_tstp;
};

static struct churn_shared *shared;
static pthread_barrier_t go;
static long pairs, leak_every;
static pid_t first_pid;

static void __attribute__((noinline)) one_pair(long i)
{
	void *block = malloc(64 + (size_t)(i % 16) * 32);

	if (leak_every && i % leak_every == 0 && malloc(3072))
		atomic_fetch_add(&shared->nr_leaked, 1);
	free(block);
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * Limits a thread to a million pairs in a second. Recorders have been seen to record 0.2 million,
 * so it runs without a pause then; else it would make 50 million, and take the CPUs from those who
 * wait for the recorder's start or end.
 */
static void pace(long *began_ms)
{
	long took_ms = now_ms() - *began_ms;

	if (took_ms < BATCH_MS)
		usleep((useconds_t)(BATCH_MS - took_ms) * 1000);
	*began_ms = now_ms();
}

/* These are frames, too: main or start_thread, its caller, run and one_pair. */
static void __attribute__((noinline)) descend(struct progress *progress, long depth)
{
	long began_ms;

	if (depth > 0) {
		descend(progress, depth - 1);
		__asm__ volatile(""); /* Prevents a tail call, so that each level has a frame. */
		return;
	}
	began_ms = now_ms();
	for (long i = 1; (!pairs || i <= pairs) && !atomic_load(&shared->stop); i++) {
		if (i % (atomic_load(&shared->is_resting) ? RESTING : BATCH) == 0) {
			/* A child must not outlive the first process. */
			if (kill(first_pid, 0))
				_exit(1);
			pace(&began_ms);
		}
		one_pair(i);
		atomic_store(&progress->pairs, i);
	}
	atomic_fetch_add(&shared->nr_done, 1);
}

static void *run_thread(void *arg)
{
	pthread_barrier_wait(&go);
	descend(arg, 7);
	for (;;)
		pause();
	return NULL;
}

/* True in the child. */
static bool forked(void)
{
	pid_t child = fork();

	if (child < 0)
		truth_die("endless_churn: cannot fork\n");
	if (child == 0)
		truth_forked();
	return child == 0;
}

static void fork_children(long nr_threads, long nr_children, bool orphans)
{
	for (long i = 0; i < nr_children; i++) {
		if (!forked())
			continue;
		if (!orphans || forked())
			descend(&shared->progress[nr_threads + i], 8);
		_exit(0);
	}
}

static void handle_signal(int signal)
{
	if (signal == SIGTERM)
		atomic_store(&shared->stop, 1);
	else if (signal == SIGUSR1)
		atomic_store(&shared->is_resting, 1);
	else if (signal == SIGTSTP)
		atomic_fetch_add(&shared->nr_tstp, 1);
	else
		atomic_fetch_add(&shared->nr_continued, 1);
}

static const char *progress_path(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--progress") == 0)
			return argv[i + 1];
	return NULL;
}

static void share(const char *path)
{
	int fd = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
		      : memfd_create("progress", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, sizeof(*shared)))
		truth_die("endless_churn: no file for the progress\n");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		truth_die("endless_churn: no shared memory\n");
}

static void handle_signals(bool counts_tstp)
{
	struct sigaction action = {.sa_handler = handle_signal, .sa_flags = SA_RESTART};

	if (sigaction(SIGTERM, &action, NULL) || sigaction(SIGCONT, &action, NULL) ||
	    sigaction(SIGUSR1, &action, NULL) || (counts_tstp && sigaction(SIGTSTP, &action, NULL)))
		truth_die("endless_churn: cannot handle signals\n");
}

/* For how long this thread has waited for a CPU, in ms; 0 if the kernel does not tell. */
static long waited_ms(int schedstat)
{
	char text[128] = "";
	const char *waited;

	if (pread(schedstat, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	waited = strchr(text, ' ');
	return waited ? strtol(waited, NULL, 10) / 1000000 : 0;
}

/*
 * Checks at intervals. Nothing here allocates, and nothing ends early because of a signal. Waiting
 * for a busy CPU is no stop.
 */
static long wait_for_runners(long nr_runners)
{
	int schedstat = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	long last_ms = now_ms() - waited_ms(schedstat), longest_ms = 0;

	while (atomic_load(&shared->nr_done) < nr_runners) {
		long ms;

		usleep(5000);
		ms = now_ms() - waited_ms(schedstat);
		if (ms - last_ms > longest_ms)
			longest_ms = ms - last_ms;
		if (ms - last_ms > LONG_STOP_MS)
			atomic_fetch_add(&shared->nr_long_stops, 1);
		last_ms = ms;
	}
	return longest_ms;
}

static void count(long nr_runners)
{
	long nr_pairs = 0, leaked = atomic_load(&shared->nr_leaked);

	for (long i = 0; i < nr_runners; i++)
		nr_pairs += atomic_load(&shared->progress[i].pairs);
	truth_count(TRUTH_MALLOC, nr_pairs + leaked);
	truth_count(TRUTH_ALLOCATIONS, nr_pairs + leaked);
	truth_count(TRUTH_FREE, nr_pairs);
	truth_count(TRUTH_FREES, nr_pairs);
	truth_count_held(3072, leaked);
	truth_tell("continued", atomic_load(&shared->nr_continued));
	truth_tell("tstp", atomic_load(&shared->nr_tstp));
}

int main(int argc, char **argv)
{
	static struct truth_thread threads[MAX_THREADS];
	long nr_threads, nr_children, longest_ms;

	truth_init(argc, argv);
	nr_threads = truth_option(argc, argv, "--threads", 2);
	nr_children = truth_option(argc, argv, "--children", 0);
	pairs = truth_option(argc, argv, "--pairs", 0);
	leak_every = truth_option(argc, argv, "--leak-every", 0);
	if (nr_threads > MAX_THREADS || nr_children > MAX_CHILDREN)
		truth_die("endless_churn: at most 1024 threads and 64 children\n");
	first_pid = getpid();
	share(progress_path(argc, argv));
	atomic_store(&shared->is_resting, truth_flag(argc, argv, "--resting"));
	handle_signals(truth_flag(argc, argv, "--counts-tstp"));
	if (truth_flag(argc, argv, "--own-group"))
		setpgid(0, 0);
	pthread_barrier_init(&go, NULL, (unsigned int)nr_threads + 1);
	for (long i = 0; i < nr_threads; i++)
		truth_thread_start(&threads[i], run_thread, &shared->progress[i]);
	truth_begin();
	pthread_barrier_wait(&go);
	fork_children(nr_threads, nr_children, truth_flag(argc, argv, "--orphans"));
	longest_ms = wait_for_runners(nr_threads + nr_children);
	while (wait(NULL) > 0)
		;
	count(nr_threads + nr_children);
	truth_tell("longest_stop_ms", longest_ms);
	truth_tell("long_stops", atomic_load(&shared->nr_long_stops));
	truth_print();
	/* The threads are not joined, as the comment at the top explains. */
	_exit(0);
}
