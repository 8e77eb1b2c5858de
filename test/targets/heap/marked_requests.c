// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A server that marks where its requests begin and end, with LEAK_MARK(). Request N leaks N blocks
 * of 100 bytes; between requests it leaks one of 40.
 *
 *   --requests N   (3)
 *   --fork 1       does the same in a child first
 *   --wait         prints "ready PID", and waits for a line on stdin
 *
 * It prints its true counts when it ends, and exits 0.
 *
 * Exact: every count. Also printed: marks, of both processes; leaf_sum_kept, 1 unless a probe has
 * overwritten what a function keeps below its stack pointer.
 */
#include "truth.h"

#include <leaktools/leak_probes.h>
#include <sys/wait.h>

static long nr_marks;

/* A leaf function, whose array is in the red zone. Hides the sum from the compiler. */
static long leaf(const long *numbers)
{
	volatile long kept[12];
	long sum = 0;

	for (int i = 0; i < 12; i++)
		kept[i] = numbers[i];
	LEAK_MARK("in a leaf");
	for (int i = 0; i < 12; i++)
		sum += kept[i];
	return sum;
}

static bool is_leaf_unharmed(void)
{
	long numbers[12], sum = 0;

	for (int i = 0; i < 12; i++) {
		numbers[i] = i * i;
		sum += numbers[i];
	}
	nr_marks++;
	return leaf(numbers) == sum;
}

static void handle_request(long number)
{
	char text[64];

	LEAK_MARK("before request");
	for (long i = 0; i < number; i++)
		t_malloc(100);
	/* The text is no literal, and contains an escape sequence for terminals. */
	snprintf(text, sizeof(text), "after request %ld\33[2J", number);
	LEAK_MARK(text);
	nr_marks += 2;
}

static void serve(long nr_requests)
{
	for (long number = 1; number <= nr_requests; number++) {
		handle_request(number);
		t_malloc(40);
	}
}

int main(int argc, char **argv)
{
	long nr_requests;
	bool kept;

	truth_init(argc, argv);
	nr_requests = truth_option(argc, argv, "--requests", 3);
	truth_begin();
	if (truth_option(argc, argv, "--fork", 0)) {
		pid_t child = fork();

		if (child < 0)
			truth_die("marked_requests: cannot fork\n");
		if (child == 0) {
			truth_forked();
			serve(nr_requests);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		nr_marks = 2 * nr_requests;
	}
	serve(nr_requests);
	kept = is_leaf_unharmed();
	/* There is no string at this address. */
	LEAK_MARK((const char *)8);
	nr_marks++;
	truth_tell("leaf_sum_kept", kept);
	truth_tell("marks", nr_marks);
	truth_print();
	return 0;
}
