/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Twelve functions allocate blocks of different sizes by grab(), a wrapper whose name nothing
 * knows. One of them, remember_session(), never frees its blocks. With the argument "all", none of
 * them does: then grab()'s callers tell nothing.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 2000

static bool all_leak;
static void *volatile kept;

static void *grab(size_t size)
{
	void *volatile block = malloc(size);

	return block;
}

#define USER(name, size)                                                                           \
	static void name(void)                                                                     \
	{                                                                                          \
		kept = grab(size);                                                                 \
		if (!all_leak)                                                                     \
			free(kept);                                                                \
	}

USER(read_request, 512)
USER(parse_header, 48)
USER(parse_body, 1000)
USER(look_up_user, 72)
USER(open_file, 120)
USER(fill_cache, 300)
USER(render_page, 2000)
USER(compress_page, 1500)
USER(write_response, 640)
USER(write_log, 160)
USER(count_visit, 24)

static void remember_session(void)
{
	kept = grab(96);
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 500000};

	all_leak = argc > 1 && strcmp(argv[1], "all") == 0;
	for (int i = 0; i < ROUNDS; i++) {
		read_request();
		parse_header();
		parse_body();
		look_up_user();
		open_file();
		fill_cache();
		render_page();
		compress_page();
		write_response();
		write_log();
		count_visit();
		if (i % 4 == 0)
			remember_session();
		nanosleep(&pause, NULL);
	}
	return 0;
}
