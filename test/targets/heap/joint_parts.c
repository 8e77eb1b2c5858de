/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joint_parts: each request keeps a name and the entry of a table, two parts of one leak.
 * joint_parts --ways: each request loads a font in two ways; the loader keeps a pattern each time.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REQUESTS 300

static void *volatile kept;

static void copy_name(void)
{
	kept = malloc(100);
}

static void parse_request(void)
{
	copy_name();
}

static void insert_key(void)
{
	kept = malloc(40);
	kept = malloc(160);
}

static void store_value(void)
{
	insert_key();
}

static void match_font(void)
{
	kept = malloc(100);
	kept = malloc(20);
}

static void draw_text(void)
{
	match_font();
}

static void draw_menu(void)
{
	match_font();
}

static void handle_request(bool ways)
{
	if (ways) {
		draw_text();
		draw_menu();
	} else {
		parse_request();
		store_value();
	}
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	bool ways = argc > 1 && strcmp(argv[1], "--ways") == 0;

	for (int i = 0; i < REQUESTS; i++) {
		handle_request(ways);
		nanosleep(&pause, NULL);
	}
	return 0;
}
