/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Four threads that allocate and release all the time, and lose nothing. With --mib N, also as much
 * memory in small blocks. Prints "truth rounds N" for each line on stdin.
 */
#include "truth.h"

#include <stdio.h>

#define NR_SLOTS 1000

static _Atomic long rounds;

static void *churn(void *context)
{
	void *volatile *held = calloc(NR_SLOTS, sizeof(*held));
	uint32_t state = (uint32_t)(uintptr_t)context + 1;

	for (;;) {
		uint32_t slot, size;

		state = state * 1103515245 + 12345;
		slot = (state >> 8) % NR_SLOTS;
		size = (state >> 18) % 2000 + 1;
		if (state % 97 == 0) {
			held[slot] = realloc(held[slot], size * 10);
		} else if (held[slot]) {
			free(held[slot]);
			held[slot] = NULL;
		} else {
			held[slot] = malloc(size);
		}
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static void **volatile kept;

int main(int argc, char **argv)
{
	long mib = truth_option(argc, argv, "--mib", 0);
	char line[16];

	setvbuf(stdout, NULL, _IONBF, 0);
	for (long i = 0; i < mib * 8192; i++) {
		void **block = calloc(1, 112);

		if (!block)
			return 1;
		block[0] = (void *)kept;
		kept = block;
	}
	for (uintptr_t i = 0; i < 4; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, churn, (void *)i))
			return 1;
	}
	printf("ready %d\n", getpid());
	while (read(STDIN_FILENO, line, 1) == 1)
		printf("truth rounds %ld\n", atomic_load(&rounds));
	return 0;
}
