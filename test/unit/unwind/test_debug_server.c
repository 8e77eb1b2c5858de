/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The limits of libdebuginfod's own, where it says nothing until a server answers. */
#include "common/scope.h"
#include "test/unit/unwind/scratch_dir.h"
#include "unwind/modules/debug_server.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>

/* A libdebuginfod as since elfutils 0.192. It notes the limits of each request. */
static const char library[] =
	"#include <errno.h>\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <string.h>\n"
	"int nr_requests, answers;\n"
	"char limits[4][32];\n"
	"static void *data;\n"
	"static int (*progress)(void *client, long a, long b);\n"
	"void *debuginfod_begin(void) { return &data; }\n"
	"void debuginfod_end(void *client) {}\n"
	"void debuginfod_find_metadata(void) {}\n"
	"void debuginfod_set_user_data(void *client, void *value) { data = value; }\n"
	"void *debuginfod_get_user_data(void *client) { return data; }\n"
	"void debuginfod_set_progressfn(void *client, int (*function)(void *, long, long))\n"
	"{ progress = function; }\n"
	"int debuginfod_find_debuginfo(void *client, const void *id, int size, char **path)\n"
	"{\n"
	"	const char *time = getenv(\"DEBUGINFOD_MAXTIME\");\n"
	"	const char *retries = getenv(\"DEBUGINFOD_RETRY_LIMIT\");\n"
	"	snprintf(limits[nr_requests++], 32, \"%s s, %s\", time ? time : \"-\",\n"
	"		 retries ? retries : \"-\");\n"
	"	if (answers)\n"
	"		progress(client, 1, 0);\n"
	"	return -ETIME;\n"
	"}\n";

static int *nr_requests, *answers;
static char (*limits)[32];

static int load_library(void **state)
{
	_cleanup_free_ char *path = NULL;
	FILE *source;
	void *handle;

	/* libdw would have loaded the other library. */
	if (getenv(DEBUGINFOD_URLS_ENV_VAR))
		exit(77);
	unsetenv(DEBUGINFOD_TIMEOUT_ENV_VAR);
	unsetenv(DEBUGINFOD_MAXTIME_ENV_VAR);
	unsetenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR);
	if (scratch_dir_setup(state))
		return -1;
	source = fopen(in_dir("library.c"), "we");
	assert_non_null(source);
	fputs(library, source);
	assert_int_equal(fclose(source), 0);
	RUN("cc", "-shared", "-fPIC", "-Wl,-soname,libdebuginfod.so.1", "-o", "library.so",
	    "library.c");
	path = strdup(in_dir("library.so"));
	handle = path ? dlopen(path, RTLD_NOW) : NULL;
	assert_non_null(handle);
	nr_requests = dlsym(handle, "nr_requests");
	answers = dlsym(handle, "answers");
	limits = dlsym(handle, "limits");
	setenv(DEBUGINFOD_URLS_ENV_VAR, "http://127.0.0.1:1/", 1);
	return nr_requests && answers && limits ? 0 : -1;
}

/* Asks for one file, which does not come. */
static void ask(bool is_answered)
{
	static const uint8_t build_id[20] = {1};
	struct debug_server *server;
	char *path;

	*nr_requests = 0;
	*answers = is_answered;
	assert_int_equal(debug_server_create(&server), 0);
	assert_non_null(server);
	assert_int_equal(debug_server_fetch(server, "file", build_id, sizeof(build_id), &path),
			 -ENOENT);
	debug_server_destroy(server);
}

static void a_mute_server(void **state)
{
	ask(false);
	assert_int_equal(*nr_requests, 1);
	assert_string_equal(limits[0], "10 s, 0");
	assert_null(getenv(DEBUGINFOD_MAXTIME_ENV_VAR));
	assert_null(getenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR));
}

/* It may be mute when it is asked again. */
static void a_server_that_has_answered(void **state)
{
	ask(true);
	assert_int_equal(*nr_requests, 2);
	assert_string_equal(limits[0], "10 s, 0");
	assert_in_range(strtol(limits[1], NULL, 10), 1, DEBUG_SERVER_FILE_S);
	assert_non_null(strstr(limits[1], " s, 0"));
	assert_null(getenv(DEBUGINFOD_MAXTIME_ENV_VAR));
}

static void limits_of_the_user(void **state)
{
	setenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR, "5", 1);
	ask(false);
	assert_string_equal(limits[0], "10 s, 5");
	assert_string_equal(getenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR), "5");
	unsetenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR);

	setenv(DEBUGINFOD_MAXTIME_ENV_VAR, "7", 1);
	ask(true);
	assert_int_equal(*nr_requests, 1);
	assert_string_equal(limits[0], "7 s, -");
	assert_string_equal(getenv(DEBUGINFOD_MAXTIME_ENV_VAR), "7");
	unsetenv(DEBUGINFOD_MAXTIME_ENV_VAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mute_server),
		cmocka_unit_test(a_server_that_has_answered),
		cmocka_unit_test(limits_of_the_user),
	};

	return cmocka_run_group_tests(tests, load_library, scratch_dir_teardown);
}
