/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/modules/debug_server.h"

#include "common/diag.h"
#include "common/elf/elf_file.h"
#include "common/quantity.h"
#include "common/scope.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S     1000000000ull
#define MAX_BUILD_ID 64

/* libdebuginfod, which pulls in libcurl, is loaded only if it is needed. */
struct library {
	__typeof__(&debuginfod_begin) begin;
	__typeof__(&debuginfod_end) end;
	__typeof__(&debuginfod_find_debuginfo) find_debuginfo;
	__typeof__(&debuginfod_set_progressfn) set_progressfn;
	__typeof__(&debuginfod_set_user_data) set_user_data;
	bool is_silent; /* does not call on_progress() until a server answers */
};

/* The library's function, for the callback, which gets nothing but the client. */
static __typeof__(&debuginfod_get_user_data) get_user_data;

struct debug_server {
	struct library library;
	debuginfod_client *client;
	bool gave_up; /* no server is asked any more */
	bool on_terminal;
	uint64_t spent_ns; /* on all files so far */

	/* The file being fetched. */
	const char *name;
	uint64_t begin_ns, last_byte_ns;
	long nr_bytes;
	bool has_answered;
	bool timed_out;
	bool shown;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void show_progress(struct debug_server *server, long nr_bytes, long nr_total)
{
	const char *slash = strrchr(server->name, '/');

	if (!server->on_terminal)
		return;
	fputs("\r\033[Kasking debuginfod for ", stderr);
	diag_print_escaped(stderr, slash ? slash + 1 : server->name, NULL);
	if (nr_total > 0)
		fprintf(stderr, ": %s of %s", quantity_bytes((double)nr_bytes).text,
			quantity_bytes((double)nr_total).text);
	else
		fprintf(stderr, ": %.0f s",
			(double)(now_ns() - server->begin_ns) / (double)NS_PER_S);
	fflush(stderr);
	server->shown = true;
}

/* The longest wait for a byte, in ns: libdebuginfod's own variable, if that is shorter. */
static uint64_t stall_ns(void)
{
	const char *value = getenv(DEBUGINFOD_TIMEOUT_ENV_VAR);
	long seconds = value ? strtol(value, NULL, 10) : 0;

	if (seconds <= 0 || seconds > DEBUG_SERVER_STALL_S)
		seconds = DEBUG_SERVER_STALL_S;
	return (uint64_t)seconds * NS_PER_S;
}

/*
 * libdebuginfod calls this about once a second. A result other than 0 ends the transfer. Before the
 * size is known, @nr_bytes is a number that only rises (elfutils 0.188, debuginfod-client.c).
 */
static int on_progress(debuginfod_client *client, long nr_bytes, long nr_total)
{
	struct debug_server *server = get_user_data(client);
	uint64_t now = now_ns();

	if (nr_total > 0 && nr_bytes > server->nr_bytes) {
		server->nr_bytes = nr_bytes;
		server->last_byte_ns = now;
	}
	server->has_answered = true;
	show_progress(server, nr_bytes, nr_total);
	server->timed_out =
		now - server->last_byte_ns >= stall_ns() ||
		now - server->begin_ns >= DEBUG_SERVER_FILE_S * NS_PER_S ||
		server->spent_ns + (now - server->begin_ns) >= DEBUG_SERVER_ALL_S * NS_PER_S;
	return server->timed_out;
}

static bool load_library(struct library *library)
{
	/* The library stays loaded: the TLS libraries that it pulls in do not support unloading. */
	void *handle = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!handle)
		return false;
	library->begin = (__typeof__(library->begin))dlsym(handle, "debuginfod_begin");
	library->end = (__typeof__(library->end))dlsym(handle, "debuginfod_end");
	library->find_debuginfo =
		(__typeof__(library->find_debuginfo))dlsym(handle, "debuginfod_find_debuginfo");
	library->set_progressfn =
		(__typeof__(library->set_progressfn))dlsym(handle, "debuginfod_set_progressfn");
	library->set_user_data =
		(__typeof__(library->set_user_data))dlsym(handle, "debuginfod_set_user_data");
	get_user_data = (__typeof__(get_user_data))dlsym(handle, "debuginfod_get_user_data");
	/* Since elfutils 0.192, which has this function (perform_queries(), debuginfod-client.c) */
	library->is_silent = dlsym(handle, "debuginfod_find_metadata");
	return library->begin && library->end && library->find_debuginfo &&
	       library->set_progressfn && library->set_user_data && get_user_data;
}

