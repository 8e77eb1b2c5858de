// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The demo: a small server that leaks. It answers a request every 10 ms or so: parses it, looks its
 * pages up in a cache that it fills on purpose at its start, renders the answer in buffers of
 * various sizes, and frees them. Now and then it asks for a font. Of the fonts that are not found,
 * one in --leak-every keeps its 3072-byte description for ever.
 *
 *   --requests N      ends after N requests (0: goes on until SIGTERM or SIGINT)
 *   --leak-every N    a request in N leaks (5)
 *   --interval-us N   between requests (10000)
 * --wait            prints "ready PID" after filling the cache, and waits for a line on stdin
 *
 * It prints its true counts when it ends, and exits 0.
 *
 * Exact: every count. Also printed: requests, leaked_3072, cached (blocks kept on purpose).
 */
#include "truth.h"

#include <signal.h>
#include <time.h>

#define NR_CACHED  40
#define FONT_BYTES 3072
#define MAX_GLYPHS 8

struct font {
	int id;
	char description[FONT_BYTES - sizeof(int)];
};

struct request {
	long number;
	char *text;
	size_t nr_glyphs;
	char *glyphs[MAX_GLYPHS];
};

struct server {
	long leak_every;
	long leaked;
	char *cache[NR_CACHED];
	char *answer;
};

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	stopping = 1;
}

static void *check(void *p)
{
	if (!p)
		truth_die("leaky_daemon: out of memory\n");
	return p;
}

/* --- Fonts: the leak is here --- */

static struct font *query_font(long id)
{
	struct font *font = check(t_malloc(sizeof(*font)));

	font->id = (int)id;
	memset(font->description, 'f', sizeof(font->description));
	return font;
}

static void load_font(struct server *server, const struct request *request)
{
	struct font *font = query_font(request->number);

	/* The early return of a real program, on the path that is rarely taken. */
	if (server->leak_every && request->number % server->leak_every == 0) {
		server->leaked++;
		return;
	}
	t_free(font);
}

/* --- Requests --- */

static void parse_request(struct request *request)
{
	size_t size_bytes = 128 + (size_t)(request->number % 7) * 512;

	request->text = check(t_malloc(size_bytes));
	memset(request->text, 'r', size_bytes);
	request->nr_glyphs = 1 + (size_t)request->number % MAX_GLYPHS;
	for (size_t i = 0; i < request->nr_glyphs; i++)
		request->glyphs[i] = check(t_calloc(i + 1, 48));
}

static void append(struct server *server, size_t size_bytes)
{
	server->answer = check(t_realloc(server->answer, size_bytes));
}

static void render_answer(struct server *server, const struct request *request)
{
	void *canvas;

	if (t_posix_memalign(&canvas, 64, 8192))
		truth_die("leaky_daemon: out of memory\n");
	load_font(server, request);
	for (size_t i = 1; i <= request->nr_glyphs; i++)
		append(server, i * 600);
	t_free(canvas);
}

static void replace_cached(struct server *server, const struct request *request)
{
	size_t slot = (size_t)request->number % NR_CACHED;

	t_free(server->cache[slot]);
	server->cache[slot] = check(t_malloc(1024));
}

static void free_request(struct request *request)
{
	for (size_t i = 0; i < request->nr_glyphs; i++)
		t_free(request->glyphs[i]);
	t_free(request->text);
}

static void handle_request(struct server *server, long number)
{
	struct request request = {.number = number};

	parse_request(&request);
	if (number % 10 == 0)
		replace_cached(server, &request);
	render_answer(server, &request);
	t_free(server->answer);
	server->answer = NULL;
	free_request(&request);
}

static void serve(struct server *server, long nr_requests, long interval_us)
{
	const struct timespec interval = {
		.tv_sec = interval_us / 1000000,
		.tv_nsec = interval_us % 1000000 * 1000,
	};
	long number = 0;

	while (!stopping && (nr_requests == 0 || number < nr_requests)) {
		handle_request(server, ++number);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &interval, NULL);
	}
	truth_tell("requests", number);
}

static void fill_cache(struct server *server)
{
	for (size_t i = 0; i < NR_CACHED; i++)
		server->cache[i] = check(t_malloc(1024));
}

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_handler = on_signal};
	struct server server = {0};

	truth_init(argc, argv);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	server.leak_every = truth_option(argc, argv, "--leak-every", 5);
	fill_cache(&server);
	truth_begin();
	serve(&server, truth_option(argc, argv, "--requests", 0),
	      truth_option(argc, argv, "--interval-us", 10000));
	truth_tell("leaked_3072", server.leaked);
	truth_tell("cached", NR_CACHED);
	truth_print();
	return 0;
}
