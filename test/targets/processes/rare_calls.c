/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Allocates and releases all the time, through one function. Each --every-th block (1000) is made
 * for forget(), which never releases it. Each of those calls is made through hot_forget(), too,
 * which is also called often without one.
 *
 *   --wait      prints "ready PID", and waits for a line on stdin
 *   --log FILE  gets the time in ns (CLOCK_MONOTONIC) of each call of forget()
 *
 * Forks a child, which ends at once, at SIGUSR1. Ends at SIGTERM.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t has_ended, forks;
static void *volatile passed;
static FILE *log_file;

static void note_signal(int number)
{
	if (number == SIGTERM)
		has_ended = 1;
	else
		forks = 1;
}

__attribute__((noinline)) static void *make_block(size_t bytes)
{
	passed = malloc(bytes);
	return passed;
}

__attribute__((noinline)) static void forget(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	fprintf(log_file, "%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
	make_block(200);
	passed = NULL;
}

__attribute__((noinline)) static void hot_forget(int forgets)
{
	if (forgets)
		forget();
	passed = NULL;
}

/* Some microseconds, so that it is not all hits in a window. */
static void work(void)
{
	for (volatile int i = 0; i < 5000;)
		i++;
}

int main(int argc, char **argv)
{
	unsigned long every = 1000;
	int waits = 0;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--wait") == 0)
			waits = 1;
		else if (i + 1 < argc && strcmp(argv[i], "--every") == 0)
			every = strtoul(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--log") == 0)
			log_file = fopen(argv[++i], "w");
	if (!log_file || !every)
		return 2;
	signal(SIGTERM, note_signal);
	signal(SIGUSR1, note_signal);
	signal(SIGCHLD, SIG_IGN);
	if (waits) {
		printf("ready %d\n", (int)getpid());
		fflush(stdout);
		getchar();
	}
	for (unsigned long nr = 1; !has_ended; nr++) {
		hot_forget(nr % every == 0);
		free(make_block(100));
		work();
		if (forks && fork() == 0)
			_exit(0);
		forks = 0;
	}
	return fclose(log_file) != 0;
}