/* Returns false, and reports why, if no server can be asked. */
static bool start_client(struct debug_server *server)
{
	if (server->client)
		return true;
	if (!load_library(&server->library)) {
		diag_warn("%s is set, but %s cannot be loaded; install libdebuginfod1",
			  DEBUGINFOD_URLS_ENV_VAR, DEBUGINFOD_SONAME);
		return false;
	}
	server->client = server->library.begin();
	if (!server->client) {
		diag_warn("libdebuginfod cannot start; no server is asked for debug information");
		return false;
	}
	server->library.set_user_data(server->client, server);
	server->library.set_progressfn(server->client, on_progress);
	return true;
}

int debug_server_create(struct debug_server **ret)
{
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
	struct debug_server *server;

	*ret = NULL;
	if (!urls || !*urls)
		return 0;
	server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	server->on_terminal = isatty(STDERR_FILENO);
	*ret = server;
	return 0;
}

void debug_server_destroy(struct debug_server *server)
{
	if (!server)
		return;
	if (server->client)
		server->library.end(server->client);
	free(server);
}

/* Gives up after a timeout: the next file would take as long. */
static void end_fetch(struct debug_server *server, int result)
{
	uint64_t taken_ns = now_ns() - server->begin_ns;

	server->spent_ns += taken_ns;
	if (server->shown)
		fputs("\r\033[K", stderr);
	if (result >= 0 || !server->timed_out)
		return;
	server->gave_up = true;
	diag_warn("no debug information for %s from debuginfod within %.0f s; no server is asked "
		  "any more; unset %s, or try again",
		  server->name, (double)taken_ns / (double)NS_PER_S, DEBUGINFOD_URLS_ENV_VAR);
}

/* The seconds that are left for the file; 1 at least, as the library takes 0 for no limit. */
static long left_s(const struct debug_server *server)
{
	long taken_s = (long)((now_ns() - server->begin_ns) / NS_PER_S);
	long all_s = DEBUG_SERVER_ALL_S - (long)(server->spent_ns / NS_PER_S);
	long left_s = (all_s < DEBUG_SERVER_FILE_S ? all_s : DEBUG_SERVER_FILE_S) - taken_s;

	return left_s > 0 ? left_s : 1;
}

/* Has the library itself end the request after @limit_s. */
static int ask_within(struct debug_server *server, long limit_s, const uint8_t *build_id,
		      size_t build_id_size, char **ret_path)
{
	bool may_retry = !getenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR);
	char limit[24];
	int fd;

	snprintf(limit, sizeof(limit), "%ld", limit_s);
	setenv(DEBUGINFOD_MAXTIME_ENV_VAR, limit, 1);
	if (may_retry)
		setenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR, "0", 1);
	fd = server->library.find_debuginfo(server->client, build_id, (int)build_id_size, ret_path);
	unsetenv(DEBUGINFOD_MAXTIME_ENV_VAR);
	if (may_retry)
		unsetenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR);
	return fd;
}

/*
 * Where the library is silent, it would wait for an answer for minutes, three times. Its own limit
 * ends that, but is one of the whole transfer: a server that has answered meanwhile is asked again
 * with all the time that is left, and on_progress() sees to the transfer. A limit that the user has
 * set stays.
 */
