// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program whose speed recorders change, or not. Each round sends and receives a byte, allocates
 * and frees 20 blocks, and leaks one of 96 bytes in each 5 rounds, until SIGTERM. Without
 * --pause-us N it works as fast as it can; with it, it begins a round each N us. At the end it
 * prints "leaked N": what it has leaked since SIGUSR1.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS	   20
#define LEAK_EVERY 5
#define LEAK_BYTES 96

static volatile sig_atomic_t is_over;
static volatile unsigned long nr_leaked;

static void end(int signal)
{
	is_over = 1;
}

static void begin_count(int signal)
{
	nr_leaked = 0;
}

__attribute__((noinline)) static void leak_block(void)
{
	char *volatile block = malloc(LEAK_BYTES);

	if (block)
		memset(block, 1, LEAK_BYTES);
}

/* What takes the time of a round where no probe is hit. */
static void work(const int *ends)
{
	volatile uint64_t rounds;
	char byte = 0;

	if (send(ends[1], &byte, 1, 0) != 1 || recv(ends[0], &byte, 1, 0) != 1)
		exit(1);
	for (rounds = 0; rounds < 2000;)
		rounds++;
}

static void wait_for_round(struct timespec *next, long pause_us)
{
	next->tv_nsec += pause_us * 1000;
	next->tv_sec += next->tv_nsec / 1000000000;
	next->tv_nsec %= 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

int main(int argc, char **argv)
{
	long pause_us = 0;
	void *volatile blocks[BLOCKS];
	struct timespec next;
	int ends[2];
	char line;

	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--pause-us") == 0)
			pause_us = atol(argv[i + 1]);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return 1;
	signal(SIGTERM, end);
	signal(SIGUSR1, begin_count);
	dprintf(STDOUT_FILENO, "ready %d\n", (int)getpid());
	if (read(STDIN_FILENO, &line, 1) < 0)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (unsigned long i = 1; !is_over; i++) {
		work(ends);
		for (int k = 0; k < BLOCKS; k++)
			blocks[k] = malloc(50);
		for (int k = 0; k < BLOCKS; k++)
			free(blocks[k]);
		if (i % LEAK_EVERY == 0) {
			leak_block();
			nr_leaked++;
		}
		if (pause_us)
			wait_for_round(&next, pause_us);
	}
	dprintf(STDOUT_FILENO, "leaked %lu\n", nr_leaked);
	_exit(0);
}
