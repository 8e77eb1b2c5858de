/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loses blocks, and keeps others, for a recording that begins when it waits: reach_leaks LOST KEPT
 * [ROUNDS [pipe]]. "go" on stdin makes it allocate; then it says "ready" and waits for the end of
 * stdin. With ROUNDS it also loses one block and keeps another in each round of a loop. After as
 * many it says "ready", and goes on until stdin ends. With "pipe", it has sent itself a byte.
 */
#include "reach.h"

#include <poll.h>

#define BLOCK_BYTES 3000

struct kept {
	struct kept *next;
	char bytes[BLOCK_BYTES];
};

static struct kept *cache;

static REACH_CASE void lose(void)
{
	memset(block_of(BLOCK_BYTES), 'l', BLOCK_BYTES);
}

static REACH_CASE void keep(void)
{
	struct kept *kept = block_of(sizeof(*kept));

	kept->next = cache;
	cache = kept;
}

static void wait_for(const char *word)
{
	char line[32];

	if (!fgets(line, sizeof(line), stdin) || strncmp(line, word, strlen(word)) != 0)
		exit(0);
}

static void go_on(long rounds)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	for (long i = 0; poll(&in, 1, 5) == 0; i++) {
		lose();
		keep();
		if (i == rounds) {
			printf("ready %d\n", getpid());
			fflush(stdout);
		}
	}
}

static void send_byte(void)
{
	int fds[2];

	if (pipe(fds) || write(fds[1], "", 1) != 1)
		exit(1);
}

int main(int argc, char **argv)
{
	long lost = argc > 1 ? atol(argv[1]) : 0, kept = argc > 2 ? atol(argv[2]) : 0;
	long rounds = argc > 3 ? atol(argv[3]) : 0;

	if (argc > 4)
		send_byte();
	free(malloc(1));
	puts("waits");
	fflush(stdout);
	wait_for("go");
	for (long i = 0; i < lost; i++) {
		lose();
		usleep(1000);
	}
	for (long i = 0; i < kept; i++)
		keep();
	if (rounds)
		go_on(rounds);
	else
		wait_for_line();
	return 0;
}
