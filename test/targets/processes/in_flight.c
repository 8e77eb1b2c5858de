// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A busy server with 500 requests in flight: it ends the oldest one and begins another. Each has
 * two blocks, whose content is always the same. One request of a hundred leaks a third one, which
 * takes the address of a block that was just freed. At SIGTERM it prints "leaked N".
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR	   500
#define BYTES	   100
#define LEAK_EVERY 100
#define WORK	   3000 /* some microseconds */

static volatile sig_atomic_t is_over;
static volatile uint64_t random_state = 88172645463325252u;

static void end(int signal)
{
	is_over = 1;
}

/* xorshift64 (Marsaglia 2003) */
static uint64_t __attribute__((noinline)) work(void)
{
	uint64_t x = random_state;

	for (int i = 0; i < WORK; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	random_state = x;
	return x;
}

static void *__attribute__((noinline)) make_block(void)
{
	void *block = malloc(BYTES);

	if (!block)
		abort();
	return memset(block, 7, BYTES);
}

static void *__attribute__((noinline)) begin_request(void)
{
	void *block = make_block();

	__asm__ volatile("");
	return block;
}

static void *__attribute__((noinline)) begin_answer(void)
{
	void *block = make_block();

	__asm__ volatile("");
	return block;
}

static void __attribute__((noinline)) forget_one(void)
{
	void *block = make_block();

	__asm__ volatile("" : : "r"(block));
}

int main(void)
{
	static void *requests[NR], *answers[NR];
	unsigned long nr_leaked = 0;
	char line;

	signal(SIGTERM, end);
	dprintf(STDOUT_FILENO, "ready %d\n", (int)getpid());
	if (read(STDIN_FILENO, &line, 1) < 0)
		return 1;
	for (size_t i = 0; !is_over; i = (i + 1) % NR) {
		free(requests[i]);
		free(answers[i]);
		if (work() % LEAK_EVERY == 0) {
			forget_one();
			nr_leaked++;
		}
		requests[i] = begin_request();
		answers[i] = begin_answer();
	}
	dprintf(STDOUT_FILENO, "leaked %lu\n", nr_leaked);
	_exit(0);
}
