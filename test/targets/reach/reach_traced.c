/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks for allocators whose heap leakscan does not read: reach_traced NR. "go" on stdin makes it
 * allocate NR blocks of each kind, and keep or lose them. It says which it has lost: class
 * "no-holder". The others are "pointed-to". Meanwhile, a thread allocates and frees all the time;
 * it loses nothing. The program ends with its standard input.
 */
#include "reach.h"

#include <pthread.h>

#define MAX_BLOCKS   1000
#define CHURN_BLOCKS 512

struct node {
	struct node *next;
	char rest[];
};

static void *volatile kept[MAX_BLOCKS], *volatile inside[MAX_BLOCKS], *volatile moved[MAX_BLOCKS];
static void *volatile aligned[MAX_BLOCKS], *volatile churned[CHURN_BLOCKS];
static struct node *volatile list;
static __thread void *volatile local[MAX_BLOCKS];
static _Atomic int has_ended;

/* From a few bytes to several pages; jemalloc points to each block of 16 KiB or more itself. */
static size_t size_of(long i)
{
	return 16 + (size_t)(i * 37 % 40) * 24 + (i % 50 ? 0 : 9000);
}

static REACH_CASE void *keep(size_t size)
{
	return need(malloc(size));
}

static REACH_CASE void *lose(size_t size)
{
	return memset(need(malloc(size)), 0, size);
}

static REACH_CASE void lose_blocks(long nr)
{
	for (long i = 0; i < nr; i++)
		expect("lost", "no-holder", lose(size_of(i)));
}

static REACH_CASE struct node *make_list(long nr, const char *name, const char *class)
{
	struct node *first = NULL;

	for (long i = 0; i < nr; i++) {
		struct node *node = lose(sizeof(*node) + size_of(i));

		node->next = first;
		first = node;
		expect(name, class, node);
	}
	return first;
}

static REACH_CASE void keep_blocks(long nr)
{
	void *block;

	for (long i = 0; i < nr; i++) {
		kept[i] = keep(size_of(i));
		expect("kept", "pointed-to", kept[i]);
		block = keep(size_of(i) + 16);
		expect("inside", "pointed-to", block);
		inside[i] = (char *)block + 8;
		moved[i] = realloc(keep(size_of(i)), size_of(i + 1) + 500);
		expect("moved", "pointed-to", need(moved[i]));
		if (posix_memalign(&block, 64, size_of(i)))
			abort();
		aligned[i] = block;
		expect("aligned", "pointed-to", block);
		local[i] = block_of(size_of(i));
		expect("local", "pointed-to", local[i]);
	}
}

static void *churn(void *unused)
{
	uint32_t random = 1;

	(void)unused;
	while (!has_ended) {
		void *volatile *at;

		random = random * 1103515245 + 12345;
		at = &churned[random >> 16 & (CHURN_BLOCKS - 1)];
		free(*at);
		*at = keep(16 + (random >> 8 & 0x3ff));
		if (random >> 28 == 0)
			usleep(1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long nr = argc > 1 ? atol(argv[1]) : 0;
	char line[32];
	pthread_t thread;

	if (nr > MAX_BLOCKS)
		return 2;
	setvbuf(stdin, NULL, _IONBF, 0);
	puts("waits");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	keep_blocks(nr);
	lose_blocks(nr);
	list = make_list(nr, "list", "pointed-to");
	make_list(nr, "lost-list", "no-holder");
	clear_stack();
	if (pthread_create(&thread, NULL, churn, NULL))
		return 1;
	wait_for_line();
	has_ended = 1;
	return pthread_join(thread, NULL);
}
