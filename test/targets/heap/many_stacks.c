// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leaks --leaks blocks (100000), each from its own call path: ten functions on each of five levels,
 * below some that all paths share. With --interval-us, a request is answered after each leak, and
 * there is a pause.
 *
 * Exact: every count.
 */
#include "truth.h"

#include <time.h>

#define NR_SHARED 6 /* frames */

typedef void (*level_fn)(unsigned long number);

/*
 * A function of a level. A digit of the block's number has chosen it, and the next digit chooses
 * the function that it calls.
 */
#define FUNCTION(level, digit)                                                                     \
	static void level_##level##_##digit(unsigned long number)                                  \
	{                                                                                          \
		NEXT_##level(number);                                                              \
	}
/* clang-format would take the calls below for parts of an expression. */
/* clang-format off */
#define LEVEL(level)                                                                               \
	FUNCTION(level, 0) FUNCTION(level, 1) FUNCTION(level, 2) FUNCTION(level, 3)                \
	FUNCTION(level, 4) FUNCTION(level, 5) FUNCTION(level, 6) FUNCTION(level, 7)                \
	FUNCTION(level, 8) FUNCTION(level, 9)                                                      \
	static const level_fn level_##level[] = {                                                  \
		level_##level##_0, level_##level##_1, level_##level##_2, level_##level##_3,        \
		level_##level##_4, level_##level##_5, level_##level##_6, level_##level##_7,        \
		level_##level##_8, level_##level##_9,                                              \
	};
/* clang-format on */

static void leak(unsigned long number)
{
	if (!t_malloc(16 + number % 1009))
		truth_die("many_stacks: out of memory\n");
}

static unsigned long leak_bytes;

#define NEXT_4(number) leak(leak_bytes)
LEVEL(4)
#define NEXT_3(number) level_4[(number) % 10]((number) / 10)
LEVEL(3)
#define NEXT_2(number) level_3[(number) % 10]((number) / 10)
LEVEL(2)
#define NEXT_1(number) level_2[(number) % 10]((number) / 10)
LEVEL(1)
#define NEXT_0(number) level_1[(number) % 10]((number) / 10)
LEVEL(0)

static void descend(unsigned long number, int depth)
{
	if (depth)
		descend(number, depth - 1);
	else
		level_0[number % 10](number / 10);
}

static void answer_request(void)
{
	char *answer = t_malloc(200);

	t_free(answer);
}

int main(int argc, char **argv)
{
	unsigned long nr_leaks;
	struct timespec interval = {0};

	truth_init(argc, argv);
	nr_leaks = (unsigned long)truth_option(argc, argv, "--leaks", 100000);
	interval.tv_nsec = truth_option(argc, argv, "--interval-us", 0) * 1000;
	truth_begin();
	for (unsigned long i = 0; i < nr_leaks; i++) {
		leak_bytes = i;
		descend(i, NR_SHARED);
		if (!interval.tv_nsec)
			continue;
		answer_request();
		nanosleep(&interval, NULL);
	}
	truth_print();
	return 0;
}
