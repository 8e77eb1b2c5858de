// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A server with one of each kind of held memory: tables that are filled at the start, a pool that
 * grows to a plateau, a cache that is loaded at once, a queue that forgets some messages, two
 * continuing leaks, and much that is freed correctly. One leak is in a function whose name is HTML,
 * to show what tools do with it.
 *
 *   --steps N         (2000)
 *   --interval-us N   between steps (1000)
 *   --wait            prints "ready PID", and waits for a line on stdin
 *
 * Exact: every count. Also printed: hostile (blocks leaked by the function with that name).
 */
#include "truth.h"

#include <time.h>

#define NR_TABLES   60
#define NR_SLOTS    64 /* of the queue */
#define NR_IN_POOL  120
#define NR_IMPORTED 250

/* gcc passes an assembler name on as it is, clang quotes it. */
#ifdef __clang__
#define ASSEMBLER_NAME(name) __asm__(name)
#else
#define ASSEMBLER_NAME(name) __asm__("\"" name "\"")
#endif
/* These are their names in the symbol table. */
void hostile_leak(size_t size_bytes) ASSEMBLER_NAME("</script><script>document.title=1</script>");
void hostile_caller(size_t size_bytes) ASSEMBLER_NAME("<img src=x onerror=document.title=2>");

struct server {
	long step, nr_steps;
	char *queue[NR_SLOTS];
	size_t nr_pooled;
	long hostile;
};

static unsigned long random_state = 1;

static size_t draw(size_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

/* Loses the block, which is a leak. */
static void lose(void *p)
{
	if (!p)
		truth_die("leak_kinds: out of memory\n");
}

static void load_table(size_t size_bytes)
{
	lose(t_malloc(size_bytes));
}

static void read_configuration(void)
{
	for (size_t i = 0; i < NR_TABLES; i++)
		load_table(200 + draw(6000));
}

static void grow_pool(struct server *server)
{
	if (server->nr_pooled == NR_IN_POOL || server->step % 5)
		return;
	server->nr_pooled++;
	lose(t_calloc(1, 16384));
}

static void import_record(void)
{
	lose(t_malloc(900 + draw(900)));
}

static void import_catalogue(void)
{
	for (size_t i = 0; i < NR_IMPORTED; i++)
		import_record();
}

static void *copy_message(size_t size_bytes)
{
	char *message = t_malloc(size_bytes);

	lose(message);
	memset(message, 'm', size_bytes);
	return message;
}

/* One message in 97 is forgotten when its slot is used again. */
static void enqueue_message(struct server *server)
{
	size_t slot = (size_t)server->step % NR_SLOTS;

	if (server->step % 97 != 0)
		t_free(server->queue[slot]);
	server->queue[slot] = copy_message(64 + draw(2000));
}

static void open_session(void)
{
	lose(t_calloc(3, 1024));
}

static void accept_client(long step)
{
	if (step % 6 == 0)
		open_session();
}

void hostile_leak(size_t size_bytes)
{
	lose(t_malloc(size_bytes));
}

void hostile_caller(size_t size_bytes)
{
	hostile_leak(size_bytes);
}

static void parse_header(struct server *server)
{
	if (server->step % 20)
		return;
	server->hostile++;
	hostile_caller(48 + draw(100));
}

static void render_page(size_t nr_parts)
{
	char *parts[8];

	for (size_t i = 0; i < nr_parts; i++)
		parts[i] = copy_message(300 << i);
	for (size_t i = 0; i < nr_parts; i++)
		t_free(parts[i]);
}

static void answer_request(struct server *server)
{
	char *buffer = t_malloc(4096);

	lose(buffer);
	parse_header(server);
	render_page(1 + draw(7));
	t_free(buffer);
}

static void serve(struct server *server, long interval_us)
{
	const struct timespec interval = {.tv_sec = interval_us / 1000000,
					  .tv_nsec = interval_us % 1000000 * 1000};

	for (server->step = 1; server->step <= server->nr_steps; server->step++) {
		grow_pool(server);
		if (server->step == server->nr_steps * 3 / 5)
			import_catalogue();
		accept_client(server->step);
		enqueue_message(server);
		answer_request(server);
		nanosleep(&interval, NULL);
	}
}

int main(int argc, char **argv)
{
	struct server server = {0};
	long interval_us;

	truth_init(argc, argv);
	server.nr_steps = truth_option(argc, argv, "--steps", 2000);
	interval_us = truth_option(argc, argv, "--interval-us", 1000);
	truth_begin();
	read_configuration();
	serve(&server, interval_us);
	for (size_t i = 0; i < NR_SLOTS; i++)
		t_free(server.queue[i]);
	truth_tell("hostile", server.hostile);
	truth_print();
	return 0;
}
