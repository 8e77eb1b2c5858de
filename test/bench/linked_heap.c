// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The program that test/bench/scan looks at: --bytes N bytes of blocks of 16 to 120 bytes, in lists
 * of a thousand. The program loses one list in a thousand, and frees one block in eight again, as a
 * heap that has been used has holes.
 *
 * Prints "ready PID lost N", where N is the number of blocks that it has lost. Then it prints for
 * each line that it reads the longest time in ms for which it did not run since the line before.
 * End of file ends it.
 */
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LIST_BLOCKS 1000
#define LOST_LISTS  1000 /* one in so many */

struct block {
	struct block *next;
};

static struct block **lists;

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static size_t random_size(void)
{
	static unsigned long state = 1;

	state = state * 6364136223846793005 + 1442695040888963407;
	return 16 + (state >> 33) % 105;
}

static struct block *new_block(void)
{
	struct block *block = malloc(random_size());

	if (!block)
		exit(1);
	return block;
}

/* A chunk has a header of 8 bytes, and its size is a multiple of 16: so many bytes of the heap on
 * average. */
static size_t average_bytes(void)
{
	return (16 + 120) / 2 + 8 + 8;
}

/* Returns how many blocks are lost. */
static unsigned long fill(size_t nr_lists)
{
	unsigned long nr_lost = 0;

	for (size_t i = 0; i < nr_lists; i++) {
		for (int n = 0; n < LIST_BLOCKS; n++) {
			struct block *hole = n % 7 == 0 ? new_block() : NULL;
			struct block *block = new_block();

			block->next = lists[i];
			lists[i] = block;
			free(hole);
		}
		if (i % LOST_LISTS == LOST_LISTS / 2) {
			lists[i] = NULL;
			nr_lost += LIST_BLOCKS;
		}
	}
	return nr_lost;
}

/* Answers each line. */
static void watch_clock(void)
{
	double longest = 0, last = now_ms();
	char line[16];

	for (;;) {
		struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
		int ready = poll(&in, 1, 1);
		double now = now_ms();

		longest = now - last > longest ? now - last : longest;
		last = now;
		if (ready <= 0)
			continue;
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			return;
		printf("%.1f\n", longest);
		fflush(stdout);
		longest = 0;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"bytes", required_argument, NULL, 'b'}, {0}};
	size_t bytes = 1 << 20, nr_lists;

	while (getopt_long(argc, argv, "b:", options, NULL) == 'b')
		bytes = strtoul(optarg, NULL, 10);
	nr_lists = bytes / average_bytes() / LIST_BLOCKS;
	lists = calloc(nr_lists + 1, sizeof(struct block *));
	if (!lists)
		return 1;
	printf("ready %d lost %lu\n", getpid(), fill(nr_lists));
	fflush(stdout);
	watch_clock();
	return 0;
}