static int ask(struct debug_server *server, const uint8_t *build_id, size_t build_id_size,
	       char **ret_path)
{
	const struct library *library = &server->library;
	int fd;

	if (!library->is_silent || getenv(DEBUGINFOD_MAXTIME_ENV_VAR)) {
		fd = library->find_debuginfo(server->client, build_id, (int)build_id_size,
					     ret_path);
	} else {
		fd = ask_within(server, (long)(stall_ns() / NS_PER_S), build_id, build_id_size,
				ret_path);
		if (fd == -ETIME && server->has_answered) {
			server->nr_bytes = 0;
			server->last_byte_ns = now_ns();
			fd = ask_within(server, left_s(server), build_id, build_id_size, ret_path);
		}
	}
	server->timed_out |= fd == -ETIME;
	return fd;
}

/* Fetches without a look into the file. */
static int fetch(struct debug_server *server, const char *name, const uint8_t *build_id,
		 size_t build_id_size, char **ret_path)
{
	int fd;

	if (server->gave_up)
		return -ENOENT;
	if (!start_client(server)) {
		server->gave_up = true;
		return -ENOENT;
	}
	server->name = name;
	server->begin_ns = server->last_byte_ns = now_ns();
	server->nr_bytes = 0;
	server->has_answered = server->timed_out = server->shown = false;
	show_progress(server, 0, 0);
	fd = ask(server, build_id, build_id_size, ret_path);
	end_fetch(server, fd);
	server->name = NULL;
	return fd < 0 ? -ENOENT : fd;
}

/* "BUILD-ID NAME"; NULL: out of memory. */
static char *format_wanted(const char *name, const uint8_t *build_id, size_t build_id_size)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < build_id_size; i++)
		fprintf(out, "%02x", build_id[i]);
	fprintf(out, " %s", name);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* Returns the size of the build-id before the name; 0: the text is not as format_wanted() makes it.
 */
static size_t parse_wanted(const char *text, uint8_t build_id[MAX_BUILD_ID], const char **ret_name)
{
	size_t size = 0;

	for (; size < MAX_BUILD_ID && *text && *text != ' '; size++, text += 2)
		if (sscanf(text, "%2hhx", &build_id[size]) != 1 || !text[1])
			return 0;
	*ret_name = text + 1;
	return *text == ' ' ? size : 0;
}

int debug_server_serve(void *context, const struct broker_request *request, int *ret_fd)
{
	static struct debug_server *server;
	uint8_t build_id[MAX_BUILD_ID];
	char *path = NULL;
	const char *name;
	size_t size = parse_wanted(request->text, build_id, &name);

	(void)context;
	if (!size || (!server && debug_server_create(&server)) || !server)
		return -EINVAL;
	*ret_fd = fetch(server, name, build_id, size, &path);
	free(path);
	return *ret_fd < 0 ? *ret_fd : 0;
}

/* The path is for messages: nothing is there. */
static int fetch_by_broker(const char *name, const uint8_t *build_id, size_t build_id_size,
			   char **ret_path)
{
	_cleanup_free_ char *text = format_wanted(name, build_id, build_id_size);
	int fd = text ? broker_open(BROKER_FETCH_DEBUG, text, NULL) : -ENOMEM;

	if (fd >= 0 && asprintf(ret_path, "/debuginfod/%s", text) < 0)
		*ret_path = NULL;
	return fd;
}

int debug_server_fetch(struct debug_server *server, const char *name, const uint8_t *build_id,
		       size_t build_id_size, char **ret_path)
{
	char *path = NULL;
	int fd;

	if (!build_id_size || build_id_size > MAX_BUILD_ID)
		return -ENOENT;
	fd = broker_is_used() ? fetch_by_broker(name, build_id, build_id_size, &path)
			      : fetch(server, name, build_id, build_id_size, &path);
	if (fd < 0)
		return -ENOENT;
	if (!elf_file_expands_well(fd, path)) {
		close(fd);
		free(path);
		return -ENOENT;
	}
	*ret_path = path;
	return fd;
}
